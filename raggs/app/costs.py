"""What a run would cost, before it costs anything: calls, tokens and money by stage, without any network.

Where it is known what would be asked, what is paid for already is left out (`raggs.app.dry_run`). Elsewhere counts are
upper bounds: every query uses all of its pool and all of its ranking calls, and nothing comes from the cache. Each
model of a panel has its own line. What a provider is likely to remember of prompts is told, and not taken off.

Whether the lists that a judge is to order fit into what its model reads, before anything is paid.

A list that does not fit is refused by the provider, at no cost, each time: a ranking without answers. What is known
beforehand is the mean passage, and what litellm's list says of the model; passages that are much longer than others
may still fail, as any call may.

How many calls of a model there may be that is asked where another one sends for it: the good judge of a cascade.

Before the first run only the least and the most are known; after it, the share that was sent for.

Paid results that a run would replace, because a setting of who is asked, or how, is another one now.

What was asked before stays cached, so nothing is lost for good; but the same questions would be paid for again. Not
meant are retries, more questions, deeper pools or more samples, which keep what they can use (see also
`raggs.app.dry_run`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from raggs.app.answer_lengths import AnswerLengths, learned
from raggs.app.dry_run import DryRunResult, rehearse, rehearse_passages, rehearse_questions
from raggs.app.services import RunServices
from raggs.base.artifacts import MergeRecord, RankingRecord
from raggs.base.errors import ConfigError
from raggs.base.judge_health import PEOPLE, JudgeHealth
from raggs.base.types import as_list, as_object
from raggs.llm.messages import written_unasked
from raggs.llm.prices import estimate_tokens, likely_tokens, longest_prompt, remembered_tokens
from raggs.llm.rehearsal import CallEstimate
from raggs.llm.settings import Price
from raggs.parts.judges import Calls, Task
from raggs.prompts import FALLBACK
from raggs.runs.manifests.models import CostEstimate
from raggs.runs.manifests.reasons import ComponentChanged
from raggs.runs.manifests.store import RunStore
from raggs.runs.plan import RunState, Selection
from raggs.runs.runner import Runner
from raggs.stages.canaries import planned, planned_calls
from raggs.stages.rank import likely_calls
from raggs.stages.rank_config import LONGEST, RankConfig
from raggs.stages.waves import most_orders


def require_room(services: RunServices, config: RankConfig, question: int, passage: int) -> None:
    """Find out whether the longest lists fit, of passages and questions of so many tokens, estimated.

    Raises:
        ConfigError: they do not, by the model's place in litellm's list.
    """
    length = LONGEST if config.batch_size == "auto" else config.batch_size
    length = min(length, services.config.merge.depth, len(services.passages))
    prompt = question + estimate_tokens(services.prompts["order"].text(FALLBACK))
    for model in services.judge.models:
        room = longest_prompt(model)
        if not room or likely_tokens(prompt + length * passage) <= room:
            continue
        fitting = max(0, (room - likely_tokens(prompt)) // max(1, likely_tokens(passage)))
        remedy = f"set rank.batch_size to {fitting} or less" if fitting > 1 else "take a model that reads more"
        raise ConfigError(
            f"rank: lists of {length} passages of about {likely_tokens(passage):,} tokens do not fit into the "
            f"{room:,} tokens that {model} reads",
            remedy=remedy,
        )


def _share_sent_for(store: RunStore) -> float | None:
    """On what share of the passages the good judge of a run's cascade was asked; None where nobody knows."""
    lock = store.manifest().stages.get("judge") if store.exists else None
    found = lock.health.cascade if lock is not None and isinstance(lock.health, JudgeHealth) else None
    return None if found is None else found.asked.rate


def bounded(line: CostEstimate, each: Calls, store: RunStore) -> CostEstimate:
    """A line of the most calls that there may be, with the least, and with those that the run's share comes to.

    Args:
        each: calls for one answer.
    """
    if line.exact or each.least == each.most:
        return line
    share = _share_sent_for(store)
    expected = None if share is None else round(share * line.calls / each.most)
    least = round(line.calls * each.least / each.most)
    likely = line.likely_usd
    if likely is not None and line.calls:  # half of what lies between, until the share is known
        likely *= ((least + line.calls) / 2 if expected is None else expected) / line.calls
    return line.model_copy(update={"least": least, "expected": expected, "likely_usd": likely})


