"""Stage 4: a grade from 1 to 5 for every passage of the pool, or for its head where `stop_after` ends the walk.

Only representatives are judged; their near-duplicates take the grade over, unless the judge tells them apart (by their
places): such a one is judged for itself, and is nobody's duplicate from here on. A judge that fails leaves a record
without a grade and with the reason: a failure never becomes a number. A passage beyond the end of the walk leaves a
record that says so: it is not judged, which is neither a failure nor a low grade. So does one on which the judge
abstains.

Where the money has ended, a query of which a grade is missing is left out as a whole: what nobody graded would count as
if it were irrelevant.

Which passages of a question a judge sees together, where it grades several in one question (`judge.group`).

What is asked at once is cut into groups by a shuffle of its own for each sample: the company of a passage is a mixture
of the good and the bad, whatever its rank in the pool, and another one in each sample, in which it stands elsewhere.
Groups follow from the passages that are asked at once and from nothing that was answered before: a resumed run asks
the same questions.

By how much a grade moves with the company in which it was given, and with its place there; nobody is asked for it.

Company is told by samples, each of which shows a passage in another one: a passage's grade in a sample less its mean
over all, against the mean grade of those beside it less its mean; the slope of the one on the other. A judge that
grades each passage as if it were alone errs on each by itself, so that its slope is nought whatever the passages are.
Places are drawn by lot: the first of a call is as good as the last, on average. Companies and places follow from the
records, as the stage drew them. Intervals are by the jackknife over questions, whose companies are their own.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.artifacts import JudgeRecord, MergeRecord, Record
from raggs.base.errors import BudgetError
from raggs.base.hashing import generator
from raggs.base.judge_health import HUMAN_SOURCE, CanaryHealth, GradeShift, is_people, source_of
from raggs.base.settings import AddedLater, AnchoredPath, Causes, Effort, PromptName, Settings
from raggs.llm import BatchSettings
from raggs.parts import judges
from raggs.parts.judges import Judgment, lower_median
from raggs.stages.base import GradeServices, Services, Stage, StageWork, Walks
from raggs.stages.canaries import ask_cases, make_cases
from raggs.stages.judge_health import NOT_JUDGED_PREFIX, JudgeStatistics, cascade_statistics
from raggs.stages.ordered import run_ordered

SEED = 0


def groups(qid: str, first: int, count: int, size: int, sample: int) -> list[list[int]]:
    """Positions 0 to `count` - 1 in as few groups of at most `size` as can be, which differ by one at most.

    Args:
        first: rank among the passages to judge of the one at position 0.
    """
    order: list[int] = generator(SEED, "group", qid, first, sample).permutation(count).tolist()
    number = -(-count // size)
    bounds = [count * place // number for place in range(number + 1)]
    return [order[start:end] for start, end in pairwise(bounds)]


def round_up_to_groups(wanted: int, size: int) -> int:
    """So many passages at least, in whole groups."""
    return -(-wanted // size) * size


class PoolWalk:
    """A pool that is graded from the top down until `stop_after` low grades stand in a row.

    While some of them do, no end can come before as many more passages are graded as are missing, so these are asked at
    once: no judgment is wasted, and none depends on the time that another took. A failure neither adds to the row nor
    breaks it. Where several are graded in one question a step takes whole groups, and the row may end longer.

    Args:
        total: passages of the pool.
        stop_after: None where the walk never ends early.
        size: passages that are graded together, at most.
        low: a grade up to here is a low one.

    Attributes:
        done: passages that were graded.
        limit: low grades in a row that end it.
    """

    def __init__(self, total: int, stop_after: int | None, size: int, low: int) -> None:
        self.done, self.limit = 0, stop_after or total
        self._total, self._size, self._low = total, size, low
        self._row = 0

    def step(self) -> int:
        """How many passages are asked about at once next; 0 at the end."""
        if self._row >= self.limit:
            return 0
        return min(round_up_to_groups(self.limit - self._row, self._size), self._total - self.done)

    def take(self, grades: Iterable[int | None]) -> None:
        """The grades of a step; None of a failure."""
        for grade in grades:
            self.done += 1
            if grade is not None:
                self._row = self._row + 1 if grade <= self._low else 0


async def grade_together(
    records: Sequence[MergeRecord], first: int, size: int, samples: int, services: GradeServices
) -> list[list[Judgment]]:
    """All samples of the grade of each passage, in their order; all are asked at once.

    Args:
        first: rank of the first one among the passages of the pool to judge.
    """
    query = services.queries[records[0].qid]

    async def ask(group: Sequence[int], sample: int) -> Sequence[Judgment]:
        return await services.judge.grades(query, [records[place].passage for place in group], sample=sample)

    asked = [
        (group, sample) for sample in range(samples) for group in groups(query.qid, first, len(records), size, sample)
    ]
    found: list[list[Judgment]] = [[] for _ in records]
    for (group, _), given in zip(asked, await asyncio.gather(*(ask(*each) for each in asked)), strict=True):
        for place, said in zip(group, given, strict=True):
            found[place].append(said)
    return found


SINGLE_PROMPT, GROUP_PROMPT = "grade@1", "grades@1"
MAX_LOW_GRADE = 2  # grades up to here say that the pool runs dry

JudgeSpec = Annotated[AdapterConfig, OneOf(judges.REGISTRY)]


class JudgeGate(Settings):
    """What the judge of a run must be like; a run whose judge is not ends with exit code 7. No limit: null."""

    canaries: float | None = Field(None, ge=0, le=1, description="least share of the canaries that is as expected")
    flips: float | None = Field(
        None, ge=0, le=1, description="most of the pairs that may change places when they are shown again"
    )
    position_bias: float | None = Field(None, ge=0, description="most that a place may be worth, in grades")
    kappa: float | None = Field(
        None, gt=0, le=1, description="least agreement with people beyond chance, of 20 blind grades of 5 questions"
    )
    reviews: AnchoredPath | None = Field(
        None, description="for kappa: folder of people's reviews.jsonl; null: `reviews` beside the runs"
    )


class JudgeConfig(Settings):
    """Who grades, by which prompt, how often, how deep; docs/concepts/grading.md says what each costs."""

    human_first: AddedLater[bool] = Field(
        False,
        description="whether human labels (`raggs review`) come first and the judge grades the rest; it also grades the"
        " labelled passages, for `raggs judge check`. The same as `raggs run --human-first`",
    )
    judge: JudgeSpec = Field(description="also orders the batches of the rank stage")
    prompt: PromptName = Field(SINGLE_PROMPT, description="a prompt's name, or the path of a Markdown file")
    mode: Effort[Literal["direct", "batch"]] = Field(
        "direct",
        description="batch: grades by the provider's Batch API, in hours, at about half the price; with stop_after one "
        "batch after the other",
    )
    batch: Effort[BatchSettings] = BatchSettings()
    samples: int = Field(1, ge=1, description="grades asked for each passage; the lower median counts")
    group: AddedLater[int] = Field(
        1,
        ge=1,
        description="passages of a question that are graded in one call, at most; their company is drawn by lot, anew"
        " for each sample. Cheaper where passages are short, less exact where they colour each other's grades; 1: each"
        " alone",
    )
    group_prompt: PromptName = Field(
        GROUP_PROMPT, description="with group, a prompt's name or the path of a Markdown file; prompt is of one passage"
    )
    stop_after: int | None = Field(
        None,
        ge=1,
        description=f"a pool is judged from the top until this many grades in a row are {MAX_LOW_GRADE} or less;"
        " null: to its end",
    )
    canaries: AddedLater[float] = Field(
        0.0,
        ge=0,
        le=1,
        description="cases of known grade that the judge is also asked, as a share of its judgments and at least one of"
        " each kind; with group, what neighbours do to a grade, too; only its health tells of them; 0: none",
    )
    gate: Effort[JudgeGate] = JudgeGate()

    @field_validator("judge")
    @classmethod
    def _people_first(cls, spec: AdapterConfig, info: ValidationInfo) -> AdapterConfig:
        if not info.data.get("human_first"):
            return spec
        from raggs.parts.judges.composite import people_first  # late: most runs have no panel

        return people_first(spec)

    @model_validator(mode="after")
    def _ones_own_words(self) -> Self:
        if self.group > 1 and self.prompt != SINGLE_PROMPT and self.group_prompt == GROUP_PROMPT:
            raise ValueError(
                f"prompt is your own, and with group: {self.group} passages are graded by group_prompt, which is not:"
                f" give that one too (raggs prompts show {GROUP_PROMPT} prints one to begin with)"
            )
        return self

    @model_validator(mode="after")
    def _what_the_gate_needs(self) -> Self:
        if self.gate.canaries is not None and not self.canaries:
            raise ValueError("gate.canaries is set, and no canaries are asked: set canaries, for example to 0.02")
        if self.gate.reviews is not None and self.gate.kappa is None:
            raise ValueError(
                "gate.reviews is set, and nothing is held against them: set gate.kappa, for example to 0.6"
            )
        return self


class JudgeStage(Stage[JudgeConfig]):
    NAME = "judge"
    VERSION = 2
    READS = ("merge",)
    Config = JudgeConfig
    RECORD = JudgeRecord
    ASKS = "judge"

    def causes(self, config: JudgeConfig, services: Services) -> Causes:
        judge = services.causes("judge", "grade")
        together = {"group": services.causes("judge", "grades")} if config.group > 1 else {}
        return {"queries": services.causes("queries"), "judge": judge, **together, **services.causes("hygiene")}

    def by_query(self, config: JudgeConfig) -> bool:
        return config.mode == "direct"  # batches take hours: as few as can be, so of all queries together

    def run(self, work: StageWork, config: JudgeConfig, services: Services) -> Iterator[JudgeRecord]:
        total = len(services.queries)

        async def grade(item: tuple[str, list[MergeRecord]]) -> list[JudgeRecord]:
            try:
                return await self.pool(item[1], config, services)
            except BudgetError:
                if not work.spent:
                    raise
                return []

        # All that fills a batch is asked at once, so that the queries go on batch by batch, side by side.
        batched = config.mode == "batch"
        window, walks = config.batch.max_requests if batched else None, self.walks(config, services)
        pools = (item for item in work.by_query("merge", MergeRecord) if item[0] not in work.done)
        holds = (lambda _: False) if batched else walks.tight
        every = run_ordered(services.workspace, pools, grade, size=walks.at_once, window=window, holds=holds)
        for done, records in enumerate(every, start=1):
            yield from records
            work.progress(done, total)

    def walks(self, config: JudgeConfig, services: Services) -> Walks:
        judge = services.judge
        calls = judge.calls("grades" if config.group > 1 else "grade").items()
        members = sum(each.most * (config.group if model in judge.alone else 1) for model, each in calls)
        return Walks(config.stop_after, config.group, config.samples, members, services.workspace.affords)

    def failed(self, record: Record) -> bool:
        return isinstance(record, JudgeRecord) and record.failed

    def statistics(self, config: JudgeConfig) -> JudgeStatistics:
        company = None
        if config.group > 1 and judges.REGISTRY.of(config.judge).groups(config.judge):
            company = GroupContextMoves(config.samples, config.stop_after, config.group, MAX_LOW_GRADE)
        return JudgeStatistics(config.samples, config.stop_after, cascade_statistics(config.judge), company)

    def probe(self, work: StageWork, config: JudgeConfig, services: Services) -> CanaryHealth | None:
        if not config.canaries:
            return None
        judge, pools = services.judge, lambda: work.by_query("merge", MergeRecord)
        if config.group > 1 and judge.grades_together:
            from raggs.stages.canaries import ask_plan, make_plan  # late: most grade one by one

            plan = make_plan(pools, services.queries, config.canaries, config.samples, config.group)
            return services.workspace.loop.run(ask_plan(judge, plan))
        cases = make_cases(pools, services.queries, config.canaries, config.samples)
        return services.workspace.loop.run(ask_cases(judge, cases if judge.reads else ()))

    def label(self, services: Services) -> Callable[[str, str], int | None]:
        return services.judge.without_noise

    async def pool(
        self, pool: Sequence[MergeRecord], config: JudgeConfig, services: GradeServices
    ) -> list[JudgeRecord]:
        """The records of one query's pool, in its order."""
        leaders = list(self._alone(pool, services))
        graded = {record.doc_id: record for record in await self._walk(leaders, config, services)}
        return [self._shared(record, graded) for record in pool]

    @staticmethod
    def _alone(pool: Sequence[MergeRecord], services: GradeServices) -> Iterator[MergeRecord]:
        """The records that get a grade of their own."""
        found = {record.doc_id: record for record in pool}
        for record in pool:
            leader = record.duplicate_of and found[record.duplicate_of].passage
            if not leader or services.judge.apart(services.queries[record.qid], leader, record.passage):
                yield record

    async def _walk(
        self, leaders: Sequence[MergeRecord], config: JudgeConfig, services: GradeServices
    ) -> list[JudgeRecord]:
        """Grade from the top down until `stop_after` low grades stand in a row; see `PoolWalk`."""
        walk, graded = PoolWalk(len(leaders), config.stop_after, config.group, MAX_LOW_GRADE), list[JudgeRecord]()
        while count := walk.step():
            step = await self._step(leaders[walk.done : walk.done + count], walk.done, config, services)
            walk.take(record.grade for record in step)
            graded += step
        why = f"{NOT_JUDGED_PREFIX} {walk.limit} grades of {MAX_LOW_GRADE} or less in a row"
        return graded + [
            JudgeRecord(qid=each.qid, rank=each.rank, doc_id=each.doc_id, grade=None, judge="", skipped=why)
            for each in leaders[len(graded) :]
        ]

    async def _step(
        self, records: Sequence[MergeRecord], first: int, config: JudgeConfig, services: GradeServices
    ) -> list[JudgeRecord]:
        """The records of passages that are asked about at once; `first`: rank of the first of them."""
        if config.group == 1:
            return await asyncio.gather(*(self._grade(record, config, services) for record in records))
        found = await grade_together(records, first, config.group, config.samples, services)
        return [combine(record, said, services.judge.name) for record, said in zip(records, found, strict=True)]

    async def _grade(self, record: MergeRecord, config: JudgeConfig, services: GradeServices) -> JudgeRecord:
        query = services.queries[record.qid]
        samples = await asyncio.gather(
            *(services.judge.grade(query, record.passage, sample=number) for number in range(config.samples))
        )
        return combine(record, samples, services.judge.name)

    @staticmethod
    def _shared(record: MergeRecord, graded: dict[str, JudgeRecord]) -> JudgeRecord:
        if record.duplicate_of is None or record.doc_id in graded:
            return graded[record.doc_id]
        update = {"rank": record.rank, "doc_id": record.doc_id, "duplicate_of": record.duplicate_of}
        return graded[record.duplicate_of].model_copy(update=update)


