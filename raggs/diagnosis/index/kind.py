"""The kind `index`: exact truth, sweeps of efforts, comparison at equal mean recall, and what is chosen by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from raggs.base.errors import DataError, UsageError
from raggs.base.hashing import hash_file, hash_value
from raggs.base.settings import Causes
from raggs.diagnosis.base import Diagnosis, Forecast
from raggs.diagnosis.bench import Bench, Need
from raggs.diagnosis.index import showing
from raggs.diagnosis.index.comparing import (
    USUAL_LEVEL,
    delta_of,
    front_of,
    ladders,
    left_out,
    matched_parts,
    read_answers,
    verdict,
)
from raggs.diagnosis.index.measuring import (
    LEAST,
    QUESTIONS,
    Family,
    Tuner,
    World,
    embedder_of,
    families,
    hold_out,
    open_matrix,
    open_world,
    point_of,
    points_of,
    store_of,
    texts_of,
)
from raggs.diagnosis.index.models import AskedPart, DeltaPart, FrontPart, IndexFound, IndexSettings, TunedPart
from raggs.evaluation.document import Section
from raggs.parts import indexes
from raggs.parts.indexes.vectors import rows_done

EXACT = "flat"
BLOCK = 4096  # passages whose cost is reckoned at a time


class IndexDiagnosis(Diagnosis[IndexFound]):
    """What approximate indexes lose against the exact search, and whether it is lost evenly."""

    Config = IndexSettings
    Result = IndexFound
    TITLE = "What do approximate indexes lose, for which questions, and which effort is enough?"
    NEEDS = ("corpus", "embedder")
    TAKES = ("golden",)
    PACKAGES = ("faiss-cpu",)

    config: IndexSettings

    @property
    def needs(self) -> tuple[Need, ...]:
        """Nothing where vectors come from a file."""
        return () if self.config.vectors is not None else self.NEEDS

    def causes(self, bench: Bench) -> Causes:
        """With the questions, and the contents of files."""
        own, files = self.config, (self.config.vectors, self.config.queries, self.config.correct)
        asked = dict(texts_of(bench)) if _asks(bench, own) else {}
        return {
            **super().causes(bench),
            "questions": hash_value(asked),
            "files": [None if path is None else hash_file(path) for path in files],
            "depth": None if own.tune is None or bench.run is None else str(bench.run.retrieve.retrievers),
        }

    def check(self, bench: Bench) -> None:
        """Whether there are vectors and questions, the settings fit, and faiss is there."""
        own = self.config
        for path in (own.vectors, own.queries, own.correct):
            if path is not None and not path.is_file():
                raise DataError("there is no such file", where=path, remedy="check the path")
        if own.measure is not None:
            bench.require(("golden",))
        if own.correct is not None:
            read_answers(own.correct)
        rows, dims = _shape(bench, own)
        _cutoffs(own, rows)
        for family in families(own, dims):
            family.at(1).check(rows, dims, Path())

    def forecast(self, bench: Bench) -> Forecast:
        """What would be built; vectors that a provider makes are what costs."""
        own = self.config
        rows, dims = _shape(bench, own)
        if own.vectors is None and (embedder := embedder_of(bench)).models:
            store = store_of(bench)
            begun = rows_done(bench.workshop.places.vectors, embedder.identity, embedder.dims, store)
            for start in range(begun, rows, BLOCK):
                embedder.embed(store.contents(start, min(start + BLOCK, rows)))
            if _asks(bench, own):
                embedder.embed_queries(list(texts_of(bench).values()))
        names = ", ".join(family.name for family in families(own, dims))
        told = f"{rows:,} vectors of {dims} dimensions indexed by {names}; asked for {_words(_cutoffs(own, rows))} hits"
        return Forecast((told,), bench.asked())

    def measure(self, bench: Bench) -> IndexFound:
        """Every point, then what is read off them."""
        own, world = self.config, open_world(bench, self.config)
        asking = hold_out(world, own.held_out, bench.seed)
        if not asking.asked:
            raise UsageError("nobody asks anything", remedy="--held-out 500, or questions: --config or --queries")
        rows, dims = asking.vectors.vectors.shape
        ks = _cutoffs(own, rows)
        by_answers = self._delta(bench, world, ks[0])
        delta = own.delta if by_answers is None or by_answers.delta is None else by_answers.delta
        deltas = tuple(sorted({*own.deltas, delta}))
        kinds = families(own, dims)
        points = [point for k in ks for each in kinds for point in points_of(bench, asking, each, k, own)]
        rungs = ladders(points, deltas, bench.seed)
        parts = tuple(part for rung in rungs for part in rung.parts())
        matched = tuple(matched_parts(rungs, sorted(set(own.levels)), deltas))
        tuned = self._tuned(bench, world, asking, kinds)
        front = None if own.fix is None else front_of(parts, own.fix, delta)
        return IndexFound(
            verdict=verdict(parts, matched, deltas, tuned, front),
            passed=_passed(tuned, front),
            rows=rows,
            dims=dims,
            source=world.source,
            asked=tuple(AskedPart(origin=each.origin, questions=len(each.vectors)) for each in asking.asked.values()),
            exact_qps=point_of(bench, asking, _exact(), 1, ks[0], own).row.qps,
            load=max((point.row.load for point in points if point.row.load is not None), default=None),
            deltas=deltas,
            points=parts,
            matched=matched,
            left_out=tuple(left_out(rungs, asking.asked.get(QUESTIONS), USUAL_LEVEL, delta)),
            front=front,
            tuned=tuned,
            delta=by_answers,
        )

    def _tuned(self, bench: Bench, world: World, asking: World, kinds: Sequence[Family]) -> tuple[TunedPart, ...]:
        """Over all vectors where there are questions; else over what was kept for those that are held out."""
        own = self.config
        if own.tune is None:
            return ()
        place = world if world.asked else asking
        tuner = Tuner(bench, place, next(iter(place.asked.values())), own)
        return tuple(tuner.tune(each, own.tune) for each in kinds if each.effort)

    def _delta(self, bench: Bench, world: World, k: int) -> DeltaPart | None:
        own = self.config
        if own.correct is None:
            return None
        if QUESTIONS not in world.asked or not world.asked[QUESTIONS].qids:
            raise UsageError("answers are to questions by name, and there are none", remedy="--config, or --golden")
        return delta_of(bench, world, world.asked[QUESTIONS], read_answers(own.correct), k, own.near)

    def rests_on(self, found: IndexFound) -> int:
        return max(each.questions for each in found.asked)

    def sections(self, found: IndexFound) -> tuple[Section, ...]:
        """See `layout`."""
        return showing.sections(found)

    def plots(self, found: IndexFound) -> Mapping[str, str]:
        """See `plots`."""
        return showing.plots(found)


def _asks(bench: Bench, settings: IndexSettings) -> bool:
    return settings.vectors is None and (bench.has("run") or bench.has("golden"))


def _shape(bench: Bench, settings: IndexSettings) -> tuple[int, int]:
    """How many vectors there are, and their length."""
    if settings.vectors is not None:
        rows, dims = open_matrix(settings.vectors).shape
        return rows, dims
    return len(store_of(bench)), embedder_of(bench).dims


def _cutoffs(settings: IndexSettings, rows: int) -> tuple[int, ...]:
    """The numbers of hits that make sense among so many vectors.

    Raises:
        DataError: none does.
    """
    found = tuple(k for k in dict.fromkeys(settings.k) if LEAST * k <= rows)
    if not found:
        said = f"{rows:,} vectors are too few to lose some of the nearest {min(settings.k)}"
        raise DataError(said, remedy="the exact search is as fast: leave index at flat")
    return found


def _words(ks: Sequence[int]) -> str:
    return " and ".join(map(str, ks))


def _exact() -> Family:
    return Family(EXACT, indexes.REGISTRY.load(EXACT).Config.model_validate({"type": EXACT}))


def _passed(tuned: Sequence[TunedPart], front: FrontPart | None) -> bool | None:
    asked = [part.effort is not None for part in tuned]
    if front is not None:
        asked.append(bool(front.front))
    return all(asked) if asked else None
