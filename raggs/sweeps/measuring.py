"""Measure the systems of a sweep: lists, latency, cost, memory. This module scores nothing.

A system with a failed part is marked unfinished, and the others continue. Invalid settings and missing prerequisites
stop the sweep. Lists and timings are stored as they arrive, so a killed sweep can be resumed.

Memory is stated by the index, and extrapolated to one and ten million vectors. Tokens are counted, and costs follow
from payments or from the price list. An unknown price is None, and so is every sum that contains it.

The plan of a dry run lists the systems and the paid calls that are not cached. Counts are upper bounds: a reranker is
assumed to read every candidate of every query, unless its lists are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean, pstdev

from raggs.base.cache import OnceCache
from raggs.base.errors import AuthenticationError, ConfigError, DataError, ModelError, PrerequisiteError, RaggsError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import read_torn
from raggs.base.settings import Causes, causes_of
from raggs.base.text import count_tokens
from raggs.base.types import BuildProgress, Notice, Number
from raggs.llm.ledger import LEDGER_REMEDY, LedgerLine
from raggs.llm.prices import require_keys
from raggs.llm.rehearsal import DryRunLLM
from raggs.parts.chunkers import ChunkerConfig
from raggs.parts.indexes import IndexFacts
from raggs.parts.indexes.passages import Passages
from raggs.parts.rerankers import Reranker
from raggs.parts.rerankers.boosted import BoostedConfig, innermost_config
from raggs.runs.forecast import count_reranking, lines_of, rewritten
from raggs.stages.embed import EmbedConfig
from raggs.stats.front import measured_memory
from raggs.sweeps.grid import CHUNKER, RetrievalStack, SystemGrid
from raggs.sweeps.layout import SINGLE_SYSTEMS_AXIS
from raggs.sweeps.models import CostLine, CostPart, FitPart, LatencyPart, MemoryPart, PlanLine, SweepPlan, SystemRow
from raggs.sweeps.outputs import SystemOutput
from raggs.sweeps.parts import SystemParts
from raggs.sweeps.reranking import WEIGHTS, is_fitted, scorer_for
from raggs.sweeps.store import SweepStore
from raggs.sweeps.timing import StepTimer
from raggs.sweeps.world import GENERATOR, SweepContext, check_known, lists_of, read_foreign, sha256_of

MILLION = 1_000_000


def memory_of(system: RetrievalStack, parts: SystemParts) -> MemoryPart | None:
    """Return the memory of a system's vectors and index, or None if it does not search vectors that raggs made."""
    for search in parts.searches(system):
        if (facts := parts.retriever(search).facts) is not None:
            return _part(facts)
    return None


def _part(facts: IndexFacts) -> MemoryPart:
    held = measured_memory(facts.rows, facts.memory)
    return MemoryPart(
        kind=facts.kind,
        rows=facts.rows,
        dims=facts.dims,
        bytes=facts.memory,
        million=round(held.at(MILLION).total),
        ten_million=round(held.at(10 * MILLION).total),
        built_s=facts.build_s,
    )


QUERIES = 1000