def combine(record: MergeRecord, samples: Sequence[Judgment], judge: str) -> JudgeRecord:
    """One record from all samples: the lower median of their grades, none if more than half of them failed.

    Samples in which the judge abstained are none; where all are such, the passage is not judged. What people said
    is the same however often it is read, so that it counts once.
    """
    said = _without_repeated_labels([sample for sample in samples if sample.silent is None])
    if not said:
        return JudgeRecord(
            qid=record.qid, rank=record.rank, doc_id=record.doc_id, grade=None, judge="", skipped=samples[0].silent
        )
    grades = tuple(sample.grade for sample in said)
    grade = lower_median(grades)
    heard = [each for sample in said for each in (sample, *sample.votes.values())]
    missing = next((each for each in heard if each.grade is None), None)
    deciding = next((sample for sample in said if grade is not None and sample.grade == grade), said[0])
    return JudgeRecord(
        qid=record.qid,
        rank=record.rank,
        doc_id=record.doc_id,
        grade=grade,
        grades=grades,
        votes=_votes(said, [sample for sample in samples if sample.silent is None]),
        reason=deciding.reason if grade is not None else "",
        judge=deciding.by or judge,
        error=missing.error if missing else None,
        raw=missing.raw if missing else None,
        answerers=tuple(dict.fromkeys(key for sample in samples for key in sample.all_answerers)),
    )