def sent_for_advice(lines: Sequence[CostEstimate]) -> Iterator[str]:
    """What there is to say of such lines among others, and where the model alone would cost less."""
    for line in lines:
        if line.least is None:
            continue
        yield sent_for_words(line)
        others = [other.usd for other in lines if other.stage == line.stage and other is not line]
        likely = line.usd_for(line.least if line.expected is None else line.expected)
        if line.usd is None or likely is None or None in others:
            continue
        if (whole := likely + sum(usd or 0.0 for usd in others)) > line.usd:
            at_least = "at least " if line.expected is None else ""
            yield f"that does not pay: {line.who} alone would cost ${line.usd:,.4f}, both {at_least}${whole:,.4f}"


def sent_for_words(line: CostEstimate) -> str:
    """The calls and the money of such a line, from, to, and as they are to be expected."""
    least, expected = line.least or 0, line.expected
    usd = [line.usd_for(calls) for calls in (least, line.calls)]
    money = "" if None in usd else f", ${usd[0]:,.4f} to ${usd[1]:,.4f}"
    found = f"{line.who} is asked where a cheap judge sends for it: {least:,} to {line.calls:,} calls{money}"
    if expected is None:
        return f"{found}; the first run tells how many"
    likely = line.usd_for(expected)
    return f"{found}; about {expected:,}{'' if likely is None else f', ${likely:,.4f}'} by the share so far"


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
    standing: RunState
    looks: bool

    @cached_property
    def answers(self) -> AnswerLengths:
        """How long this run's answers were."""
        return learned(self.services, self.standing.store)

    @cached_property
    def merged(self) -> bool:
        """Whether the pools are those of today."""
        return self.standing.store.exists and not self.standing.plan()["merge"]

    @cached_property
    def questions(self) -> DryRunResult | None:
        """What is asked for the questions, where anyone is paid."""
        paid = self.services.rewriter.models or (self.services.embedder and self.services.embedder.models)
        return rehearse_questions(self.services) if self.looks and paid else None

    @cached_property
    def passages(self) -> DryRunResult | None:
        """What is asked for the passages, where an embedder of whole corpora is paid."""
        dense = any(each.needs_vectors(each.config) for each in self.services.retrievers.values())
        paid = self.services.embedder and self.services.embedder.models
        return rehearse_passages(self.services) if self.looks and dense and paid else None

    @cached_property
    def anew(self) -> str:
        """What is asked again of those who were asked in groups (see `raggs.app.dry_run`)."""
        if self.rehearsed is not None:
            return self.rehearsed.anew
        if not (self.looks and self.services.judge.models and self.standing.store.exists):
            return ""
        from raggs.app.dry_run import guess  # late: a first run has nothing to lose

        return guess(self.services, self.standing.store)

    @cached_property
    def rehearsed(self) -> DryRunResult | None:
        """What judges would ask, where the pools are known and anyone is paid."""
        wanted = self.looks and self.merged and self.services.judge.models
        return rehearse(self.services, self.standing.store) if wanted else None


