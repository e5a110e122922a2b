"""What a run would cost, before it costs anything: calls, tokens and money by stage, without any network.

Counts are exact where the artifact before a stage is there already, and upper bounds otherwise: every query uses
all of its pool and all of its ranking calls, and nothing comes from the cache. Each model of a panel has its own line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from raggs.app.services import RunServices
from raggs.artifacts import MergeRecord
from raggs.judges.base import Task
from raggs.manifests.models import Estimate
from raggs.pipeline.standing import Standing

SAMPLE = 200  # passages whose mean length stands for all
PROMPT = 200  # tokens of the prompt of a rewrite
ANSWER = {"rewrite": 40, "grade": 60, "order": 40}  # tokens of an answer


def estimate(services: RunServices, standing: Standing) -> Iterator[Estimate]:
    """The stages that ask someone: judge and rank; embed and retrieve where a model rewrites or embeds."""
    passage = _mean_tokens(services)
    total = sum(services.llm.estimate_tokens(query.text) for query in services.queries.values())
    question = max(1, total // len(services.queries))
    yield from _embeddings(services, question, passage)
    yield from _rewrites(services, question)
    yield from _judge(services, standing, passage + question)
    yield from _rank(services, passage * services.config.rank.batch_size + question)


def _line(services: RunServices, stage: str, model: str, calls: int, sent: int, received: int, exact: bool) -> Estimate:
    """What `calls` of a model cost that is sent and gives so many tokens."""
    price = services.llm.price(model)
    usd = None if price is None else price.usd(sent, received)
    return Estimate(
        stage=stage, calls=calls, input_tokens=sent, output_tokens=received, usd=usd, exact=exact, who=model
    )


def _rewrites(services: RunServices, question: int) -> Iterator[Estimate]:
    count = len(services.queries)
    for model in services.rewriter.models:
        yield _line(services, "embed", model, count, count * (question + PROMPT), count * ANSWER["rewrite"], True)


def _embeddings(services: RunServices, question: int, passage: int) -> Iterator[Estimate]:
    """Questions, and for dense retrieval the whole corpus; neither counts vectors that are there already."""
    embedder = services.embedder
    if embedder is None:
        return
    dense = any(retriever.NEEDS_VECTORS for retriever in services.retrievers.values())
    texts = (("embed", len(services.queries), question), ("retrieve", len(services.passages) if dense else 0, passage))
    for stage, count, tokens in texts:
        for model in embedder.models if count else ():
            yield _line(services, stage, model, -(-count // embedder.config.batch), count * tokens, 0, False)


def _judge(services: RunServices, standing: Standing, tokens: int) -> Iterator[Estimate]:
    config = services.config.judge
    pool, exact = _pool_size(services, standing)
    calls, exact = pool * config.samples, exact and config.stop_after is None
    lines = _lines("judge", services, calls, tokens + _prompt_tokens(services, "grade"), "grade", exact)
    return map(partial(_by_batches, config.batch.price), lines) if config.mode == "batch" else lines


def _by_batches(share: float, line: Estimate) -> Estimate:
    """The line of a model at the price of its batches; a judge that nobody pays sends none."""
    if not line.input_tokens:
        return line
    usd = None if line.usd is None else line.usd * share
    return line.model_copy(update={"usd": usd, "who": f"{line.who}, by batches"})


def _rank(services: RunServices, tokens: int) -> Iterator[Estimate]:
    calls = len(services.queries) * services.config.rank.max_calls
    return _lines("rank", services, calls, tokens + _prompt_tokens(services, "order"), "order", False)


def _lines(stage: str, services: RunServices, calls: int, tokens: int, task: Task, exact: bool) -> Iterator[Estimate]:
    """A line for each model that is paid, or one for a judge that is not."""
    judge = services.judge
    if not judge.models:
        who = f"{judge.name} (local)"
        yield Estimate(stage=stage, calls=calls, input_tokens=0, output_tokens=0, usd=0.0, exact=exact, who=who)
    for model in judge.models:
        yield _line(services, stage, model, calls, calls * tokens, calls * ANSWER[task], exact)


def _pool_size(services: RunServices, standing: Standing) -> tuple[int, bool]:
    """Passages to judge over all queries, and whether the pools are known already."""
    config = services.config
    if standing.store.exists and not standing.plan()["merge"]:
        return sum(record.duplicate_of is None for record in standing.store.read("merge", MergeRecord)), True
    widest = sum(spec.k for spec in config.retrieve.retrievers)
    return len(services.queries) * min(config.merge.depth, widest, len(services.passages)), False


def _mean_tokens(services: RunServices) -> int:
    sample = services.passages.sample(SAMPLE)
    return max(1, sum(map(services.llm.estimate_tokens, sample)) // max(1, len(sample)))


def _prompt_tokens(services: RunServices, task: Task) -> int:
    """The prompt's own words, without what is put into it."""
    return services.llm.estimate_tokens(services.prompts[task].text())