class SystemCosts:
    """Computes the costs of systems from prices and token counts.

    Args:
        world, parts: the sweep's context and parts.
    """

    def __init__(self, world: SweepContext, parts: SystemParts) -> None:
        self._world, self._parts = world, parts
        self._tokens: dict[str, dict[str, int]] = {}  # number of tokens of each passage, by chunking
        self._asked = OnceCache[list[int]]()

    def cost(self, system: RetrievalStack, final: SystemOutput) -> CostPart:
        """Return the cost of a system in USD per 1000 queries."""
        asked = self._asked(system.rewrite, lambda: self._question_tokens(system))
        read = _candidate_tokens(final)
        context = self._context(system, final)
        lines = (*self._embed(system, fmean(asked)), *self._rerank(system, final), *self._generate(context))
        return CostPart.of(
            lines,
            question_tokens=fmean(asked),
            candidate_tokens=fmean(read) if read else None,
            candidate_tokens_sd=pstdev(read) if read else None,
            context_tokens=context,
        )

    def _question_tokens(self, system: RetrievalStack) -> list[int]:
        return [count_tokens([record.rewrite])[0] for record in self._parts.prepared(system.rewrite)]

    def _added_tokens(self, system: RetrievalStack) -> float:
        """Return the mean number of tokens of the texts that the rewriter adds to a query."""
        records = self._parts.prepared(system.rewrite)
        texts = [text for record in records for text in record.searched[1:]]
        return sum(count_tokens(texts)) / len(records) if texts else 0.0

    def _embed(self, system: RetrievalStack, tokens: float) -> Iterator[CostLine]:
        """Yield the cost of rewriting as paid, and of embedding by the tokens of the query."""
        stage = self._parts.preparing(system.rewrite)
        for model in self._world.workspace.rewriter(system.rewrite).models:
            yield CostLine(step="embed", model=model, unit="answers", per_query=1, price=self._paid(stage, model))
        tokens += self._added_tokens(system)
        # The original query is embedded in addition to its rewrite.
        twice = system.depth is not None and system.depth.when.rewrite is not None
        for model in () if system.embedder is None else self._parts.embedder(system.embedder).models:
            price = self._world.workspace.llm.price(model)
            yield CostLine(
                step="embed",
                model=model,
                unit="tokens",
                per_query=(2 if twice else 1) * tokens,
                price=None if price is None else price.input,
            )

    def _rerank(self, system: RetrievalStack, final: SystemOutput) -> Iterator[CostLine]:
        if system.own is not None:
            for search in self._parts.searches(system):
                for model in self._parts.paid(search):  # no other system shares these calls, so they are not counted
                    yield CostLine(step="rerank", model=model, unit="answers", per_query=1, price=None)
        if system.reranker is None or not final.rerankings:
            return
        reranker, found = self._parts.reranker(system.reranker), list(final.rerankings.values())
        prices = {model: self._world.workspace.llm.price(model) for model in reranker.models}
        for model, price in prices.items():
            if not reranker.reader.METERED or price is None:
                known = None not in prices.values()
                paid = 1000 * fmean(each.usd for each in found) / len(prices) if known else None
                yield CostLine(step="rerank", model=model, unit="answers", per_query=1, price=paid)
                continue
            tokens, searches = fmean(each.tokens for each in found), fmean(each.searches for each in found)
            yield CostLine(step="rerank", model=model, unit="tokens", per_query=tokens, price=price.input)
            if price.per_1k_searches:
                by_search = price.per_1k_searches
                yield CostLine(step="rerank", model=model, unit="searches", per_query=searches, price=by_search)

    def _generate(self, context: Number) -> Iterator[CostLine]:
        price = self._world.config.prices.get(GENERATOR)
        if price is not None and price.input is not None:
            known = None if context is None else price.input
            yield CostLine(step="generate", model=GENERATOR, unit="tokens", per_query=context or 0.0, price=known)

    def _context(self, system: RetrievalStack, final: SystemOutput) -> Number:
        """Return the mean number of tokens of the passages that the generator reads."""
        top = self._world.config.generator
        shown = [[doc for doc, _ in hits[:top]] for hits in final.lists.values()]
        tokens = self._tokens.setdefault(repr(system.chunker), {})
        missing = sorted({doc for docs in shown for doc in docs} - tokens.keys())
        if missing:
            found = self._world.passages_of(system.chunker).get(missing)
            tokens.update(zip(missing, count_tokens([found[doc].content for doc in missing]), strict=True))
        return fmean(sum(tokens[doc] for doc in docs) for docs in shown) if shown else None

    def _paid(self, stage: str, model: str) -> Number:
        """Return the cost of 1,000 answers of a model for one part in USD, according to the ledger. Return None if the
        ledger has no answers, or books them with 0 USD because the price is unknown. Cached answers count with their
        original cost.
        """
        usd, answers = 0.0, 0
        for line in read_torn(self._world.ledger, LedgerLine, LEDGER_REMEDY):
            if (line.stage, line.model) == (stage, model) and line.outcome in ("answered", "cached"):
                usd += line.usd + line.saved_usd
                answers += 1 if line.outcome == "answered" else line.cached
        known = usd > 0 or self._world.workspace.llm.price(model) is not None
        return QUERIES * usd / answers if answers and known else None


