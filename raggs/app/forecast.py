"""Dry run: the work and the cost of a run by stage, in calls, tokens and USD, computed without calls to models.

The run's own components do the work, with models that send no requests. On request, paid answers are read from the
cache and from the journal. Missing answers are counted (`raggs.runs.forecast`). Until the pools are known, passages of
the corpus are used instead, and counts are upper bounds. A ranking is simulated until the first missing answer. The
number of calls after it is at most `rank.max_calls`. Each model of a panel has its own line. Expected savings by prompt
caching are reported, but not subtracted.

The length of answers is taken from the run's ledger. Until the ledger has `MIN_LEARNED_ANSWERS` answers of a kind,
answers of reasoning models are assumed to contain `HIDDEN` reasoning tokens, or as many as the answers so far.

With `judge.group`, several passages are graded in one call, and a grade is valid only for that group. If the group size
or the pool changes, passages are regrouped at random, and all their grades are paid for again. The dry run reports
this.

The module also checks that the lists to order fit into the context of the judge's model. Otherwise the provider would
refuse the lists, at no cost, and the ranking would have no answers. The check uses the mean length of passages and
litellm's data on the model. A list of unusually long passages may still be refused.

In a cascade, a cheap judge decides when the good judge is called. Before the first run, only the minimum and maximum
number of calls to the good judge are known. Later estimates use the good judge's share of the calls in the last run.

With `judge.samples_if_below`, the first grade of a passage decides about further samples. As long as first grades are
missing, the estimate has a minimum and a maximum, too. The expected number uses the share of the last run.

Finally, the module lists paid results that a run would replace because settings of judging or ranking have changed. Old
answers stay cached, but the calls with the new settings are paid for. Retries, more queries, deeper pools and more
samples are not listed, because they reuse earlier results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from raggs.app.services import RunServices
from raggs.base.artifacts import JournalRecord, JudgeRecord, MergeRecord, Passage, Query, RankingRecord
from raggs.base.errors import ConfigError
from raggs.base.jsonl import read_torn
from raggs.base.judge_health import HUMAN_SOURCE
from raggs.base.types import as_list, as_object
from raggs.llm.ledger import LEDGER_REMEDY, LedgerLine
from raggs.llm.prices import HIDDEN, estimate_tokens, likely_tokens, longest_prompt, reasons, remembered_tokens
from raggs.llm.rehearsal import CallEstimate, DryRunLLM
from raggs.parts.embedders import Embedder
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import SHARD
from raggs.parts.judges import Judge, Task
from raggs.prompts import FALLBACK_LANGUAGE, PromptUse
from raggs.runs.forecast import (
    MissingGrades,
    bounded,
    count_reranking,
    follow,
    line_of,
    rewritten,
    sampled_again,
    sent_for_words,
    share_sampled_again,
    typical,
)
from raggs.runs.manifests.models import CostEstimate
from raggs.runs.manifests.reasons import ComponentChanged
from raggs.runs.manifests.store import RunStore
from raggs.runs.plan import RunState, Selection
from raggs.runs.runner import Runner
from raggs.stages.base import StageWork
from raggs.stages.canaries import ask_plan, make_cases, make_plan, planned, planned_calls
from raggs.stages.earlier_version import NO_ORDERS, EarlierOrdersOf, earlier_orders
from raggs.stages.embed import BATCH
from raggs.stages.judge import STAGE as JUDGE
from raggs.stages.prune import STAGE as PRUNE
from raggs.stages.rank import likely_calls
from raggs.stages.rank_config import MAX_BATCH_SIZE, RankConfig
from raggs.stages.replay import Batch, JournalAnswers, kept_pool, known_entries, rounds
from raggs.stages.waves import ORDERED, most_orders


def require_room(services: RunServices, config: RankConfig, texts: Sequence[str]) -> None:
    """Check that the longest lists fit into the judge's context, if every passage has the mean length of `texts`.

    Raises:
        ConfigError: the lists do not fit, according to litellm's data on the model.
    """
    question = sum(estimate_tokens(query.text) for query in services.queries.values()) // len(services.queries)
    passage = max(1, sum(map(estimate_tokens, texts)) // max(1, len(texts)))
    length = MAX_BATCH_SIZE if config.batch_size == "auto" else config.batch_size
    length = min(length, services.config.merge.depth, len(services.passages))
    prompt = max(1, question) + estimate_tokens(services.prompts["order"].text(FALLBACK_LANGUAGE))
    for model in services.judge.models:
        room = longest_prompt(model)
        if not room or likely_tokens(prompt + length * passage) <= room:
            continue
        fitting = max(0, (room - likely_tokens(prompt)) // max(1, likely_tokens(passage)))
        remedy = f"set rank.batch_size to {fitting} or less" if fitting > 1 else "use a model with a larger context"
        raise ConfigError(
            f"rank: lists of {length} passages of about {likely_tokens(passage):,} tokens do not fit into the "
            f"{room:,} tokens of the context of {model}",
            remedy=remedy,
        )


def sent_for_advice(lines: Sequence[CostEstimate]) -> Iterator[str]:
    """Yield a sentence per model with a minimum number of calls, and another one if a cascade costs more than
    its good judge without the cheap one.
    """
    for line in lines:
        if line.least is None:
            continue
        yield sent_for_words(line)
        if line.again:
            continue
        others = [other.usd for other in lines if other.stage == line.stage and other is not line]
        likely = line.usd_for(line.least if line.expected is None else line.expected)
        if line.usd is None or likely is None or None in others:
            continue
        if (whole := likely + sum(usd or 0.0 for usd in others)) > line.usd:
            at_least = "at least " if line.expected is None else ""
            both = f"both judges {at_least}${whole:,.4f}"
            yield f"the cascade saves nothing: {line.who} alone would cost ${line.usd:,.4f}, {both}"


SAMPLE = 200  # number of passages whose mean length represents all passages
REPRESENTATIVE_QUERIES = 20  # number of queries that represent all queries while the pools are unknown
# Assumed shares that turn upper bounds into expected numbers.
LIKELY_REPAIRED = 0.02  # share of answers that are requested again, until the ledger has `MIN_LEARNED_ANSWERS` answers
LIKELY_POOL = 0.75  # share of retrieved passages that remain in the pool; the others were found by several retrievers
LIKELY_UPDATED = 0.2  # share of `rank.max_calls` that a ranking uses if it starts from the orders of an earlier version
LIKELY_WALK = 0.6  # share of a pool that is judged if `stop_after` can end judging early
EMBED = "embed"  # task name of embedders in the ledger
JOURNAL_REMEDY = "delete the file to run this stage from the beginning"

Pool = tuple[str, list[MergeRecord]]  # query id and passages


@dataclass(frozen=True)
class _Grading:
    """Inputs for grading a pool, as in the judge stage."""

    queries: Mapping[str, Query]
    judge: Judge


def estimate(services: RunServices, standing: RunState, *, looks: bool = False) -> Iterator[CostEstimate]:
    """Yield the estimates for the stages judge and rank, and for embed and retrieve if their models are paid.

    Args:
        looks: whether to subtract answers in the cache and in the journal, which is slow if there are many.

    Raises:
        ConfigError: lists to order do not fit into the context of the judge's model.
    """
    with services.workspace.rehearsal(remembers=looks) as llm:
        yield from _RunForecast(services, standing, llm, looks=looks).lines()


class _RunForecast:
    """Dry run of the stages. The stages' own components do the work, with models that only count calls."""

    def __init__(self, services: RunServices, standing: RunState, llm: DryRunLLM, *, looks: bool) -> None:
        self.llm = llm
        self._services, self._config, self._store = services, services.config, standing.store
        self._looks = looks
        self._answers = learn_answer_lengths(services, standing.store)
        self._merged = standing.store.exists and not standing.plan()["merge"]  # whether the stored pools are up to date
        self._journalled = 0  # ranking calls whose answers are in the journal
        self._beyond = 0  # further ranking calls that depend on missing answers
        self._doubtful = 0.0  # share of the grading calls that depend on missing first grades

    def lines(self) -> Iterator[CostEstimate]:
        """Yield one line per stage, model and task."""
        rank = self._config.rank
        if rank is not None:
            require_room(self._services, rank, self._texts)
        yield from self._embed()
        yield from self._retrieve()
        yield from self._judge()
        if rank is not None:
            yield from self._rank(rank)

    @cached_property
    def _texts(self) -> list[str]:
        return self._services.passages.sample(max(SAMPLE, self._depth))

    @property
    def _depth(self) -> int:
        """Return the maximum number of passages in a pool."""
        widest = sum(spec.k for spec in self._config.retrieve.deepest)
        return min(self._config.merge.depth, widest, len(self._services.passages))

    # --- embed and retrieve ---

    def _embed(self) -> Iterator[CostEstimate]:
        """Yield estimates for rewriting and embedding the queries and, for dense retrieval, for embedding the
        corpus.
        """
        services, llm, own = self._services, self.llm, self._services.embedder
        rewriter, queries = services.workspace.rewriter(self._config.embed.rewrite, llm), services.queries.values()
        models = own.models if own is not None else ()
        if not (models or rewriter.models):
            return
        llm.turn_to("embed")
        texts = services.workspace.loop.run(rewritten(queries, rewriter, self._config.embed.language))
        guessed = llm.missing > 0  # a placeholder stands for a rewrite that does not exist yet
        if own is not None and models:
            embedder = services.workspace.embedder(own.config, llm)
            for start in range(0, len(texts), BATCH):
                embedder.embed_queries(texts[start : start + BATCH])
            for model in models:
                line = line_of(llm, "embed", model, llm.asked(model, EMBED))
                yield line.model_copy(update={"exact": not guessed})
            yield from self._corpus(own)
        llm.turn_to("embed")
        for model in rewriter.models:
            yield self._line("embed", model, rewriter.TASK)

    def _corpus(self, own: Embedder) -> Iterator[CostEstimate]:
        """Yield estimates for embedding all passages that are searched; cached vectors are subtracted only if the cache
        is read.
        """
        services, llm = self._services, self.llm
        searched = {each.content_hash: each for one in services.retrievers.values() for each in one.embedded()}
        if not searched:
            return
        llm.turn_to("retrieve")
        for passages in searched.values():
            if self._looks and isinstance(passages, PassageStore):
                embedder = services.workspace.embedder(own.config, llm)
                begun = services.workspace.vectors_begun(passages, own)
                for start in range(begun, len(passages), SHARD):
                    embedder.embed(passages.contents(start, min(start + SHARD, len(passages))))
            else:
                texts = passages.sample(len(self._texts))
                tokens = len(passages) * sum(map(estimate_tokens, texts)) // max(1, len(texts))
                for model in own.models:
                    llm.count(model, EMBED, -(-len(passages) // own.config.batch), tokens)
        for model in own.models:
            yield line_of(llm, "retrieve", model, llm.asked(model, EMBED))

    def _retrieve(self) -> Iterator[CostEstimate]:
        """Yield estimates for retrievers that call models. They are upper bounds, because stored answers are not
        subtracted.
        """
        services, asked = self._services, [query.text for query in self._services.queries.values()]
        for number, retriever in enumerate((*services.retrievers.values(), *services.deeper.values())):
            for place, (spec, candidates) in enumerate(retriever.reranks()):
                self.llm.turn_to(stage := f"retriever {number}, reranker {place}")
                reranker = services.workspace.reranker(spec, self.llm)
                count_reranking(services.workspace.loop, self.llm, reranker, asked, services.passages, candidates)
                for (of, model, _), found in self.llm.all_asked.items():
                    if of == stage:
                        yield line_of(self.llm, "retrieve", model, found)

    # --- judge ---

    def _judge(self) -> Iterator[CostEstimate]:
        services, config = self._services, self._config.judge
        judge, group = self._counting_judge, config.group if services.judge.grades_together else 1
        if not judge.models:
            calls = sum(-(-size // group) for size in self._sizes()) * config.samples
            calls += self._canaries(calls, group) if judge.reads else 0
            exact = self._merged and config.stop_after is None and not config.canaries
            yield self._local("judge", calls, exact=exact)
            return
        self.llm.turn_to("judge")
        before = grades_before(services, self._store) if self._looks else None
        if self._merged:
            self._walk(before)
            anew = before.sentence if before is not None else ""
        else:
            self._stand_in(group)
            anew = before.guess if before is not None else ""
        share = 1.0 if self._merged else LIKELY_POOL
        share *= 1.0 if config.stop_after is None else LIKELY_WALK
        for line in self._judge_lines("grades" if group > 1 else "grade", share):
            line = line.model_copy(update={"anew": anew})
            yield _by_batches(config.batch.price, line) if config.mode == "batch" else line

    @cached_property
    def _counting_judge(self) -> Judge:
        services, prompts = self._services, self._services.prompts
        spec, together = self._config.judge.judge, prompts.get("grades")
        if not services.judge.models:
            return services.judge
        return services.workspace.judge(spec, prompts["grade"], prompts["order"], self.llm, grades=together)

    def _pools(self) -> Iterator[Pool]:
        merged = groupby(self._store.read("merge", MergeRecord), key=lambda record: record.qid)
        return ((qid, list(group)) for qid, group in merged)

    def _sizes(self) -> list[int]:
        """Return for each query the number of passages to judge."""
        if not self._merged:
            return [self._depth] * len(self._services.queries)
        labels, queries = JUDGE.labels(self._config.judge), self._services.queries
        return [
            sum(record.duplicate_of is None for record in pool) - len(labels(queries[qid], pool))
            for qid, pool in self._pools()
        ]

    def _canaries(self, calls: int, group: int) -> int:
        return (planned if group == 1 else planned_calls)(self._config.judge.canaries, calls)

    def _walk(self, before: PreviousRun | None) -> None:
        """Grade the pools, and simulate the ranking of queries whose grades are known."""
        services, spec, judge = self._services, self._config.judge, self._counting_judge
        grading, labels = _Grading(services.queries, judge), JUDGE.labels(spec)
        journal: dict[str, list[JournalRecord]] = {}
        if self._looks:
            for entry in read_torn(self._store.path("rank.journal"), JournalRecord, JOURNAL_REMEDY):
                journal.setdefault(entry.qid, []).append(entry)

        missing_grades = MissingGrades()

        async def walk() -> None:
            rank = self._config.rank
            if spec.canaries and spec.group > 1 and judge.grades_together:
                plan = make_plan(self._pools, services.queries, spec.canaries, spec.samples, spec.group)
                await ask_plan(judge, plan)
            elif spec.canaries and judge.reads:
                for case in make_cases(self._pools, services.queries, spec.canaries, spec.samples):
                    # only the judge's own calls are counted per passage; other calls are made for whole pools
                    await judge.grade(case.query, case.passage, sample=case.sample)
            for qid, pool in self._pools():
                missing = self.llm.missing
                graded = await JUDGE.pool(pool, spec, grading, labels(services.queries[qid], pool))
                missing_grades.see(graded)
                if before is not None:
                    before.see(qid, graded)
                if self.llm.missing > missing:
                    self._beyond += rank.max_calls if rank and not rank.budget else 0
                elif rank is not None:
                    self.llm.turn_to("rank")
                    self._beyond += await self._follow(rank, qid, graded, pool, journal.get(qid, ()))
                    self.llm.turn_to("judge")

        services.workspace.loop.run(walk())
        self._doubtful = 0.0 if spec.samples_if_below is None else missing_grades.doubtful(spec.samples)

    def _stand_in(self, group: int) -> None:
        """Count the grading calls of pools that are still unknown.

        Passages of the corpus are graded for a few queries, and the counts are scaled up to all queries. The number of
        control items is that of a real run.
        """
        services, spec, judge = self._services, self._config.judge, self._counting_judge
        qids, depth = list(services.queries), self._depth
        self._doubtful = 0.0 if spec.samples_if_below is None else 1 - 1 / spec.samples
        count = min(REPRESENTATIVE_QUERIES, len(qids))
        chosen = [qids[number * len(qids) // count] for number in range(count)]
        shown = [self._texts[number * len(self._texts) // depth] for number in range(depth)]
        for number, qid in enumerate(chosen):
            pool = [
                MergeRecord(qid=qid, rank=rank, doc_id=f"passage-{rank}", score=0.0, sources={}, text=text)
                for rank, text in enumerate(shown, start=1)
            ]
            with self.llm.standing_for((number + 1) * len(qids) // count - number * len(qids) // count):
                services.workspace.loop.run(JUDGE.pool(pool, spec, _Grading(services.queries, judge)))
        calls = sum(-(-size // group) for size in self._sizes()) * spec.samples
        if judge.reads and (more := self._canaries(calls, group)):
            passages = [Passage(doc_id=str(number), text=text) for number, text in enumerate(shown[:group])]
            with self.llm.standing_for(more):
                services.workspace.loop.run(judge.grades(services.queries[chosen[0]], passages))

    def _judge_lines(self, together: Task, share: float) -> Iterator[CostEstimate]:
        """Yield the estimates of the judge stage, one per model and task.

        An estimate is exact only if no missing answer decides whether the model is called.
        """
        judge, missing = self._services.judge, 0
        whole = self._config.judge.stop_after is None
        for model, each in judge.calls(together).items():
            sure = whole and (each.least == each.most or not missing) and not self._doubtful
            for task in dict.fromkeys((together, "grade")):
                asked = self.llm.asked(model, task)
                if task == ("grade" if model in judge.alone else together) or asked.missing or asked.known:
                    line = self._line("judge", model, task, share)
                    line = line.model_copy(update={"exact": line.exact and (sure or not asked.missing)})
                    line = bounded(line, each, self._store)
                    yield sampled_again(line, self._doubtful, share_sampled_again(self._store))
                missing += asked.missing

    # --- rank ---

    @cached_property
    def _order_causes(self) -> object:
        # cached: computing the causes may read the code of a Python judge
        return self._services.causes("judge", "order")

    @cached_property
    def _earlier(self) -> EarlierOrdersOf:
        return earlier_orders(self._config.rank.carry if self._config.rank else None)

    async def _follow(
        self,
        config: RankConfig,
        qid: str,
        graded: Sequence[JudgeRecord],
        pool: Sequence[MergeRecord],
        journal: Iterable[JournalRecord],
    ) -> int:
        """Return the maximum number of calls after a ranking's first missing answer; 0 if queries share a budget."""
        services, judge = self._services, self._counting_judge
        work = StageWork({"judge": lambda: iter(graded)})
        kept = kept_pool(qid, PRUNE.run(work, self._config.prune, services))
        course, query = config.course(kept), services.queries[qid]
        passages = {record.doc_id: record.passage for record in pool}
        known = list(await judge.known(query, [passages[doc_id] for doc_id in course.ids]) if course else ())
        earlier = NO_ORDERS if course is None else self._earlier(query, kept, course.ids, passages)
        known += earlier.known
        state = config.state(kept, self._order_causes, known)
        blank = JournalRecord(qid=qid, state=state, engine="", round=0, slot=0, shown=(), order=None)
        answers = JournalAnswers(entry for entry in journal if entry.state == state)
        if course is not None and course.informed:
            course.inform(known_entries(blank, known))
        if course is None or len(course.ids) < 2:  # also if the query has no relevant passage
            return 0
        # the pilot that chooses the batch size has no result yet
        if config.batch_size == "auto" and answers.believed is None:
            return config.max_calls
        # the calls per query depend on all queries, so only the remaining budget limits them
        if config.budget is not None:
            self._journalled += sum(entry.asked and not entry.failed for entry in answers)
            return 0

        async def answer(batch: Batch) -> JournalRecord | None:
            entry = answers.get(batch)
            if entry is not None and not entry.failed:
                self._journalled += entry.silent is None
                return entry
            if (entry := earlier.entry(blank, batch)) is not None:
                return entry
            said = await judge.order(query, [passages[doc_id] for doc_id in batch.shown])
            order = None if said.order is None else tuple(batch.shown[place] for place in said.order)
            found = blank.model_copy(update={"shown": tuple(batch.shown), "order": order, "silent": said.silent})
            return None if order is None and said.silent is None else found

        return await follow(self.llm, course, rounds(course, answers.believed), answer, config.max_calls)

    def _rank(self, config: RankConfig) -> Iterator[CostEstimate]:
        judge, calls = self._services.judge, len(self._services.queries) * config.max_calls
        if not judge.models:
            yield self._local("rank", most_orders(config.budget, calls, 0.0), exact=False)
            return
        self.llm.turn_to("rank of all")
        self._orders(config, calls)
        usd = (self._line("rank", model, "order").usd or 0.0 for model in judge.calls("order"))
        most = most_orders(config.budget, calls, sum(usd))
        self.llm.turn_to("rank")
        left = self._beyond if self._merged else most
        self._orders(config, max(0, most - self._journalled) if config.budget else left)
        share = 1.0 if config.budget else self._rank_share(config)
        for model in judge.calls("order"):
            line = self._line("rank", model, "order", share)
            yield line.model_copy(update={"cached": line.cached + self._journalled, "exact": not line.calls})

    def _orders(self, config: RankConfig, calls: int) -> None:
        """Count `calls` calls that order lists of typical passages, in the forecast of the current stage."""
        services, length = self._services, config.list_length
        text = typical([query.text for query in services.queries.values()])
        query = next(query for query in services.queries.values() if query.text == text)
        texts = [self._texts[number * len(self._texts) // length] for number in range(length)]
        shown = [Passage(doc_id=str(number), text=text) for number, text in enumerate(texts)]
        if calls:
            with self.llm.standing_for(calls):
                services.workspace.loop.run(self._counting_judge.order(query, shown))

    def _rank_share(self, config: RankConfig) -> float:
        """Return the share of `rank.max_calls` that a ranking is expected to use, based on the last run if there is
        one.
        """
        store = self._store
        if not config.max_calls:
            return 1.0
        ranked = store.exists and "rank" in store.manifest().stages
        if last := list(store.read("rank.queries", RankingRecord)) if ranked else []:
            return min(1.0, sum(each.calls + each.skipped for each in last) / (len(last) * config.max_calls))
        if config.carry is not None:
            return LIKELY_UPDATED
        return likely_calls(config.max_calls) / config.max_calls

    # --- lines ---

    def _local(self, stage: str, calls: int, *, exact: bool) -> CostEstimate:
        """Return the estimate for a judge that costs nothing."""
        found = CallEstimate(calls=calls, paid=False, guessed=not exact)
        return line_of(self.llm, stage, f"{self._services.judge.name} (local)", found)

    def _line(self, stage: str, model: str, task: PromptUse, share: float = 1.0) -> CostEstimate:
        """Return the estimate for a model's calls in one stage; `share` is the share of the calls that is expected
        to happen.
        """
        asked, price = self.llm.asked(model, task), self.llm.price(model)
        length = self._answers.length(model, task) if asked.limit is None else (asked.limit, 0)
        line = line_of(self.llm, stage, model, asked, length)
        if price is None:
            return line
        prompt = {str(name): prompt for name, prompt in self._services.prompts.items()}.get(task)
        remembered = 0 if prompt is None else remembered_tokens(model, prompt.template(FALLBACK_LANGUAGE).system)
        repaired = 1 + self._answers.repaired(LIKELY_REPAIRED)
        likely = price.usd(likely_tokens(line.input_tokens), line.output_tokens) * repaired * share
        return line.model_copy(update={"discount_usd": price.discount(line.calls * remembered), "likely_usd": likely})


def _by_batches(share: float, line: CostEstimate) -> CostEstimate:
    """Return a model's estimate at the reduced price of its batch interface."""
    usd, less = None if line.usd is None else line.usd * share, line.discount_usd * share
    likely = None if line.likely_usd is None else line.likely_usd * share
    return line.model_copy(
        update={"usd": usd, "likely_usd": likely, "discount_usd": less, "who": f"{line.who}, by batches"}
    )


@dataclass
class PreviousRun:
    """Grades of the last run by the same judge.

    Attributes:
        was, now: passages per call, in the last run and now.
        graded: ids of graded passages, by query.
        lost: number of grades that must be paid for again.
    """

    was: int
    now: int
    graded: Mapping[str, Set[str]]
    lost: int = 0

    def see(self, qid: str, records: Iterable[JudgeRecord]) -> None:
        """Count the grades of a pool that are lost, given the pool's records with only the grades that are still
        valid.
        """
        mine = self.graded.get(qid, frozenset())
        self.lost += sum(record.failed and record.doc_id in mine for record in records)

    @property
    def sentence(self) -> str:
        """Return a sentence on the number of unusable grades and the reason; empty if all grades can be used."""
        if not self.lost:
            return ""
        why = f"judge.group was {self.was} and is {self.now}"
        if self.was == self.now:
            why = "the pools changed, so their passages are grouped differently"
        return f"{self.lost:,} of {sum(map(len, self.graded.values())):,} grades of the last run cannot be used: {why}"

    @property
    def guess(self) -> str:
        """Return a sentence on unusable grades without their number, for pools that are not known yet."""
        if self.was != self.now:
            return f"most grades of the last run cannot be used: judge.group was {self.was} and is {self.now}"
        return "if a pool changes, none of its grades of the last run can be used: its passages are grouped differently"


def grades_before(services: RunServices, store: RunStore) -> PreviousRun | None:
    """Return the last run's grades, or None if they stay valid one by one.

    Grades stay valid one by one if every call had one passage, both in the last run and now. None is also returned
    if there are no grades yet, or if the judge has changed: then no grade is reused.

    Raises:
        RaggsError: the grades cannot be read.
    """
    now, lock = services.config.judge.group, store.manifest().stages.get("judge") if store.exists else None
    was = lock.params.get("group", 1) if lock is not None else 1
    if lock is None or not isinstance(was, int) or was == now == 1 or not store.path("judge").is_file():
        return None
    if lock.components.get("judge") != services.causes("judge", "grade"):
        return None
    graded: dict[str, set[str]] = {}
    for record in store.read("judge", JudgeRecord):
        if record.grade is not None and record.duplicate_of is None:
            graded.setdefault(record.qid, set()).add(record.doc_id)
    return PreviousRun(was, now, graded)


# assumed tokens per answer, by task
ANSWER = {"rewrite": 40, "hyde": 160, "multi_query": 80, "grade": 60, "order": ORDERED, "ask": 200}
MIN_LEARNED_ANSWERS = (
    # From this number of answers on, the ledger's mean length replaces the assumed one. Fewer answers can only raise
    # it.
    8
)


@dataclass(frozen=True)
class AnswerLengths:
    """Lengths of answers, and the number of unusable answers.

    Attributes:
        seen: number of answers in the ledger and their total tokens, by model and task.
        unusable: number of unusable answers among them.
    """

    services: RunServices
    seen: Mapping[tuple[str, str], tuple[int, int]]
    unusable: int = 0

    def repaired(self, otherwise: float) -> float:
        """Return the share of answers that had to be requested again; return `otherwise` if there are too few
        answers.
        """
        answers = sum(count for count, _ in self.seen.values())
        return self.unusable / answers if answers >= MIN_LEARNED_ANSWERS else otherwise

    def length(self, model: str, task: str) -> tuple[int, int]:
        """Return the expected tokens per answer, and how many of them are assumed hidden reasoning."""
        count, tokens = self.seen.get((model, task), (0, 0))
        if count >= MIN_LEARNED_ANSWERS:
            return -(-tokens // count), 0
        hidden = HIDDEN if reasons(model, self.services.config.llm.parameters_of(model)) else 0
        if (longer := self._beyond(model)) > hidden:
            return self._assumed(task) + longer, 0
        hidden *= self.services.config.judge.group if task == "grades" else 1
        return self._assumed(task) + hidden, hidden

    def _assumed(self, task: str) -> int:
        """Return the assumed tokens per answer, without measurements and hidden reasoning."""
        return self.services.config.judge.group * ANSWER["grade"] if task == "grades" else ANSWER.get(task, 0)

    def _beyond(self, model: str) -> int:
        """Return by how many tokens the mean answer of a model exceeds its assumed length, over all tasks; at least
        0.
        """
        kinds = [(*sums, self._assumed(task)) for (who, task), sums in self.seen.items() if who == model]
        return max([0, *(-(-tokens // count) - assumed for count, tokens, assumed in kinds)])


def learn_answer_lengths(services: RunServices, store: RunStore) -> AnswerLengths:
    """Return the lengths of answers that the ledger of a run recorded."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    unusable = 0
    for line in read_torn(store.ledger, LedgerLine, LEDGER_REMEDY):
        if line.outcome in ("answered", "unusable"):
            count, tokens = sums.get((line.model, line.task), (0, 0))
            sums[line.model, line.task] = count + 1, tokens + line.completion_tokens
            unusable += line.outcome == "unusable"
    return AnswerLengths(services, sums, unusable)


RANKING_SETTINGS = (
    "engine",
    "batch_size",
    "parallel",
    "seed",
    "options",
)  # settings that change the batches of a ranking
# By stage, the recorded inputs and settings (by prefix) that decide which calls the judge makes.
JUDGE_CAUSES: Mapping[str, tuple[str, ...]] = {
    "judge": ("judge", "config.judge", "config.group"),
    "rank": (
        "judge",
        "engine",
        *(f"config.{name}" for name in RANKING_SETTINGS),
    ),
}


# settings that the panel of humans and a judge has in addition to the judge's own
PANEL = ("type", "rule", "weights", "version", "ask_all")
HUMAN_FIRST = ("human_first", "judge")  # settings that make human labels replace the judge's grades


@dataclass(frozen=True)
class ReplacedResults:
    """Results of a stage that would be replaced, the reason, and their cost in USD including the value of cached
    answers.
    """

    stage: str
    reason: ComponentChanged
    usd: float

    def __str__(self) -> str:
        paid = f"{self.usd:.4f} USD"
        return f"{self.stage} would run again ({self.reason}), and replace results for which {paid} were paid"


def _machine(components: Mapping[str, object]) -> object:
    """Return the components that determine the judge's calls, without human labels that replace its grades."""
    judge = dict(as_object(components.get("judge")))
    members = as_list(judge.pop("judges", None))
    if judge.get("type") == "panel" and len(members) == 2 and as_object(members[0]).get("type") == HUMAN_SOURCE:
        rest = {name: value for name, value in judge.items() if name not in PANEL}
        judge = {**as_object(members[1]), **rest}
    elif members:
        judge["judges"] = members
    config = {name: value for name, value in as_object(components.get("config")).items() if name not in HUMAN_FIRST}
    return {**components, "judge": judge, "config": config, "inputs": None}


def losses(runner: Runner, selection: Selection) -> list[ReplacedResults]:
    """Return the paid results that the selected stages would replace. Nothing is changed."""
    locks = runner.store.manifest().stages if runner.store.exists else {}
    found = []
    for name, beginnings in JUDGE_CAUSES.items():
        lock = locks.get(name)
        if lock is None or name not in selection.stages or not (usd := lock.cost.usd + lock.cost.saved_usd):
            continue
        stage = runner.pipeline.stage(name)
        if _machine(lock.components) == _machine(runner.components(stage)):
            continue  # only the use of human labels changed, so the judge makes the same calls
        reasons = runner.standing.reasons(stage, lock)
        changed = (reason for reason in reasons if isinstance(reason, ComponentChanged))
        if why := next((reason for reason in changed if reason.component.startswith(beginnings)), None):
            found.append(ReplacedResults(name, why, usd))
    return found
