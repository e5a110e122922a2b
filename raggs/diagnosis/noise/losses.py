"""Search with the noisy and rewritten queries of a golden set, and compare measures and lists.

A condition is a noise level with or without a rewriter. raggs' own retrievers search with each query under each
condition. The lists are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.artifacts import EmbedRecord, Query
from raggs.base.settings import Causes
from raggs.base.types import BuildProgress
from raggs.chunking.models import parse_spec
from raggs.diagnosis.base import Bench
from raggs.diagnosis.models import MeanPart
from raggs.diagnosis.noise.measuring import (
    NO_REWRITER,
    NoiseCondition,
    NoiseDiagnosisConfig,
    NoiseEndToEndPart,
    NoisyQuestions,
    ShufflePart,
    language_of,
    of_share,
    usual_language,
)
from raggs.evaluation.models import ReportPart
from raggs.metrics.columns import GradeScale
from raggs.metrics.evaluate import evaluate
from raggs.parts.embedders import Embedder
from raggs.parts.rerankers import Reranking
from raggs.parts.retrievers import REGISTRY, Retriever, RetrieverConfig
from raggs.ranking.fusion import fuse, make_fusion
from raggs.stages.embed import quotes_folded, with_vectors
from raggs.stats.intervals import bootstrap_mean
from raggs.stats.name_margins import noise_change, overlaps, recovered_share, taus
from raggs.sweeps.outputs import all_or_none
from raggs.sweeps.reranking import require_whole

VERSION = 1  # version of the format of stored rows
LEXICAL, DENSE, HYBRID = "lexical", "dense", "hybrid"
RRF = 60.0
MAX_RERANKER_CALLS = 16  # maximum concurrent calls of a paid reranker
Lists = Mapping[str, tuple[str, ...]]


class NoiseListRow(ReportPart):
    """Ranked list of one query, best passage first, as stored."""

    qid: str
    docs: tuple[str, ...]


class NoiseSearcher:
    """Searches with the queries by BM25, by vectors, by both, and with rerankers.

    Args:
        bench: bench of the diagnosis, with a golden set and a corpus.
        questions: adds noise and rewrites.
        asked: each query with its language.
        depth: number of passages per list.
    """

    def __init__(self, bench: Bench, questions: NoisyQuestions, asked: Sequence[tuple[Query, str]], depth: int) -> None:
        self._bench, self._questions, self._asked, self._depth = bench, questions, asked, depth
        self._lexical = self._retriever("bm25", None)
        self._dense = {name: self._retriever("dense", each) for name, each in bench.embedders.items()}
        self._records: dict[NoiseCondition, list[EmbedRecord]] = {}

    def systems(self, condition: NoiseCondition) -> Iterator[tuple[str, Lists]]:
        """Yield each system's name and lists: lexical, then dense and hybrid by embedder, then reranked by reranker."""
        lexical = self._kept(condition, LEXICAL, self._lexical.causes(), lambda: self._found(condition, None))
        yield LEXICAL, lexical
        first: Lists | None = None
        for name in self._dense:
            dense = self.dense(condition, name)
            hybrid = self._fused(lexical, dense)
            first = first or hybrid
            yield self._named(DENSE, name), dense
            yield self._named(HYBRID, name), hybrid
        for name in self._bench.rerankers:
            yield f"reranked by {name}", self.reranked(condition, name, first or lexical)

    def dense(self, condition: NoiseCondition, name: str) -> Lists:
        """Return the lists that the vectors of one embedder give."""
        causes = [self._dense[name].causes(), self._bench.embedders[name].causes()]
        return self._kept(condition, f"{DENSE} {name}", causes, lambda: self._found(condition, name))

    def reranked(self, condition: NoiseCondition, name: str, lists: Lists) -> Lists:
        """Rerank the candidates with one reranker.

        Raises:
            ProviderError: a list could not be reranked completely.
        """
        reranker = self._bench.rerankers[name]
        causes = [reranker.causes(), {qid: list(docs) for qid, docs in lists.items()}]

        def make() -> Iterator[NoiseListRow]:
            found = self._bench.workspace.loop.run(self._rerank(condition, name, lists))
            require_whole(found)
            for qid, each in found.items():
                yield NoiseListRow(qid=qid, docs=tuple(one.doc_id for one in each.ranked))

        return self._kept(condition, f"reranked {name}", causes, make)

    async def _rerank(self, condition: NoiseCondition, name: str, lists: Lists) -> Mapping[str, Reranking]:
        reranker, records = self._bench.rerankers[name], self._prepared(condition)
        ahead = asyncio.Semaphore(MAX_RERANKER_CALLS if reranker.models else 1)

        async def one(record: EmbedRecord) -> Reranking:
            async with ahead:
                docs = lists[record.qid]
                texts = self._bench.passages.get(docs)
                return await reranker.rerank(record.rewrite, record.language, [texts[doc] for doc in docs])

        found = await all_or_none(map(one, records))
        return {record.qid: each for record, each in zip(records, found, strict=True)}

    def _found(self, condition: NoiseCondition, embedder: str | None) -> Iterator[NoiseListRow]:
        records = self._prepared(condition)
        retriever = self._lexical if embedder is None else self._dense[embedder]
        if embedder is not None:
            records = with_vectors(records, self._bench.embedders[embedder])
        self._bench.hear(BuildProgress(f"searched, level {condition.level}", len(records), len(records)))
        for record, hits in zip(records, retriever.search(records), strict=True):
            yield NoiseListRow(qid=record.qid, docs=tuple(hit.doc_id for hit in hits))

    def _prepared(self, condition: NoiseCondition) -> list[EmbedRecord]:
        if condition not in self._records:
            self._records[condition] = self._questions.prepared(self._asked, condition)
        return self._records[condition]

    def _kept(
        self, condition: NoiseCondition, what: str, causes: object, make: Callable[[], Iterator[NoiseListRow]]
    ) -> Lists:
        key = ["noise lists", VERSION, what, causes, self._questions.causes(condition), self._world, self._depth]
        return {row.qid: row.docs for row in self._bench.kept(key, NoiseListRow, make)}

    @property
    def _world(self) -> Causes:
        asked = [[query.qid, query.text, query.language, language] for query, language in self._asked]
        folded = quotes_folded(query for query, _ in self._asked)
        return {"passages": self._bench.causes("corpus"), "asked": asked, **folded}

    def _fused(self, lexical: Lists, dense: Lists) -> Lists:
        method, fused = make_fusion("rrf", k=RRF), {}
        for qid in lexical:
            scored = {
                name: [(doc, float(-rank)) for rank, doc in enumerate(lists[qid])]
                for name, lists in ((LEXICAL, lexical), (DENSE, dense))
            }
            fused[qid] = tuple(each.doc_id for each in fuse(scored, method, depth=self._depth))
        return fused

    def _retriever(self, kind: str, embedder: Embedder | None) -> Retriever:
        spec = parse_spec(f"{kind}:k={self._depth}", REGISTRY, RetrieverConfig)
        qids = {query.qid for query, _ in self._asked}
        return self._bench.workspace.retriever(spec, self._bench.passages, qids, embedder)

    def _named(self, what: str, embedder: str) -> str:
        return what if len(self._dense) == 1 else f"{what} {embedder}"


