"""What a run would cost, before it costs anything: calls, tokens and money by stage, without any network.

Counts are exact where the artifact before a stage is there already, and upper bounds otherwise: every query uses
all of its pool and all of its ranking calls, and nothing comes from the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from raggs.artifacts import MergeRecord
from raggs.config.compose import RunServices
from raggs.config.models import RunConfig
from raggs.judges.base import Task
from raggs.manifests.opened import Run
from raggs.pipeline.runner import Runner

SAMPLE = 200  # passages whose mean length stands for all
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
    """The stages that ask someone: embed (if it rewrites by a model), judge and rank."""
    services = runner.services
    if not isinstance(services, RunServices):
        raise TypeError("an estimate needs the services of a configuration")
    passage = _mean_tokens(services)
    question = max(
        1, sum(services.llm.estimate_tokens(query.text) for query in services.queries.values()) // len(services.queries)
    )
    found = [
        _judge(config, services, runner, passage + question),
        _rank(config, services, passage * config.rank.batch_size + question),
    ]
    rewrite: Any = config.embed.rewrite
    if rewrite.type == "llm":
        count = len(services.queries)
        tokens = count * (question + 200)
        usd = _usd(services, rewrite.model, tokens, count * ANSWER["rewrite"])
        found.insert(0, Estimate("embed", count, tokens, count * ANSWER["rewrite"], usd, True, rewrite.model))
    return found


def _judge(config: RunConfig, services: RunServices, runner: Runner, tokens: int) -> Estimate:
    pool, exact = _pool_size(config, services, runner)
    calls = pool * config.judge.samples
    line = _line("judge", config, services, calls, tokens + _prompt_tokens(services, "grade"), "grade", exact)
    if config.judge.mode != "batch" or line.usd is None:
        return line
    return replace(line, usd=line.usd * config.judge.batch.price, who=f"{line.who}, by batches")


def _rank(config: RunConfig, services: RunServices, tokens: int) -> Estimate:
    calls = len(services.queries) * config.rank.max_calls
    return _line("rank", config, services, calls, tokens + _prompt_tokens(services, "order"), "order", False)


def _line(
    stage: str, config: RunConfig, services: RunServices, calls: int, tokens: int, task: Task, exact: bool
) -> Estimate:
    judge = services.judge
    if not judge.USES_LLM:
        return Estimate(stage, calls, 0, 0, 0.0, exact, f"{judge.name} (local)")
    model = config.judge.judge.model  # type: ignore[attr-defined]
    sent, received = calls * tokens, calls * ANSWER[task]
    return Estimate(stage, calls, sent, received, _usd(services, model, sent, received), exact, model)


def _pool_size(config: RunConfig, services: RunServices, runner: Runner) -> tuple[int, bool]:
    """Passages to judge over all queries, and whether the pools are known already."""
    if runner.store.exists and not runner.plan_stage("merge"):
        run = Run(runner.store, runner.store.manifest())
        return sum(record.duplicate_of is None for record in run.typed("merge", MergeRecord)), True
    widest = sum(getattr(spec, "k", config.merge.depth) for spec in config.retrieve.retrievers)
    return len(services.queries) * min(config.merge.depth, widest, len(services.passages)), False


def _mean_tokens(services: RunServices) -> int:
    sample = services.passages.contents(0, min(SAMPLE, len(services.passages)))
    return max(1, sum(map(services.llm.estimate_tokens, sample)) // len(sample))


def _prompt_tokens(services: RunServices, task: Task) -> int:
    """The prompt's own words, without what is put into it."""
    return services.llm.estimate_tokens(services.prompts[task].text())


def _usd(services: RunServices, model: str, sent: int, received: int) -> float | None:
    price = services.llm.price(model)
    return None if price is None else price.usd(sent, received)
