"""Stage 4: a grade from 1 to 5 for every passage of the pool, or for its head where `stop_after` ends the walk.

Only representatives are judged; their near-duplicates take the grade over, unless the judge tells them apart (by their
places): such a one is judged for itself, and is nobody's duplicate from here on. A judge that fails leaves a record
without a grade and with the reason: a failure never becomes a number. A passage beyond the end of the walk leaves a
record that says so: it is not judged, which is neither a failure nor a low grade. So does one on which the judge
abstains.

Where the money has ended, a query of which a grade is missing is left out as a whole: what nobody graded would count as
if it were irrelevant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.artifacts import JudgeRecord, MergeRecord, Record
from raggs.base.errors import BudgetError
from raggs.base.health import PEOPLE, Canaries, is_people, source_of
from raggs.base.settings import AnchoredPath, Causes, Effort, Later, PromptName, Settings
from raggs.llm import BatchSettings
from raggs.parts import judges
from raggs.parts.judges.base import Judgment
from raggs.parts.judges.consensus import lower_median
from raggs.stages.base import GradeServices, Services, Stage, Work
from raggs.stages.canaries import ask_cases, make_cases
from raggs.stages.frugal import Walks
from raggs.stages.grouping import Walk, grade_together
from raggs.stages.judgehealth import BEYOND, JudgeStatistics, cascade_statistics
from raggs.stages.ordered import run_ordered

ALONE, TOGETHER = "grade@1", "grades@1"
LOW = 2  # grades up to here say that the pool runs dry

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
    """Who grades, by which prompt, how often, how deep; docs/judging.md says what each costs."""

    human_first: Later[bool] = Field(
        False,
        description="whether human labels (`raggs review`) come first and the judge grades the rest; it also grades the"
        " labelled passages, for `raggs judge check`. The same as `raggs run --human-first`",
    )
    judge: JudgeSpec = Field(description="also orders the batches of the rank stage")
    prompt: PromptName = Field(ALONE, description="a prompt's name, or the path of a Markdown file")
    mode: Effort[Literal["direct", "batch"]] = Field(
        "direct",
        description="batch: grades by the provider's Batch API, in hours, at about half the price; with stop_after one "
        "batch after the other",
    )
    batch: Effort[BatchSettings] = BatchSettings()
    samples: int = Field(1, ge=1, description="grades asked for each passage; the lower median counts")
    group: Later[int] = Field(
        1,
        ge=1,
        description="passages of a question that are graded in one call, at most; their company is drawn by lot, anew"
        " for each sample. Cheaper where passages are short, less exact where they colour each other's grades; 1: each"
        " alone",
    )
    group_prompt: PromptName = Field(
        TOGETHER, description="with group, a prompt's name or the path of a Markdown file; prompt is of one passage"
    )
    stop_after: int | None = Field(
        None,
        ge=1,
        description=f"a pool is judged from the top until this many grades in a row are {LOW} or less;"
        " null: to its end",
    )
    canaries: Later[float] = Field(
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
        from raggs.parts.judges.panel import people_first  # late: most runs have no panel

        return people_first(spec)

    @model_validator(mode="after")
    def _ones_own_words(self) -> Self:
        if self.group > 1 and self.prompt != ALONE and self.group_prompt == TOGETHER:
            raise ValueError(
                f"prompt is your own, and with group: {self.group} passages are graded by group_prompt, which is not:"
                f" give that one too (raggs prompts show {TOGETHER} prints one to begin with)"
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

    def run(self, work: Work, config: JudgeConfig, services: Services) -> Iterator[JudgeRecord]:
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
        every = run_ordered(services, pools, grade, size=walks.at_once, window=window, holds=holds)
        for done, records in enumerate(every, start=1):
            yield from records
            work.progress(done, total)

    def walks(self, config: JudgeConfig, services: Services) -> Walks:
        judge = services.judge
        calls = judge.calls("grades" if config.group > 1 else "grade").items()
        members = sum(each.most * (config.group if model in judge.alone else 1) for model, each in calls)
        return Walks(config.stop_after, config.group, config.samples, members, services.affords)

    def failed(self, record: Record) -> bool:
        return isinstance(record, JudgeRecord) and record.failed

    def statistics(self, config: JudgeConfig) -> JudgeStatistics:
        company = None
        if config.group > 1 and judges.REGISTRY.of(config.judge).groups(config.judge):
            from raggs.stages.companymoves import CompanyMoves  # late: most grade one by one

            company = CompanyMoves(config.samples, config.stop_after, config.group, LOW)
        return JudgeStatistics(config.samples, config.stop_after, cascade_statistics(config.judge), company)

    def probe(self, work: Work, config: JudgeConfig, services: Services) -> Canaries | None:
        if not config.canaries:
            return None
        judge, pools = services.judge, lambda: work.by_query("merge", MergeRecord)
        if config.group > 1 and judge.grades_together:
            from raggs.stages.companies import ask_plan, make_plan  # late: most grade one by one

            plan = make_plan(pools, services.queries, config.canaries, config.samples, config.group)
            return services.loop.run(ask_plan(judge, plan))
        cases = make_cases(pools, services.queries, config.canaries, config.samples)
        return services.loop.run(ask_cases(judge, cases if judge.reads else ()))

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
        """Grade from the top down until `stop_after` low grades stand in a row; see `Walk`."""
        walk, graded = Walk(len(leaders), config.stop_after, config.group, LOW), list[JudgeRecord]()
        while count := walk.step():
            step = await self._step(leaders[walk.done : walk.done + count], walk.done, config, services)
            walk.take(record.grade for record in step)
            graded += step
        why = f"{BEYOND} {walk.limit} grades of {LOW} or less in a row"
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
    said = _once([sample for sample in samples if sample.silent is None])
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


def _once(said: Sequence[Judgment]) -> list[Judgment]:
    """The samples without people's word again."""
    by_people = [source_of(sample.by) == PEOPLE for sample in said]
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