def estimate(services: RunServices, standing: RunState, *, looks: bool = False) -> Iterator[CostEstimate]:
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
) -> CostEstimate:
    """What calls of a model cost. `asks`: how many, and tokens that all of them send. `share`: of them, as expected."""
    calls, sent = asks
    length, hidden = known.answers.length(model, task)
    price = known.services.llm.price(model)
    home = known.services.config.llm.base_of(model) is None
    written = calls * written_unasked(model, sent // calls, home=home) if calls else 0
    return CostEstimate(
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


def _rewrites(known: _Known, question: int) -> Iterator[CostEstimate]:
    services, found = known.services, known.questions
    count = len(services.queries)
    for model in services.rewriter.models:
        if found is None:
            yield _line(known, "embed", "rewrite", model, (count, count * (question + PROMPT)), 0, True)
        else:
            asked = found.llm.asked(model, "rewrite")
            yield _line(known, "embed", "rewrite", model, (asked.missing, asked.tokens), asked.known, True)


def _embeddings(known: _Known, question: int, passage: int) -> Iterator[CostEstimate]:
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
    known: _Known, stage: str, model: str, found: DryRunResult | None, most: tuple[int, int], exact: bool
) -> CostEstimate:
    """The line of an embedder. `most`: texts and the tokens of each, where nothing was `found`."""
    services, (count, tokens) = known.services, most
    batch = services.embedder.config.batch if services.embedder else 1
    asked = (
        CallEstimate(calls=-(-count // batch), tokens=count * tokens)
        if found is None
        else found.llm.asked(model, "embed")
    )
    price = services.llm.price(model)
    return CostEstimate(
        stage=stage,
        calls=asked.calls,
        cached=asked.known,
        input_tokens=asked.tokens,
        output_tokens=0,
        usd=None if price is None else price.usd(asked.tokens, 0),
        exact=exact and found is not None,
        who=model,
    )


def _searches(services: RunServices, question: int, passage: int) -> Iterator[CostEstimate]:
    """Retrievers that ask models, at most: what is kept of their answers is not counted."""
    count = len(services.queries)
    for retriever in (*services.retrievers.values(), *services.deeper.values()):
        for model, each in retriever.outlays(question, passage):
            yield CostEstimate(
                stage="retrieve",
                calls=count * each.calls,
                input_tokens=count * each.input_tokens,
                output_tokens=count * each.output_tokens,
                usd=None if each.usd is None else count * each.usd,
                exact=False,
                who=model,
            )


def _judge(known: _Known, passage: int, question: int) -> Iterator[CostEstimate]:
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


def _counted(known: _Known, found: DryRunResult) -> Iterator[CostEstimate]:
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


def _by_batches(share: float, line: CostEstimate) -> CostEstimate:
    """The line of a model at the price of its batches; a judge that nobody pays sends none."""
    if line.usd is not None and not line.input_tokens:
        return line
    usd, less = None if line.usd is None else line.usd * share, line.discount_usd * share
    likely = None if line.likely_usd is None else line.likely_usd * share
    return line.model_copy(
        update={"usd": usd, "likely_usd": likely, "discount_usd": less, "who": f"{line.who}, by batches"}
    )


def _rank(known: _Known, config: RankConfig, tokens: int) -> Iterator[CostEstimate]:
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
) -> Iterator[CostEstimate]:
    """A line for each model that is paid, or one for a judge that is not. `tokens`: that a call sends."""
    judge = known.services.judge
    if not judge.models:
        who = f"{judge.name} (local)"
        yield CostEstimate(stage=stage, calls=calls, input_tokens=0, output_tokens=0, usd=0.0, exact=exact, who=who)
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


COURSE = ("engine", "batch_size", "parallel", "seed", "options")  # settings on which each batch of a ranking depends
# What of a stage's causes decides what its judge is asked, by the beginning of its name.
ASKING: Mapping[str, tuple[str, ...]] = {
    "judge": ("judge", "config.judge", "config.group"),
    "rank": (
        "judge",
        "engine",
        *(f"config.{name}" for name in COURSE),
    ),
}


PANEL = ("type", "rule", "weights", "version", "ask_all")  # what a panel of people and a judge adds to that judge
HUMAN_FIRST = ("human_first", "judge")  # settings that put people first


@dataclass(frozen=True)
class ReplacedResults:
    """Results of a stage that would be replaced: why, and what they have cost in USD, cached answers included."""

    stage: str
    reason: ComponentChanged
    usd: float

    def __str__(self) -> str:
        paid = f"{self.usd:.4f} USD"
        return f"{self.stage} would run again ({self.reason}), and replace results for which {paid} were paid"


def _machine(components: Mapping[str, object]) -> object:
    """Return what of a stage's components decides what its judge is asked, without people who come before it."""
    judge = dict(as_object(components.get("judge")))
    members = as_list(judge.pop("judges", None))
    if judge.get("type") == "panel" and len(members) == 2 and as_object(members[0]).get("type") == PEOPLE:
        rest = {name: value for name, value in judge.items() if name not in PANEL}
        judge = {**as_object(members[1]), **rest}
    elif members:
        judge["judges"] = members
    config = {name: value for name, value in as_object(components.get("config")).items() if name not in HUMAN_FIRST}
    return {**components, "judge": judge, "config": config, "inputs": None}


def losses(runner: Runner, selection: Selection) -> list[ReplacedResults]:
    """Paid results that the selected stages would replace. Touches nothing."""
    locks = runner.store.manifest().stages if runner.store.exists else {}
    found = []
    for name, beginnings in ASKING.items():
        lock = locks.get(name)
        if lock is None or name not in selection.stages or not (usd := lock.cost.usd + lock.cost.saved_usd):
            continue
        stage = runner.pipeline.stage(name)
        if _machine(lock.components) == _machine(runner.components(stage)):
            continue  # human labels come first, or no longer: what the model is asked is the same
        reasons = runner.standing.reasons(stage, lock)
        changed = (reason for reason in reasons if isinstance(reason, ComponentChanged))
        if why := next((reason for reason in changed if reason.component.startswith(beginnings)), None):
            found.append(ReplacedResults(name, why, usd))
    return found
