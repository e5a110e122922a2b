"""From the judge's answers to figures: each is one value a pool, whose mean has an interval over resampled pools."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats
from raggs.base.types import number
from raggs.diagnosis.judge.models import Asking, FavourPart, PlacePart, PoolsPart, Row, WayPart
from raggs.stats.comparison import bootstrap_mean
from raggs.stats.probes.judge import (
    ByPool,
    Picks,
    Told,
    by_pool,
    kept_by_place,
    mean_disagreement,
    mean_overlap,
    turned,
    with_grades,
)

ENDS = (5, 10, 20, 30, 40)  # the last places of the parts of a list
SHOWN = 3  # reasons of failures that are named


@dataclass(frozen=True)
class Answers:
    """All answers to be compared.

    Attributes:
        single: orders of whole pools in one prompt.
        ranked: rankings; their `shown` is the pool.
        grades: by pool and passage, what the rank stage starts from.
        top: how many of the first are compared.
        batch: passages that the rank stage shows at a time.
        seed: of the intervals.
    """

    single: Asking
    ranked: Asking
    grades: Mapping[str, Mapping[str, int]]
    top: int
    batch: int
    seed: int

    @cached_property
    def qids(self) -> tuple[str, ...]:
        """The pools."""
        return tuple(sorted({row.qid for row in self.ranked.rows}))

    @cached_property
    def orders(self) -> Mapping[str, list[Told]]:
        """By pool the orders of one prompt that were given."""
        return {qid: _told(self.single.rows, qid) for qid in self.qids}

    @cached_property
    def rankings(self) -> Mapping[str, list[Told]]:
        """By pool its rankings; each counts as a showing of its own."""
        return {qid: _told(self.ranked.rows, qid) for qid in self.qids}

    @cached_property
    def informed(self) -> Mapping[str, list[Told]]:
        """By pool the orders of one prompt, each read with the grades."""
        return {qid: [with_grades(told, self._graded(qid)) for told in self.orders[qid]] for qid in self.qids}

    # --- the three ways ---

    def one_prompt(self, name: str) -> WayPart:
        """One prompt of the whole pool."""
        return self._of_prompts(name, self.orders)

    def with_grades(self, name: str) -> WayPart:
        """The same, read with the grades."""
        return self._of_prompts(name, self.informed)

    def rank_stage(self, name: str) -> WayPart:
        """The rank stage; nothing is shown the same way again there."""
        top = [mean_overlap(self.rankings[qid], self.top, same=True) for qid in self.qids]
        return self._way(name, self.ranked, [math.nan] * len(self.qids), self._afresh, top)

    @property
    def gain(self) -> PoolsPart:
        """By how much fewer pairs the rank stage turns than one prompt that knows the same grades."""
        return self.mean(np.array(self._turned(self.informed)) - np.array(self._afresh))

    @property
    def between(self) -> PoolsPart:
        """Kendall's tau of the two ways, over all orders of a pool."""
        return self.mean([1 - 2 * _between(self.orders[qid], self.rankings[qid]) for qid in self.qids])

    # --- what the place shown does, and how sharp the judge is ---

    @property
    def favour(self) -> FavourPart:
        """Of either way."""
        rows = [row for row in self.ranked.rows if row.asked > row.failed]
        sizes = [min(self.batch, len(row.shown)) for row in rows]
        return FavourPart(
            toward=self.mean([turned(self.orders[qid]).share for qid in self.qids]),
            single=self.mean(self._picked.grades),
            first=self.mean(self._by_pool([row.first / (row.asked - row.failed) for row in rows], rows)),
            fair_first=float(np.mean([1 / size for size in sizes])) if sizes else 0.0,
            ranked=self.mean(self._by_pool([_known(row.position_bias) for row in rows], rows)),
        )

    @property
    def sharpness(self) -> PoolsPart:
        """Of one prompt, on the scale of the rank stage's utilities."""
        return self.mean(self._picked.sharpness)

    @property
    def ranked_sharpness(self) -> PoolsPart:
        """As the engine estimates it."""
        rows = self.ranked.rows
        return self.mean(self._by_pool([_known(row.sharpness) for row in rows], rows))

    def places(self) -> tuple[PlacePart, ...]:
        """How often neighbours keep their order, by their place."""
        longest = max((len(row.shown) for row in self.ranked.rows), default=0)
        ends = [*(end for end in ENDS if end < longest - 1), max(1, longest - 1)]
        columns = [
            np.array([rows(qid, ends) for qid in self.qids]) for rows in (self._again, self._against, self._ranked)
        ]
        firsts = [1, *(end + 1 for end in ends[:-1])]
        return tuple(
            PlacePart(
                first=first,
                last=end,
                again=self.mean(columns[0][:, at]),
                against=self.mean(columns[1][:, at]),
                ranked=self.mean(columns[2][:, at]),
            )
            for at, (first, end) in enumerate(zip(firsts, ends, strict=True))
        )

    def errors(self) -> dict[str, int]:
        """Why no order was given, the most frequent first."""
        said = [row.error or "no order" for row in self.single.rows if row.order is None]
        said += [error for row in self.ranked.rows for error in row.errors]
        return dict(Counter(said).most_common(SHOWN))

    def mean(self, values: npt.ArrayLike) -> PoolsPart:
        """Over pools."""
        found = bootstrap_mean(np.asarray(values, dtype=np.float64), seed=self.seed)
        return PoolsPart(mean=number(found.mean), low=number(found.low), high=number(found.high), pools=found.count)

    # --- by pool ---

    def _turned(self, orders: Mapping[str, list[Told]]) -> list[float]:
        return [mean_disagreement(orders[qid], same=False) for qid in self.qids]

    def _of_prompts(self, name: str, orders: Mapping[str, list[Told]]) -> WayPart:
        again = [mean_disagreement(orders[qid], same=True) for qid in self.qids]
        top = [mean_overlap(orders[qid], self.top, same=False) for qid in self.qids]
        return self._way(name, self.single, again, self._turned(orders), top)

    def _graded(self, qid: str) -> Floats:
        """The grades of a pool's passages by their numbers, as `Told` counts them."""
        return np.array([grade for _, grade in sorted(self.grades[qid].items())], dtype=np.float64)

    @cached_property
    def _afresh(self) -> list[float]:
        return [mean_disagreement(self.rankings[qid], same=True) for qid in self.qids]

    @cached_property
    def _picked(self) -> ByPool:
        """Sharpness and favour of one prompt by pool, by the utilities of the first ranking."""
        utilities = {
            row.qid: dict(zip(row.order or (), row.scores, strict=True)) for row in self.ranked.rows if not row.sample
        }
        if not any(self._turned(self.orders)):  # all are 0: however sharp it is, its answers do not tell
            return by_pool([])
        pools = [[_picks(row, utilities[qid]) for row in self._given(qid)] for qid in self.qids if qid in utilities]
        return by_pool([pool for pool in pools if pool])

    def _given(self, qid: str) -> list[Row]:
        return [row for row in self.single.rows if row.qid == qid and row.order is not None]

    def _again(self, qid: str, ends: Sequence[int]) -> npt.NDArray[np.float64]:
        pairs = [pair for pair in combinations(self.orders[qid], 2) if pair[0].alike == pair[1].alike]
        return kept_by_place(pairs, ends)

    def _against(self, qid: str, ends: Sequence[int]) -> npt.NDArray[np.float64]:
        return kept_by_place([(one, two) for one in self.orders[qid] for two in self.rankings[qid]], ends)

    def _ranked(self, qid: str, ends: Sequence[int]) -> npt.NDArray[np.float64]:
        return kept_by_place(list(combinations(self.rankings[qid], 2)), ends)

    def _by_pool(self, values: Sequence[float], rows: Sequence[Row]) -> list[float]:
        """The mean of each pool's rows."""
        found = [[value for value, row in zip(values, rows, strict=True) if row.qid == qid] for qid in self.qids]
        return [float(np.mean(each)) if each else math.nan for each in found]

    def _way(self, name: str, asking: Asking, again: list[float], otherwise: list[float], top: list[float]) -> WayPart:
        rows, asked = asking.rows, sum(row.asked for row in asking.rows)
        each = max(1, len(rows))
        return WayPart(
            name=name,
            again=self.mean(again),
            otherwise=self.mean(otherwise),
            tau=self.mean(1 - 2 * np.array(otherwise)),
            top=self.mean(top),
            asked=asked,
            failed=sum(row.failed for row in rows),
            calls=asking.calls / each,
            tokens=asking.tokens / each,
            usd=asking.usd / each,
        )


def _told(rows: Sequence[Row], qid: str) -> list[Told]:
    return [Told.of(row.shown, row.order) for row in rows if row.qid == qid and row.order is not None]


def _between(orders: Sequence[Told], others: Sequence[Told]) -> float:
    found = [mean_disagreement([one, other], same=one.alike == other.alike) for one in orders for other in others]
    return float(np.mean(found)) if found else math.nan


def _picks(row: Row, utilities: Mapping[str, float]) -> Picks:
    order, place = row.order or (), {name: at for at, name in enumerate(row.shown)}
    return Picks.of([utilities[name] for name in order], [place[name] for name in order])


def _known(value: float | None) -> float:
    return math.nan if value is None else value
