"""Rerankers over all queries, fitted weights, and systems whose depth depends on the query.

Providers are called concurrently. Near-duplicates are skipped unless the setting `duplicates` is null. If a `boosted`
reranker has the weight `fit`, each half of the queries gets the weight that is best on the other half. No query is
therefore scored with a weight that it helped to choose. Of `WEIGHTS`, the best mean of the primary measure wins; of
equal means, the smallest weight. The halves are drawn by a hash of the sweep's seed and the query id. The lists of each
weight are stored, so an audit can repeat the choice.

With routed depth, lists are searched to the largest depth and truncated for shallow queries. A reranker's entropy is
known after it has read the first `base` candidates. A query that is searched deeper only for that signal is reranked
twice, and its latency is the sum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.artifacts import EmbedRecord, Passage
from raggs.base.errors import BudgetError, DataError, ProviderError
from raggs.base.hashing import derive_seed
from raggs.base.text import plural
from raggs.base.types import BuildProgress
from raggs.golden.judgments import Judgments
from raggs.metrics.columns import Run
from raggs.parts.indexes.passages import Passages
from raggs.parts.rerankers import Reranker, RerankerConfig, Reranking
from raggs.parts.rerankers.boosted import FIT, BoostedConfig
from raggs.parts.retrievers import REGISTRY
from raggs.parts.retrievers.depth import RoutedDepth, ScoreSource, SignalInputs, readings
from raggs.parts.run_files import read_run
from raggs.ranking.fusion import group_duplicates
from raggs.stats.search_depth import Readings, fired_signals
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.grid import CHUNKER, RetrievalStack
from raggs.sweeps.judgments import ChunkingGrades
from raggs.sweeps.models import FitPart, SystemRow
from raggs.sweeps.outputs import Lists, SystemOutput, all_or_none
from raggs.sweeps.scoring import SystemScorer
from raggs.sweeps.world import SweepContext

if TYPE_CHECKING:
    from raggs.sweeps.parts import SystemParts


async def rerank_all(
    world: SweepContext, passages: Passages, reranker: Reranker, candidates: Lists, records: Mapping[str, EmbedRecord]
) -> Mapping[str, Reranking]:
    """Rerank the candidates of every query.

    Args:
        passages: texts of the candidates.
        records: queries by id.

    Raises:
        RaggsError: as the reranker; paid answers are stored.
    """
    done = 0
    ahead = asyncio.Semaphore(world.config.llm.concurrency if reranker.models else 1)

    async def one(qid: str) -> Reranking:
        nonlocal done
        async with ahead:
            read = _without_near_duplicates(world, passages, [doc for doc, _ in candidates[qid]])
            found = await reranker.rerank(records[qid].rewrite, records[qid].language, read)
        done += 1
        world.hear(BuildProgress("reranked queries", done, len(candidates)))
        return found

    return dict(zip(candidates, await all_or_none(map(one, candidates)), strict=True))


def require_whole(found: Mapping[str, Reranking]) -> None:
    """Raise an error if a part of a list kept its old order because a call failed.

    Raises:
        ProviderError: there is such a list, so its score would not measure the reranker.
    """
    if lost := {qid: each.problems[0] for qid, each in found.items() if each.problems}:
        qid, problem = next(iter(lost.items()))
        raise ProviderError(
            f"{len(lost)} of {plural(len(found), 'list')} could not be reranked whole: query {qid}: {problem}",
            remedy="run again: paid answers are cached",
        )


def probe(
    world: SweepContext,
    passages: Passages,
    spec: RerankerConfig,
    rerankings: Mapping[str, Reranking],
    records: Sequence[EmbedRecord],
) -> Iterator[tuple[str, float]]:
    """Call a paid reranker again for some queries, one at a time, and yield each query id with its milliseconds. Failed
    calls are omitted.

    Args:
        rerankings: earlier result by query id.
    """
    reranker = world.workspace.reranker(spec, keeps=False)
    for record in records:
        docs = [each.doc_id for each in rerankings[record.qid].ranked]
        found = passages.get(docs)
        with suppress(BudgetError, ProviderError):
            asked = reranker.rerank(record.rewrite, record.language, [found[doc] for doc in docs])
            if (took := world.workspace.loop.run(asked).ms) is not None:
                yield record.qid, round(took, 4)


def _without_near_duplicates(world: SweepContext, passages: Passages, docs: Sequence[str]) -> list[Passage]:
    """Return the passages of some ids. Unless `duplicates` is null, near-duplicates of better ones are omitted."""
    found, likeness = passages.get(docs), world.config.duplicates
    read = [found[doc] for doc in docs]
    if likeness is None:
        return read
    leaders = group_duplicates([passage.content for passage in read], likeness)
    return [passage for at, passage in enumerate(read) if leaders[at] == at]


V = TypeVar("V")
WEIGHTS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)


def is_fitted(spec: RerankerConfig | None) -> bool:
    """Return whether the sweep fits the reranker's weight."""
    return isinstance(spec, BoostedConfig) and spec.weight == FIT


