"""Parts of systems: each part is made once for all systems that share it, and stored.

    queries ───rewrite─▶ prepared ─embedder─▶ embedded ─┐
    corpus ─embedder─▶ vectors ─▶ index ────────────────┴─▶ hits of each retriever ─▶ fused ─▶ first k ─▶ reranked

Lexical and exact dense searches run once at the largest depth of the systems that share them, because the best 200
contain the best 50. An approximate index may use more effort for a larger k, so it is searched at each system's own
depth. The searches of a hybrid run at `hybrid.depth`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from raggs.base.adapter import AdapterConfig
from raggs.base.arrays import shortest_floats
from raggs.base.artifacts import EmbedRecord
from raggs.base.cache import OnceCache
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes
from raggs.base.text import FOLDING
from raggs.parts import embedders
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.rerankers import Reranker, RerankerConfig, Reranking
from raggs.parts.rerankers.boosted import BoostedConfig, boost_scores, innermost_config
from raggs.parts.retrievers import Retriever
from raggs.ranking.fusion import fuse, make_fusion
from raggs.stages.embed import prepare, query_vectors, quotes_folded
from raggs.sweeps.grid import RetrievalStack, SystemRetriever, searches_of
from raggs.sweeps.models import FitPart
from raggs.sweeps.outputs import ListRow, Lists, RerankRow, SystemOutput, TimeRow, all_or_none
from raggs.sweeps.reranking import Router, composed, fit, is_fitted, require_whole, rerank_all, scorer_for, weights_of
from raggs.sweeps.scoring import run_of
from raggs.sweeps.world import SweepContext

# names of the parts in the ledger
PREPARING, EMBEDDING, PASSAGES, RERANKING = "rewrite", "embed questions", "retrieve", "rerank"


class SystemParts:
    """Creates and stores the parts of a sweep's systems.

    Args:
        world: context of the sweep.
        systems: all systems, which determine the depth of exact searches.
    """

    def __init__(self, world: SweepContext, systems: Sequence[RetrievalStack]) -> None:
        self._world, self._systems = world, systems
        self.store = world.workspace.cache.at("sweeps")
        self._retrievers, self._rerankers = OnceCache[Retriever](), OnceCache[Reranker]()
        self._records, self._lists = OnceCache[Sequence[EmbedRecord]](), OnceCache[Lists]()
        self._rerankings = OnceCache[Mapping[str, Reranking]]()
        self._routers = OnceCache[Router]()
        self._boosts, self._fits = OnceCache[Mapping[float, Mapping[str, Reranking]]](), OnceCache[FitPart]()

    # --- searches of a system ---

    def searches(self, system: RetrievalStack) -> tuple[SystemRetriever, ...]:
        """Return the retrievers of a system with their depths."""
        return searches_of(system, self._systems, self._world.config.hybrid)

    # --- components ---

    def embedder(self, spec: EmbedderConfig) -> Embedder:
        """Return the embedder of these settings. There is only one instance for each settings."""
        corpus = self._world.corpus if embedders.REGISTRY.of(spec).NEEDS_FIT else None
        return self._world.workspace.embedder(spec, corpus=corpus)

    def retriever(self, search: SystemRetriever) -> Retriever:
        """Return the retriever of this search. There is only one instance for each search."""
        embedder = None if search.embedder is None else self.embedder(search.embedder)
        return self._retrievers(
            (search.retriever, search.embedder, search.chunker),
            lambda: self._world.workspace.retriever(
                search.retriever,
                self._world.passages_of(search.chunker),
                self._world.queries.keys(),
                embedder,
                by_text=self._world.config.recuts,
            ),
        )

    def reranker(self, spec: RerankerConfig) -> Reranker:
        """Return the reranker of these settings; without boost if its weight is fitted."""
        plain = spec.model_copy(update={"weight": 0.0}) if is_fitted(spec) else spec
        return self._rerankers(plain, lambda: self._world.workspace.reranker(plain))

    # --- stored values ---

    def preparing(self, rewrite: AdapterConfig) -> str:
        """Return the name of a rewriter's calls in the ledger. It differs between rewriters with the same model."""
        causes = self._world.workspace.rewriter(rewrite).causes()
        return f"{PREPARING} by {rewrite.type} {hash_value(causes)[:8]}"

    def prepared(self, rewrite: AdapterConfig) -> Sequence[EmbedRecord]:
        """Return the cleaned and rewritten queries, without vectors."""

        def make() -> list[EmbedRecord]:
            world = self._world
            rewriter = world.workspace.rewriter(rewrite)

            async def everything() -> list[EmbedRecord]:
                ahead = asyncio.Semaphore(world.config.llm.concurrency)

                async def one(qid: str) -> EmbedRecord:
                    async with ahead:
                        return await prepare(world.queries[qid], rewriter, world.config.language)

                return await all_or_none(map(one, world.queries))

            self._world.book(self.preparing(rewrite))
            records = world.workspace.loop.run(everything())
            if rewriter.models:
                self.store.keep(self._rewriting(rewrite), records)
            return records

        return self._records(rewrite, make)

    def embedded(self, rewrite: AdapterConfig, spec: EmbedderConfig) -> Sequence[EmbedRecord]:
        """Return the queries with their vectors. A paid model is called for one query at a time, as in production."""

        def make() -> list[EmbedRecord]:
            alone = spec.model_copy(update={"batch": 1}) if self.embedder(spec).models else spec
            embedder, records = self.embedder(alone), self.prepared(rewrite)
            self._world.book(EMBEDDING)
            vectors = query_vectors(records, embedder)
            return [
                record.model_copy(
                    update={"embedding": tuple(shortest_floats(vector)), "embedder": self.embedder(spec).identity}
                )
                for record, vector in zip(records, vectors, strict=True)
            ]

        return self._records((rewrite, spec), make)

    def probe(self, system: RetrievalStack, stage: str, qids: Sequence[str]) -> None:
        """Call a paid embedder or rewriter for new texts, one at a time, to measure its latency."""
        world = self._world
        self._world.book(stage)
        for query in (world.queries[qid] for qid in qids):
            if stage == self.preparing(system.rewrite):
                rewriter = world.workspace.rewriter(system.rewrite)
                for step in (rewriter.rewrite, rewriter.expand):
                    world.workspace.loop.run(step(query, f"{query.text} ", world.config.language))
            elif system.embedder is not None:
                self.embedder(system.embedder).embed_queries([f"{query.text} "])

    def paid(self, search: SystemRetriever) -> tuple[str, ...]:
        """Return the models that a custom retriever calls."""
        return self.retriever(search).models

    def questions(self, search: SystemRetriever) -> Sequence[EmbedRecord]:
        """Return the queries of a search."""
        return (
            self.prepared(search.rewrite) if search.embedder is None else self.embedded(search.rewrite, search.embedder)
        )

    def hits(self, search: SystemRetriever) -> Lists:
        """Return the hits of a retriever for every query."""

        def make() -> Lists:
            if (kept := self._kept(search)) is not None:
                return kept
            records = self.questions(search)
            self._world.book(PASSAGES)
            found = self.retriever(search).search(records)
            lists = {
                record.qid: [(hit.doc_id, hit.score) for hit in hits]
                for record, hits in zip(records, found, strict=True)
            }
            self.store.keep(self.causes(search), (ListRow(qid=qid, hits=tuple(hits)) for qid, hits in lists.items()))
            return lists

        return self._lists(search, make)

    def _recalled(self, rewrite: AdapterConfig) -> bool:
        """Return whether the rewritten queries need no paid call: the rewriter calls no model, or an earlier sweep
        stored the queries. Stored queries are loaded.
        """
        if not self._world.workspace.rewriter(rewrite).models:
            return True
        if (found := self.store.find(self._rewriting(rewrite), EmbedRecord)) is not None:
            self._records(rewrite, lambda: found)
        return found is not None

    def _kept(self, search: SystemRetriever) -> Lists | None:
        """Return the stored hits, or None if none are stored or they cannot be read."""
        kept = {row.qid: row.hits for row in self.store.find(self.causes(search), ListRow) or ()}
        return kept if kept.keys() == self._world.queries.keys() else None

    def candidates(self, system: RetrievalStack) -> Lists:
        """Return the first k passages of a system's list for each query. Several lists are fused. With routed depth, k
        depends on the query.
        """
        if (router := self.router(system)) is not None:
            return router.lists

        def make() -> Lists:
            lists = [self.hits(search) for search in self.searches(system)]
            if len(lists) == 1:
                return {qid: hits[: system.k] for qid, hits in lists[0].items()}
            return {
                qid: self.fused({str(at): each[qid] for at, each in enumerate(lists)})[: system.k] for qid in lists[0]
            }

        return self._lists((self.searches(system), system.k), make)

    def fused(self, lists: Mapping[str, Sequence[tuple[str, float]]]) -> list[tuple[str, float]]:
        """Fuse several lists into one."""
        config = self._world.config.hybrid
        depth = sum(map(len, lists.values())) or 1
        return [
            (each.doc_id, each.score)
            for each in fuse(lists, make_fusion("rrf", k=config.rrf_k), weights=None, depth=depth)
        ]

    def final(self, system: RetrievalStack) -> SystemOutput:
        """Return the output of a system for every query."""
        if (router := self.router(system)) is not None:
            return router.final()
        found = self.candidates(system)
        if system.reranker is None:
            return SystemOutput(found)
        reranked = self.reranked(system, found)
        return SystemOutput.of(reranked)

    def kept(self, system: RetrievalStack) -> bool:
        """Return whether the whole output of a system is stored. No model is called."""
        if not self._recalled(system.rewrite):
            return False
        if system.run_file is None and any(self._kept(search) is None for search in self.searches(system)):
            return False
        if (router := self.router(system)) is not None and router.pays:
            return False
        return system.reranker is None or all(map(self.store.has, self._rounds(system)))

    def _rounds(self, system: RetrievalStack) -> Iterator[Causes]:
        """Yield the key of each reranking of a system in order; no model is called if the earlier ones are stored."""
        router = self.router(system)
        given = (self.candidates(system),) if router is None else router.rounds()
        return (self.rerank_causes(system, lists) for lists in given)

    def router(self, system: RetrievalStack) -> Router | None:
        """Return the router of the search depth; None if the depth is the same for all queries."""
        if (depth := system.depth) is None:
            return None
        return self._routers((self.searches(system), depth, system.reranker), lambda: Router(self, system, depth))

    def reranked(self, system: RetrievalStack, candidates: Lists) -> Mapping[str, Reranking]:
        """Rerank some candidates of a system.

        Raises:
            TypeError: the system has no reranker.
            RaggsError: as the reranker.
        """
        if (spec := system.reranker) is None:
            raise TypeError(f"{system.name} has no reranker")
        if isinstance(spec, BoostedConfig):
            by_weight = self.boosted(system, spec, candidates)
            part = self.fitted(system)
            return by_weight[weights_of(spec)[0]] if part is None else composed(part, by_weight)
        causes = self.rerank_causes(system, candidates)

        def make() -> Mapping[str, Reranking]:
            world = self._world
            kept = {row.qid: row.found for row in self.store.find(causes, RerankRow) or ()}
            if kept and kept.keys() == candidates.keys():
                return kept
            self._world.book(RERANKING)
            passages, records = world.passages_of(system.chunker), self._by_id(system)
            found = world.workspace.loop.run(rerank_all(world, passages, self.reranker(spec), candidates, records))
            require_whole(found)
            self.store.keep(causes, (RerankRow(qid=qid, found=each) for qid, each in found.items()))
            return found

        return self._rerankings(hash_value(causes), make)

    def boosted(
        self, system: RetrievalStack, spec: BoostedConfig, candidates: Lists
    ) -> Mapping[float, Mapping[str, Reranking]]:
        """Return the results of a `boosted` reranker by weight. The inner reranker is called once for all weights."""
        base = self.reranked(replace(system, reranker=spec.by), candidates)

        def make() -> Mapping[float, Mapping[str, Reranking]]:
            passages, records = self._world.passages_of(system.chunker), self._by_id(system)
            found: dict[float, dict[str, Reranking]] = {weight: {} for weight in weights_of(spec)}
            for qid, hits in candidates.items():
                read = {each.doc_id for each in base[qid].ranked}
                docs = [doc for doc, _ in hits if doc in read]
                held, record = passages.get(docs), records[qid]
                asked = [held[doc] for doc in docs]
                made = boost_scores(base[qid], record.rewrite, record.language, asked, list(found))
                for weight, one in zip(found, made, strict=True):
                    found[weight][qid] = one
            return found

        return self._boosts([spec, hash_value(self.rerank_causes(system, candidates))], make)

    def fitted(self, system: RetrievalStack) -> FitPart | None:
        """Return the fitted weights of a system's reranker; None if its weight is fixed.

        Raises:
            DataError: too few queries are judged.
        """
        spec, world = system.reranker, self._world
        if not isinstance(spec, BoostedConfig) or not is_fitted(spec):
            return None

        def make() -> FitPart:
            by_weight = self.boosted(system, spec, self.candidates(system))
            scorer = scorer_for(world.config, world.labels, world.atlas, system.levels)
            lists = {weight: SystemOutput.of(found).lists for weight, found in by_weight.items()}
            return fit(
                scorer, system.name, system.k, world.config.seed, lambda weight: run_of(list(lists[weight].items()))
            )

        return self._fits([self.searches(system), system.k, spec], make)

    def rerank_causes(self, system: RetrievalStack, candidates: Lists | None = None) -> Causes:
        """Return everything that affects the results of a system's reranker, without a boost; empty if it has no
        reranker.
        """
        if system.reranker is None:
            return {}
        world, reranker = self._world, self.reranker(innermost_config(system.reranker))
        records = self._by_id(system)
        asked = [
            [qid, records[qid].rewrite, records[qid].language, *(doc for doc, _ in hits)]
            for qid, hits in (self.candidates(system) if candidates is None else candidates).items()
        ]
        passages = world.passages_of(system.chunker)
        folded = reranker.FOLDS and (passages.folded or quotes_folded(world.queries.values()))
        return {
            **({"quotes": FOLDING} if folded else {}),
            "reranker": reranker.causes(),
            "llm": world.config.llm.causes_for(reranker.models) if reranker.models else None,
            "candidates": hash_value(asked),
            "passages": passages.content_hash,
            "duplicates": world.config.duplicates,
        }

    def _by_id(self, system: RetrievalStack) -> Mapping[str, EmbedRecord]:
        return {record.qid: record for record in self.prepared(system.rewrite)}

    # --- storage ---

    def times(self, step: str) -> dict[str, float]:
        """Return the latency of a paid step in milliseconds, by query; empty if it was never timed."""
        return {row.qid: row.ms for row in self.store.find(["times", step], TimeRow) or ()}

    def keep_times(self, step: str, ms: Mapping[str, float]) -> None:
        """Store milliseconds by query."""
        self.store.keep(["times", step], (TimeRow(qid=qid, ms=one) for qid, one in ms.items()))

    def _rewriting(self, rewrite: AdapterConfig) -> Causes:
        """Return everything that can change the rewritten queries."""
        world = self._world
        return {
            "rewriter": world.workspace.rewriter(rewrite).causes(),
            "world": world.asked,
            "language": world.config.language,
        }

    def causes(self, search: SystemRetriever) -> Causes:
        """Return everything that can change the hits of a search."""
        embedder = None if search.embedder is None else self.embedder(search.embedder).causes()
        folded = {"quotes": FOLDING} if self._world.passages_of(search.chunker).folded else {}
        asked = {} if embedder is None else quotes_folded(self._world.queries.values())
        return {
            **folded,
            **asked,
            "retriever": self.retriever(search).causes(),
            "embedder": embedder,
            **self._rewriting(search.rewrite),
            "world": self._world.fingerprint_of(search.chunker),
        }
