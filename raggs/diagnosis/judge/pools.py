"""The pools that a judge is tried on: of a run's own judge stage, or searched for by the run's configuration.

Near-duplicates are left out, as the rank stage leaves them out. Pools that are searched for come from the retrievers
that pay nobody, and their grades have yet to be asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from raggs.base.arrays import shortest_floats
from raggs.base.artifacts import MIN_GRADE, EmbedRecord, MergeRecord, Passage, Query, RetrieveRecord
from raggs.base.errors import PrerequisiteError
from raggs.base.seeds import generator
from raggs.config.models import RunConfig
from raggs.diagnosis.bench import Bench
from raggs.golden.base import GoldenQuery
from raggs.golden.runs import RunGolden
from raggs.parts import retrievers
from raggs.parts.retrievers.base import Retriever, name_of
from raggs.parts.rewriters.none import NoRewriter
from raggs.parts.workshop import Embedder
from raggs.stages.base import PassageLookup, Work
from raggs.stages.embed import prepare
from raggs.stages.merge import STAGE as MERGE
from raggs.stages.rankconfig import RankConfig

FEWEST = 5  # passages of a pool


@dataclass(frozen=True)
class Pool:
    """A question with the passages that are to be ordered, best fused first; without grades where nobody gave any."""

    query: Query
    passages: tuple[Passage, ...]
    grades: tuple[int, ...] = ()


def pools_of(bench: Bench, run: RunConfig, count: int, size: int) -> list[Pool]:
    """So many pools, sorted by query, the longest ones first chosen, equal ones by lot.

    Raises:
        PrerequisiteError: no pool has five passages, or no retriever can search without paying.
    """
    golden = bench.golden if bench.has("golden") else None
    if isinstance(golden, RunGolden):
        found = _longest(
            filter(None, (_judged(each, size) for each in golden.by_query("pool", "grades"))), count, bench
        )
    else:
        found = list(_searched(bench, run, count, size))
    found = [pool for pool in found if len(pool.passages) >= FEWEST]
    if not found:
        raise PrerequisiteError(
            f"no pool has {FEWEST} passages to order", remedy="raggs run --config raggs.yaml --to judge makes pools"
        )
    return sorted(found, key=lambda pool: pool.query.qid)


def reaching(pools: Sequence[Pool], ordering: RankConfig) -> list[Pool]:
    """The pools without the passages that the rank stage leaves unordered; as they are where grades are to come.

    Raises:
        PrerequisiteError: no pool has a relevant passage, or too few passages of each reach the floor.
    """
    best, floor = ordering.min_best_grade, ordering.floor
    if not (ranked := [pool for pool in pools if max(pool.grades, default=best) >= best]):
        told = f"no pool has a passage of grade {best} or more (rank.min_best_grade)"
        raise PrerequisiteError(told, remedy=f"pass --set rank.min_best_grade={MIN_GRADE} to rank every query")
    found = [pool if not pool.grades else _above(pool, floor) for pool in ranked]
    if not (kept := [pool for pool in found if len(pool.passages) >= FEWEST]):
        told = f"no pool has {FEWEST} passages that reach rank.floor ({floor})"
        raise PrerequisiteError(told, remedy=f"pass --set rank.floor={MIN_GRADE}, under which all are ordered")
    return kept


def _above(pool: Pool, floor: int) -> Pool:
    pairs = zip(pool.passages, pool.grades, strict=True)
    kept = [(passage, grade) for passage, grade in pairs if grade >= floor]
    return Pool(pool.query, tuple(passage for passage, _ in kept), tuple(grade for _, grade in kept))


def _judged(found: GoldenQuery, size: int) -> Pool | None:
    """The first passages of a pool that have a grade of their own."""
    if found.query is None:
        return None
    texts = {passage.doc_id: passage for passage in found.pool}
    kept = [
        (texts[each.doc_id], each.grade)
        for each in found.grades
        if each.grade is not None and each.duplicate_of is None and each.doc_id in texts
    ][:size]
    return Pool(found.query, tuple(passage for passage, _ in kept), tuple(grade for _, grade in kept))


def _longest(pools: Iterator[Pool], count: int, bench: Bench) -> list[Pool]:
    held = list(pools)
    lot = generator(bench.seed, "pools", len(held)).permutation(len(held)).tolist()
    order = sorted(range(len(held)), key=lambda at: (-len(held[at].passages), lot[at]))
    return [held[at] for at in order[:count]]


@dataclass(frozen=True)
class _Lookup:
    """What the merge stage asks for."""

    queries: Mapping[str, Query]
    passages: PassageLookup


def _searched(bench: Bench, run: RunConfig, count: int, size: int) -> Iterator[Pool]:
    """Some questions by lot, searched for."""
    qids = list(bench.queries)
    lot = generator(bench.seed, "pools", len(qids)).permutation(len(qids)).tolist()
    chosen = {qids[at]: bench.queries[qids[at]] for at in sorted(lot[:count])}
    hits = sorted(_hits(bench, run, list(chosen.values())), key=lambda hit: (hit.qid, hit.retriever, hit.rank))
    work, lookup = Work({"retrieve": lambda: iter(hits)}), _Lookup(chosen, bench.passages)
    pooled: dict[str, list[MergeRecord]] = {}
    for record in MERGE.run(work, run.merge, lookup):
        if record.duplicate_of is None:
            pooled.setdefault(record.qid, []).append(record)
    for qid, records in pooled.items():
        yield Pool(chosen[qid], tuple(record.passage for record in records[:size]))


def _hits(bench: Bench, run: RunConfig, queries: Sequence[Query]) -> Iterator[RetrieveRecord]:
    own = next(iter(bench.embedders.values())) if run.embed.embedder is not None else None
    embedder = own if own is not None and not own.models else None
    records = _asked(bench, run, queries, embedder)
    for retriever in _free(bench, run, embedder, list(bench.queries)):
        for query, found in zip(queries, retriever.search(records), strict=True):
            for rank, hit in enumerate(found, start=1):
                name = name_of(retriever.config)
                yield RetrieveRecord(
                    qid=query.qid, retriever=name, rank=rank, doc_id=hit.doc_id, score=float(hit.score)
                )


def _free(bench: Bench, run: RunConfig, embedder: Embedder | None, qids: Sequence[str]) -> list[Retriever]:
    """The retrievers that pay nobody.

    Raises:
        PrerequisiteError: there is none.
    """
    kinds = [(spec, retrievers.REGISTRY.of(spec)) for spec in run.retrieve.retrievers]
    free = [spec for spec, kind in kinds if not kind.paid(spec) and (embedder or not kind.needs_vectors(spec))]
    if not free:
        raise PrerequisiteError(
            "there are no pools yet, and each retriever asks a model that is paid",
            remedy="raggs run --config raggs.yaml --to merge makes pools",
        )
    return [bench.workshop.retriever(spec, bench.passages, qids, embedder) for spec in free]


def _asked(bench: Bench, run: RunConfig, queries: Sequence[Query], embedder: Embedder | None) -> list[EmbedRecord]:
    """The questions as they are searched for, by the run's rewriter where that pays nobody."""
    own = bench.workshop.rewriter(run.embed.rewrite)
    rewriter = bench.workshop.rewriter(NoRewriter.Config()) if own.models else own
    prepared = [bench.workshop.loop.run(prepare(query, rewriter, run.embed.language)) for query in queries]
    if embedder is None:
        return prepared
    vectors = embedder.embed_queries([record.rewrite for record in prepared])
    return [
        record.model_copy(update={"embedding": tuple(shortest_floats(vector)), "embedder": embedder.identity})
        for record, vector in zip(prepared, vectors, strict=True)
    ]
