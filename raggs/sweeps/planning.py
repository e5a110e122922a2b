"""What a sweep would do and cost, before anything is done: systems, and what must be paid for that is not kept yet.

Counts are upper bounds: a reranker is taken to read every candidate of every question, unless its lists are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import fmean

from raggs.base.text import count_tokens
from raggs.parts.chunkers.base import ChunkerConfig
from raggs.parts.embedders.base import EmbedderConfig
from raggs.parts.rerankers.base import RerankerConfig
from raggs.parts.rerankers.boosted import reads
from raggs.sweeps.grid import Grid, System
from raggs.sweeps.layout import BESIDE
from raggs.sweeps.measuring import Measuring
from raggs.sweeps.models import Plan, PlanLine
from raggs.sweeps.part_store import Once
from raggs.sweeps.world import World

SAMPLE = 200  # passages whose mean length stands for all
REWRITE = (200, 40)  # tokens of a rewrite's prompt, and of its answer
SECONDS = 1.0  # that a paid call is taken to last
MILLION = 1_000_000


def plan(measuring: Measuring, world: World, grid: Grid) -> Plan:
    """The plan of a grid."""
    _ = world.atlas  # documents that are not those that were judged are told now
    counts = {cut: len(world.passages_of(cut)) for cut in _cuts(grid)}
    question = round(fmean(count_tokens([query.text for query in world.queries.values()])))
    paid = tuple(_paid(measuring, world, grid.searched, question))
    kept = [measuring.parts.kept(system) for system in grid.systems]
    return Plan(
        name=world.config.name,
        systems=tuple(system.name for system in grid.systems),
        axes={**grid.labels, **({BESIDE: tuple(world.config.systems)} if world.config.systems else {})},
        questions=len(world.queries),
        passages=sum(counts.values()),
        cuts=len(counts),
        left_out=grid.left_out,
        kept=sum(kept),
        lists=len(kept),
        paid=paid,
        hours=sum(line.calls for line in paid) * SECONDS / world.config.llm.concurrency / 3600,
    )


def _paid(measuring: Measuring, world: World, systems: tuple[System, ...], question: int) -> Iterator[PlanLine]:
    """Each part once that a provider is asked for and that is not kept."""
    count, seen, length = len(world.queries), set[str](), Once[int]()
    llm, parts = world.workshop.llm, measuring.parts
    for system in systems:
        if parts.kept(system):
            yield from _probes(measuring, world, system, question, seen)
            continue
        rewriter = world.workshop.rewriter(system.rewrite)
        for model in rewriter.models:
            if repr(system.rewrite) not in seen:
                sent, price = count * (question + REWRITE[0]), llm.price(model)
                usd = None if price is None else price.usd(sent, count * REWRITE[1])
                yield PlanLine(what="rewriting questions", model=model, calls=count, tokens=sent, usd=usd)
        seen.add(repr(system.rewrite))
        passage = length(system.chunker, partial(_length, world, system.chunker))
        if system.embedder is not None:
            yield from _embedding(measuring, world, system, system.embedder, (question, passage), seen)
        yield from _own(measuring, world, system, (question, passage))
        key = repr((parts.searches(system), system.k, system.depth, system.reranker and reads(system.reranker)))
        if system.reranker is not None and key not in seen:
            seen.add(key)
            yield from _reranking(measuring, world, system, system.reranker, (question, passage))


def _cuts(grid: Grid) -> list[ChunkerConfig | None]:
    """The ways in which systems have the corpus cut."""
    found: list[ChunkerConfig | None] = []
    for system in grid.searched:
        found += [system.chunker] if system.chunker not in found else []
    return found


def _length(world: World, chunker: ChunkerConfig | None) -> int:
    """Tokens of a passage, about."""
    return round(fmean(count_tokens(world.passages_of(chunker).sample(SAMPLE))))


def _reranking(
    measuring: Measuring, world: World, system: System, spec: RerankerConfig, sizes: tuple[int, int]
) -> Iterator[PlanLine]:
    """Every list, and some lists once more where their passages may have been paid for in calls of another size."""
    reranker, count = measuring.parts.reranker(spec), len(world.queries)
    for model in reranker.models:
        one = reranker.outlay(model, system.k, *sizes)
        times = count + (measuring.timed if reranker.reader.INDEPENDENT and one.calls < system.k else 0)
        yield PlanLine(
            what=f"reranking {_told(system)} ({system.levels['mode']})",
            model=model,
            calls=times * one.calls,
            tokens=times * (one.input_tokens + one.output_tokens),
            usd=None if one.usd is None else times * one.usd,
        )


def _told(system: System) -> str:
    """How many candidates, in words."""
    depth = system.depth
    return f"{system.k} candidates" if depth is None else f"{depth.base} candidates, or {depth.deep}, at most"


def _probes(measuring: Measuring, world: World, system: System, question: int, seen: set[str]) -> Iterator[PlanLine]:
    """The few calls that tell how long a provider takes whose answers are all kept."""
    for what, model, calls in measuring.probes(system):
        if what in seen:
            continue
        seen.add(what)
        sent, price = calls * (question + REWRITE[0]), world.workshop.llm.price(model)
        usd = None if price is None else price.usd(sent, calls * REWRITE[1])
        yield PlanLine(what=what, model=model, calls=calls, tokens=sent, usd=usd)


def _own(measuring: Measuring, world: World, system: System, sizes: tuple[int, int]) -> Iterator[PlanLine]:
    """What a retriever of its own asks of providers."""
    count = len(world.queries)
    for search in measuring.parts.searches(system) if system.own is not None else ():
        for model, one in measuring.parts.retriever(search).outlays(*sizes):
            usd = None if one.usd is None else count * one.usd
            tokens = count * (one.input_tokens + one.output_tokens)
            yield PlanLine(
                what=f"searching by {system.levels['mode']}",
                model=model,
                calls=count * one.calls,
                tokens=tokens,
                usd=usd,
            )


def _embedding(
    measuring: Measuring, world: World, system: System, spec: EmbedderConfig, sizes: tuple[int, int], seen: set[str]
) -> Iterator[PlanLine]:
    """The questions once for each rewriter, the passages once; `sizes`: tokens of a question and of a passage."""
    embedder, price_of = measuring.parts.embedder(spec), world.workshop.llm.price
    passages, questions = len(world.passages_of(system.chunker)), len(world.queries)
    work = {
        repr(("passages", spec, system.chunker)): (
            "embedding passages",
            -(-passages // embedder.config.batch),
            passages * sizes[1],
        ),
        repr((system.rewrite, spec)): ("embedding questions", questions, questions * sizes[0]),
    }
    for model in embedder.models:
        for what, calls, tokens in (each for key, each in work.items() if key not in seen):
            usd = None if (price := price_of(model)) is None else tokens * price.input / MILLION
            yield PlanLine(what=what, model=model, calls=calls, tokens=tokens, usd=usd)
    seen.update(work)
