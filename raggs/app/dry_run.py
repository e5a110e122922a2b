"""What a run would ask that is not paid for yet: its stages are walked through with judges that only remember.

As far as the pools are known, each question is looked up in the cache of answers, and each batch of a ranking in the
journal too. A ranking can be followed until the first answer that is missing; what comes after it is bounded by
`rank.max_calls`. Nobody is asked and nothing is written.

Grades of the last run that are of no use, since their passages would be graded in other company (`judge.group`).

A grade that was given beside others is one to that company. Where groups have another size, or a pool holds other
passages, companies are drawn anew, and all their grades are paid for again; the dry run says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby

from raggs.app.services import RunServices
from raggs.base.artifacts import JournalRecord, JudgeRecord, MergeRecord, Query
from raggs.base.errors import ProviderError
from raggs.base.jsonl import read_torn
from raggs.base.languages import detect_language
from raggs.base.text import clean_unicode, one_line
from raggs.llm.rehearsal import DryRunLLM
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import SHARD, rows_done
from raggs.parts.judges import Judge, Ordering
from raggs.runs.manifests.store import RunStore
from raggs.stages.base import StageWork
from raggs.stages.canaries import ask_plan, make_cases, make_plan
from raggs.stages.embed import BATCH
from raggs.stages.judge import STAGE as JUDGE
from raggs.stages.prune import STAGE as PRUNE
from raggs.stages.replay import JournalAnswers, KeptPool, kept_pool, known_entries, rounds


@dataclass
class PreviousRun:
    """What the last run knew by the same judge.

    Attributes:
        was, now: passages in a call, then and now.
        graded: ids of the passages with a grade, by query.
        lost: how many of them would be asked about again.
    """

    was: int
    now: int
    graded: Mapping[str, Set[str]]
    lost: int = 0

    def see(self, qid: str, records: Iterable[JudgeRecord]) -> None:
        """What is known of a pool now."""
        mine = self.graded.get(qid, frozenset())
        self.lost += sum(record.failed and record.doc_id in mine for record in records)

    @property
    def sentence(self) -> str:
        """What cannot be used and why; empty where all can."""
        if not self.lost:
            return ""
        why = f"judge.group was {self.was} and is {self.now}"
        if self.was == self.now:
            why = "a pool that holds other passages is cut into other groups"
        return f"{self.lost:,} of {sum(map(len, self.graded.values())):,} grades of the last run cannot be used: {why}"


def guess(services: RunServices, store: RunStore) -> str:
    """What cannot be used where no pool is known yet; empty as `grades_before`."""
    if (before := grades_before(services, store)) is None:
        return ""
    if before.was != before.now:
        return f"most grades of the last run cannot be used: judge.group was {before.was} and is {before.now}"
    return "where a pool changes, none of its grades of the last run can be used: it is cut into other groups"


def grades_before(services: RunServices, store: RunStore) -> PreviousRun | None:
    """The last run's grades; None where nobody saw several passages at once, then or now, or another judge gave them.

    Raises:
        RaggsError: they cannot be read.
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


@dataclass
class DryRunResult:
    """What was found.

    Attributes:
        llm: has counted what was asked of each model.
        journal: batches of rankings that the journal answers.
        beyond: calls that may come after those that were counted, at most; None: no pool is known.
        before: the last run's grades and how many of them are lost, where passages are graded together.
    """

    llm: DryRunLLM
    journal: int = 0
    beyond: int | None = None
    before: PreviousRun | None = None

    @property
    def anew(self) -> str:
        """What of the last run is asked again, as passages are graded in other company."""
        return "" if self.before is None else self.before.sentence


@dataclass(frozen=True)
class _Grading:
    """What the judge stage needs to grade a pool."""

    queries: Mapping[str, Query]
    judge: Judge


@dataclass
class _ReplayedRankings:
    """Follows rankings by what is known."""

    services: RunServices
    judge: Judge
    journal: Mapping[str, list[JournalRecord]]
    found: DryRunResult
    causes: object = field(init=False)

    def __post_init__(self) -> None:
        self.causes = self.services.causes("judge", "order")

    async def follow(self, pool: KeptPool, records: Sequence[MergeRecord]) -> int:
        """Calls that may come after the first answer that is missing; none where ranking is left out."""
        if (config := self.services.config.rank) is None:
            return 0
        course, query = config.course(pool), self.services.queries[pool.qid]
        passages = {record.doc_id: record.passage for record in records}
        known = await self.judge.known(query, [passages[doc_id] for doc_id in course.ids]) if course else ()
        state = config.state(pool, self.causes, known)
        blank = JournalRecord(qid=pool.qid, state=state, engine="", round=0, slot=0, shown=(), order=None)
        answers = JournalAnswers(entry for entry in self.journal.get(pool.qid, ()) if entry.state == state)
        if course is not None and course.informed:
            course.inform(known_entries(blank, known))
        if course is None or len(course.ids) < 2:  # includes a query without a relevant passage
            return 0
        if config.batch_size == "auto" and answers.believed is None:  # what the pilot will teach is not known yet
            return config.max_calls
        if config.budget is not None:  # whose turn it is next hangs on all; what is left of the budget bounds it
            self.found.journal += sum(entry.asked and not entry.failed for entry in answers)
            return 0
        for batches in rounds(course, answers.believed):
            entries, before = [], self.found.llm.missing
            for batch in batches:
                entry = answers.get(batch)
                if entry is not None and not entry.failed:
                    self.found.journal += entry.silent is None
                    entries.append(entry)
                    continue
                said = await self.judge.order(query, [passages[doc_id] for doc_id in batch.shown])
                if said.order is not None or said.silent is not None:
                    entries.append(_entry(blank, batch.shown, said))
            if len(entries) < len(batches) or self.found.llm.missing > before:  # a panel may do without a member
                return max(0, config.max_calls - course.asked)
            course.learn(entries)
        return 0