def weights_of(spec: BoostedConfig) -> tuple[float, ...]:
    """Return all weights whose lists are needed."""
    return WEIGHTS if spec.weight == FIT else (spec.weight,)


def scorer_for(
    config: SweepConfig, labels: Judgments, atlas: ChunkingGrades | None, levels: Mapping[str, str]
) -> SystemScorer:
    """Return the scorer for the lists of each weight."""
    return SystemScorer(config, labels, many=True, sheet=None if atlas is None else atlas.sheet(levels[CHUNKER]))


def fit(scorer: SystemScorer, name: str, k: int, seed: int, run_of: Callable[[float], Run]) -> FitPart:
    """Return the weight of a boosted reranker for each half of the queries, chosen on the other half.

    Args:
        scorer: scorer of the system.
        name: name of the system.
        k: number of its candidates.
        seed: random seed for splitting the queries into halves.
        run_of: returns the lists of a weight.

    Raises:
        DataError: in one half, the measure is not defined on any query.
    """
    measure, qids = scorer.quality[0], scorer.judgments.qrels.qids
    values: Floats = np.array([scorer.score(name, run_of(weight), k).values[measure] for weight in WEIGHTS])
    drawn = sorted(qids, key=lambda qid: (derive_seed(seed, "boost", qid), qid))
    first = frozenset(drawn[: len(drawn) // 2])
    inside = np.array([qid in first for qid in qids])
    return FitPart(
        measure=measure,
        seed=seed,
        first=tuple(sorted(first)),
        weights=WEIGHTS,
        chosen=(_best_weight(values[:, ~inside], measure), _best_weight(values[:, inside], measure)),
    )


def _best_weight(values: Floats, measure: str) -> float:
    """Return the weight with the best mean, or the smallest such weight on ties. `values` has the shape (weights,
    queries).
    """
    known = values[:, np.isfinite(values).all(axis=0)]
    if not known.size:
        raise DataError(
            f"weight: fit needs queries in both halves on which {measure} is defined",
            remedy="set a weight, or use more queries",
        )
    return WEIGHTS[int(np.argmax(known.mean(axis=1).round(12)))]


def composed(part: FitPart, by_weight: Mapping[float, Mapping[str, V]]) -> dict[str, V]:
    """Return the value of each query at the weight that the other half chose."""
    first = set(part.first)
    return {qid: by_weight[part.chosen[0 if qid in first else 1]][qid] for qid in by_weight[WEIGHTS[0]]}


def fit_faults(row: SystemRow, folder: Path, scorer: SystemScorer) -> Iterator[str]:
    """Yield the errors in a fitted weight, given the stored lists of each weight.

    Args:
        row: row with a fit and a file.
        folder: folder of the sweep.

    Raises:
        DataError: a file cannot be read.
    """
    if (part := row.fit) is None or row.file is None:
        return
    if len(part.files) != len(WEIGHTS) or part.weights != WEIGHTS:
        yield "its fit does not have the lists of each weight"
        return
    paths = {weight: folder / name for weight, name in zip(WEIGHTS, part.files, strict=True)}
    again = fit(scorer, row.name, row.k, part.seed, lambda weight: read_run(paths[weight]))
    if again.model_copy(update={"files": part.files}) != part:
        yield "its weights differ from those computed from the lists of each weight"
    elif _docs(folder / row.file) != composed(part, {weight: _docs(path) for weight, path in paths.items()}):
        yield "its lists do not match its weights"


def _docs(path: Path) -> dict[str, list[str]]:
    """Return the passages of each query in the order of a file of the sweep."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        qid, _, doc, *_ = line.split()
        found.setdefault(qid, []).append(doc)
    return found


ENTROPY, REWRITE = "entropy", "rewrite"
SignalsByQuery = Mapping[str, tuple[str, ...]]  # Signals by query; empty for queries that stay shallow.


class Router:
    """Router that sets the search depth per query, for one system.

    Args:
        parts: parts of the sweep.
        system: system with a routed depth.
        depth: rule of the depth.
    """

    def __init__(self, parts: SystemParts, system: RetrievalStack, depth: RoutedDepth) -> None:
        self._parts, self._system, self._depth = parts, system, depth
        self._deep = parts.candidates(replace(system, depth=None))
        self._shallow: Lists = {qid: hits[: depth.base] for qid, hits in self._deep.items()}

    def signals(self, wanted: Collection[str]) -> Mapping[str, Readings]:
        """Return the values of these signals, by query."""
        parts, system = self._parts, self._system
        lists: dict[ScoreSource, Lists] = {}
        for search in parts.searches(system):
            if (reads := REGISTRY.of(search.retriever).reads(search.retriever)) is not None:
                lists.setdefault(reads, parts.hits(search))
        scores = self._scores() if ENTROPY in wanted else {}
        asked, rewritten = self._vectors() if REWRITE in wanted else ({}, {})
        vectors, words = lists.get("vectors", {}), lists.get("words", {})
        return {
            record.qid: readings(
                SignalInputs(
                    text=record.text,
                    language=record.language,
                    base=self._depth.base,
                    vectors=vectors.get(record.qid),
                    words=words.get(record.qid),
                    candidates=scores.get(record.qid),
                    question=asked.get(record.qid),
                    rewrite=rewritten.get(record.qid),
                ),
                wanted,
            )
            for record in parts.prepared(system.rewrite)
        }

    @cached_property
    def fired(self) -> SignalsByQuery:
        """Signals that reach their thresholds, by query."""
        when = self._depth.when.thresholds
        return {qid: fired_signals(found, when) for qid, found in self.signals(when).items()}

    @property
    def pays(self) -> bool:
        """Whether a paid embedder is also called for the original queries, because a signal needs their vectors."""
        embedder = self._system.embedder
        return REWRITE in self._depth.when.thresholds and bool(embedder and self._parts.embedder(embedder).models)

    @property
    def share(self) -> float:
        """Share of queries that are searched deeper."""
        return sum(map(bool, self.fired.values())) / len(self.fired)

    @cached_property
    def lists(self) -> Lists:
        """Candidates of each query."""
        return {qid: self._deep[qid] if self.fired[qid] else hits for qid, hits in self._shallow.items()}

    def rounds(self) -> Iterator[Lists]:
        """Yield the inputs of a reranker in order: all shallow lists if entropy is a signal, then `_unread`."""
        if ENTROPY in self._depth.when.thresholds:
            yield self._shallow
        if rest := self._unread():
            yield rest

    def final(self) -> SystemOutput:
        """Return the output of the system."""
        parts, system, found = self._parts, self._system, self.lists
        if system.reranker is None:
            return SystemOutput(found)
        read: dict[str, Reranking] = {}
        for lists in self.rounds():
            made = parts.reranked(system, lists)
            read |= {qid: made[qid] for qid, hits in lists.items() if len(hits) == len(found[qid])}
        read = self._read_before() | read
        independent = parts.reranker(system.reranker).reader.INDEPENDENT
        # these queries are searched deeper only because of the entropy of their shallow lists
        for qid in (qid for qid, why in self.fired.items() if why == (ENTROPY,)):
            read[qid] = combined_reranking(
                parts.reranked(system, self._shallow)[qid], read[qid], independent=independent
            )
        return SystemOutput.of({qid: read[qid] for qid in found})

    def _unread(self) -> Lists:
        """Return the lists to rerank: all lists if their results are stored together. Otherwise, return the lists whose
        results are not stored for a fixed depth.
        """
        if self._parts.store.has(self._parts.rerank_causes(self._system, self.lists)):
            return self.lists
        known = self._read_before()
        return {qid: hits for qid, hits in self.lists.items() if qid not in known}

    def _read_before(self) -> dict[str, Reranking]:
        """Return stored results of lists at a fixed depth that this system shares; no model is called."""
        found: dict[str, Reranking] = {}
        for deep, lists in ((False, self._shallow), (True, self._deep)):
            if self._parts.store.has(self._parts.rerank_causes(self._system, lists)):
                made = self._parts.reranked(self._system, lists)
                found |= {qid: made[qid] for qid, why in self.fired.items() if bool(why) == deep}
        return found

    def _scores(self) -> Mapping[str, Sequence[float]]:
        found = self._parts.reranked(self._system, self._shallow)
        return {qid: [each.score for each in one.ranked] for qid, one in found.items()}

    def _vectors(self) -> tuple[Mapping[str, Sequence[float]], Mapping[str, Sequence[float]]]:
        """Return the vectors of the original queries, and those of the rewritten queries."""
        parts, system = self._parts, self._system
        if system.embedder is None:
            return {}, {}
        records = parts.embedded(system.rewrite, system.embedder)
        rewritten = {record.qid: record.embedding for record in records}
        changed: list[EmbedRecord] = [record for record in records if record.altered]
        asked: dict[str, Sequence[float]] = {**rewritten}
        if changed:
            made = parts.embedder(system.embedder).embed_queries([record.text for record in changed])
            asked |= {record.qid: vector.tolist() for record, vector in zip(changed, made, strict=True)}
        return asked, rewritten


def combined_reranking(shallow: Reranking, deep: Reranking, *, independent: bool) -> Reranking:
    """Return cost and latency of a shallow reranking followed by a deep one.

    If scores depend only on the pair, the reranker reads only the new candidates the second time. Cost and tokens are
    then those of the deep list. The second call is assumed to take as long as the first one, or longer if it reads
    more. Every other reranker reads all candidates again.
    """
    few, many = len(shallow.ranked), len(deep.ranked)
    if not independent:
        return replace(
            deep,
            tokens=shallow.tokens + deep.tokens,
            ms=None if shallow.ms is None or deep.ms is None else shallow.ms + deep.ms,
            calls=shallow.calls + deep.calls,
            usd=shallow.usd + deep.usd,
            searches=shallow.searches + deep.searches,
        )
    if shallow.ms is None or not 0 < few < many:
        return deep
    return replace(deep, ms=shallow.ms * (1.0 + max(1.0, (many - few) / few)))
