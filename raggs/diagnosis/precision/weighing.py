"""From lists to parts: each measure at every cutoff, and at one of them question by question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.jsontypes import Number, number
from raggs.base.precision import Scoring
from raggs.diagnosis.precision.lists import Listed
from raggs.diagnosis.precision.models import CurvePart, Kept, LeakPart, ReversalPart, SystemPart, TiedPart
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.names import parse_measure
from raggs.metrics.stats import bootstrap_mean, bootstrap_means, holm
from raggs.stats.probes.precision import Regime, Spread, Spreads, reversals, signs

DIGITS = 6
SURE = 0.05  # a corrected p below it


@dataclass(frozen=True)
class Weighing:
    """How lists are weighed.

    Attributes:
        qrels: the judgments.
        measures: names without cutoffs.
        cutoff: at which questions are told apart; `deepest`: up to which curves go.
        seed: of intervals.
    """

    qrels: Qrels
    measures: Sequence[str]
    cutoff: int
    deepest: int
    seed: int

    def weigh(self, name: str, listed: Listed, configured: Scoring) -> Kept:
        """One system at one precision."""
        hits = find_hits(self.qrels, listed.run, "file")
        spreads = {measure: Spreads(hits, measure) for measure in self.measures}
        at = {measure: each.at(self.cutoff) for measure, each in spreads.items()}
        regime = listed.regime
        part = SystemPart(
            name=name,
            form=listed.form,
            dtype=regime.dtype,
            hps=regime.hps,
            configured=regime == _regime(configured),
            sorted=listed.sorted,
            largest=listed.largest,
            curves=tuple(self._curve(measure, each) for measure, each in spreads.items()),
            at=tuple(self._tied(measure, each, hits) for measure, each in at.items()),
        )
        oblivious, expected = (tuple(_plain(column) for column in columns) for columns in _columns(list(at.values())))
        return Kept(part=part, oblivious=oblivious, expected=expected)

    def _curve(self, measure: str, spreads: Spreads) -> CurvePart:
        each = [spreads.at(k) for k in range(1, self.deepest + 1)]
        return CurvePart(
            measure=measure,
            oblivious=tuple(_mean(one.oblivious) for one in each),
            expected=tuple(_mean(one.expected) for one in each),
            least=tuple(_mean(one.least) for one in each),
            most=tuple(_mean(one.most) for one in each),
        )

    def _tied(self, measure: str, spread: Spread, hits: Hits) -> TiedPart:
        width, bias = bootstrap_means(np.stack([spread.range, spread.bias]), seed=self.seed)
        split, name = signs(spread.bias), f"{measure}@{self.cutoff}"
        return TiedPart(
            measure=name,
            oblivious=_mean(spread.oblivious),
            expected=_mean(spread.expected),
            least=_mean(spread.least),
            most=_mean(spread.most),
            range=_short(width.mean),
            range_low=_short(width.low),
            range_high=_short(width.high),
            across=_mean(parse_measure(f"range_at_k[{name}]").values(hits)),
            bias=_short(bias.mean),
            bias_low=_short(bias.low),
            bias_high=_short(bias.high),
            moved=int((spread.range > 0).sum()),
            up=split.up,
            down=split.down,
            p=split.p,
        )

    def turned(self, kept: Sequence[Kept]) -> tuple[ReversalPart, ...]:
        """The pairs of systems that change places at some precision, on some measure."""
        found: list[ReversalPart] = []
        for precision in dict.fromkeys(each.part.precision for each in kept):
            alike = {each.part.name: each for each in kept if each.part.precision == precision}
            for place, measure in enumerate(self.measures):
                spreads = {name: _spread(each, place) for name, each in alike.items()}
                for turn in reversals(spreads):
                    interval = bootstrap_mean(turn.differences, seed=self.seed)
                    spared = _expected(kept, f"{precision}+HPS", place)
                    known = turn.first in spared and turn.second in spared
                    found.append(
                        ReversalPart(
                            first=turn.first,
                            second=turn.second,
                            precision=precision,
                            measure=f"{measure}@{self.cutoff}",
                            oblivious=turn.oblivious,
                            expected=turn.expected,
                            low=number(interval.low),
                            high=number(interval.high),
                            hps=_mean(spared[turn.first] - spared[turn.second]) if known else None,
                        )
                    )
        return tuple(found)


def leaks_of(kept: Sequence[Kept]) -> tuple[LeakPart, ...]:
    """Whom the order of the file favours where scores are rounded to the end; not in files that are sorted by score."""
    parts = [each.part for each in kept if each.part.dtype != "f32" and not each.part.hps and not each.part.sorted]
    rows = [(part, tied) for part in parts for tied in part.at if tied.moved]
    corrected = holm([tied.p for _, tied in rows])
    return tuple(
        LeakPart(
            system=part.name,
            precision=part.precision,
            measure=tied.measure,
            bias=tied.bias,
            up=tied.up,
            down=tied.down,
            p=p,
        )
        for (part, tied), p in zip(rows, corrected, strict=True)
    )


def favoured(leaks: Sequence[LeakPart]) -> int:
    """1 or -1 where all biases have one sign, and one of them is no chance; else 0."""
    found = {1 if leak.bias > 0 else -1 for leak in leaks if leak.bias}
    sure = any(leak.p < SURE for leak in leaks)
    return found.pop() if len(found) == 1 and sure else 0


def _regime(scoring: Scoring) -> Regime:
    """The same as a setting says it; at f32 there is nothing to spare."""
    return Regime(scoring.dtype, scoring.high_precision and scoring.dtype != "f32")


def _columns(spreads: Sequence[Spread]) -> tuple[list[Floats], list[Floats]]:
    return [each.oblivious for each in spreads], [each.expected for each in spreads]


def _spread(kept: Kept, place: int) -> Spread:
    oblivious, expected = _array(kept.oblivious[place]), _array(kept.expected[place])
    return Spread(oblivious, expected, expected, expected)


def _expected(kept: Sequence[Kept], precision: str, place: int) -> dict[str, Floats]:
    return {each.part.name: _array(each.expected[place]) for each in kept if each.part.precision == precision}


def _array(values: Sequence[Number]) -> Floats:
    return np.array([np.nan if value is None else value for value in values])


def _plain(values: Floats) -> tuple[Number, ...]:
    return tuple(number(value) for value in values.tolist())


def _mean(values: Floats) -> Number:
    known = values[np.isfinite(values)]
    return _short(float(known.mean())) if len(known) else None


def _short(value: float) -> Number:
    return number(round(value, DIGITS))
