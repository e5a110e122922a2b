"""Measurements of indexes: points, workloads, families of indexes, and the minimum effort.

A point is an index at one search effort for one K. Its measurements are the recall of the exact nearest passages for
each query, and the speed. Each point is stored, so that an interrupted diagnosis can be resumed. A sample of the
first set of queries is timed, one query at a time, on one thread, after a warm-up. Each query is timed in
several rounds, and the median counts.

A workload consists of the vectors of a corpus or a file, and sets of queries. Held-out passages are removed from the
vectors before indexes are built and then used as queries that no index contains (in-distribution). The queries of a
configuration are out-of-distribution, as real queries are.

A family is an index with fixed settings, except for the effort. Its name lists the non-default settings, as on the
command line: ``hnsw:m=32``. Efforts increase by a factor of about 1.4 (2 while the recall is low) from the smallest
useful one. They stop when the mean recall is sufficient for every set of queries, or no longer increases.

Tuning finds the smallest effort whose loss is significantly within a limit, by increasing the effort and then
bisecting. If there are queries, it uses the index that a real search would use: all vectors, at the retriever's
depth. If a golden set and a measure are given, the loss is the decrease of this measure. Otherwise it is the share of
the exact nearest passages that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats, Ints, Vectors
from raggs.base.artifacts import Frozen
from raggs.base.errors import DataError, UsageError
from raggs.base.files import hash_file, regular_file
from raggs.base.hashing import generator, hash_bytes
from raggs.base.precision import PrecisionSettings
from raggs.base.text import clean_unicode, did_you_mean, one_line, plural
from raggs.base.types import BuildProgress, Number, finite_or_none
from raggs.diagnosis.base import Bench
from raggs.diagnosis.index.models import IndexDiagnosisConfig, LossPart, Origin, PointRow, QuerySetValues, TunedPart
from raggs.diagnosis.models import MeanPart
from raggs.metrics.evaluate import evaluate
from raggs.metrics.names import at_cutoffs
from raggs.parts import indexes
from raggs.parts.embedders import Embedder
from raggs.parts.indexes import Index, IndexConfig, OpenIndex
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import VectorIndex
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.stages.embed import prepare
from raggs.stats.index_loss import QueryValues, kept_values, least_effort, loss
from raggs.stats.intervals import Interval
from raggs.sweeps.timing import load_now

QUESTIONS: Origin = "questions"
HELD_OUT: Origin = "held-out passages"
TENTH = 10
SERVER = "--vectors FILE.npy"  # for the error message: alternative to a corpus on a server
MIN_VECTORS_PER_HIT = 4  # with fewer vectors per requested hit, approximate search saves little work


@dataclass(frozen=True)
class QueryVectors:
    """A set of queries as vectors. Queries from a vector file have no ids."""

    origin: Origin
    vectors: Vectors
    qids: tuple[str, ...] = ()

    @cached_property
    def sum(self) -> str:
        """Hash of the vectors."""
        return hash_bytes(self.vectors.tobytes())


class IndexWorkload:
    """Vectors to search, and sets of queries.

    Args:
        vectors: vectors to search.
        asked: sets of queries by origin.
        source: description of the vectors.
        store: the passages; None if the vectors come from a file.
    """

    def __init__(
        self, vectors: VectorIndex, asked: Mapping[Origin, QueryVectors], source: str, store: PassageStore | None = None
    ) -> None:
        self.vectors, self.asked, self.source, self.store = vectors, asked, source, store
        self._truth: dict[tuple[str, int], Ints] = {}

    def truth(self, asked: QueryVectors, k: int) -> Ints:
        """Return the positions of the exact k nearest passages of each query, shape (queries, k)."""
        if (asked.sum, k) not in self._truth:
            self._truth[asked.sum, k] = self.vectors.search(asked.vectors, k).positions
        return self._truth[asked.sum, k]


def open_world(bench: Bench, settings: IndexDiagnosisConfig) -> IndexWorkload:
    """Return the workload of all vectors and the given queries.

    Raises:
        RaggsError: an input is missing, or a file is not valid.
    """
    if settings.vectors is not None:
        return _of_files(bench, settings.vectors, settings.queries)
    store, embedder = bench.store(SERVER), embedder_of(bench)
    vectors = bench.workspace.vectors(store, embedder)
    asked: dict[Origin, QueryVectors] = {}
    if bench.has("run") or bench.has("golden"):
        texts = texts_of(bench)
        given = embedder.embed_queries(list(texts.values()))
        live = np.flatnonzero(given.any(axis=1))
        if not len(live):
            said = f"the embedder returns no vector for any of {plural(len(texts), 'query')}"
            raise DataError(said, remedy="pass another --embedder, or queries in a language that it knows")
        qids = [list(texts)[at] for at in live.tolist()]
        asked[QUESTIONS] = QueryVectors(QUESTIONS, np.ascontiguousarray(given[live], dtype=np.float32), tuple(qids))
    return IndexWorkload(vectors, asked, f"{len(store):,} passages by {embedder.identity.split('/')[0]}", store)


def texts_of(bench: Bench) -> Mapping[str, str]:
    """Return the queries as they are searched: rewritten by the run's rewriter, if that calls no paid model."""
    if bench.run is None or (rewriter := bench.workspace.rewriter(bench.run.embed.rewrite)).models:
        return {qid: one_line(clean_unicode(query.text)) for qid, query in bench.queries.items()}
    usual, loop = bench.run.embed.language, bench.workspace.loop
    return {qid: loop.run(prepare(query, rewriter, usual)).rewrite for qid, query in bench.queries.items()}


