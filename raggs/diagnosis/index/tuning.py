"""The least effort whose loss is within a limit beyond doubt, found by climbing and then by halving.

Over the index that users ask: all vectors, as deep as the retriever searches. The loss is of a measure where a golden
set is there and one is named, else of the recall of the exact nearest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.errors import DataError
from raggs.base.frozen import Frozen
from raggs.base.jsontypes import Number, number
from raggs.base.progress import Building
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.index.measuring import opened
from raggs.diagnosis.index.models import LossPart, TunedPart
from raggs.diagnosis.index.recipes import TYPE, Family, bisected
from raggs.diagnosis.index.settings import IndexSettings
from raggs.diagnosis.index.worlds import Asked, World
from raggs.diagnosis.parts import MeanPart
from raggs.metrics.evaluate import evaluate
from raggs.metrics.names import at_cutoffs
from raggs.metrics.stats import Interval
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.stats.probes.neighbours import kept
from raggs.stats.probes.tuning import least_effort, loss

USUAL_DEPTH = 50
KIND = "index loss/1"


class LossRow(Frozen):
    """The values of one effort by question: kept between invocations."""

    values: Mapping[str, tuple[Number, ...]]


class Tuner:
    """Efforts of indexes over one world.

    Args:
        asked: the questions.
    """

    def __init__(self, bench: Bench, world: World, asked: Asked, settings: IndexSettings) -> None:
        self._bench, self._world, self._asked, self._settings = bench, world, asked, settings
        self.depth = depth_of(bench, settings)
        self._exact = self._values(world.truth(asked, self.depth))

    def tune(self, family: Family, limit: float) -> TunedPart:
        """The least effort of one index.

        Raises:
            DataError: the exact search has nothing to lose.
        """
        found = self._climb(family, limit)
        tried = dict(sorted(found.items()))
        at = least_effort([list(losses.values()) for losses in tried.values()], limit)
        effort = None if at is None else list(tried)[at]
        return TunedPart(
            index=family.name,
            setting=family.effort,
            limit=limit,
            depth=self.depth,
            origin=self._asked.origin,
            questions=len(self._asked.vectors),
            effort=effort,
            yaml=None if effort is None else as_yaml(family, effort),
            tried=tuple(_part(each, losses) for each, losses in tried.items()),
        )

    def _climb(self, family: Family, limit: float) -> dict[int, Mapping[str, Interval]]:
        """Efforts upwards until one fits, and then between it and the one before."""
        found: dict[int, Mapping[str, Interval]] = {}

        def fits(effort: int) -> bool:
            found[effort] = self._losses(family, effort)
            return least_effort([list(found[effort].values())], limit) == 0

        before = 0
        for effort in family.efforts(self.depth)[:: 1 if family.varied else 2]:
            if fits(effort):
                if before and not family.varied:
                    bisected(before, effort, fits)
                return found
            if effort >= len(self._world.vectors):
                return found
            before = effort
        return found

    def _losses(self, family: Family, effort: int) -> Mapping[str, Interval]:
        self._bench.hear(Building(f"what {family.named(effort)} loses", 0, 0))
        recipe = family.at(effort)
        causes = {
            "kind": KIND,
            "index": recipe.causes(),
            "vectors": self._world.vectors.sum,
            "asked": self._asked.sum,
            "depth": self.depth,
            "of": [self._settings.measure, list(self._settings.cutoffs)],
            "golden": self._bench.causes("golden") if self._settings.measure else None,
        }
        row = self._bench.kept(causes, LossRow, lambda: [self._row(family, effort)])[0]
        try:
            return {
                name: loss(_floats(values), self._exact[name], seed=self._bench.seed)
                for name, values in row.values.items()
            }
        except ValueError as error:
            raise DataError(f"no loss can be told: {error}", remedy="choose another --measure") from error

    def _row(self, family: Family, effort: int) -> LossRow:
        index = opened(self._bench, self._world, family.at(effort))
        values = self._values(index.search(self._asked.vectors, self.depth).positions)
        return LossRow(values={name: tuple(map(number, row.tolist())) for name, row in values.items()})

    def _values(self, found: Ints) -> dict[str, Floats]:
        """Values by question, by measure."""
        cutoffs, measure = self._settings.cutoffs, self._settings.measure
        if measure is None:
            truth = self._world.truth(self._asked, self.depth)
            return {f"recall@{k}": kept(found, truth[:, :k]).recall for k in cutoffs}
        names = [named.name for named in at_cutoffs(measure, cutoffs)]
        store, judgments = self._world.store, self._bench.judgments
        lists = {
            qid: [] if store is None else store.ids_at(row[row >= 0].tolist())
            for qid, row in zip(self._asked.qids, found, strict=True)
        }
        scored = evaluate(judgments.qrels, lists, names, facets=judgments.facets or None)
        return {name: scored.column(name) for name in names}


def depth_of(bench: Bench, settings: IndexSettings) -> int:
    """How many hits are asked for."""
    if settings.depth is not None:
        return settings.depth
    own = () if bench.run is None else bench.run.retrieve.retrievers
    dense = [spec.k for spec in own if isinstance(spec, DenseRetriever.Config)]
    return max([*(dense[:1] or [USUAL_DEPTH]), *settings.cutoffs])


def as_yaml(family: Family, effort: int) -> str:
    """The settings as they are written below a retriever: ``index: {type: hnsw, m: 32, ef: 57}``."""
    told = family.at(effort).config
    fields = type(told).model_fields
    parts = {
        name: value
        for name, value in told.model_dump().items()
        if name in (TYPE, family.effort) or value != fields[name].default
    }
    return "index: {" + ", ".join(f"{name}: {_word(value)}" for name, value in parts.items()) + "}"


def _word(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _floats(values: tuple[Number, ...]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _part(effort: int, losses: Mapping[str, Interval]) -> LossPart:
    return LossPart(effort=effort, losses={name: MeanPart.of(each) for name, each in losses.items()})
