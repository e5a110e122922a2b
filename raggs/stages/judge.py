"""Stage 4: grade each passage of the pool from 1 to 5, or only its top part if `stop_after` ends the grading early.

Usually, only the representatives of near-duplicate groups are judged, and their near-duplicates get the same grade. If
the grades of a judge depend on more than the text (`Judge.apart`), a near-duplicate is judged separately and no longer
counts as a duplicate. A failed sample has no grade. If more than half of the samples of a passage failed, its record
has no grade and contains the error. A passage after an early stop gets a record with this reason. It is not judged,
which is neither a failure nor a low grade. A passage on which the judge abstains also gets a record with the reason and
no grade.

If the budget is used up, queries with missing grades are omitted entirely. Ungraded passages would otherwise count as
irrelevant.

With `judge.samples_if_below`, the first sample of a passage decides whether it gets further ones. They are requested if
the probability that the judge states for this grade is below the value, or if the judge states none. The record
contains the probabilities of each sample, so that the audit can make the same decision.

With `judge.group`, the judge grades several passages of a query in one call. The passages that are requested at once
are shuffled separately for each sample and split into groups. The group of a passage is therefore independent of its
rank among these passages. From sample to sample, the group and the position of a passage change at random. The random
numbers depend only on the query, the sample, and the first of these passages. A resumed run therefore makes the same
calls.

The group context effect and the position effect are estimated from the grades without further calls.

The context effect is estimated from several samples of a passage, which are usually graded in different groups. Two
values of each passage and sample are used: its grade, and the mean grade of the rest of its group. From each value, its
mean over the samples of the passage is subtracted. The effect is the slope of the first difference on the second. If
the judge grades each passage independently, the expected slope is 0. Positions are random, so the first and the last
passage of a call are equally good on average. Groups and positions are recomputed from the records. Intervals use the
jackknife over queries, because groups never span queries.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import not_
from statistics import fmean
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.artifacts import JudgeRecord, MergeRecord, Query, Record, Validity
from raggs.base.errors import BudgetError
from raggs.base.hashing import generator
from raggs.base.judge_health import HUMAN_SOURCE, CanaryHealth, GradeShift, is_people, source_of
from raggs.base.settings import AddedInputPath, AddedLater, AnchoredPath, Causes, Effort, PromptName, Settings
from raggs.llm import BatchSettings
from raggs.parts import judges
from raggs.parts.judges import Judgment, lower_median, mean_of_distributions
from raggs.stages.base import GradeServices, Services, Stage, StageWork, Walks
from raggs.stages.canaries import ask_cases, make_cases
from raggs.stages.earlier_version import CarriedLabels
from raggs.stages.judge_health import NOT_JUDGED_PREFIX, JudgeStatistics, cascade_statistics
from raggs.stages.ordered import run_ordered
from raggs.stats.grade_distribution import Distribution, median_grade

SEED = 0


def groups(qid: str, first: int, count: int, size: int, sample: int) -> list[list[int]]:
    """Split positions 0 to `count` - 1 into as few groups of at most `size` as possible; sizes differ by at most one.

    Args:
        first: rank of position 0 among the passages to judge.
    """
    order: list[int] = generator(SEED, "group", qid, first, sample).permutation(count).tolist()
    number = -(-count // size)
    bounds = [count * place // number for place in range(number + 1)]
    return [order[start:end] for start, end in pairwise(bounds)]


def round_up_to_groups(wanted: int, size: int) -> int:
    """Return the smallest multiple of the group size that is at least `wanted`."""
    return -(-wanted // size) * size


class PoolWalk:
    """State of grading one pool from the top down until `stop_after` low grades occur in a row.

    If `k` more low grades are needed to stop, the next `k` passages must be graded in any case, so they are requested
    together. Results do not depend on response times. A failure neither extends nor breaks the row of low grades. With
    one passage per call, no judgment is superfluous. With several, a step contains whole groups, so the row of low
    grades may become longer than `stop_after`.

    Args:
        total: passages in the pool.
        stop_after: number of low grades in a row that ends the grading, or None for no early stop.
        size: maximum number of passages that are graded together.
        low: highest grade that counts as low.

    Attributes:
        done: number of passages graded so far.
        limit: number of low grades in a row that ends the grading.
    """

    def __init__(self, total: int, stop_after: int | None, size: int, low: int) -> None:
        self.done, self.limit = 0, stop_after or total
        self._total, self._size, self._low = total, size, low
        self._row = 0

    def step(self) -> int:
        """Return how many passages to request next; 0 if the grading has ended."""
        if self._row >= self.limit:
            return 0
        return min(round_up_to_groups(self.limit - self._row, self._size), self._total - self.done)

    def take(self, grades: Iterable[int | None]) -> None:
        """Record the grades of a step; None stands for a failure."""
        for grade in grades:
            self.done += 1
            if grade is not None:
                self._row = self._row + 1 if grade <= self._low else 0


async def grade_together(
    records: Sequence[MergeRecord], first: int, size: int, samples: int, services: GradeServices
) -> list[list[Judgment]]:
    """Request all samples of all grades at once. Return the samples of each passage, in the order of the passages.

    Args:
        first: rank of the first record among the passages to judge.
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


