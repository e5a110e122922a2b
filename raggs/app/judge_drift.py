"""`raggs judge drift`: grade some passages of a run again, and test whether the judge's grades changed.

The passages are a random sample of those that the judge graded, one per query as long as there are queries left. The
sample depends only on the run, the number of passages and the seed, so repeated checks grade the same passages. The
choice does not depend on grades. Otherwise, passages with extreme grades would seem to move towards the mean even if
the judge is unchanged.

Earlier answers are in the cache, so each check has its own sample number, which is a hash of the name of the check. A
check that was interrupted continues under the same name with its cached answers. A check under another name makes new
calls. The artifacts of the run do not change: the ledger and the result of a check are in its folder `drift`.

If the run has several grades per passage, they show how often the judge repeats a grade. Otherwise, some passages are
graded twice. The hidden control items (canaries) are the first ones of the run. If the run has none, a few are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from heapq import nsmallest
from itertools import groupby
from pathlib import Path

from raggs.app.addresses import Approve, approve_nothing, permit_parts
from raggs.app.judge_check import without_nan
from raggs.base.artifacts import JudgeRecord, MergeRecord, Passage, Query, QueryRecord
from raggs.base.errors import DataError, GateError, PartialError, UsageError
from raggs.base.files import write_texts
from raggs.base.hashing import derive_seed
from raggs.base.judge_health import CanaryHealth, JudgeHealth, WilsonRate, is_people
from raggs.base.text import plural
from raggs.base.types import BuildProgress
from raggs.golden.runs import check_golden
from raggs.llm import BudgetSettings, LLMSettings
from raggs.llm.prices import require_keys
from raggs.parts.judges import Judge, Judgment, by_people
from raggs.parts.workspace import LLM, Workspace, judge_prompts
from raggs.prompts import load_prompt
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.runs.forecast import lines_of
from raggs.runs.manifests.models import CostEstimate, LockedAnswerer, StageLock, parameters, snapshots, utc_now
from raggs.runs.manifests.open_run import ArtifactByQuery, OpenedRun, open_run
from raggs.runs.manifests.reasons import differences
from raggs.runs.manifests.store import dump_json
from raggs.stages.canaries import CanaryPlan, ask_cases, ask_plan, make_cases, make_plan
from raggs.stages.judge import MAX_LOW_GRADE, JudgeConfig, PoolWalk, groups
from raggs.stages.ordered import run_ordered
from raggs.stages.rank_config import RankConfig
from raggs.stats.judge_drift import CanaryCounts, DriftTolerance, JudgeDrift, RepeatedGrades, measure_drift
from raggs.sweeps.world import llm_of

FOLDER = "drift"  # in the run directory
STAGE = "judge"
PASSAGES, REPEATS, CANARIES = 30, 20, 6  # defaults; with a small model, they cost below one US cent
MAX_USD = 0.1
FEW_CANARIES = 1e-9  # share of canaries for a run without any: the smallest number is made
MAX_NAME_CHARS = 64
NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@dataclass(frozen=True)
class DriftRequest:
    """A check for drift as requested.

    Attributes:
        run: run directory.
        check: name of the check; None for today's date (UTC). Answers are cached under this name.
        passages: number of passages to grade again; in groups, at least that many.
        repeats: number of passages to grade twice, if the run has one grade per passage; in groups, at least that many.
        canaries: maximum number of hidden control items.
        tolerance: limits of the changes.
        max_usd: budget in USD for all invocations of this check.
        confidence: confidence level of the intervals.
        seed: random seed of the sample and of the bootstrap.
    """

    run: Path
    check: str | None = None
    passages: int = PASSAGES
    repeats: int = REPEATS
    canaries: int = CANARIES
    tolerance: DriftTolerance = field(default_factory=DriftTolerance)
    max_usd: float = MAX_USD
    confidence: float = 0.95
    seed: int = 1

    @cached_property
    def name(self) -> str:
        """Name of the check.

        Raises:
            UsageError: the name is empty, too long, or has a character that is unsafe in a file name.
        """
        found = utc_now().date().isoformat() if self.check is None else self.check
        if not found.strip(".") or len(found) > MAX_NAME_CHARS or not set(found) <= NAME_CHARS:
            remedy = f"use up to {MAX_NAME_CHARS} letters, digits, dots, hyphens and underscores"
            raise UsageError(f"--check {found!r} is not a name", remedy=remedy)
        return found

    @property
    def sample(self) -> int:
        """Sample number of the first grade of this check; far above those of runs."""
        return (1 << 32) + derive_seed(0, FOLDER, self.name) % (1 << 48)


# --- the sample -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DriftUnit:
    """Passages that the judge sees in one call.

    Attributes:
        earlier: for each of `docs`, the judge's grades in the run; empty if it gave none.
    """

    qid: str
    docs: tuple[str, ...]
    earlier: tuple[tuple[int, ...], ...]

    @property
    def compared(self) -> int:
        """Number of passages with an earlier grade."""
        return sum(map(bool, self.earlier))


def earlier_grades(record: JudgeRecord) -> tuple[int, ...]:
    """Return the judge's grades by sample; empty for human labels, near-duplicates and missing grades."""
    if record.duplicate_of is not None or by_people(record) or any(map(is_people, record.votes)):
        return ()
    if record.grade is None:
        return ()
    return tuple(grade for grade in record.grades or (record.grade,) if grade is not None)


