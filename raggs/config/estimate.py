"""What a run would cost, before it costs anything: calls, tokens and money by stage, without any network.

Counts are exact where the artifact before a stage is there already, and upper bounds otherwise: every query uses
all of its pool and all of its ranking calls, and nothing comes from the cache. Each model of a panel has its own line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from raggs.artifacts import MergeRecord
from raggs.config.compose import RunServices
from raggs.config.models import RunConfig
from raggs.judges.base import Task
from raggs.manifests.opened import OpenedRun
from raggs.pipeline.runner import Runner

SAMPLE = 200  # passages whose mean length stands for all
PROMPT = 200  # tokens of the prompt of a rewrite
ANSWER = {"rewrite": 40, "grade": 60, "order": 40}  # tokens of an answer


@dataclass(frozen=True)
class Estimate:
    """One stage's calls and tokens; `usd` is None where the model's price is not known, 0 where nothing is paid."""

    stage: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    exact: bool
    who: str


def estimate(config: RunConfig, runner: Runner) -> list[Estimate]:
    """The stages that ask someone: judge and rank; embed and retrieve where a model rewrites or embeds."""
    services = runner.services
    if not isinstance(services, RunServices):
        raise TypeError("an estimate needs the services of a configuration")
    passage = _mean_tokens(services)
    question = max(
        1, sum(services.llm.estimate_tokens(query.text) for query in services.queries.values()) // len(services.queries)
    )
    found = [
        *_judge(config, services, runner, passage + question),
        *_rank(config, services, passage * config.rank.batch_size + question),
    ]
    return [*_embeddings(services, question, passage), *_rewrites(services, question), *found]


def _rewrites(services: RunServices, question: int) -> Iterator[Estimate]:
    count = len(services.queries)
    sent, received = count * (question + PROMPT), count * ANSWER["rewrite"]
    for model in services.rewriter.models:
        yield Estimate("embed", count, sent, received, _usd(services, model, sent, received), True, model)


def _embeddings(services: RunServices, question: int, passage: int) -> Iterator[Estimate]:
    """Questions, and for dense retrieval the whole corpus; neither counts vectors that are there already."""
    embedder = services.embedder
    if embedder is None:
        return
    dense = any(retriever.NEEDS_VECTORS for retriever in services.retrievers.values())
    texts = (("embed", len(services.queries), question), ("retrieve", len(services.passages) if dense else 0, passage))
    for stage, count, tokens in texts:
        for model in embedder.models if count else ():
            calls, sent = -(-count // embedder.config.batch), count * tokens
            yield Estimate(stage, calls, sent, 0, _usd(services, model, sent, 0), False, model)


def _judge(config: RunConfig, services: RunServices, runner: Runner, tokens: int) -> Iterator[Estimate]:
    pool, exact = _pool_size(config, services, runner)
    calls, exact = pool * config.judge.samples, exact and config.judge.stop_after is None
    lines = _lines("judge", services, calls, tokens + _prompt_tokens(services, "grade"), "grade", exact)
    return map(partial(_by_batches, config.judge.batch.price), lines) if config.judge.mode == "batch" else lines


def _by_batches(share: float, line: Estimate) -> Estimate:
    """The line of a model at the price of its batches; a judge that nobody pays sends none."""
    if not line.input_tokens:
        return line
    return replace(line, usd=None if line.usd is None else line.usd * share, who=f"{line.who}, by batches")


def _rank(config: RunConfig, services: RunServices, tokens: int) -> Iterator[Estimate]:
    calls = len(services.queries) * config.rank.max_calls
    return _lines("rank", services, calls, tokens + _prompt_tokens(services, "order"), "order", False)


def _lines(stage: str, services: RunServices, calls: int, tokens: int, task: Task, exact: bool) -> Iterator[Estimate]:
    """A line for each model that is paid, or one for a judge that is not."""
    judge = services.judge
    if not judge.models:
        yield Estimate(stage, calls, 0, 0, 0.0, exact, f"{judge.name} (local)")
    sent, received = calls * tokens, calls * ANSWER[task]
    for model in judge.models:
        yield Estimate(stage, calls, sent, received, _usd(services, model, sent, received), exact, model)


def _pool_size(config: RunConfig, services: RunServices, runner: Runner) -> tuple[int, bool]:
    """Passages to judge over all queries, and whether the pools are known already."""
    if runner.store.exists and not runner.plan_stage("merge"):
        run = OpenedRun(runner.store, runner.store.manifest())
        return sum(record.duplicate_of is None for record in run.typed("merge", MergeRecord)), True
    widest = sum(spec.k for spec in config.retrieve.retrievers)
    return len(services.queries) * min(config.merge.depth, widest, len(services.passages)), False


def _mean_tokens(services: RunServices) -> int:
    sample = services.passages.sample(SAMPLE)
    return max(1, sum(map(services.llm.estimate_tokens, sample)) // max(1, len(sample)))


def _prompt_tokens(services: RunServices, task: Task) -> int:
    """The prompt's own words, without what is put into it."""
    return services.llm.estimate_tokens(services.prompts[task].text())


def _usd(services: RunServices, model: str, sent: int, received: int) -> float | None:
    price = services.llm.price(model)
    return None if price is None else price.usd(sent, received)