def rehearse(services: RunServices, store: RunStore) -> DryRunResult:
    """Walk through the judge and rank stages over the pools of `store`, which must be those of today.

    Raises:
        RaggsError: inputs, artifacts or the cache cannot be read.
    """

    found = DryRunResult(services.workshop.rehearsal(), beyond=0, before=grades_before(services, store))
    prompts, config = services.prompts, services.config
    judge = services.workshop.judge(
        config.judge.judge, prompts["grade"], prompts["order"], found.llm, grades=prompts.get("grades")
    )
    grading = _Grading(services.queries, judge)
    rankings = _ReplayedRankings(services, judge, _journal(store), found)

    def pools() -> Iterator[tuple[str, list[MergeRecord]]]:
        merged = groupby(store.read("merge", MergeRecord), key=lambda record: record.qid)
        return ((qid, list(group)) for qid, group in merged)

    async def walk() -> int:
        beyond = 0
        if config.judge.canaries and config.judge.group > 1 and judge.grades_together:
            spec = config.judge
            await ask_plan(judge, make_plan(pools, services.queries, spec.canaries, spec.samples, spec.group))
        elif config.judge.canaries and judge.reads:
            for case in make_cases(pools, services.queries, config.judge.canaries, config.judge.samples):
                await judge.grade(case.query, case.passage, sample=case.sample)  # the others are asked for the pools
        for qid, pool in pools():
            before = found.llm.missing
            graded = await JUDGE.pool(pool, config.judge, grading)
            if found.before is not None:
                found.before.see(qid, graded)
            if found.llm.missing > before:
                beyond += config.rank.max_calls if config.rank and not config.rank.budget else 0
            else:
                beyond += await rankings.follow(_pruned(qid, graded, services), pool)
        await found.llm.close()
        return beyond

    found.beyond = services.loop.run(walk())
    return found


def rehearse_questions(services: RunServices) -> DryRunResult:
    """Ask for each question's rewrite, and for its vector, those who only remember.

    Where a rewrite is missing, the question stands for it.
    """
    found, config = DryRunResult(services.workshop.rehearsal()), services.config.embed
    rewriter = services.workshop.rewriter(config.rewrite, found.llm)

    async def walk() -> list[str]:
        texts = []
        for query in services.queries.values():
            text = one_line(clean_unicode(query.text))
            language = query.language or detect_language(text, config.language)
            with suppress(ProviderError):  # what it says of an answer that nobody has given
                text = await rewriter.rewrite(query, text, language)
            texts.append(text)
        return texts

    texts = services.loop.run(walk())
    if config.embedder is not None and services.embedder is not None and services.embedder.models:
        embedder = services.workshop.embedder(config.embedder, found.llm)
        for start in range(0, len(texts), BATCH):
            embedder.embed_queries(texts[start : start + BATCH])
    services.loop.run(found.llm.close())
    return found


def rehearse_passages(services: RunServices) -> DryRunResult | None:
    """Ask those who only remember for the vectors that the index lacks; None where the passages are elsewhere."""
    spec, own, store = services.config.embed.embedder, services.embedder, services.passages
    if spec is None or own is None or not isinstance(store, PassageStore):
        return None
    found = DryRunResult(services.workshop.rehearsal())
    embedder = services.workshop.embedder(spec, found.llm)
    begun = rows_done(services.workshop.cache.at("vectors"), own.identity, own.dims, store)
    for start in range(begun, len(store), SHARD):
        embedder.embed(store.contents(start, min(start + SHARD, len(store))))
    services.loop.run(found.llm.close())
    return found


def _pruned(qid: str, graded: Sequence[JudgeRecord], services: RunServices) -> KeptPool:
    work = StageWork({"judge": lambda: iter(graded)})
    return kept_pool(qid, PRUNE.run(work, services.config.prune, services))


def _journal(store: RunStore) -> dict[str, list[JournalRecord]]:
    found: dict[str, list[JournalRecord]] = {}
    for entry in _entries(store):
        found.setdefault(entry.qid, []).append(entry)
    return found


def _entries(store: RunStore) -> Iterator[JournalRecord]:
    return read_torn(store.path("rank.journal"), JournalRecord, "delete the file to start this stage afresh")


def _entry(blank: JournalRecord, shown: Sequence[str], said: Ordering) -> JournalRecord:
    ordered = None if said.order is None else tuple(shown[place] for place in said.order)
    return blank.model_copy(update={"shown": tuple(shown), "order": ordered, "silent": said.silent})