def draw_units(
    records: Iterable[JudgeRecord], config: JudgeConfig, together: bool, count: int, seed: int
) -> list[DriftUnit]:
    """Draw calls with about `count` passages in all. A query gets a second call only after every query has one.

    Args:
        records: the records of the judge stage, by query and rank.
        config: settings of the stage.
        together: whether the judge sees several passages per call.
    """
    size = config.group if together else 1

    def keyed() -> Iterator[tuple[tuple[int, int], DriftUnit]]:
        for qid, found in groupby(records, key=lambda record: record.qid):
            mine = list(found)
            units = _units_of_groups(qid, mine, config) if together else _units_of_passages(qid, mine)
            own, lot = derive_seed(seed, FOLDER, qid), partial(derive_seed, seed, FOLDER, qid)
            ordered = sorted(units, key=lambda unit: lot(*unit.docs))
            yield from (((turn, own), unit) for turn, unit in enumerate(ordered))

    return [unit for _, unit in nsmallest(-(-count // size), keyed(), key=lambda item: item[0])]


def _units_of_passages(qid: str, records: Iterable[JudgeRecord]) -> Iterator[DriftUnit]:
    for record in records:
        if grades := earlier_grades(record):
            yield DriftUnit(qid, (record.doc_id,), (grades,))


def _units_of_groups(qid: str, records: Sequence[JudgeRecord], config: JudgeConfig) -> Iterator[DriftUnit]:
    """Yield the groups of the first calls of a query, in the order in which the first sample showed them."""
    leaders = [record for record in records if record.duplicate_of is None]
    first = PoolWalk(len(leaders), config.stop_after, config.group, MAX_LOW_GRADE).step()
    for places in groups(qid, 0, first, config.group, 0) if first else ():
        shown = [leaders[place] for place in places]
        unit = DriftUnit(qid, tuple(each.doc_id for each in shown), tuple(map(earlier_grades, shown)))
        if unit.compared:
            yield unit


# --- grading --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FreshGrader:
    """A judge whose sample numbers are moved by `base`, so that no earlier answer counts as its answer."""

    judge: Judge
    base: int

    @property
    def name(self) -> str:
        """Name of the judge."""
        return self.judge.name

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        """Return a new grade; see `Judge.grade`."""
        return await self.judge.grade(query, passage, sample=self.base + sample)

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        """Return new grades; see `Judge.grades`."""
        return await self.judge.grades(query, passages, sample=self.base + sample)

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        """Return whether two near-duplicates need separate grades; see `Judge.apart`."""
        return self.judge.apart(query, one, other)


@dataclass(frozen=True)
class DriftTasks:
    """All calls of a check.

    Attributes:
        lock, config: lock and settings of the judge stage.
        queries: all queries of the run, by id.
        twice: indexes of the units that are graded twice.
        passages: the passages of the units, by query id and passage id.
    """

    run: OpenedRun
    lock: StageLock
    config: JudgeConfig
    queries: Mapping[str, Query]
    units: tuple[DriftUnit, ...]
    twice: frozenset[int]
    passages: Mapping[tuple[str, str], Passage]

    @property
    def canaries_before(self) -> CanaryHealth | None:
        """Results of the run's canaries; None if it had none."""
        return self.lock.health.canaries if isinstance(self.lock.health, JudgeHealth) else None


@dataclass(frozen=True)
class DriftAnswers:
    """The new answers.

    Attributes:
        first, second: by unit, one judgment per passage; `second` has only the units that are graded twice.
        canaries: results of the canaries; None if there were none.
    """

    first: Sequence[Sequence[Judgment]]
    second: Mapping[int, Sequence[Judgment]]
    canaries: CanaryHealth | None


def _ask(
    workspace: Workspace, judge: Judge, tasks: DriftTasks, request: DriftRequest, listen: Listener
) -> DriftAnswers:
    fresh = FreshGrader(judge, request.sample)
    todo = [(number, 0) for number in range(len(tasks.units))] + [(number, 1) for number in sorted(tasks.twice)]

    async def ask(item: tuple[int, int]) -> Sequence[Judgment]:
        unit, sample = tasks.units[item[0]], item[1]
        query, shown = tasks.queries[unit.qid], [tasks.passages[unit.qid, doc_id] for doc_id in unit.docs]
        if judge.grades_together:
            return await fresh.grades(query, shown, sample=sample)
        return [await fresh.grade(query, shown[0], sample=sample)]

    found = []
    for done, judged in enumerate(run_ordered(workspace, todo, ask), start=1):
        found.append(judged)
        listen(BuildProgress("passages graded again", done, len(todo)))
    count = len(tasks.units)
    second = {number: judged for (number, _), judged in zip(todo[count:], found[count:], strict=True)}
    return DriftAnswers(found[:count], second, _ask_canaries(workspace, fresh, tasks, request.canaries))


def _ask_canaries(workspace: Workspace, fresh: FreshGrader, tasks: DriftTasks, most: int) -> CanaryHealth | None:
    """Grade the first `most` canaries of the run, or a few new ones if it had none; None if the judge reads no text."""
    if not most or not fresh.judge.reads:
        return None
    config, run, share = tasks.config, tasks.run, tasks.config.canaries or FEW_CANARIES
    pools = lambda: (  # noqa: E731 - read several times
        (qid, list(found)) for qid, found in groupby(run.typed("merge", MergeRecord), key=lambda each: each.qid)
    )
    if fresh.judge.grades_together:
        plan = make_plan(pools, tasks.queries, share, config.samples, config.group)
        return workspace.loop.run(ask_plan(fresh, CanaryPlan(plan.trials[:most], ())))
    cases = make_cases(pools, tasks.queries, share, config.samples)
    return workspace.loop.run(ask_cases(fresh, cases[:most]))


# --- use cases ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedGrade:
    """A passage with its grades: those of the run (`earlier`), and the new ones (`now`), None for a missing one."""

    qid: str
    doc_id: str
    earlier: tuple[int, ...]
    now: tuple[int | None, ...]


@dataclass(frozen=True)
class DriftCheck:
    """Result of a check.

    Attributes:
        run: run directory.
        check: name of the check.
        judge: name of the judge.
        drift: changes and verdict.
        noise_from: source of the repeated grades: "run", "check", or empty.
        grades: the passages with an earlier grade.
        failed: number of new judgments that failed; abstentions do not count.
        canaries: passed canaries of the run and of the check; None if there are none.
        before, now: number of answers by requested model and by the model that the answers name.
        usd: cost of the check in USD, over all its invocations.
        most_usd: the budget in USD.
    """

    run: str
    check: str
    judge: str
    drift: JudgeDrift
    noise_from: str
    grades: tuple[ComparedGrade, ...]
    failed: int
    canaries: tuple[WilsonRate | None, WilsonRate | None]
    before: Mapping[str, Mapping[str, int]]
    now: Mapping[str, Mapping[str, int]]
    usd: float
    most_usd: float


@contextmanager
def _open_check(
    request: DriftRequest, listen: Listener
) -> Iterator[tuple[Workspace, DriftTasks, Callable[[LLM | None], Judge]]]:
    """Yield the workspace, the tasks, and a function that makes the judge. All input is checked first.

    Raises:
        NotFoundError: there is no run.
        DataError: the run contains no golden set, its judge stage has not finished, its judge calls no model or has
            changed, or it graded no passage.
    """
    run = open_run(request.run)
    check_golden(run)
    lock = run.manifest.stages.get(STAGE)
    if lock is None:
        raise DataError(
            "stage judge is not finished, so there are no grades to compare", where=run.folder, remedy=run.command
        )
    config, llm = parameters(JudgeConfig, STAGE, lock.params), _model_settings(run)
    queries: Mapping[str, Query] = {record.qid: record for record in run.typed("queries", QueryRecord)}
    with Workspace(run.folder.parent, llm, BudgetSettings(max_usd=request.max_usd), hear=listen) as workspace:
        grade, order = judge_prompts(config.prompt, RankConfig().prompt)
        grouped = load_prompt(config.group_prompt, "grades") if config.group > 1 else None

        def make(llm: LLM | None) -> Judge:
            return workspace.judge(config.judge, grade, order, llm, queries.values, grouped)

        judge = make(None)
        if not judge.models:
            raise DataError("the judge calls no model, so it cannot drift", where=run.folder)
        _require_same(judge, lock, run)
        tasks = _tasks(request, run, lock, config, judge, queries)
        judge.check([queries[qid] for qid in dict.fromkeys(unit.qid for unit in tasks.units)])
        yield workspace, tasks, make


def _model_settings(run: OpenedRun) -> LLMSettings:
    """Return the run's settings of model calls; another model snapshot is the subject of the check, and no error."""
    return (llm_of(run.folder) or LLMSettings()).mixing()


def _require_same(judge: Judge, lock: StageLock, run: OpenedRun) -> None:
    """Check that the judge would be called in the same way as in the run. Versions of packages may differ.

    Raises:
        DataError: a prompt, a calibration or another setting has changed.
    """
    stored = lock.components.get("judge")
    known = stored if isinstance(stored, Mapping) else {}
    found = judge.causes("grade")
    names = (each.component for each in differences({name: known.get(name) for name in found}, dict(found)))
    changed = [name for name in names if "packages" not in name.split(".")]
    if changed:
        remedy = f"restore the earlier file or setting, or grade again: {run.command}"
        raise DataError(f"the judge has changed since the run: {', '.join(changed)}", where=run.folder, remedy=remedy)


def _tasks(
    request: DriftRequest,
    run: OpenedRun,
    lock: StageLock,
    config: JudgeConfig,
    judge: Judge,
    queries: Mapping[str, Query],
) -> DriftTasks:
    units = draw_units(run.typed(STAGE, JudgeRecord), config, judge.grades_together, request.passages, request.seed)
    if not units:
        raise DataError("no passage has a grade by the judge", where=run.folder, remedy=run.command)
    pools = ArtifactByQuery(run, "merge")
    passages: dict[tuple[str, str], Passage] = {}
    for unit in units:
        shown = set(unit.docs)
        passages.update(
            ((unit.qid, record.doc_id), record.passage)
            for record in pools.of(unit.qid, MergeRecord)
            if record.doc_id in shown
        )
    missing = [(unit.qid, doc) for unit in units for doc in unit.docs if (unit.qid, doc) not in passages]
    if missing:
        message = f"passage {missing[0][1]} of query {missing[0][0]} has a grade but is not in the pool"
        raise DataError(message, where=run.file("merge"), remedy="run raggs audit on the run")
    left, twice = 0 if config.samples > 1 else request.repeats, set[int]()
    for number, unit in enumerate(units):
        if left > 0:
            twice.add(number)
            left -= unit.compared
    return DriftTasks(run, lock, config, queries, tuple(units), frozenset(twice), passages)


def check_drift(
    request: DriftRequest, listen: Listener = ignore_event, approve: Approve = approve_nothing
) -> DriftCheck:
    """Grade passages of a run again, compare the grades, and write the result to the run directory.

    This also works in notebooks.

    Args:
        request: the check.
        listen: progress callback.
        approve: decides whether an API key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        RaggsError: the run or its judge is unusable, a key is missing, a provider failed, or the budget is used up.
            All paid answers are cached.
    """
    if in_loop():
        return run_in_thread(lambda hear: check_drift(request, hear, approve), listen)
    name = request.name
    with _open_check(request, listen) as (workspace, tasks, make):
        permit_parts(workspace.settings, [tasks.config.judge], approve)
        judge = make(None)
        if not workspace.has_answers:
            require_keys(sorted(judge.models), workspace.settings)
        workspace.ledger.turn_to(tasks.run.folder / FOLDER / f"{name}.ledger.jsonl", f"drift {name}")
        answers = _ask(workspace, judge, tasks, request, listen)
        found = _result(request, workspace, tasks, judge, answers)
    write_texts(tasks.run.folder / FOLDER, {f"{name}.json": drift_json(found) + "\n"})
    return found


def _result(
    request: DriftRequest, workspace: Workspace, tasks: DriftTasks, judge: Judge, answers: DriftAnswers
) -> DriftCheck:
    grades = tuple(_compare_grades(tasks, answers))
    before, now = tasks.canaries_before, answers.canaries
    paired = [each for each in grades if each.now[0] is not None]
    counts = None
    if before is not None and now is not None:
        counts = (
            CanaryCounts(before.passed.count, before.passed.total),
            CanaryCounts(now.passed.count, now.passed.total),
        )
    repeated, source = _repeated_grades(paired)
    drift = measure_drift(
        [each.earlier[0] for each in paired],
        [each.now[0] or 0 for each in paired],
        [each.qid for each in paired],
        repeated,
        counts,
        tolerance=request.tolerance,
        confidence=request.confidence,
        seed=request.seed,
    )
    ledger = workspace.ledger
    judged = [each for unit in (*answers.first, *answers.second.values()) for each in unit]
    return DriftCheck(
        run=str(request.run),
        check=request.name,
        judge=judge.name,
        drift=drift,
        noise_from=source,
        grades=grades,
        failed=sum(each.grade is None and each.silent is None for each in judged),
        canaries=(None if before is None else before.passed, None if now is None else now.passed),
        before=snapshots(tasks.lock.answerers.values()),
        now=snapshots(_answerers(workspace, judged)),
        usd=round((ledger.earlier + ledger.spent).usd, 9),
        most_usd=request.max_usd,
    )


def _compare_grades(tasks: DriftTasks, answers: DriftAnswers) -> Iterator[ComparedGrade]:
    for number, unit in enumerate(tasks.units):
        given = [answers.first[number], *([answers.second[number]] if number in answers.second else [])]
        for place, earlier in enumerate(unit.earlier):
            if earlier:
                now = tuple(judged[place].grade for judged in given)
                yield ComparedGrade(unit.qid, unit.docs[place], earlier, now)


def _repeated_grades(grades: Sequence[ComparedGrade]) -> tuple[RepeatedGrades | None, str]:
    """Return the repeated grades, and where they come from: the run if it has any, otherwise the check."""
    of_run = [(*each.earlier[:2], each.now[0] or 0, each.qid) for each in grades if len(each.earlier) > 1]
    if of_run:
        return RepeatedGrades(*zip(*of_run, strict=True)), "run"
    of_check = [
        (each.now[0], each.now[1], each.earlier[0], each.qid)
        for each in grades
        if len(each.now) > 1 and each.now[1] is not None
    ]
    return (RepeatedGrades(*zip(*of_check, strict=True)), "check") if of_check else (None, "")


def _answerers(workspace: Workspace, judged: Iterable[Judgment]) -> Iterator[LockedAnswerer]:
    """Yield the models that answered, each with the number of its judgments."""
    counts: dict[str, int] = {}
    for each in judged:
        for key in dict.fromkeys(each.all_answerers):
            counts[key] = counts.get(key, 0) + 1
    for key in sorted(counts):
        yield LockedAnswerer(**workspace.ledger.answerers.named(key).model_dump(), answers=counts[key])


@dataclass(frozen=True)
class DriftForecast:
    """Expected work and cost of a check."""

    what: tuple[str, ...]
    estimates: tuple[CostEstimate, ...]
    about: str = "upper bound: control items may share calls"
    llm: LLMSettings = field(default_factory=LLMSettings)


def forecast_drift(request: DriftRequest) -> DriftForecast:
    """Return the work and the expected cost of `check_drift`. No model is called and nothing is written.

    Raises:
        RaggsError: see `check_drift`; only errors that are known before any call.
    """
    if in_loop():
        return run_in_thread(lambda _: forecast_drift(request), ignore_event)
    with _open_check(request, ignore_event) as (workspace, tasks, make), workspace.rehearsal() as llm:
        llm.turn_to(f"drift {request.name}")
        _ask(workspace, make(llm), tasks, request, ignore_event)
        compared = sum(unit.compared for unit in tasks.units)
        twice = sum(tasks.units[number].compared for number in tasks.twice)
        again = f"; {plural(twice, 'passage')} twice" if twice else ""
        queries = plural(len({unit.qid for unit in tasks.units}), "query")
        what = (
            f"{plural(compared, 'passage')} of {queries}{again}",
            f"up to {plural(request.canaries, 'hidden control item')} (canaries)",
        )
        return DriftForecast(what, tuple(lines_of(llm)), llm=workspace.settings)


def drift_json(found: DriftCheck) -> str:
    """Return the result as JSON. Undefined numbers are null."""
    drift = found.drift
    told = {**asdict(found), "canaries": [None if each is None else each.model_dump() for each in found.canaries]}
    return dump_json(without_nan({**told, "verdict": drift.verdict, "verdicts": drift.parts}))


CHANGES = {
    "shift": "the mean shift of grades",
    "agreement": "the loss of equal grades beyond the judge's own noise",
    "canaries": "the loss of passed canaries",
}


def require_no_drift(found: DriftCheck) -> None:
    """Check that all judgments were made and no change is beyond its tolerance. An inconclusive result passes.

    Raises:
        GateError: a change is beyond its tolerance.
        PartialError: some judgments failed.
    """
    failed = [f"{CHANGES[name]} is beyond its tolerance" for name, each in found.drift.parts.items() if each == "drift"]
    if failed:
        remedy = "validate the judge by human labels (raggs judge check), or set the model to the earlier snapshot"
        raise GateError(failed, found.run, remedy)
    if found.failed:
        message = f"{plural(found.failed, 'judgment')} of the check failed"
        raise PartialError(message, where=found.run, remedy="run the same command again to retry them")