def _candidate_tokens(final: SystemOutput) -> Sequence[float]:
    """Return the tokens that a reranker read per candidate, mean per query; empty if they are not counted."""
    return [
        found.tokens / len(found.ranked) for found in (final.rerankings or {}).values() if found.tokens and found.ranked
    ]


@dataclass
class MeasuredSystem:
    """One system with its lists, or the reason why it is unfinished."""

    system: RetrievalStack
    final: SystemOutput | None = None
    file: str | None = None
    sha256: str | None = None
    failed: str | None = None
    dropped: str | None = None
    undecided: str | None = None
    fit: FitPart | None = None


class SystemMeasurement:
    """Measures all systems, one after the other.

    Args:
        world: context of the sweep.
        systems: all systems.
        store: folder of the sweep.
    """

    def __init__(self, world: SweepContext, systems: Sequence[RetrievalStack], store: SweepStore) -> None:
        self._world, self._store = world, store
        self.measured = [MeasuredSystem(system) for system in systems]
        self.parts = SystemParts(world, systems)
        self._hashes = OnceCache[str]()
        self._searches = world.config.recuts or any(system.run_file is None for system in systems)

    @cached_property
    def _clock(self) -> StepTimer:
        """The timer. It is created after halving, because it reads earlier timings."""
        return StepTimer(self._world, self.parts, self._store)

    def give_up(self, dropped: Mapping[str, str], undecided: Mapping[str, str]) -> None:
        """Record why systems are dropped, and why some systems are measured although they are worse by the labels."""
        for each in self.measured:
            each.dropped, each.undecided = dropped.get(each.system.name), undecided.get(each.system.name)

    def check(self) -> None:
        """Check the systems before any paid call.

        Raises:
            PrerequisiteError: a key or an extra is missing.
            ConfigError: `budget` limits USD, and a price is unknown.
            RaggsError: a part has a requirement that is not met.
        """
        models: list[str] = []
        for each in self.measured:
            system, parts = each.system, self.parts
            if system.run_file is not None:
                continue  # No model is called.
            for search in parts.searches(system):
                parts.retriever(search).check()
                models += parts.paid(search)
            models += self._world.workspace.rewriter(system.rewrite).models
            models += () if system.embedder is None else parts.embedder(system.embedder).models
            if system.reranker is not None:
                parts.reranker(system.reranker).check()
                models += parts.reranker(system.reranker).models
        specs = [each.system.embedder for each in self.measured if each.system.run_file is None]
        for number, spec in enumerate(specs):
            if models and spec is not None and spec not in specs[:number]:
                self.parts.embedder(spec).check()
        require_keys(tuple(dict.fromkeys(models)), self._world.workspace.settings)
        for model in dict.fromkeys(models):
            self._world.workspace.llm.require_price(model)

    def fingerprint(self, system: RetrievalStack) -> str:
        """Return the hash of everything that a system's lists depend on."""
        if system.run_file is not None:
            return hash_value({"run": self._sha256(system.run_file), "k": system.k})
        reranker = None if system.reranker is None else self.parts.reranker(system.reranker)
        config = self._world.config
        return hash_value(
            {
                "searches": [self.parts.causes(search) for search in self.parts.searches(system)],
                "k": system.k,
                "rrf": config.hybrid.rrf_k if system.mode == "hybrid" else None,
                "reranker": reranker and [reranker.causes(), config.duplicates],
                "llm": config.llm.causes_for(reranker.models) if reranker and reranker.models else None,
                **({"depth": causes_of(system.depth)} if system.depth is not None else {}),
                **({"fit": self._fit_causes(system)} if is_fitted(system.reranker) else {}),
            }
        )

    def _fit_causes(self, system: RetrievalStack) -> Causes:
        """Return everything that the choice of weights depends on."""
        world = self._world
        scorer = scorer_for(world.config, world.labels, world.atlas, system.levels)
        return {
            "weights": list(WEIGHTS),
            "measure": scorer.quality[0],
            "seed": world.config.seed,
            "golden": world.labels.digest,
        }

    def make(self) -> None:
        """Make the lists of every system that was not dropped, and time each one directly afterwards (first round).
        External runs are not timed.

        Raises:
            ConfigError, PrerequisiteError: the settings are invalid, or a prerequisite is missing.
        """
        for done, each in enumerate(self.measured):
            self._world.hear(BuildProgress("systems", done, len(self.measured)))
            if each.dropped:
                continue
            try:
                if each.system.run_file is not None:
                    self._take(each, each.system.run_file)
                    continue
                each.final = self.parts.final(each.system)
                if not any(each.final.lists.values()):
                    raise DataError("returned nothing for any query", remedy="check its settings")
                each.file = self._store.keep_run(each.system.name, each.final.lists)
                each.fit = self._fit(each.system)
                self._clock.note_paid(each.system)
                self._clock.note_reranked(each.system, each.final)
                self._clock.time([each.system], 1)
            # a missing key was reported before, so only this provider failed
            except (AuthenticationError, ModelError) as error:
                self._lose(each, error)
            except (ConfigError, PrerequisiteError):
                raise
            except RaggsError as error:
                self._lose(each, error)
        self._world.hear(BuildProgress("systems", len(self.measured), len(self.measured)))

    def _fit(self, system: RetrievalStack) -> FitPart | None:
        """Return how the weight of a reranker was fitted, with the lists per weight; None if the weight is fixed."""
        part, spec = self.parts.fitted(system), system.reranker
        if part is None or not isinstance(spec, BoostedConfig):
            return None
        made = self.parts.boosted(system, spec, self.parts.candidates(system))
        files = [
            self._store.keep_run(f"{system.name} weight {weight:g}", SystemOutput.of(found).lists)
            for weight, found in made.items()
        ]
        return part.model_copy(update={"files": tuple(files)})

    def _lose(self, each: MeasuredSystem, error: RaggsError) -> None:
        each.final, each.file, each.failed = None, None, str(error)
        self._world.hear(Notice(f"{each.system.name} is unfinished: {error}"))

    @property
    def timed(self) -> int:
        """Return the maximum number of queries for which a provider is called only to measure its latency."""
        return self._clock.timed

    def probes(self, system: RetrievalStack) -> Iterator[tuple[str, str, int]]:
        """See `StepTimer.probes`."""
        return self._clock.probes(system)

    def time(self, number: int) -> None:
        """Run another round of timing."""
        made = [each.system for each in self.measured if each.final]
        self._clock.time([system for system in made if system.run_file is None], number)

    def shown(self) -> Mapping[str, set[str]]:
        """Return the passages that systems return, by chunking."""
        found: dict[str, set[str]] = {}
        for each in self.measured:
            if each.final is not None:
                shown = found.setdefault(each.system.levels.get(CHUNKER, ""), set())
                shown |= {doc for hits in each.final.lists.values() for doc, _ in hits}
        return found

    def rows(self) -> Iterator[SystemRow]:
        """Yield the measurements of each system."""
        costs = SystemCosts(self._world, self.parts)
        for each in self.measured:
            system, final = each.system, each.final
            if each.file is not None and each.sha256 is not None:
                yield self._foreign(each, costs)
                continue
            yield SystemRow(
                name=system.name,
                levels=system.levels,
                fingerprint=self.fingerprint(system),
                file=each.file,
                k=system.k,
                mean_k=self._mean_k(system, final),
                escalated=self._share(system, final),
                questions=0 if final is None else len(final.lists),
                failed=each.failed,
                dropped=each.dropped,
                undecided=each.undecided,
                steps={} if final is None else self._clock.steps(system),
                latency=LatencyPart() if final is None else self._clock.latency(system),
                cost=None if final is None else costs.cost(system, final),
                memory=None if final is None else memory_of(system, self.parts),
                fit=None if final is None else each.fit,
            )

    def _share(self, system: RetrievalStack, final: SystemOutput | None) -> Number:
        """Return the share of queries that were searched deeper; None if depth is not routed or the system is
        unfinished.
        """
        router = self.parts.router(system)
        return None if router is None or final is None else router.share

    def _mean_k(self, system: RetrievalStack, final: SystemOutput | None) -> Number:
        share, depth = self._share(system, final), system.depth
        return None if share is None or depth is None else depth.base + share * (depth.deep - depth.base)

    def _take(self, each: MeasuredSystem, path: Path) -> None:
        """Read an external run without changing it. If the sweep reads its corpus, the corpus must contain the run's
        passages.
        """
        each.sha256 = self._sha256(path)
        if self._searches:
            lists = lists_of(read_foreign(path, each.sha256, each.system.k), each.system.k)
            check_known(lists, self._world.passages_of(each.system.chunker), path)
            each.final = SystemOutput({qid: lists.get(qid, []) for qid in self._world.queries})
        each.file = str(path)

    def _foreign(self, each: MeasuredSystem, costs: SystemCosts) -> SystemRow:
        """Return an external run, whose latency is unknown. Without passages, the generator's cost is unknown, too."""
        return SystemRow(
            name=each.system.name,
            levels=each.system.levels,
            fingerprint=self.fingerprint(each.system),
            file=each.file,
            sha256=each.sha256,
            k=each.system.k,
            questions=len(self._world.queries),
            cost=None if each.final is None else costs.cost(each.system, each.final),
        )

    def _sha256(self, path: Path) -> str:
        return self._hashes(path, lambda: sha256_of(path))