def _without_repeated_labels(said: Sequence[Judgment]) -> list[Judgment]:
    """The samples without people's word again."""
    by_people = [source_of(sample.by) == HUMAN_SOURCE for sample in said]
    return [sample for place, sample in enumerate(said) if not (by_people[place] and any(by_people[:place]))]


def _votes(said: Sequence[Judgment], every: Sequence[Judgment]) -> dict[str, tuple[int | None, ...]]:
    """Return each member's grades; where others voted beside people, of every sample, since they differ."""
    others = any(not is_people(name) for sample in said for name in sample.votes)
    counted = every if others else said
    return {name: tuple(_vote(sample, name) for sample in counted) for sample in counted for name in sample.votes}


def _vote(sample: Judgment, member: str) -> int | None:
    vote = sample.votes.get(member)
    return None if vote is None else vote.grade


STAGE = JudgeStage()


ProductSums = tuple[float, float]  # the mean grade of those beside a passage, and its own, in one sample


class GroupContextMoves:
    """Counted while the records of one run of the stage pass, question by question.

    Args:
        samples: grades that are asked of each passage.
        stop_after: low grades in a row that end the walk down a pool; None where it never ends early.
        size: passages that are graded together, at most.
        low: a grade up to here counts for `stop_after`.
    """

    def __init__(self, samples: int, stop_after: int | None, size: int, low: int) -> None:
        self._samples, self._stop_after, self._size, self._low = samples, stop_after, size, low
        self._qid = ""
        self._asked: list[tuple[int | None, tuple[int | None, ...]]] = []  # of the question at hand, by rank
        self._sums: list[ProductSums] = []  # of each question: products of both deviations, squares of the company's
        self._ends: list[ProductSums] = []  # of each question: first less last grades of its calls, and how many calls

    def see(self, record: JudgeRecord) -> None:
        """Take notice of a passage that was asked about, near-duplicates and those beyond a walk's end left out."""
        if record.qid != self._qid:
            self._end()
            self._qid = record.qid
        whole = record.grades if len(record.grades) == self._samples else (None,) * self._samples
        self._asked.append((record.grade, whole))

    def company(self) -> GradeShift | None:
        """By how many grades a grade moves for each grade that its company is better; None where nothing can tell."""
        self._end()
        return _ratio(self._sums)

    def place(self) -> GradeShift | None:
        """By how many grades being shown first rather than last moves a grade; None where nothing can tell."""
        self._end()
        return _ratio(self._ends)

    def _end(self) -> None:
        """Sum up the question at hand."""
        pairs: defaultdict[int, list[ProductSums]] = defaultdict(list)
        ends = []
        for group in self._calls():
            known = {place: grade for place, grade in group if grade is not None}
            for place, grade in known.items() if len(known) > 1 else ():
                pairs[place].append(((sum(known.values()) - grade) / (len(known) - 1), float(grade)))
            (_, first), (_, last) = group[0], group[-1]
            if len(group) > 1 and first is not None and last is not None:
                ends.append(first - last)
        products = squares = 0.0
        for found in pairs.values():
            beside, own = fmean(pair[0] for pair in found), fmean(pair[1] for pair in found)
            products += sum((pair[0] - beside) * (pair[1] - own) for pair in found)
            squares += sum((pair[0] - beside) ** 2 for pair in found)
        if squares > 0:
            self._sums.append((products, squares))
        if ends:
            self._ends.append((sum(ends), len(ends)))
        self._asked = []

    def _calls(self) -> Iterator[list[tuple[int, int | None]]]:
        """For each call the passages as they were shown, with their grades."""
        for first, count in self._steps():
            for sample in range(self._samples):
                for group in groups(self._qid, first, count, self._size, sample):
                    yield [(first + place, self._asked[first + place][1][sample]) for place in group]

    def _steps(self) -> Iterator[tuple[int, int]]:
        """The first passage and the length of each step of the walk."""
        walk = PoolWalk(len(self._asked), self._stop_after, self._size, self._low)
        while count := walk.step():
            first = walk.done
            yield first, count
            walk.take(grade for grade, _ in self._asked[first : first + count])


def _ratio(sums: Sequence[ProductSums]) -> GradeShift | None:
    """The sum of the first numbers by that of the second ones, with its interval of 95%; None where there are none."""
    if not sums:
        return None
    count = len(sums)
    above, below = (math.fsum(part) for part in zip(*sums, strict=True))
    if count < 2:
        return GradeShift(grades=round(above / below, 4), interval=None, questions=count)
    from scipy.special import stdtrit  # late: few runs grade passages together

    without = [(above - one) / (below - other) for one, other in sums]
    mean = fmean(without)
    error = math.sqrt((count - 1) / count * sum((each - mean) ** 2 for each in without))
    found, half = above / below, float(stdtrit(count - 1, 0.975)) * error
    return GradeShift(
        grades=round(found, 4), interval=(round(found - half, 4), round(found + half, 4)), questions=count
    )