NOTHING_CARRIED: Mapping[str, JudgeRecord] = MappingProxyType({})
SINGLE_PROMPT, GROUP_PROMPT = "grade@1", "grades@1"
TEXT = "answers: text"
MAX_LOW_GRADE = 2  # grades up to this one count as low for `stop_after`

JudgeSpec = Annotated[AdapterConfig, OneOf(judges.REGISTRY)]


class JudgeGate(Settings):
    """Requirements for the judge of a run. If one of them is not met, the run ends with exit code 7. null: no
    requirement.
    """

    canaries: float | None = Field(
        None, ge=0, le=1, description="minimum share of hidden control items (canaries) that pass"
    )
    flips: float | None = Field(
        None,
        ge=0,
        le=1,
        description="maximum share of close passage pairs whose order changes when they are shown again; random: 0.5",
    )
    position_bias: float | None = Field(None, ge=0, description="maximum position bias, in grades")
    kappa: float | None = Field(
        None,
        gt=0,
        le=1,
        description="minimum chance-corrected agreement (kappa) with human labels; needs 20 blind grades on 5 queries",
    )
    reviews: AnchoredPath | None = Field(
        None, description="folder with human labels (reviews.jsonl) for kappa; null: `reviews`, next to the workspace"
    )


class JudgeConfig(Settings):
    """Settings of the judge stage. See docs/concepts/grading.md for the cost of each."""

    human_first: AddedLater[bool] = Field(
        False,
        description="use human labels (`raggs review`) first and grade the rest with the judge. The judge also "
        "grades labelled passages, for `raggs judge check`; same as `raggs run --human-first`",
    )
    judge: JudgeSpec = Field(description="judge that grades passages; it also orders the batches of the rank stage")
    prompt: PromptName = Field(
        SINGLE_PROMPT, description="prompt for grading one passage: name of a prompt or path of a Markdown file"
    )
    mode: Effort[Literal["direct", "batch"]] = Field(
        "direct",
        description="direct: grade by individual calls; batch: grade by the provider's Batch API, which takes "
        "hours and costs about half. With stop_after, batches are sent one after the other",
    )
    batch: Effort[BatchSettings] = BatchSettings()
    samples: int = Field(
        1,
        ge=1,
        description="number of grades per passage. Their lower median counts. If a single judge states probabilities, "
        "the lower median of the mean distribution counts",
    )
    samples_if_below: AddedLater[float | None] = Field(
        None,
        gt=0,
        le=1,
        description="request further samples of a passage only if the probability of its first grade is below this "
        "value, for example 0.9. Passages without probabilities get all samples. null: all passages do",
    )
    group: AddedLater[int] = Field(
        1,
        ge=1,
        description="maximum number of passages of a query that are graded in one call, grouped at random for "
        "each sample. Larger groups cost less for short passages, but grades may influence each "
        "other; 1: one passage per call",
    )
    group_prompt: PromptName = Field(
        GROUP_PROMPT,
        description="prompt for grading several passages in one call, used if group is above 1: name of a prompt "
        "or path of a Markdown file",
    )
    stop_after: int | None = Field(
        None,
        ge=1,
        description=f"stop grading a pool after this many grades of {MAX_LOW_GRADE} or less in a row, counted from "
        "the top; null: grade the whole pool",
    )
    canaries: AddedLater[float] = Field(
        0.0,
        ge=0,
        le=1,
        description="number of hidden control items (canaries) as a share of the judgments (with group: of the calls), "
        "but at least six if the pools permit. Their grades are used only for the judge's health statistics and "
        "gate.canaries. With group, context effects are measured too; 0: none",
    )
    gate: Effort[JudgeGate] = JudgeGate()
    carry: AddedInputPath = Field(
        None,
        exclude_if=not_,
        description="file with labels of an earlier version of the set; written and set by raggs update only",
    )

    @field_validator("judge")
    @classmethod
    def _people_first(cls, spec: AdapterConfig, info: ValidationInfo) -> AdapterConfig:
        if not info.data.get("human_first"):
            return spec
        from raggs.parts.judges.composite import people_first  # imported lazily: most runs have no panel

        return people_first(spec)

    @model_validator(mode="after")
    def _ones_own_words(self) -> Self:
        if self.group > 1 and self.prompt != SINGLE_PROMPT and self.group_prompt == GROUP_PROMPT:
            raise ValueError(
                f"prompt is customised, but with group: {self.group} passages are graded by "
                "group_prompt, which is not. Set group_prompt too (print a template with: raggs "
                f"prompts show {GROUP_PROMPT})"
            )
        return self

    @model_validator(mode="after")
    def _samples_can_be_saved(self) -> Self:
        if self.samples_if_below is None:
            return self
        if self.samples == 1:
            raise ValueError("samples_if_below saves samples, but there is only one: set samples, for example to 2")
        if self.group > 1:
            raise ValueError("samples_if_below needs probabilities, and groups have none: remove group")
        return self

    def samples_after(self, first: Judgment) -> range:
        """Return the numbers of the samples to request after the first one (see `samples_if_below`)."""
        if self.samples_if_below is None or first.grade is None or first.distribution is None:
            return range(1, self.samples)
        sure = first.distribution[first.grade - 1] >= self.samples_if_below
        return range(0) if sure else range(1, self.samples)

    @model_validator(mode="after")
    def _prompt_is_used(self) -> Self:
        answers = getattr(self.judge, "answers", "text")
        if answers in ("logprobs", "decision") and self.prompt != SINGLE_PROMPT:
            remedy = "set judge.judge.digit_prompt instead" if answers == "logprobs" else f"remove it, or set {TEXT}"
            raise ValueError(f"prompt is not used with answers: {answers}; {remedy}")
        return self

    @model_validator(mode="after")
    def _what_the_gate_needs(self) -> Self:
        if self.gate.canaries is not None and not self.canaries:
            raise ValueError("gate.canaries needs canaries, but there are none: set canaries, for example to 0.02")
        if self.gate.reviews is not None and self.gate.kappa is None:
            raise ValueError("gate.reviews is used only with gate.kappa: set gate.kappa, for example to 0.6")
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
        return config.mode == "direct"  # batches take hours, so raggs sends few of them, each with all queries

    def run(self, work: StageWork, config: JudgeConfig, services: Services) -> Iterator[JudgeRecord]:
        total, labels = len(services.queries), self.labels(config)

        async def grade(item: tuple[str, list[MergeRecord]]) -> list[JudgeRecord]:
            try:
                return await self.pool(item[1], config, services, labels(services.queries[item[0]], item[1]))
            except BudgetError:
                if not work.spent:
                    raise
                return []

        # All requests that fit into one batch are made at the same time, so that all queries advance together.
        batched = config.mode == "batch"
        window, walks = config.batch.max_requests if batched else None, self.walks(config, services)
        pools = (item for item in work.by_query("merge", MergeRecord) if item[0] not in work.done)
        holds = (lambda _: False) if batched else walks.tight
        every = run_ordered(services.workspace, pools, grade, size=walks.at_once, window=window, holds=holds)
        for done, records in enumerate(every, start=1):
            yield from records
            work.progress(done, total)

    @staticmethod
    def labels(config: JudgeConfig) -> Callable[[Query, Sequence[MergeRecord]], Mapping[str, JudgeRecord]]:
        """Return a function from a query and its pool to the labels that were carried over, by passage id."""
        return (lambda _query, _pool: {}) if config.carry is None else CarriedLabels(config.carry).for_pool

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
        cascade, chosen = cascade_statistics(config.judge), config.samples_if_below is not None
        return JudgeStatistics(config.samples, config.stop_after, cascade, company, chosen=chosen)

    def probe(self, work: StageWork, config: JudgeConfig, services: Services) -> CanaryHealth | None:
        if not config.canaries:
            return None
        judge, pools = services.judge, lambda: work.by_query("merge", MergeRecord)
        if config.group > 1 and judge.grades_together:
            # imported lazily: most judges grade one passage at a time
            from raggs.stages.canaries import ask_plan, make_plan

            plan = make_plan(pools, services.queries, config.canaries, config.samples, config.group)
            return services.workspace.loop.run(ask_plan(judge, plan))
        cases = make_cases(pools, services.queries, config.canaries, config.samples)
        return services.workspace.loop.run(ask_cases(judge, cases if judge.reads else ()))

    def label(self, services: Services) -> Callable[[str, str], int | None]:
        return services.judge.without_noise

    async def pool(
        self,
        pool: Sequence[MergeRecord],
        config: JudgeConfig,
        services: GradeServices,
        carried: Mapping[str, JudgeRecord] = NOTHING_CARRIED,
    ) -> list[JudgeRecord]:
        """Return the records of one query's pool, in its order.

        Args:
            carried: labels of an earlier version, by passage id. These passages are not judged.
        """
        leaders = list(self._alone(pool, services))
        graded = {record.doc_id: record for record in await self._walk(leaders, config, services, carried)}
        return [with_validity(self._shared(record, graded), record.metadata) for record in pool]

    @staticmethod
    def _alone(pool: Sequence[MergeRecord], services: GradeServices) -> Iterator[MergeRecord]:
        """Yield the records that get their own grade."""
        found = {record.doc_id: record for record in pool}
        for record in pool:
            leader = record.duplicate_of and found[record.duplicate_of].passage
            if not leader or services.judge.apart(services.queries[record.qid], leader, record.passage):
                yield record

    async def _walk(
        self,
        leaders: Sequence[MergeRecord],
        config: JudgeConfig,
        services: GradeServices,
        carried: Mapping[str, JudgeRecord],
    ) -> list[JudgeRecord]:
        """Grade from the top down until `stop_after` low grades occur in a row; see `PoolWalk`."""
        walk, graded = PoolWalk(len(leaders), config.stop_after, config.group, MAX_LOW_GRADE), list[JudgeRecord]()
        while count := walk.step():
            these = leaders[walk.done : walk.done + count]
            fresh = [record for record in these if record.doc_id not in carried]
            judged = iter(await self._step(fresh, walk.done, config, services) if fresh else ())
            step = [
                carried[each.doc_id].model_copy(update={"rank": each.rank}) if each.doc_id in carried else next(judged)
                for each in these
            ]
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
        """Return the records of passages that are requested at once. `first` is the rank of the first of them."""
        if config.group == 1:
            return await asyncio.gather(*(self._grade(record, config, services) for record in records))
        found = await grade_together(records, first, config.group, config.samples, services)
        return [combine(record, said, services.judge.name) for record, said in zip(records, found, strict=True)]

    async def _grade(self, record: MergeRecord, config: JudgeConfig, services: GradeServices) -> JudgeRecord:
        query, chosen = services.queries[record.qid], config.samples_if_below is not None

        async def ask(numbers: Iterable[int]) -> list[Judgment]:
            asked = (services.judge.grade(query, record.passage, sample=number) for number in numbers)
            return await asyncio.gather(*asked)

        samples = await ask(range(1 if chosen else config.samples))
        if chosen:
            samples += await ask(config.samples_after(samples[0]))
        return combine(record, samples, services.judge.name, chosen=chosen)

    @staticmethod
    def _shared(record: MergeRecord, graded: dict[str, JudgeRecord]) -> JudgeRecord:
        if record.duplicate_of is None or record.doc_id in graded:
            return graded[record.doc_id]
        update = {"rank": record.rank, "doc_id": record.doc_id, "duplicate_of": record.duplicate_of}
        return graded[record.duplicate_of].model_copy(update=update)