SAMPLE = 200  # number of passages from which the mean length is estimated
PROMPT = 200  # assumed number of tokens of a rewriting prompt
SECONDS = 1.0  # assumed latency of a paid call


def plan(measuring: SystemMeasurement, world: SweepContext, grid: SystemGrid) -> SweepPlan:
    """Return the plan of a grid."""
    _ = world.atlas  # Called here so that the error about wrong documents is raised before any paid call.
    counts = {cut: len(world.passages_of(cut)) for cut in _distinct_chunkers(grid)}
    with world.workspace.rehearsal(remembers=False) as llm:
        _count(measuring, world, grid.searched, llm)
        paid = tuple(
            PlanLine(
                what=line.stage,
                model=line.who,
                calls=line.calls,
                tokens=line.input_tokens + line.output_tokens,
                usd=line.usd,
            )
            for line in lines_of(llm)
        )
    kept = [measuring.parts.kept(system) for system in grid.systems]
    return SweepPlan(
        name=world.config.name,
        systems=tuple(system.name for system in grid.systems),
        axes={**grid.labels, **({SINGLE_SYSTEMS_AXIS: tuple(world.config.systems)} if world.config.systems else {})},
        questions=len(world.queries),
        passages=sum(counts.values()),
        cuts=len(counts),
        left_out=grid.left_out,
        kept=sum(kept),
        lists=len(kept),
        paid=paid,
        hours=sum(line.calls for line in paid) * SECONDS / world.config.llm.concurrency / 3600,
    )