def hold_out(world: IndexWorkload, count: int, seed: int) -> IndexWorkload:
    """Return a workload in which some vectors are removed and used as queries: at most a tenth, and no zero vectors."""
    matrix = world.vectors.vectors
    drawn = np.sort(generator(seed, "held out").permutation(len(matrix))[: min(count, len(matrix) // TENTH)])
    chosen = drawn[matrix[drawn].any(axis=1)]
    if not len(chosen):
        return world
    stays = np.ones(len(matrix), dtype=np.bool_)
    stays[chosen] = False
    asked = QueryVectors(HELD_OUT, np.ascontiguousarray(matrix[chosen], dtype=np.float32))
    rest = VectorIndex.of(np.ascontiguousarray(matrix[stays]), world.vectors.cache.at(f"without-{asked.sum[:16]}"))
    return IndexWorkload(rest, {**world.asked, HELD_OUT: asked}, world.source)


def embedder_of(bench: Bench) -> Embedder:
    """Return the embedder of the bench, which must be the only one.

    Raises:
        UsageError: several embedders are given.
    """
    if len(bench.embedders) > 1:
        raise UsageError("indexes can be compared for one embedder only", remedy="pass one --embedder")
    return next(iter(bench.embedders.values()))


def _of_files(bench: Bench, vectors: Path, queries: Path | None) -> IndexWorkload:
    matrix = read_matrix(vectors)
    whole = VectorIndex.of(matrix, bench.workspace.cache.at("vectors").at(f"given-{hash_file(vectors)[:16]}"))
    asked: dict[Origin, QueryVectors] = {}
    if queries is not None:
        given = read_matrix(queries)
        if given.shape[1] != matrix.shape[1]:
            said = f"query vectors have {given.shape[1]} dimensions, passage vectors {matrix.shape[1]}"
            raise DataError(said, where=queries, remedy="embed queries and passages with the same embedder")
        if not given.any():
            raise DataError("all vectors are zero", where=queries, remedy="check how the file was made")
        asked[QUESTIONS] = QueryVectors(QUESTIONS, np.ascontiguousarray(given[given.any(axis=1)]))
    return IndexWorkload(whole, asked, f"{len(matrix):,} vectors of {vectors.name}")


def open_matrix(path: Path) -> npt.NDArray[np.number]:
    """Return a matrix in numpy's format, memory-mapped.

    Raises:
        DataError: the file is not a valid matrix.
    """
    try:
        found: npt.NDArray[np.number] = np.load(regular_file(path), mmap_mode="r", allow_pickle=False)
        if found.ndim != 2 or not found.size or found.dtype.kind not in "fiu":
            raise ValueError("this is not a NumPy file of numbers")
    except FileNotFoundError as error:
        raise DataError("there is no such file", where=path, remedy="check the path") from error
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            "not a NumPy matrix with one vector per row", where=path, remedy="write it with numpy.save"
        ) from error
    return found


def read_matrix(path: Path) -> Vectors:
    """Return the rows of a matrix, scaled to unit length. Rows of zeros stay zero.

    Raises:
        DataError: the file is not a valid matrix, or contains NaN or infinity.
    """
    rows = np.array(open_matrix(path), dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise DataError("it contains NaN or infinity", where=path, remedy="check how the file was made")
    rows /= np.where(lengths == 0, 1, lengths)
    return rows


EFFORT_RATIO = 2**0.5
MAX_EFFORT_STEPS = 24  # maximum number of efforts to try: from 10 to about 29,000
QUARTER = 4  # default number of dimensions per code in product quantisation
TYPE = "type"


@dataclass(frozen=True)
class IndexFamily:
    """An index with fixed settings, except for its search effort.

    Attributes:
        name: type, non-default settings and varied settings, as on the command line.
        config: the settings; the effort in them is not used.
        varied: efforts to try; if empty, efforts increase until the recall is sufficient.
    """

    name: str
    config: IndexConfig
    varied: tuple[int, ...] = ()

    @property
    def effort(self) -> str:
        """Name of the setting that controls the effort of a search; empty if it has none."""
        return self._recipe(self.config).EFFORT

    def at(self, effort: int) -> Index:
        """Return the index type with the settings of this family, at one effort. The index is not built yet."""
        return self._recipe(self.config.model_copy(update={self.effort: effort}) if self.effort else self.config)

    def named(self, effort: int) -> str:
        """Return the name of a point, as on the command line."""
        return f"{self.name}:{self.effort}={effort}" if self.effort else self.name

    def efforts(self, k: int) -> list[int]:
        """Return the efforts to try, in ascending order. The caller stops when the recall is sufficient."""
        if not self.effort:
            return [1]
        least = self._recipe(self.config).least_effort(k)
        if self.varied:
            return sorted({max(each, least) for each in self.varied})
        return sorted({round(least * EFFORT_RATIO**step) for step in range(MAX_EFFORT_STEPS)})

    @staticmethod
    def _recipe(config: IndexConfig) -> Index:
        return indexes.REGISTRY.of(config)(config)


def families(settings: IndexDiagnosisConfig, dims: int) -> list[IndexFamily]:
    """Return a family for each index and each combination of the varied settings that the index has, without
    duplicates.

    Raises:
        UsageError: no index has a setting that should be varied, or a value is not valid.
    """
    bases = list(settings.indexes) or _default_indexes(dims)
    for name in settings.vary:
        if not any(name in type(base).model_fields for base in bases):
            known = sorted({field for base in bases for field in type(base).model_fields} - {TYPE})
            raise UsageError(f"no index has a setting {name!r}", remedy=did_you_mean(name, known))
    found: dict[str, IndexFamily] = {}
    for base in bases:
        for each in _varied(base, settings.vary):
            found.setdefault(each.name, each)
    return list(found.values())


def _default_indexes(dims: int) -> list[IndexConfig]:
    """Return the default indexes: a graph (HNSW), inverted lists (IVF), and lists with product quantisation.

    The last one is omitted if the number of dimensions is not a multiple of `QUARTER`.
    """
    hnsw, ivf = indexes.REGISTRY.load("hnsw").Config, indexes.REGISTRY.load("ivf").Config
    plain = [hnsw.model_validate({TYPE: "hnsw"}), ivf.model_validate({TYPE: "ivf"})]
    return plain if dims % QUARTER else [*plain, ivf.model_validate({TYPE: "ivf", "pq": dims // QUARTER})]


def _varied(base: IndexConfig, vary: Mapping[str, Sequence[int]]) -> Iterator[IndexFamily]:
    effort = indexes.REGISTRY.of(base).EFFORT
    own = {name: values for name, values in vary.items() if name in type(base).model_fields and name != effort}
    for values in product(*own.values()):
        update = dict(zip(own, values, strict=True))
        config = _validated(base, update)
        yield IndexFamily(_name(config, effort, own), config, tuple(vary.get(effort, ())))


def _validated(base: IndexConfig, update: Mapping[str, int]) -> IndexConfig:
    try:
        return type(base).model_validate({**base.model_dump(), **update})
    except ValueError as error:
        told = ", ".join(f"{name}={value}" for name, value in update.items())
        raise UsageError(f"{base.type} does not accept {told}", remedy="see: raggs list indexes") from error


def _name(config: IndexConfig, effort: str, varied: Mapping[str, object]) -> str:
    fields = type(config).model_fields
    told = [
        f":{name}={'null' if value is None else value}"
        for name, value in config.model_dump().items()
        if name not in (TYPE, effort) and (name in varied or value != fields[name].default)
    ]
    return config.type + "".join(told)


def bisected(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the smallest integer for which `fits` is true, by bisection. `fits` must be false for `low` and true for
    `high`.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


RECALL_ENOUGH = 0.96  # if the mean recall of every set of queries is at least this, no higher effort is tried
STALLED = 1e-3  # after two steps in a row in which recall increases by less than this, no higher effort is tried
# below this mean recall, efforts increase in double steps, because such indexes are not used in practice
DOUBLE_STEP_BELOW = 0.5
WARM = 5  # number of untimed queries before the measurement (warm-up)
DIGITS = 7
POINT_KIND = "index point/2"


@dataclass(frozen=True)
class EffortPoint:
    """An index at one effort, for one K.

    Attributes:
        family, effort, k: the index, its effort, and the number of hits per query.
        row: stored measurements.
        kept: values of each set of queries, by origin.
    """

    family: IndexFamily
    effort: int
    k: int
    row: PointRow
    kept: dict[str, QueryValues]

    @property
    def least_recall(self) -> float:
        """Lowest mean recall over the sets of queries."""
        return min(float(each.recall.mean()) for each in self.kept.values())


def points_of(
    bench: Bench, world: IndexWorkload, family: IndexFamily, k: int, settings: IndexDiagnosisConfig
) -> Iterator[EffortPoint]:
    """Yield the points of one index for one K with increasing effort, until the recall is sufficient or no longer
    increases. If the user gave the efforts, yield a point for each of them.
    """
    found: list[EffortPoint] = []
    efforts = family.efforts(k)
    while efforts:
        effort = efforts.pop(0)
        bench.hear(BuildProgress(f"{family.named(effort)} for {k}", len(found), 0))
        found.append(point_of(bench, world, family, effort, k, settings))
        yield found[-1]
        if family.varied:
            continue
        last = [point.least_recall for point in found[-3:]]
        stalled = len(last) == 3 and all(later - earlier < STALLED for earlier, later in pairwise(last))
        if last[-1] >= RECALL_ENOUGH or stalled:
            return
        if found[-1].least_recall < DOUBLE_STEP_BELOW:
            del efforts[:1]


def point_of(
    bench: Bench, world: IndexWorkload, family: IndexFamily, effort: int, k: int, settings: IndexDiagnosisConfig
) -> EffortPoint:
    """Return one point. If it is not stored, measure it now."""
    recipe = family.at(effort)
    causes = {
        "kind": POINT_KIND,
        "index": recipe.causes(),
        "vectors": world.vectors.sum,
        "asked": {origin: asked.sum for origin, asked in world.asked.items()},
        "k": k,
        "timed": [settings.timed, settings.rounds],
    }
    row = bench.kept(causes, PointRow, lambda: [_measured(bench, world, recipe, k, settings)])[0]
    found = {
        each.origin: QueryValues(np.array(each.hits) / k, np.array(each.ap), np.array(each.ndcg), np.array(each.rr))
        for each in row.answered
    }
    return EffortPoint(family, effort, k, row, {origin: found[origin] for origin in world.asked})


def open_index(bench: Bench, world: IndexWorkload, recipe: Index) -> OpenIndex:
    """Return the index over the workload's vectors. If it is not stored, build it now.

    Raises:
        PrerequisiteError: its package is not installed, or memory is too small.
        DataError: its settings are not valid for these vectors.
    """
    rows, dims = world.vectors.vectors.shape
    recipe.check(rows, dims, world.vectors.cache)
    return recipe.open(world.vectors, bench.workspace.building, PrecisionSettings())


def _measured(bench: Bench, world: IndexWorkload, recipe: Index, k: int, settings: IndexDiagnosisConfig) -> PointRow:
    index, answered = open_index(bench, world, recipe), []
    for asked in world.asked.values():
        found = kept_values(index.search(asked.vectors, k).positions, world.truth(asked, k))
        values = QuerySetValues(
            origin=asked.origin,
            hits=tuple(np.rint(found.recall * k).astype(int).tolist()),
            ap=tuple(found.ap.round(DIGITS).tolist()),
            ndcg=tuple(found.ndcg.round(DIGITS).tolist()),
            rr=tuple(found.rr.round(DIGITS).tolist()),
        )
        answered.append(values)
    first = next(iter(world.asked.values()))
    took = seconds_of(index, first.vectors, k, settings)
    return PointRow(
        qps=round(1 / took.wall, 3),
        cpu_ms=round(1000 * took.cpu, 4),
        load=load_now(),
        build_s=index.facts.build_s,
        bytes=index.facts.bytes,
        answered=tuple(answered),
    )


class SearchTime(NamedTuple):
    """Mean seconds per query by wall clock and by processor time, which is less affected by other processes."""

    wall: float
    cpu: float


def seconds_of(index: OpenIndex, queries: Vectors, k: int, settings: IndexDiagnosisConfig) -> SearchTime:
    """Measure the time per query, one query at a time. A sample of queries, evenly spaced, is timed."""
    at = np.linspace(0, len(queries) - 1, min(settings.timed, len(queries))).astype(int)
    sample = [queries[row : row + 1] for row in at.tolist()]
    for query in sample[:WARM]:
        index.search(query, k)
    took = np.empty((settings.rounds, len(sample), 2))
    for each in took:
        for place, query in enumerate(sample):
            wall, cpu = time.perf_counter(), time.thread_time()
            index.search(query, k)
            each[place] = time.perf_counter() - wall, time.thread_time() - cpu
    return SearchTime(*np.median(took, axis=0).mean(axis=0).tolist())


USUAL_DEPTH = 50
LOSS_KIND = "index loss/1"


class LossRow(Frozen):
    """Values of each query at one effort, stored for later invocations."""

    values: Mapping[str, tuple[Number, ...]]


class EffortTuner:
    """Tunes the efforts of indexes over one workload.

    Args:
        bench: the bench.
        world: the workload.
        asked: the queries.
        settings: settings of the diagnosis.
    """

    def __init__(self, bench: Bench, world: IndexWorkload, asked: QueryVectors, settings: IndexDiagnosisConfig) -> None:
        self._bench, self._world, self._asked, self._settings = bench, world, asked, settings
        self.depth = depth_of(bench, settings)
        self._exact = self._values(world.truth(asked, self.depth))

    def tune(self, family: IndexFamily, limit: float) -> TunedPart:
        """Find the smallest tried effort at which the loss of an index is significantly within the limit.

        Raises:
            DataError: the measure is 0 for the exact search, so that a loss is not defined.
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
            tried=tuple(
                LossPart(effort=each, losses={name: MeanPart.of(one) for name, one in losses.items()})
                for each, losses in tried.items()
            ),
        )

    def _climb(self, family: IndexFamily, limit: float) -> dict[int, Mapping[str, Interval]]:
        """Return the losses by effort: efforts increase until one is sufficient.

        Then bisection finds the smallest, except if the user gave the efforts to try.
        """
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

    def _losses(self, family: IndexFamily, effort: int) -> Mapping[str, Interval]:
        self._bench.hear(BuildProgress(f"loss of {family.named(effort)}", 0, 0))
        recipe = family.at(effort)
        causes = {
            "kind": LOSS_KIND,
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
                name: loss(np.array(values, dtype=np.float64), self._exact[name], seed=self._bench.seed)
                for name, values in row.values.items()
            }
        except ValueError as error:
            raise DataError(f"the loss is not defined: {error}", remedy="pass another --measure") from error

    def _row(self, family: IndexFamily, effort: int) -> LossRow:
        index = open_index(self._bench, self._world, family.at(effort))
        values = self._values(index.search(self._asked.vectors, self.depth).positions)
        return LossRow(values={name: tuple(map(finite_or_none, row.tolist())) for name, row in values.items()})

    def _values(self, found: Ints) -> dict[str, Floats]:
        """Return the values of each query for each measure."""
        cutoffs, measure = self._settings.cutoffs, self._settings.measure
        if measure is None:
            truth = self._world.truth(self._asked, self.depth)
            return {f"recall@{k}": kept_values(found, truth[:, :k]).recall for k in cutoffs}
        names = [named.name for named in at_cutoffs(measure, cutoffs)]
        store, judgments = self._world.store, self._bench.judgments
        lists = {
            qid: [] if store is None else store.ids_at(row[row >= 0].tolist())
            for qid, row in zip(self._asked.qids, found, strict=True)
        }
        scored = evaluate(judgments.qrels, lists, names, facets=judgments.facets or None)
        return {name: scored.column(name) for name in names}


def depth_of(bench: Bench, settings: IndexDiagnosisConfig) -> int:
    """Return the number of hits per query when tuning."""
    if settings.depth is not None:
        return settings.depth
    own = () if bench.run is None else bench.run.retrieve.retrievers
    dense = [spec.k for spec in own if isinstance(spec, DenseRetriever.Config)]
    return max([*(dense[:1] or [USUAL_DEPTH]), *settings.cutoffs])


def as_yaml(family: IndexFamily, effort: int) -> str:
    """Return the settings as YAML below a retriever: ``index: {type: hnsw, m: 32, ef: 57}``."""
    told = family.at(effort).config
    fields = type(told).model_fields
    parts = {
        name: value
        for name, value in told.model_dump().items()
        if name in (TYPE, family.effort) or value != fields[name].default
    }
    return "index: {" + ", ".join(f"{name}: {_yaml_word(value)}" for name, value in parts.items()) + "}"


def _yaml_word(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