def combine(record: MergeRecord, samples: Sequence[Judgment], judge: str, *, chosen: bool = False) -> JudgeRecord:
    """Combine all samples into one record: the lower median of their grades, or no grade if more than half failed.

    The distribution is the mean over the samples with a grade. If a single judge states distributions, the grade is the
    lower median of this mean. The grade of a panel or cascade always comes from the votes of its members.

    Samples in which the judge abstained are ignored. If it abstained in all samples, the passage is not judged. Human
    labels are the same in every sample, so they count once.

    Args:
        chosen: whether the first sample decides about further ones, so that the audit needs the distribution of each.
    """
    said = _without_repeated_labels([sample for sample in samples if sample.silent is None])
    if not said:
        return JudgeRecord(
            qid=record.qid, rank=record.rank, doc_id=record.doc_id, grade=None, judge="", skipped=samples[0].silent
        )
    grades = tuple(sample.grade for sample in said)
    grade, given = lower_median(grades), [sample for sample in said if sample.grade is not None]
    shares, source = (None, None) if grade is None else mean_of_distributions(given)
    if shares is not None and not any(sample.votes for sample in said):
        grade = median_grade(shares)
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
        distribution=shares,
        distribution_source=source,
        sample_distributions=_distributions_by_sample(said) if chosen else (),
    )


