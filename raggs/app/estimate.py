"""What a run would cost, before it costs anything: calls, tokens and money by stage, without any network.

Where it is known what would be asked, what is paid for already is left out (`raggs.app.rehearse`). Elsewhere counts are
upper bounds: every query uses all of its pool and all of its ranking calls, and nothing comes from the cache. Each
model of a panel has its own line. What a provider is likely to remember of prompts is told, and not taken off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from raggs.app.answerlengths import Answers, learned
from raggs.app.rehearse import Rehearsed, rehearse, rehearse_passages, rehearse_questions
from raggs.app.room import require_room
from raggs.app.sentfor import bounded
from raggs.app.services import RunServices
from raggs.base.artifacts import MergeRecord, RankingRecord
from raggs.llm.prefixes import written_unasked
from raggs.llm.prices import estimate_tokens, likely_tokens, remembered_tokens
from raggs.llm.rehearsal import Asked
from raggs.llm.settings import Price
from raggs.parts.workshop import Task
from raggs.prompts import FALLBACK
from raggs.runs.manifests.models import Estimate
from raggs.runs.pipeline.standing import Standing
from raggs.stages.canaries import planned
from raggs.stages.companies import planned_calls
from raggs.stages.purse import most_orders
from raggs.stages.rankcalls import likely_calls
from raggs.stages.rankconfig import RankConfig

SAMPLE = 200  # passages whose mean length stands for all
PROMPT = 200  # tokens of the prompt of a rewrite
# What is expected of an upper bound, until the run itself has told.
LIKELY_REPAIRED = 0.02  # of the answers: asked for once more; measured in the ledger once it holds `LEARNED` answers
LIKELY_POOL = 0.75  # of the passages that all retrievers bring: the others are found by several of them
LIKELY_WALK = 0.6  # of a pool: how far a walk goes that `stop_after` may end


@dataclass
class _Known:
    """What a run's directory and its cache tell, looked up once. `looks`: whether what is paid for is looked up."""

    services: RunServices
    standing: Standing
    looks: bool

    @cached_property
    def answers(self) -> Answers:
        """How long this run's answers were."""
        return learned(self.services, self.standing.store)

    @cached_property
    def merged(self) -> bool:
        """Whether the pools are those of today."""
        return self.standing.store.exists and not self.standing.plan()["merge"]

    @cached_property
    def questions(self) -> Rehearsed | None:
        """What is asked for the questions, where anyone is paid."""
        paid = self.services.rewriter.models or (self.services.embedder and self.services.embedder.models)
        return rehearse_questions(self.services) if self.looks and paid else None

    @cached_property
    def passages(self) -> Rehearsed | None:
        """What is asked for the passages, where an embedder of whole corpora is paid."""
        dense = any(each.needs_vectors(each.config) for each in self.services.retrievers.values())
        paid = self.services.embedder and self.services.embedder.models
        return rehearse_passages(self.services) if self.looks and dense and paid else None

    @cached_property
    def anew(self) -> str:
        """What is asked again of those who were asked in groups (see `raggs.app.regrouped`)."""
        if self.rehearsed is not None:
            return self.rehearsed.anew
        if not (self.looks and self.services.judge.models and self.standing.store.exists):
            return ""
        from raggs.app.regrouped import guess  # late: a first run has nothing to lose

        return guess(self.services, self.standing.store)

    @cached_property
    def rehearsed(self) -> Rehearsed | None:
        """What judges would ask, where the pools are known and anyone is paid."""
        wanted = self.looks and self.merged and self.services.judge.models
        return rehearse(self.services, self.standing.store) if wanted else None