NO_MEAN = MeanPart()


@dataclass(frozen=True)
class SearchedQuestions:
    """The queries of the golden set that are searched, with their languages. `strange` is the number of judged
    queries in other languages.
    """

    questions: tuple[tuple[Query, str], ...]
    strange: int


def questions_of(bench: Bench, languages: Sequence[str]) -> SearchedQuestions:
    """Return the judged queries in these languages, sorted by id."""
    judged = set(bench.judgments.qrels.qids)
    found = [
        (query, language_of(query, usual_language(bench))) for qid, query in bench.queries.items() if qid in judged
    ]
    kept = tuple(each for each in found if each[1] in languages)
    return SearchedQuestions(kept, len(found) - len(kept))


def measures_of(scale: GradeScale, cutoffs: Sequence[int]) -> tuple[str, ...]:
    """Return the measures at all cutoffs: N-Recall4+ and RA-nWG for grades from 1 to 5, otherwise recall and nDCG."""
    names = ("n_recall4", "ra_nwg") if scale.golden else ("recall", "ndcg")
    return tuple(f"{name}@{k}" for name in names for k in cutoffs)


class NoiseLosses:
    """Computes the values and lists of all systems under all conditions, and the differences between conditions."""

    def __init__(
        self, bench: Bench, questions: NoisyQuestions, config: NoiseDiagnosisConfig, asking: SearchedQuestions
    ) -> None:
        self._bench, self._config = bench, config
        self._qids = [query.qid for query, _ in asking.questions]
        qrels = bench.judgments.qrels
        measures = measures_of(qrels.scale, config.cutoffs)
        self._found: dict[tuple[str, int, str], Lists] = {}
        self._values: dict[tuple[str, int, str], dict[str, Floats]] = {}
        searched = NoiseSearcher(bench, questions, asking.questions, config.depth)
        for condition in conditions(config):
            for system, lists in searched.systems(condition):
                at = system, condition.level, condition.name
                found = evaluate(qrels, {qid: list(docs) for qid, docs in lists.items()}, measures)
                rows = np.searchsorted(np.array(found.qids), np.array(self._qids))
                self._found[at] = lists
                self._values[at] = {measure: found.column(measure)[rows] for measure in measures}

    def ends(self) -> Iterator[NoiseEndToEndPart]:
        """Yield the result of each system for each level, rewriter and measure."""
        seed = self._bench.seed
        for (system, level, rewriter), values in self._values.items():
            plain, noisy = self._values[system, 0, NO_REWRITER], self._values[system, level, NO_REWRITER]
            for measure, column in values.items():
                interval, base, before = bootstrap_mean(column, seed=seed), plain[measure], noisy[measure]
                own = rewriter != NO_REWRITER
                yield NoiseEndToEndPart(
                    system=system,
                    level=level,
                    rewriter=rewriter,
                    measure=measure,
                    questions=interval.count,
                    mean=MeanPart.of(interval),
                    change=MeanPart.of(noise_change(base, column, seed)),
                    gained=MeanPart.of(noise_change(before, column, seed)) if own else NO_MEAN,
                    regained=of_share(recovered_share(base, before, column, seed)) if own else NO_MEAN,
                )

    def shuffles(self) -> Iterator[ShufflePart]:
        """Yield the similarity to the lists of the unchanged queries, for each system, level, rewriter and cutoff."""
        for (system, level, rewriter), lists in self._found.items():
            plain = self._found[system, 0, NO_REWRITER]
            first, second = ([found[qid] for qid in self._qids] for found in (plain, lists))
            for k in () if (level, rewriter) == (0, NO_REWRITER) else self._config.cutoffs:
                yield ShufflePart(
                    system=system,
                    level=level,
                    rewriter=rewriter,
                    k=k,
                    overlap=MeanPart.of(bootstrap_mean(overlaps(first, second, k), seed=self._bench.seed)),
                    tau=MeanPart.of(bootstrap_mean(taus(first, second, k), seed=self._bench.seed)),
                )


def conditions(config: NoiseDiagnosisConfig) -> list[NoiseCondition]:
    """Return all conditions: each level with each rewriter. The first condition is the unchanged queries."""
    return [NoiseCondition(level, spec) for level in config.searched for spec in config.rewriters]