def with_validity(graded: JudgeRecord, metadata: Mapping[str, object]) -> JudgeRecord:
    """Return the record with the validity that the metadata of its passage states.

    Only dates of the form YYYY-MM-DD and a list of document ids count. Other values of `valid_from`, `valid_until` and
    `depends_on` remain plain metadata, because authors may use these keys in another meaning.
    """
    stated = {name: metadata[name] for name in Validity.model_fields if metadata.get(name)}
    if not stated:
        return graded
    try:
        return graded.model_copy(update=dict(Validity.model_validate(stated)))
    except ValidationError:
        return graded


def _distributions_by_sample(said: Sequence[Judgment]) -> tuple[Distribution | None, ...]:
    """Return the distribution of each of several samples; empty for one sample, or if no sample has one."""
    found = tuple(sample.distribution for sample in said)
    return found if len(found) > 1 and any(found) else ()


def _without_repeated_labels(said: Sequence[Judgment]) -> list[Judgment]:
    """Return the samples without repetitions of human labels."""
    by_people = [source_of(sample.by) == HUMAN_SOURCE for sample in said]
    return [sample for place, sample in enumerate(said) if not (by_people[place] and any(by_people[:place]))]


def _votes(said: Sequence[Judgment], every: Sequence[Judgment]) -> dict[str, tuple[int | None, ...]]:
    """Return the grades of each member. If humans and a model voted, use every sample, because the model's votes
    may differ between samples.
    """
    others = any(not is_people(name) for sample in said for name in sample.votes)
    counted = every if others else said
    return {name: tuple(_vote(sample, name) for sample in counted) for sample in counted for name in sample.votes}


