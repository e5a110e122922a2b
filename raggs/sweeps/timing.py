"""Latency of a query before generation, step by step.

Local steps are timed one query at a time, after a warm-up, in rounds that are spread over the sweep. Calls of a
provider are timed when they are paid, because an answer from the cache has no latency.

Two figures must not be confused:

- The median latency of a query is the median over rounds, summed over steps. `p50` is the median of these over queries,
  `p95_of_medians` their 95th percentile. Both percentiles hide rare delays.
- The tail of single searches is `p95`, within which 95% of all single searches ended, over all queries and rounds.
  Latency limits apply to this tail.

The interval of `p95` comes from a bootstrap in which queries and rounds are both drawn with replacement (Owen, "The
pigeonhole bootstrap", 2007). The reason is that the latencies of one query resemble each other, and so do those of one
round. Warm-up searches are not timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import median

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.artifacts import EmbedRecord
from raggs.base.errors import RaggsError
from raggs.base.hashing import generator, hash_value
from raggs.base.jsonl import Appender, read_torn
from raggs.base.types import BuildProgress, Notice, Number
from raggs.llm.ledger import LEDGER_REMEDY, LedgerLine
from raggs.parts.rerankers.boosted import BoostedConfig, bm25, innermost_config
from raggs.stages.embed import prepare, query_vectors
from raggs.sweeps.grid import RetrievalStack, SystemRetriever
from raggs.sweeps.models import LatencyPart, LatencySpread, StepKind, Timing
from raggs.sweeps.outputs import SystemOutput
from raggs.sweeps.parts import EMBEDDING, RERANKING, SystemParts
from raggs.sweeps.reranking import probe
from raggs.sweeps.store import TIMINGS, SweepStore
from raggs.sweeps.world import SweepContext

TAIL_QUANTILE = 0.95
BOOTSTRAP_DRAWS = 1000
MAX_DRAW_CELLS = 2_000_000  # maximum number of single searches weighted at a time, over all draws


def sample(qids: Sequence[str], count: int) -> list[str]:
    """Return at most `count` queries, evenly spread over all."""
    count = min(count, len(qids))
    return [qids[at * len(qids) // count] for at in range(count)]


def latency_of(
    steps: Mapping[StepKind, Sequence[str]],
    timings: Iterable[Timing],
    questions: Sequence[str],
    *,
    confidence: float,
    seed: int,
) -> LatencyPart:
    """Return the latency of a system.

    Args:
        steps: by kind, the keys of sequential steps.
        timings: of these and other steps.
        questions: queries over which percentiles are taken.
        confidence: of the interval of the tail.
        seed: random seed of its bootstrap.

    Returns:
        Latency by kind. A kind with an untimed step is None, and so is the total.
    """
    wanted = {key for keys in steps.values() for key in keys}
    rounds: dict[str, list[Timing]] = {}
    for timing in timings:
        if timing.step in wanted:
            rounds.setdefault(timing.step, []).append(timing)

    def spread(keys: Sequence[str]) -> LatencySpread | None:
        return _spread([rounds.get(key, []) for key in keys], questions, confidence, seed)

    parts = {kind: found for kind, keys in steps.items() if (found := spread(keys)) is not None}
    everything = [key for keys in steps.values() for key in keys]
    return LatencyPart(
        embed=parts.get("embed"),
        retrieve=parts.get("retrieve"),
        rerank=parts.get("rerank"),
        total=spread(everything) if parts.keys() == steps.keys() else None,
    )


def _spread(
    steps: Sequence[Sequence[Timing]], questions: Sequence[str], confidence: float, seed: int
) -> LatencySpread | None:
    """Return percentiles of the sum of some steps over their rounds; None if a step is untimed or there is none."""
    if not steps or not all(steps):
        return None
    usual = _median_latencies(steps, questions)
    singles = _singles(steps, questions)
    if not singles.size:  # in this case, no query was timed in every step
        singles = usual[None, :]
    low, high = tail_interval(singles, confidence, seed)
    p50, p95_of_medians = np.percentile(usual, [50, 100 * TAIL_QUANTILE]).tolist()
    return LatencySpread(
        p50=p50,
        p95=tail_latency(singles),
        low=low,
        high=high,
        searches=singles.size,
        p95_of_medians=p95_of_medians,
        calls=max(sum(len(timing.ms) for timing in rounds) for rounds in steps),
        paid=any(timing.paid for rounds in steps for timing in rounds),
    )


def _median_latencies(steps: Sequence[Sequence[Timing]], questions: Sequence[str]) -> Floats:
    """Return the usual latency of each query. If a step was not timed for a query, the median of the step is used."""
    total: Floats = np.zeros(len(questions))
    for rounds in steps:
        ms = _by_question(rounds)
        missing = median(ms.values())
        total += [ms.get(qid, missing) for qid in questions]
    return total


def _singles(steps: Sequence[Sequence[Timing]], questions: Sequence[str]) -> Floats:
    """Return the single searches, shape (rounds, queries timed in every step).

    Paid steps are timed in fewer rounds than others. For the missing rounds, the median of the query is used.
    """
    numbers = sorted({timing.round for rounds in steps for timing in rounds})
    total: Floats = np.zeros((len(numbers), len(questions)))
    for rounds in steps:
        medians = _by_question(rounds)
        by_number = {timing.round: timing.ms for timing in rounds}
        for row, number in enumerate(numbers):
            ms = {**medians, **by_number.get(number, {})}
            total[row] += [ms.get(qid, np.nan) for qid in questions]
    found: Floats = total[:, ~np.isnan(total).any(axis=0)]
    return found


def _by_question(rounds: Sequence[Timing]) -> dict[str, float]:
    """Return the median over rounds by query."""
    qids = {qid for timing in rounds for qid in timing.ms}
    return {qid: median(timing.ms[qid] for timing in rounds if qid in timing.ms) for qid in qids}


def tail_latency(searches: Floats) -> float:
    """Return the least time within which 95% of single searches ended."""
    return float(np.quantile(searches, TAIL_QUANTILE, method="inverted_cdf"))


def tail_interval(searches: Floats, confidence: float, seed: int) -> tuple[Number, Number]:
    """Return the bounds of the tail's interval over resampled queries and rounds.

    Args:
        searches: milliseconds, shape (rounds, queries).

    Returns:
        The bounds. The upper one is None if there are too few searches. With n searches, even the slowest is below the
        true tail with a probability of 0.95 to the power of n.
    """
    rounds, queries = searches.shape
    order = np.argsort(searches, axis=None, kind="stable")
    values, row, column = searches.ravel()[order], order // queries, order % queries
    found = np.empty(BOOTSTRAP_DRAWS)
    for start, (drawn_rounds, drawn_queries) in _counts(rounds, queries, seed):
        weights = np.cumsum(drawn_rounds[:, row] * drawn_queries[:, column], axis=1)
        reached = (weights >= TAIL_QUANTILE * rounds * queries - 1e-9).argmax(axis=1)
        found[start : start + len(reached)] = values[reached]
    side = (1 - confidence) / 2
    low, high = np.quantile(found, [side, 1 - side], method="inverted_cdf").tolist()
    return low, high if side > TAIL_QUANTILE**searches.size else None


@lru_cache(maxsize=8)
def _counts(rounds: int, queries: int, seed: int) -> tuple[tuple[int, tuple[Floats, Floats]], ...]:
    """Return how often each draw contains each round and each query, in chunks of draws.

    Returns:
        For each chunk, the number of its first draw and two arrays of counts, shapes (draws, rounds) and
        (draws, queries).
    """
    rng, step = generator(seed, "tail", rounds, queries), max(1, MAX_DRAW_CELLS // (rounds * queries))
    return tuple(
        (
            start,
            (
                _draws(rng, rounds, min(step, BOOTSTRAP_DRAWS - start)),
                _draws(rng, queries, min(step, BOOTSTRAP_DRAWS - start)),
            ),
        )
        for start in range(0, BOOTSTRAP_DRAWS, step)
    )


def _draws(rng: np.random.Generator, size: int, draws: int) -> Floats:
    drawn = rng.integers(size, size=(draws, size)) + size * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * size).reshape(draws, size).astype(np.float64)


RUNFILE = "runfile"  # An external run has an unknown latency.
# maximum number of calls that only measure latency, if answers are cached or came from calls of another size
PROBES = 10


@dataclass(frozen=True)
class TimedStep:
    """A step that is timed.

    Attributes:
        key: hash of what it depends on.
        kind: part of the latency that it belongs to.
        what: description of the step.
        records: its input queries.
        run: runs it for one query.
        ms: runs it for one query without caches and returns the milliseconds; None if `run` must be timed.
    """

    key: str
    kind: StepKind
    what: str
    records: Callable[[], Sequence[EmbedRecord]]
    run: Callable[[EmbedRecord], object]
    ms: Callable[[EmbedRecord], float | None] = lambda _: None


def _milliseconds(step: TimedStep, record: EmbedRecord) -> float:
    if (ms := step.ms(record)) is not None:
        return ms
    began = time.perf_counter()
    step.run(record)
    return 1000 * (time.perf_counter() - began)


class StepTimer:
    """Timer of steps. In each round, a step is timed once for all systems that share it.

    Args:
        world, parts: context and parts of the sweep.
        store: folder of the sweep, where timings are stored.
    """

    def __init__(self, world: SweepContext, parts: SystemParts, store: SweepStore) -> None:
        self._world, self._parts = world, parts
        self._path = store.folder / TIMINGS
        self._probed: set[str] = set()
        self._known = {(line.step, line.round): line for line in store.timings()}

    def time(self, systems: Sequence[RetrievalStack], number: int) -> None:
        """Time one round of the steps of some systems. Steps that were already timed in this round are skipped."""
        steps = {step.key: step for system in systems for step in self._local(system)}
        missing = [step for key, step in steps.items() if (key, number) not in self._known]
        for done, step in enumerate(missing):
            self._world.hear(BuildProgress(f"timed, round {number}", done, len(missing)))
            self._keep(self._timed(step, number))
        if missing:
            self._world.hear(BuildProgress(f"timed, round {number}", len(missing), len(missing)))

    def note_paid(self, system: RetrievalStack) -> None:
        """Store the latencies of paid calls for a system's queries: from the ledger or from an earlier sweep. If
        neither has them, call the provider for up to `PROBES` queries.
        """
        for key, kind, what, stage, model in self._paid(system):
            if (key, 1) in self._known:
                continue
            ms = self._ledger_ms(stage, model) or self._parts.times(key)
            if not ms and key not in self._probed:
                self._probed.add(key)
                self._probe(system, stage, what)
                ms = self._ledger_ms(stage, model)
            if ms:
                self._parts.keep_times(key, ms)
                self._keep(Timing(step=key, kind=kind, what=what, round=1, paid=True, ms=ms))

    @property
    def timed(self) -> int:
        """Maximum number of queries for which a provider is called only to measure its latency."""
        return len(self._sample()[:PROBES])

    def probes(self, system: RetrievalStack) -> Iterator[tuple[str, str, int]]:
        """Yield the calls that only measure the latency of a provider, because no latency of it is stored: description,
        model and number of calls.
        """
        for key, _, what, stage, model in self._paid(system):
            known = (key, 1) in self._known or self._ledger_ms(stage, model) or self._parts.times(key)
            if not known:
                yield f"timing: {what}", model, self.timed

    def note_reranked(self, system: RetrievalStack, final: SystemOutput) -> None:
        """Store a reranker's latency for each query, as measured when it was called. If a paid reranker has too few
        latencies, call it again for up to `PROBES` queries.
        """
        key = self._reranking(system)
        if key is None or final.rerankings is None or (key, 1) in self._known or system.reranker is None:
            return
        ms = {qid: round(found.ms, 4) for qid, found in final.rerankings.items() if found.ms is not None}
        paid = bool(self._parts.reranker(system.reranker).models)
        ms |= self._parts.times(key) if paid else {}
        lacking = [qid for qid in self._sample()[:PROBES] if qid not in ms]
        # answers that are cached by passage, from calls with another k, have no latency
        if paid and len(ms) < PROBES and lacking:
            records = [record for record in self._parts.prepared(system.rewrite) if record.qid in lacking]
            passages = self._world.passages_of(system.chunker)
            self._world.book(RERANKING)
            for qid, took in probe(self._world, passages, innermost_config(system.reranker), final.rerankings, records):
                ms[qid] = took
                # Stored after each call, so that a killed sweep does not pay for these calls again.
                self._parts.keep_times(key, ms)
        if ms:
            own = innermost_config(system.reranker) is system.reranker
            by = system.levels["reranker"] if own else innermost_config(system.reranker).type
            what = f"rerank {system.levels['k']} by {by}"
            self._keep(Timing(step=key, kind="rerank", what=what, round=1, paid=paid, ms=ms))

    def steps(self, system: RetrievalStack) -> dict[StepKind, tuple[str, ...]]:
        """Return the keys of the steps of a system by kind."""
        keys: dict[StepKind, list[str]] = {}
        for step in self._local(system):
            keys.setdefault(step.kind, []).append(step.key)
        for key, kind, *_ in self._paid(system):
            keys.setdefault(kind, []).append(key)
        if self._elsewhere(system):
            keys["retrieve"] = [hash_value(["untimed", self._parts.causes(self._parts.searches(system)[0])])]
        if (reranking := self._reranking(system)) is not None:
            keys.setdefault("rerank", []).insert(0, reranking)
        return {kind: tuple(found) for kind, found in keys.items()}

    def latency(self, system: RetrievalStack) -> LatencyPart:
        """Return the latency of a system."""
        config = self._world.config
        return latency_of(
            self.steps(system),
            self._known.values(),
            self._sample(),
            confidence=config.confidence,
            seed=config.seed,
        )

    # --- steps ---

    def _local(self, system: RetrievalStack) -> Iterator[TimedStep]:
        """Yield the local steps of a system."""
        parts, world = self._parts, self._world
        rewriter = world.workspace.rewriter(system.rewrite)
        prepared = partial(parts.prepared, system.rewrite)
        if not rewriter.models and system.rewrite.type != "none":

            def rewrite(record: EmbedRecord) -> object:
                query = world.queries[record.qid]
                return world.workspace.loop.run(prepare(query, rewriter, world.config.language))

            key = hash_value(["rewrite", rewriter.causes()])
            yield TimedStep(key, "embed", f"rewrite by {system.rewrite.type}", prepared, rewrite)
        if system.embedder is not None and not parts.embedder(system.embedder).models:
            embedder = parts.embedder(system.embedder)
            yield TimedStep(
                hash_value(["embed", embedder.causes(), *([rewriter.causes()] if rewriter.placeholders("") else [])]),
                "embed",
                f"embed by {embedder.identity}",
                prepared,
                lambda record: query_vectors([record], embedder),
            )
        if isinstance(system.reranker, BoostedConfig):
            yield self._boost(system, system.reranker)
        if self._elsewhere(system):
            return
        for search in parts.searches(system):
            yield self._search(search)

    def _boost(self, system: RetrievalStack, spec: BoostedConfig) -> TimedStep:
        """Return the step of BM25 over a query's candidates; the reranker is a separate step."""
        parts, candidates = self._parts, self._parts.candidates(system)
        passages = self._world.passages_of(system.chunker)

        def run(record: EmbedRecord) -> object:
            docs = [doc for doc, _ in candidates[record.qid]]
            held = passages.get(docs)
            texts = [held[doc].content for doc in docs]
            return bm25(record.rewrite, record.language, texts)

        key = hash_value(["boost", parts.rerank_causes(system), parts.reranker(spec).own_causes()["version"]])
        return TimedStep(
            key, "rerank", f"boost {system.levels['k']} by BM25", partial(parts.prepared, system.rewrite), run
        )

    def _elsewhere(self, system: RetrievalStack) -> bool:
        """Return whether lists cannot be timed here: they come from a file, or from a provider whose answers are
        cached.
        """
        if system.own is None:
            return False
        return system.own.type == RUNFILE or any(map(self._parts.paid, self._parts.searches(system)))

    def _search(self, search: SystemRetriever) -> TimedStep:
        retriever = self._parts.retriever(search)
        what = f"{search.retriever.type}, k {search.retriever.k}"
        return TimedStep(
            hash_value(["retrieve", self._parts.causes(search)]),
            "retrieve",
            what,
            partial(self._parts.questions, search),
            lambda record: list(retriever.search([record])),
            retriever.latency_ms,
        )

    def _paid(self, system: RetrievalStack) -> Iterator[tuple[str, StepKind, str, str, str]]:
        """Yield the provider calls of a query: key, kind, description, stage in the ledger, model."""
        rewriter = self._world.workspace.rewriter(system.rewrite)
        for model in rewriter.models:
            stage = self._parts.preparing(system.rewrite)
            yield hash_value(["paid rewrite", rewriter.causes()]), "embed", f"{rewriter.TASK} by {model}", stage, model
        if system.embedder is not None:
            embedder = self._parts.embedder(system.embedder)
            for model in embedder.models:
                yield hash_value(["paid embed", embedder.causes()]), "embed", f"embed by {model}", EMBEDDING, model

    def _reranking(self, system: RetrievalStack) -> str | None:
        """Return the key of a system's reranking; None without a reranker."""
        if system.reranker is None:
            return None
        return hash_value(["rerank", self._parts.rerank_causes(system)])

    # --- measuring ---

    def _probe(self, system: RetrievalStack, stage: str, what: str) -> None:
        """Call a provider to measure its latency. If the call fails, only the time is missing."""
        try:
            self._parts.probe(system, stage, self._sample()[:PROBES])
        except RaggsError as error:
            self._world.hear(Notice(f"{what}: its latency is unknown: {error}"))

    def _timed(self, step: TimedStep, number: int) -> Timing:
        ms: dict[str, float] = {}
        wanted = set(self._sample())
        records = [record for record in step.records() if record.qid in wanted]
        for record in records[: self._world.config.latency.warmup]:
            _milliseconds(step, record)  # not only `run`, which a cache may answer
        for record in records:
            ms[record.qid] = round(_milliseconds(step, record), 4)
        return Timing(step=step.key, kind=step.kind, what=step.what, round=number, load=load_now(), ms=ms)

    def _sample(self) -> list[str]:
        return sample(list(self._world.queries), self._world.config.latency.queries)

    def _ledger_ms(self, stage: str, model: str) -> dict[str, float]:
        """Return milliseconds of a model's answered calls for one part by query.

        If the ledger records no call with its query, the latest calls are assumed to be in the order of the queries.
        """
        ms: dict[str, float] = {}
        others: list[float] = []
        for line in read_torn(self._world.ledger, LedgerLine, LEDGER_REMEDY):
            if (line.stage, line.model, line.outcome) == (stage, model, "answered"):
                if line.qid:
                    ms[line.qid] = 1000 * line.latency_s
                else:
                    others.append(1000 * line.latency_s)
        qids = list(self._world.queries)
        return ms or dict(zip(qids, others[-len(qids) :], strict=False))

    def _keep(self, timing: Timing) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with Appender(self._path) as file:
            file.append(timing)
        self._known[timing.step, timing.round] = timing


def load_now() -> float | None:
    """Return the load per processor over the last minute; None if the system does not report it."""
    try:
        return round(os.getloadavg()[0] / (os.cpu_count() or 1), 3)
    except OSError:
        return None