def _count(
    measuring: SystemMeasurement, world: SweepContext, systems: tuple[RetrievalStack, ...], llm: DryRunLLM
) -> None:
    """Count the provider calls of each part that is not stored. A part that several systems share is counted once."""
    asked = [query.text for query in world.queries.values()]
    question = round(fmean(count_tokens(asked)))
    seen, parts = set[str](), measuring.parts
    for system in systems:
        if parts.kept(system):
            # If all answers of a provider are cached, a few calls are still made to measure its latency.
            for what, model, calls in measuring.probes(system):
                if what not in seen:
                    llm.turn_to(what)
                    task = world.workspace.rewriter(system.rewrite).TASK
                    llm.count(model, task, calls, calls * (question + PROMPT))
                seen.add(what)
            continue
        rewriter = world.workspace.rewriter(system.rewrite, llm)
        if rewriter.models and repr(system.rewrite) not in seen:
            llm.turn_to("rewriting queries")
            world.workspace.loop.run(rewritten(world.queries.values(), rewriter, EmbedConfig().language))
        seen.add(repr(system.rewrite))
        if system.embedder is not None:
            _count_vectors(measuring, world, system, question, seen, llm)
        for search in parts.searches(system) if system.own is not None else ():
            llm.turn_to(f"searching by {system.levels['mode']}")
            for spec, candidates in parts.retriever(search).reranks():
                # The number of passages that the retriever returns does not change its calls.
                same_calls = replace(search, retriever=search.retriever.model_copy(update={"k": 0}))
                if (work := repr((same_calls, spec, candidates))) in seen:
                    continue
                seen.add(work)
                reranker = world.workspace.reranker(spec, llm)
                passages = world.passages_of(system.chunker)
                count_reranking(world.workspace.loop, llm, reranker, asked, passages, candidates)
        key = repr(
            (parts.searches(system), system.k, system.depth, system.reranker and innermost_config(system.reranker))
        )
        if system.reranker is not None and key not in seen:
            seen.add(key)
            llm.turn_to(f"reranking {_candidates_text(system)} ({system.levels['mode']})")
            _count_reranking(measuring, world, system, world.workspace.reranker(system.reranker, llm), llm)