def _vote(sample: Judgment, member: str) -> int | None:
    vote = sample.votes.get(member)
    return None if vote is None else vote.grade


STAGE = JudgeStage()


# For the context effect, per passage and sample: mean grade of the rest of the group, own grade.
ProductSums = tuple[float, float]


class GroupContextMoves:
    """Estimates of context and position effects, updated while the records of one run of the stage pass.

    Args:
        samples: grades per passage.
        stop_after: number of low grades in a row that ends the grading of a pool, or None for no early stop.
        size: maximum number of passages that are graded together.
        low: highest grade that counts as low for `stop_after`.
    """

    def __init__(self, samples: int, stop_after: int | None, size: int, low: int) -> None:
        self._samples, self._stop_after, self._size, self._low = samples, stop_after, size, low
        self._qid = ""
        self._asked: list[tuple[int | None, tuple[int | None, ...]]] = []  # of the current query, by rank
        self._carried: set[int] = set()  # their places that were not judged, because a label was carried over
        self._sums: list[ProductSums] = []  # per query: products of both deviations, squares of the group's deviation
        self._ends: list[ProductSums] = []  # per query: first minus last grades of its calls, number of calls

    def see(self, record: JudgeRecord) -> None:
        """Record a passage that was sent to the judge or has a carried label. Near-duplicates and passages after an
        early stop are not passed here.
        """
        if record.qid != self._qid:
            self._end()
            self._qid = record.qid
        whole = record.grades if len(record.grades) == self._samples else (None,) * self._samples
        if record.carried is not None:
            self._carried.add(len(self._asked))
        self._asked.append((record.grade, whole))

    def company(self) -> GradeShift | None:
        """Return the change of a grade per grade of its group's mean, or None if there is no data."""
        self._end()
        return _ratio(self._sums)

    def place(self) -> GradeShift | None:
        """Return the change of a grade if the passage is shown first instead of last, or None if there is no data."""
        self._end()
        return _ratio(self._ends)

    def _end(self) -> None:
        """Add the current query to the sums."""
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
        self._asked, self._carried = [], set()

    def _calls(self) -> Iterator[list[tuple[int, int | None]]]:
        """Yield for each call the passages in the order shown, with their grades."""
        for first, count in self._steps():
            places = [place for place in range(first, first + count) if place not in self._carried]
            for sample in range(self._samples) if places else ():
                for group in groups(self._qid, first, len(places), self._size, sample):
                    yield [(places[place], self._asked[places[place]][1][sample]) for place in group]

    def _steps(self) -> Iterator[tuple[int, int]]:
        """Yield the first passage and the length of each step of the grading."""
        walk = PoolWalk(len(self._asked), self._stop_after, self._size, self._low)
        while count := walk.step():
            first = walk.done
            yield first, count
            walk.take(grade for grade, _ in self._asked[first : first + count])


def _ratio(sums: Sequence[ProductSums]) -> GradeShift | None:
    """Return the ratio of the two sums with its 95% interval, or None without data."""
    if not sums:
        return None
    count = len(sums)
    above, below = (math.fsum(part) for part in zip(*sums, strict=True))
    if count < 2:
        return GradeShift(grades=round(above / below, 4), interval=None, questions=count)
    from raggs.stats.distributions import student_quantile  # imported lazily: it imports numpy

    without = [(above - one) / (below - other) for one, other in sums]
    mean = fmean(without)
    error = math.sqrt((count - 1) / count * sum((each - mean) ** 2 for each in without))
    found, half = above / below, student_quantile(count - 1, 0.975) * error
    return GradeShift(
        grades=round(found, 4), interval=(round(found - half, 4), round(found + half, 4)), questions=count
    )
