"""How long a question waits before anything is generated, step by step.

What runs here is timed one question at a time, warm, in rounds that are spread over the sweep; `latency` says what
becomes of these times. What a provider does is timed when it is paid and never again: an answer from the cache says
nothing of the wait.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from raggs.base.artifacts import EmbedRecord
from raggs.base.errors import RaggsError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import Appender, read_torn
from raggs.base.progress import Building, Notice
from raggs.llm.ledger import REMEDY, LedgerLine
from raggs.parts.rerankers.boosted import BoostedConfig, bm25, reads
from raggs.stages.embed import prepare
from raggs.sweeps.grid import System
from raggs.sweeps.latency import latency_of, sample
from raggs.sweeps.models import LatencyPart, StepKind, Timing
from raggs.sweeps.parts import EMBEDDING, PREPARING, RERANKING, Parts
from raggs.sweeps.partstore import Final
from raggs.sweeps.reranking import probe
from raggs.sweeps.searches import Search
from raggs.sweeps.store import TIMINGS, SweepStore
from raggs.sweeps.world import World

RUNFILE = "runfile"  # made elsewhere, in a time that nobody here knows
PROBES = 10  # calls that time what is paid for, where its answers are kept or came from calls of another size


@dataclass(frozen=True)
class Step:
    """Something that is timed.

    Attributes:
        key: hash of what it depends on.
        kind: what of a question's wait it is.
        what: the same in words.
        records: the questions as it is asked them.
        run: does it for one of them.
    """

    key: str
    kind: StepKind
    what: str
    records: Callable[[], Sequence[EmbedRecord]]
    run: Callable[[EmbedRecord], object]


class Clock:
    """Times the steps of systems, each step once for all systems that share it.

    Args:
        world, parts: of the sweep.
        store: of the sweep, where timings are kept.
    """

    def __init__(self, world: World, parts: Parts, store: SweepStore) -> None:
        self._world, self._parts = world, parts
        self._path = store.folder / TIMINGS
        self._probed: set[str] = set()
        self._known = {(line.step, line.round): line for line in store.timings()}

    def time(self, systems: Sequence[System], number: int) -> None:
        """One round over the steps of some systems; steps that were timed in it are passed over."""
        steps = {step.key: step for system in systems for step in self._local(system)}
        missing = [step for key, step in steps.items() if (key, number) not in self._known]
        for done, step in enumerate(missing):
            self._world.hear(Building(f"timed, round {number}", done, len(missing)))
            self._keep(self._timed(step, number))
        if missing:
            self._world.hear(Building(f"timed, round {number}", len(missing), len(missing)))

    def note_paid(self, system: System) -> None:
        """Take down what the ledger knows of the calls that a system's questions took."""
        for key, kind, what, stage, model in self._paid(system):
            if (key, 1) in self._known:
                continue
            ms = self._ledger_ms(stage, model) or self._parts.store.times(key)
            if not ms and key not in self._probed:
                self._probed.add(key)
                self._probe(system, stage, what)
                ms = self._ledger_ms(stage, model)
            if ms:
                self._parts.store.keep_times(key, ms)
                self._keep(Timing(step=key, kind=kind, what=what, round=1, paid=True, ms=ms))

    @property
    def timed(self) -> int:
        """How many questions are asked for the time alone, at most."""
        return len(self._sample()[:PROBES])

    def probes(self, system: System) -> Iterator[tuple[str, str, int]]:
        """What must be asked of a provider for its time alone, since all answers are kept: words, model, calls."""
        for key, _, what, stage, model in self._paid(system):
            known = (key, 1) in self._known or self._ledger_ms(stage, model) or self._parts.store.times(key)
            if not known:
                yield f"timing: {what}", model, self.timed

    def note_reranked(self, system: System, final: Final) -> None:
        """Take down how long a reranker took for each question, when it did the work."""
        key = self._reranking(system)
        if key is None or final.rerankings is None or (key, 1) in self._known or system.reranker is None:
            return
        ms = {qid: round(found.ms, 4) for qid, found in final.rerankings.items() if found.ms is not None}
        paid = bool(self._parts.reranker(system.reranker).models)
        ms |= self._parts.store.times(key) if paid else {}
        lacking = [qid for qid in self._sample()[:PROBES] if qid not in ms]
        if paid and len(ms) < PROBES and lacking:  # scores are kept by passage, and were paid for at another k
            records = [record for record in self._parts.prepared(system.rewrite) if record.qid in lacking]
            passages = self._world.passages_of(system.chunker)
            self._world.book(RERANKING)
            for qid, took in probe(self._world, passages, reads(system.reranker), final.rerankings, records):
                ms[qid] = took
                self._parts.store.keep_times(key, ms)  # at once: whoever kills the sweep here pays for no call again
        if ms:
            own = reads(system.reranker) is system.reranker
            by = system.levels["reranker"] if own else reads(system.reranker).type
            what = f"rerank {system.levels['k']} by {by}"
            self._keep(Timing(step=key, kind="rerank", what=what, round=1, paid=paid, ms=ms))

    def steps(self, system: System) -> dict[StepKind, tuple[str, ...]]:
        """The keys of what a question of a system waits for, by kind."""
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

    def latency(self, system: System) -> LatencyPart:
        """What is known of a system's waiting."""
        config = self._world.config
        return latency_of(
            self.steps(system),
            self._known.values(),
            self._sample(),
            confidence=config.confidence,
            seed=config.seed,
        )

    # --- steps ---

    def _local(self, system: System) -> Iterator[Step]:
        """What of a system runs here."""
        parts, world = self._parts, self._world
        rewriter = world.workshop.rewriter(system.rewrite)
        prepared = partial(parts.prepared, system.rewrite)
        if not rewriter.models and system.rewrite.type != "none":

            def rewrite(record: EmbedRecord) -> object:
                query = world.queries[record.qid]
                return world.workshop.loop.run(prepare(query, rewriter, world.config.language))

            key = hash_value(["rewrite", rewriter.causes()])
            yield Step(key, "embed", f"rewrite by {system.rewrite.type}", prepared, rewrite)
        if system.embedder is not None and not parts.embedder(system.embedder).models:
            embedder = parts.embedder(system.embedder)
            yield Step(
                hash_value(["embed", embedder.causes()]),
                "embed",
                f"embed by {embedder.identity}",
                prepared,
                lambda record: embedder.embed_queries([record.rewrite]),
            )
        if isinstance(system.reranker, BoostedConfig):
            yield self._boost(system, system.reranker)
        if self._elsewhere(system):
            return
        for search in parts.searches(system):
            yield self._search(search)

    def _boost(self, system: System, spec: BoostedConfig) -> Step:
        """BM25 over a question's candidates; the reranker that reads them is a step of its own."""
        parts, candidates = self._parts, self._parts.candidates(system)
        passages = self._world.passages_of(system.chunker)

        def run(record: EmbedRecord) -> object:
            docs = [doc for doc, _ in candidates[record.qid]]
            held = passages.get(docs)
            texts = [held[doc].content for doc in docs]
            return bm25(record.rewrite, record.language, texts)

        key = hash_value(["boost", parts.rerank_causes(system), parts.reranker(spec).own_causes()["version"]])
        return Step(key, "rerank", f"boost {system.levels['k']} by BM25", partial(parts.prepared, system.rewrite), run)

    def _elsewhere(self, system: System) -> bool:
        """Whether lists come from where nobody here can time them: a file, or a provider whose answers are kept."""
        if system.own is None:
            return False
        return system.own.type == RUNFILE or any(map(self._parts.paid, self._parts.searches(system)))

    def _search(self, search: Search) -> Step:
        retriever = self._parts.retriever(search)
        what = f"{search.retriever.type}, k {search.retriever.k}"
        return Step(
            hash_value(["retrieve", self._parts.causes(search)]),
            "retrieve",
            what,
            partial(self._parts.questions, search),
            lambda record: list(retriever.search([record])),
        )

    def _paid(self, system: System) -> Iterator[tuple[str, StepKind, str, str, str]]:
        """What of a question is asked of a provider: key, kind, words, stage in the ledger, model."""
        rewriter = self._world.workshop.rewriter(system.rewrite)
        for model in rewriter.models:
            yield hash_value(["paid rewrite", rewriter.causes()]), "embed", f"rewrite by {model}", PREPARING, model
        if system.embedder is not None:
            embedder = self._parts.embedder(system.embedder)
            for model in embedder.models:
                yield hash_value(["paid embed", embedder.causes()]), "embed", f"embed by {model}", EMBEDDING, model

    def _reranking(self, system: System) -> str | None:
        """The key of a system's reranking; None without one."""
        if system.reranker is None:
            return None
        return hash_value(["rerank", self._parts.rerank_causes(system)])

    # --- measuring ---

    def _probe(self, system: System, stage: str, what: str) -> None:
        """Without an answer nothing but the time is missing: the lists are whole."""
        try:
            self._parts.probe(system, stage, self._sample()[:PROBES])
        except RaggsError as error:
            self._world.hear(Notice(f"{what}: its time is not known: {error}"))

    def _timed(self, step: Step, number: int) -> Timing:
        ms: dict[str, float] = {}
        wanted = set(self._sample())
        records = [record for record in step.records() if record.qid in wanted]
        for record in records[: self._world.config.latency.warmup]:
            step.run(record)
        for record in records:
            began = time.perf_counter()
            step.run(record)
            ms[record.qid] = round(1000 * (time.perf_counter() - began), 4)
        return Timing(step=step.key, kind=step.kind, what=step.what, round=number, load=load_now(), ms=ms)

    def _sample(self) -> list[str]:
        return sample(list(self._world.queries), self._world.config.latency.queries)

    def _ledger_ms(self, stage: str, model: str) -> dict[str, float]:
        """Milliseconds of a model's answered calls on one part of the work, by question.

        Where the ledger does not say of which question a call was, the latest are taken to be in their order.
        """
        ms: dict[str, float] = {}
        others: list[float] = []
        for line in read_torn(self._world.ledger, LedgerLine, REMEDY):
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
    """The load of a processor over the last minute; None where the system does not say."""
    try:
        return round(os.getloadavg()[0] / (os.cpu_count() or 1), 3)
    except OSError:
        return None