def _distinct_chunkers(grid: SystemGrid) -> list[ChunkerConfig | None]:
    """Return the distinct chunkings of the systems."""
    found: list[ChunkerConfig | None] = []
    for system in grid.searched:
        found += [system.chunker] if system.chunker not in found else []
    return found


def _tokens(passages: Passages) -> int:
    """Return the approximate number of tokens of all passages."""
    return len(passages) * round(fmean(count_tokens(passages.sample(SAMPLE))))


def _count_reranking(
    measuring: SystemMeasurement, world: SweepContext, system: RetrievalStack, reranker: Reranker, llm: DryRunLLM
) -> None:
    """Count the lists to rerank. If passages may have been paid for in other calls, also count the calls that only
    measure latency.
    """
    asked, passages = [query.text for query in world.queries.values()], world.passages_of(system.chunker)

    def count(times: int) -> int:
        before = sum(found.calls for found in llm.all_asked.values())
        count_reranking(world.workspace.loop, llm, reranker, asked, passages, system.k, times=times)
        return sum(found.calls for found in llm.all_asked.values()) - before

    if count(len(asked)) < len(asked) * min(system.k, len(passages)) and reranker.reader.INDEPENDENT:
        count(measuring.timed)


def _candidates_text(system: RetrievalStack) -> str:
    """Return the number of candidates as text."""
    depth = system.depth
    return f"{system.k} candidates" if depth is None else f"{depth.base} candidates, or {depth.deep}, at most"


def _count_vectors(
    measuring: SystemMeasurement,
    world: SweepContext,
    system: RetrievalStack,
    size: int,
    seen: set[str],
    llm: DryRunLLM,
) -> None:
    """Count the queries once per rewriter and embedder, and the passages or units once per embedder.

    `size`: tokens of a query.
    """
    spec, parts, questions = system.embedder, measuring.parts, len(world.queries)
    if spec is None or not (embedder := parts.embedder(spec)).models:
        return

    def count(what: str, key: object, calls: int, tokens: Callable[[], int]) -> None:
        if repr(key) not in seen:
            seen.add(repr(key))
            llm.turn_to(what)
            for model in embedder.models:
                llm.count(model, "embed", calls, tokens())

    for search in parts.searches(system):
        for passages in parts.retriever(search).embedded():
            calls, tokens = -(-len(passages) // embedder.config.batch), partial(_tokens, passages)
            count("embedding passages", ("passages", spec, passages.content_hash), calls, tokens)
    added = world.workspace.rewriter(system.rewrite).placeholders("")
    calls, size = questions * (1 + len(added)), size + sum(count_tokens(added)) if added else size
    count("embedding queries", (system.rewrite, spec), calls, lambda: questions * size)