def estimate(services: RunServices, standing: Standing, *, looks: bool = False) -> Iterator[Estimate]:
    """The stages that ask someone: judge and rank; embed and retrieve where a model rewrites or embeds.

    Args:
        looks: leave out what the cache and the journal hold; takes a while where they hold much.

    Raises:
        ConfigError: lists that are to be ordered do not fit into what the judge's model reads.
    """
    known = _Known(services, standing, looks)
    passage, config = _mean_tokens(services), services.config.rank
    question = max(1, sum(estimate_tokens(query.text) for query in services.queries.values()) // len(services.queries))
    if config is not None:
        require_room(services, config, question, passage)
    yield from _embeddings(known, question, passage)
    yield from _rewrites(known, question)
    yield from _searches(services, question, passage)
    yield from _judge(known, passage, question)
    if config is not None:
        yield from _rank(known, config, passage * config.list_length + question)


def _line(
    known: _Known,
    stage: str,
    task: str,
    model: str,
    asks: tuple[int, int],
    cached: int,
    exact: bool,
    share: float = 1.0,
) -> Estimate:
    """What calls of a model cost. `asks`: how many, and tokens that all of them send. `share`: of them, as expected."""
    calls, sent = asks
    length, hidden = known.answers.length(model, task)
    price = known.services.llm.price(model)
    home = known.services.config.llm.base_of(model) is None
    written = calls * written_unasked(model, sent // calls, home=home) if calls else 0
    return Estimate(
        stage=stage,
        calls=calls,
        cached=cached,
        input_tokens=sent,
        output_tokens=calls * length,
        hidden_tokens=hidden,
        repairs=known.services.config.llm.max_repairs,
        usd=None if price is None else price.most_usd(sent, calls * length, written_tokens=written),
        discount_usd=0.0 if price is None else price.discount(calls * _remembered(known.services, model, task)),
        likely_usd=None if price is None else _likely_usd(known, price, sent, calls * length) * share,
        exact=exact,
        who=model,
    )


def _likely_usd(known: _Known, price: Price, sent: int, received: int) -> float:
    """What calls are expected to cost: with the tokens that texts are likely to have, and some corrections."""
    return price.usd(likely_tokens(sent), received) * (1 + known.answers.repaired(LIKELY_REPAIRED))


def _remembered(services: RunServices, model: str, task: str) -> int:
    """Tokens with which all prompts of a task begin and which the provider is likely to remember."""
    prompt = {str(name): prompt for name, prompt in services.prompts.items()}.get(task)
    return 0 if prompt is None else remembered_tokens(model, prompt.template(FALLBACK).system)


def _rewrites(known: _Known, question: int) -> Iterator[Estimate]:
    services, found = known.services, known.questions
    count = len(services.queries)
    for model in services.rewriter.models:
        if found is None:
            yield _line(known, "embed", "rewrite", model, (count, count * (question + PROMPT)), 0, True)
        else:
            asked = found.llm.asked(model, "rewrite")
            yield _line(known, "embed", "rewrite", model, (asked.missing, asked.tokens), asked.known, True)


def _embeddings(known: _Known, question: int, passage: int) -> Iterator[Estimate]:
    """Questions, and for dense retrieval the whole corpus. A text stands for a rewrite that nobody has made yet."""
    services, embedder = known.services, known.services.embedder
    if embedder is None:
        return
    dense = any(each.needs_vectors(each.config) for each in services.retrievers.values())
    for model in embedder.models:
        exact = not any(line.calls for line in _rewrites(known, question))
        yield _embedding(known, "embed", model, known.questions, (len(services.queries), question), exact)
        if dense:
            yield _embedding(known, "retrieve", model, known.passages, (len(services.passages), passage), True)


def _embedding(
    known: _Known, stage: str, model: str, found: Rehearsed | None, most: tuple[int, int], exact: bool
) -> Estimate:
    """The line of an embedder. `most`: texts and the tokens of each, where nothing was `found`."""
    services, (count, tokens) = known.services, most
    batch = services.embedder.config.batch if services.embedder else 1
    asked = Asked(calls=-(-count // batch), tokens=count * tokens) if found is None else found.llm.asked(model, "embed")
    price = services.llm.price(model)
    return Estimate(
        stage=stage,
        calls=asked.calls,
        cached=asked.known,
        input_tokens=asked.tokens,
        output_tokens=0,
        usd=None if price is None else price.usd(asked.tokens, 0),
        exact=exact and found is not None,
        who=model,
    )


def _searches(services: RunServices, question: int, passage: int) -> Iterator[Estimate]:
    """Retrievers that ask models, at most: what is kept of their answers is not counted."""
    count = len(services.queries)
    for retriever in (*services.retrievers.values(), *services.deeper.values()):
        for model, each in retriever.outlays(question, passage):
            yield Estimate(
                stage="retrieve",
                calls=count * each.calls,
                input_tokens=count * each.input_tokens,
                output_tokens=count * each.output_tokens,
                usd=None if each.usd is None else count * each.usd,
                exact=False,
                who=model,
            )


def _judge(known: _Known, passage: int, question: int) -> Iterator[Estimate]:
    services, config = known.services, known.services.config.judge
    found = known.rehearsed
    if found is None:
        pools, exact = _pool_sizes(known)
        certain = config.stop_after is None and not config.canaries
        share = (1.0 if exact else LIKELY_POOL) * (1.0 if config.stop_after is None else LIKELY_WALK)
        task, group = _grading(services)
        calls = sum(-(-count // group) * times for count, times in pools.items()) * config.samples
        shown = sum(count * times for count, times in pools.items()) * config.samples
        each = _prompt_tokens(services, task) + question + passage * -(-shown // max(1, calls))
        if services.judge.reads:
            more = (planned if group == 1 else planned_calls)(config.canaries, calls)
            calls, shown = calls + more, shown + more * group
        lines = _bounds(known, "judge", calls, each, task, exact and certain, share)
        if group > 1:
            one = _prompt_tokens(services, "grade") + question + passage
            lines = chain(
                (line for line in lines if line.who not in services.judge.alone),
                (
                    line
                    for line in _bounds(known, "judge", shown, one, "grade", exact and certain, share)
                    if line.who in services.judge.alone
                ),
            )
    else:
        lines = _counted(known, found)
    lines = (line.model_copy(update={"anew": known.anew}) for line in lines)
    return map(partial(_by_batches, config.batch.price), lines) if config.mode == "batch" else lines


def _counted(known: _Known, found: Rehearsed) -> Iterator[Estimate]:
    """The judge stage's lines, where each question is known; a walk may end before its last one."""
    together, missing = _grading(known.services)[0], 0
    whole = known.services.config.judge.stop_after is None
    for model, each in known.services.judge.calls(together).items():
        sure = whole and (each.least == each.most or not missing)  # whether others send for it is told by their answers
        for task in dict.fromkeys((together, "grade")):
            asked = found.llm.asked(model, task)
            if task == ("grade" if model in known.services.judge.alone else together) or asked.missing or asked.known:
                asks, exact = (asked.missing, asked.tokens), sure or not asked.missing
                yield bounded(_line(known, "judge", task, model, asks, asked.known, exact), each, known.standing.store)
            missing += asked.missing


def _grading(services: RunServices) -> tuple[Task, int]:
    """By which task passages are graded, and how many of them by one call."""
    group = services.config.judge.group
    return ("grades", group) if group > 1 and services.judge.grades_together else ("grade", 1)


def _by_batches(share: float, line: Estimate) -> Estimate:
    """The line of a model at the price of its batches; a judge that nobody pays sends none."""
    if line.usd is not None and not line.input_tokens:
        return line
    usd, less = None if line.usd is None else line.usd * share, line.discount_usd * share
    likely = None if line.likely_usd is None else line.likely_usd * share
    return line.model_copy(
        update={"usd": usd, "likely_usd": likely, "discount_usd": less, "who": f"{line.who}, by batches"}
    )


def _rank(known: _Known, config: RankConfig, tokens: int) -> Iterator[Estimate]:
    services, found = known.services, known.rehearsed
    calls, each = len(services.queries) * config.max_calls, tokens + _prompt_tokens(services, "order")
    lines = _bounds(known, "rank", calls, each, "order", exact=False)
    most = most_orders(config.budget, calls, sum(line.usd or 0.0 for line in lines))
    share = 1.0 if config.budget else _rank_share(known, config)
    if found is None or found.beyond is None:
        yield from _bounds(known, "rank", most, each, "order", exact=False, share=share)
        return
    beyond = max(0, most - found.journal) if config.budget else found.beyond
    for model in services.judge.calls("order"):
        asked = found.llm.asked(model, "order")
        asks = asked.missing + beyond, asked.tokens + beyond * each
        yield _line(known, "rank", "order", model, asks, asked.known + found.journal, not asks[0], share)


def _rank_share(known: _Known, config: RankConfig) -> float:
    """Of the calls that rankings may take, those that they are expected to: as many as those of the last run took."""
    store = known.standing.store
    if not config.max_calls:
        return 1.0
    if store.exists and "rank" in store.manifest().stages and (last := list(store.read("rank.queries", RankingRecord))):
        return min(1.0, sum(each.calls + each.skipped for each in last) / (len(last) * config.max_calls))
    return likely_calls(config.max_calls) / config.max_calls


def _bounds(
    known: _Known, stage: str, calls: int, tokens: int, task: Task, exact: bool, share: float = 1.0
) -> Iterator[Estimate]:
    """A line for each model that is paid, or one for a judge that is not. `tokens`: that a call sends."""
    judge = known.services.judge
    if not judge.models:
        who = f"{judge.name} (local)"
        yield Estimate(stage=stage, calls=calls, input_tokens=0, output_tokens=0, usd=0.0, exact=exact, who=who)
    for model, each in judge.calls(task).items():
        most, sure = round(calls * each.most), exact and each.least == each.most
        yield bounded(
            _line(known, stage, task, model, (most, most * tokens), 0, sure, share), each, known.standing.store
        )


def _pool_sizes(known: _Known) -> tuple[Mapping[int, int], bool]:
    """How many queries have so many passages to judge, and whether the pools are known already."""
    services, config = known.services, known.services.config
    if known.merged:
        merged = known.standing.store.read("merge", MergeRecord)
        return Counter(Counter(record.qid for record in merged if record.duplicate_of is None).values()), True
    widest = sum(spec.k for spec in config.retrieve.deepest)
    return {min(config.merge.depth, widest, len(services.passages)): len(services.queries)}, False


def _mean_tokens(services: RunServices) -> int:
    sample = services.passages.sample(SAMPLE)
    return max(1, sum(map(estimate_tokens, sample)) // max(1, len(sample)))


def _prompt_tokens(services: RunServices, task: Task) -> int:
    """The prompt's own words, without what is put into it."""
    return estimate_tokens(services.prompts[task].text())
