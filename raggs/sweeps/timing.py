"""How long a question waits before anything is generated, step by step.

What runs here is timed one question at a time, warm, in rounds that are spread over the sweep; a question's time is
the median of its rounds. What a provider does is timed when it is paid and never again: an answer from the cache says
nothing of the wait.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from raggs.artifacts import EmbedRecord
from raggs.hashing import hash_value
from raggs.jsonl import Appender, read_torn
from raggs.llm.ledger import REMEDY, LedgerLine
from raggs.progress import Building
from raggs.stages.embed import prepare
from raggs.sweeps.grid import System
from raggs.sweeps.models import LatencyPart, Spread, StepKind, Timing
from raggs.sweeps.parts import EMBEDDING, PREPARING, Final, Parts, Search
from raggs.sweeps.world import World

FILE = "timings.jsonl"
RUNFILE = "runfile"  # made elsewhere, in a time that nobody here knows
PROBES = 10  # calls that time a paid embedder whose vectors were all paid for before


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
        folder: where `timings.jsonl` lies.
    """

    def __init__(self, world: World, parts: Parts, folder: Path) -> None:
        self._world, self._parts = world, parts
        self._path = folder / FILE
        self._known: dict[tuple[str, int], Timing] = {}
        for line in read_torn(self._path, Timing, "delete the line; the step is timed again"):
            self._known[line.step, line.round] = line

    def time(self, systems: Sequence[System], number: int) -> None:
        """One round over the steps of some systems; steps that were timed in it are passed over."""
        steps = {step.key: step for system in systems for step in self._local(system)}
        missing = [step for key, step in steps.items() if (key, number) not in self._known]
        for done, step in enumerate(missing):
            self._world.hear(Building(f"timed, round {number}", done, len(missing)))
            self._keep(self._timed(step, number))

    def note_paid(self, system: System) -> None:
        """Take down what the ledger knows of the calls that a system's questions took."""
        for key, kind, what, stage, model in self._paid(system):
            if (key, 1) in self._known:
                continue
            ms = self._ledger_ms(stage, model)
            if not ms and stage == EMBEDDING and system.embedder is not None:
                self._parts.probe(system.embedder, self._sample()[:PROBES])
                ms = self._ledger_ms(stage, model)
            if ms:
                self._keep(Timing(step=key, kind=kind, what=what, round=1, paid=True, ms=ms))

    def latency(self, system: System, final: Final) -> LatencyPart:
        """What is known of a system's waiting."""
        sample = self._sample()
        found = {
            "embed": [self._by_question(step.key) for step in self._local(system) if step.kind == "embed"]
            + [self._by_question(key) for key, *_ in self._paid(system)],
            "retrieve": [self._by_question(step.key) for step in self._local(system) if step.kind == "retrieve"],
            "rerank": [] if final.rerankings is None else [_rerank_ms(final)],
        }
        paid = {"embed": bool(list(self._paid(system))), "rerank": self._reranks_paid(system), "retrieve": False}
        parts = {kind: _sum(each, sample) for kind, each in found.items() if each}
        spreads = {kind: _spread(values, paid[kind]) for kind, values in parts.items() if values is not None}
        whole = None if None in parts.values() else _sum([each for each in parts.values() if each is not None], sample)
        untimed = system.own is not None and system.own.type == RUNFILE
        total = None if untimed or not whole else _spread(whole, any(paid.values()))
        return LatencyPart(
            embed=spreads.get("embed"), retrieve=spreads.get("retrieve"), rerank=spreads.get("rerank"), total=total
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
                lambda record: embedder.embed([record.rewrite]),
            )
        if system.own is not None and system.own.type == RUNFILE:
            return
        for search in parts.searches(system):
            yield self._search(search)

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

    def _reranks_paid(self, system: System) -> bool:
        return system.reranker is not None and bool(self._parts.reranker(system.reranker).models)

    # --- measuring ---

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
        return Timing(step=step.key, kind=step.kind, what=step.what, round=number, load=_load(), ms=ms)

    def _sample(self) -> list[str]:
        """The questions that are timed: evenly spread over all."""
        qids = list(self._world.queries)
        count = min(self._world.config.latency.queries, len(qids))
        return [qids[at * len(qids) // count] for at in range(count)]

    def _by_question(self, key: str) -> dict[str, float]:
        """The median of a step's rounds by question; empty where it was not timed."""
        rounds = [line.ms for (step, _), line in self._known.items() if step == key]
        return {
            qid: median(each[qid] for each in rounds if qid in each) for qid in {q for each in rounds for q in each}
        }

    def _ledger_ms(self, stage: str, model: str) -> dict[str, float]:
        """Milliseconds of a model's answered calls on one part of the work; by question where the ledger says which."""
        ms: dict[str, float] = {}
        for at, line in enumerate(read_torn(self._world.ledger, LedgerLine, REMEDY)):
            if (line.stage, line.model, line.outcome) == (stage, model, "answered"):
                ms[line.qid or f"#{at}"] = 1000 * line.latency_s
        return ms

    def _keep(self, timing: Timing) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with Appender(self._path) as file:
            file.append(timing)
        self._known[timing.step, timing.round] = timing


def _rerank_ms(final: Final) -> dict[str, float]:
    return {qid: found.ms for qid, found in (final.rerankings or {}).items() if found.ms is not None}


def _sum(parts: Sequence[Mapping[str, float]], sample: Sequence[str]) -> dict[str, float] | None:
    """Milliseconds by question over several steps; None where one was never timed.

    A question that a step was not timed for counts at the step's median.
    """
    if not all(parts):
        return None
    usual = [median(part.values()) for part in parts]
    return {qid: sum(part.get(qid, mid) for part, mid in zip(parts, usual, strict=True)) for qid in sample}


def _spread(ms: Mapping[str, float], paid: bool) -> Spread:
    values = np.array(list(ms.values()))
    p50, p95 = np.percentile(values, [50, 95]).tolist()
    return Spread(p50=p50, p95=p95, calls=len(values), paid=paid)


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0] / (os.cpu_count() or 1), 3)
    except OSError:
        return None
