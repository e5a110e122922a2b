"""What comes after a stage that was stopped, over the queries that it has done.

A part of a result is never a result: it lies beside the artifacts under names that no lock knows, and goes when the
stage before it goes on. Answers and journal stay, so that the whole run pays nothing twice and ends with the bytes of
an undisturbed one. A part of anything but what the configuration asks for now is not gone on with, nor is one beside
results of an earlier, whole run.

A run whose budget ends: what is paid for becomes the best set that it can buy, and then the run stops.

A provider that is gone is back in an hour, and who pressed Ctrl-C wants an end at once: such runs stop where they are.
Money that has ended stays ended until somebody raises a cap, so what it bought is finished: queries that are graded in
full go on to the end, others are left out as a whole, and each ranking ends with the answers that there are. All of
that are parts, never results, and nobody is asked: they hang on what is paid for
alone. So under the same caps the next run asks nobody, and ends with the same bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from raggs.base.artifacts import Record
from raggs.base.errors import DataError
from raggs.base.text import plural
from raggs.base.types import Notice
from raggs.llm import BudgetSettings, BudgetSpent
from raggs.llm.budget import BudgetCap
from raggs.runs.events import StageStarted
from raggs.runs.manifests.models import RunManifest, StageLock
from raggs.runs.manifests.open_run import OpenedRun, UnfinishedStage
from raggs.runs.manifests.reasons import BudgetEnded, FailuresLeft, PartlyDone, Reason
from raggs.runs.manifests.store import RunJournal
from raggs.runs.plan import Selection, fingerprint
from raggs.runs.runner import PipelineResult, RecordWatch, Runner
from raggs.stages.base import AnyStage, StageWork

WHOLE_RUN_REMEDY = "run without --partial"


@dataclass(frozen=True)
class ResumedRun:
    """What was gone on with: the run, the stage that was stopped, and the stages after it that are done in part."""

    run: OpenedRun
    stopped: UnfinishedStage
    stages: tuple[str, ...]


@dataclass(frozen=True)
class CompletedQueries:
    """What is done of a stage already: whole queries, whose records stay as they are.

    Attributes:
        qids: of these queries.
        records: a stream of their records for each artifact, sorted by query.
    """

    qids: frozenset[str] = frozenset()
    records: tuple[Iterator[Record], ...] = ()

    def beside(self, others: Iterator[Record]) -> Iterator[Record]:
        """Their records and those of other queries, by query."""
        return heapq.merge(others, *self.records, key=lambda record: record.qid)


def run_part(runner: Runner, selection: Selection) -> ResumedRun:
    """Do the selected stages that come after the one that was stopped, for the queries that it has done.

    Raises:
        DataError: there is no such part, or it was made of something else than what would be asked for now.
        PartialError, PrerequisiteError, ProviderError: as `Runner.run`.
    """
    with runner.at_work():
        run = OpenedRun(runner.store, runner.store.manifest())
        stopped = _stopped(runner, run)
        stages = _after(runner, run, stopped.stage, selection.stages[-1])
        runner.services.check(stages)
        runner.store.save(_of_today(runner, run.manifest))  # a part is read by the settings of the manifest
        for name in stages:
            runner.store.forget_partial(name)
            work_on(runner, run, runner.pipeline.stage(name), PartlyDone(stopped.stage))
    return ResumedRun(run, stopped, stages)


def _stopped(runner: Runner, run: OpenedRun) -> UnfinishedStage:
    """The stage that was stopped, if all that it was made of is as it was.

    Raises:
        DataError: there is none, or it is not.
    """
    if (stopped := run.unfinished) is None:
        raise DataError("no stage was stopped with queries done", where=run.folder, remedy=WHOLE_RUN_REMEDY)
    for name in runner.pipeline.order[: runner.pipeline.order.index(stopped.stage)]:
        found = runner.standing.reasons(runner.pipeline.stage(name), run.manifest.stages.get(name))
        if stale := [reason for reason in found if not isinstance(reason, FailuresLeft)]:
            raise DataError(f"stage {name} is out of date: {stale[0]}", where=run.folder, remedy=WHOLE_RUN_REMEDY)
    stage = runner.pipeline.stage(stopped.stage)
    if runner.store.begun(stopped.stage) != fingerprint(runner.components(stage)):
        told = f"what stage {stopped.stage} has done was made with other settings or inputs than those of now"
        raise DataError(told, where=run.folder, remedy=f"{WHOLE_RUN_REMEDY}, or with the settings of before")
    return stopped


def _after(runner: Runner, run: OpenedRun, stopped: str, last: str) -> tuple[str, ...]:
    """The stages that come after the one that was stopped.

    Raises:
        DataError: none does, or one has a whole result already.
    """
    order = runner.pipeline.order
    stages = order[order.index(stopped) + 1 : order.index(last) + 1]
    if not stages:
        told = f"stage {stopped} was stopped, and nothing that is to be done comes after it"
        raise DataError(told, where=run.folder, remedy="its queries that are done can be evaluated and exported as is")
    if whole := [name for name in stages if name in run.manifest.stages]:
        told = f"stage {whole[0]} has a whole result, which a part does not replace"
        raise DataError(told, where=run.folder, remedy=WHOLE_RUN_REMEDY)
    return stages


def work_on(
    runner: Runner, run: OpenedRun, stage: AnyStage, reason: Reason, *, done: CompletedQueries | None = None
) -> None:
    """Do a part of a stage.

    Args:
        done: where the budget has ended, what is done of the stage already; nobody is asked for the rest.
    """
    name, config = stage.NAME, runner.configs[stage.NAME]
    runner.listen(StageStarted(name, (reason,)))
    journal = RunJournal(runner.store.path(stage.JOURNAL)) if stage.JOURNAL else None
    runner.services.workspace.ledger.turn_to(runner.store.ledger, name)
    watch = RecordWatch(stage, stage.statistics(config))
    try:
        readers = {read: partial(run.records, read) for read in stage.READS}
        hear = partial(runner.progress, name)
        work = StageWork(readers, journal, hear, spent=done is not None, done=done.qids if done else ())
        records = stage.run(work, config, runner.services)
        every = done.beside(records) if done else records
        runner.store.write_partial(stage.artifacts(), watch.until_stopped(every))
    finally:
        runner.services.workspace.ledger.turn_to(runner.store.ledger, name)
        if journal is not None:
            journal.close()
    if watch.stopped is not None:
        runner.listen(Notice(f"{name}: {runner.pipeline.stopped}"))
        raise watch.stopped


def _of_today(runner: Runner, manifest: RunManifest) -> RunManifest:
    now = {"config": runner.config, "config_file": runner.config_file, "stages": runner.kept(manifest)}
    return manifest.model_copy(update=now)


def run_within_budget(runner: Runner, selection: Selection) -> PipelineResult:
    """As `Runner.run`, but where the budget ends what is paid for is finished.

    Raises:
        BudgetSpent: the budget has ended; what it bought can be evaluated and exported.
        RaggsError: as `Runner.run`.
    """
    if (ended := _still_spent(runner, selection)) is None:
        try:
            return runner.run(selection)
        except BudgetSpent as error:
            ended = error
    raise _finish_after_budget(runner, selection, ended)


def part_within_budget(runner: Runner, selection: Selection) -> ResumedRun:
    """As `run_part`, but where the budget ends what is paid for is finished.

    Raises:
        BudgetSpent, RaggsError: as `run_within_budget`.
    """

    try:
        return run_part(runner, selection)
    except BudgetSpent as error:
        raise _finish_after_budget(runner, selection, error) from None


def _finish_after_budget(runner: Runner, selection: Selection, ended: BudgetSpent) -> BudgetSpent:
    """The error, after what was paid for is finished; it says how far that went."""
    from raggs.runs.manifests.open_run import budget_coverage

    with runner.at_work():
        _finish(runner, selection, ended)
        runner.services.workspace.arrive()
        runner.store.seal_ledger()
        found = budget_coverage(OpenedRun(runner.store, runner.store.manifest()))
    ended.message += f"; {found or 'no query more is done'}"
    return ended


def _still_spent(runner: Runner, selection: Selection) -> BudgetSpent | None:
    """The end that the last run met, if this one could only meet it again."""
    if selection.force or not runner.store.exists:
        return None
    if all(runner.store.spent(name) is None for name in runner.pipeline.order):
        return None  # before any file is hashed
    locks = runner.store.manifest().stages
    for name in runner.pipeline.order:
        stage = runner.pipeline.stage(name)
        if (cap := runner.store.spent(name)) is not None:
            return (
                BudgetSpent(cap, _spending_clause(cap))
                if name in selection.stages and _is_cap_still_binding(runner, stage, cap)
                else None
            )
        if not _is_complete(runner, stage, locks.get(name)):
            return None
    return None


def _spending_clause(cap: BudgetCap) -> str:
    if cap.money:
        return f"{cap.spent:.4f} of {cap.limit:.4f} USD spent"
    return f"{cap.spent:,.0f} of {plural(int(cap.limit), 'call')} made"


def _is_cap_still_binding(runner: Runner, stage: AnyStage, cap: BudgetCap) -> bool:
    """Whether the same is to be done under a cap that is no higher; what the ledger does not know was not spent."""
    same = runner.store.begun(stage.NAME) == fingerprint(runner.components(stage))
    budget = BudgetSettings.model_validate(runner.config["budget"])
    return same and cap.binds(budget) and runner.store.ledger.is_file()


def _is_complete(runner: Runner, stage: AnyStage, lock: StageLock | None) -> bool:
    """Whether a stage has a result of what is to be done now, with or without failures."""
    reasons = runner.standing.reasons(stage, lock)
    return lock is not None and all(isinstance(reason, FailuresLeft) for reason in reasons)


def _finish(runner: Runner, selection: Selection, ended: BudgetSpent) -> None:
    """Make of the stages that are not whole what can be made of what is paid for."""

    store = runner.store
    stopped = next((name for name in selection.stages if store.marker(name).exists()), None)
    if stopped is None or not runner.pipeline.stage(stopped).ASKS:
        return
    runner.services.workspace.arrive()
    runner.services.workspace.llm.budget.close(ended)
    store.note_spent(stopped, ended.cap)
    for name in selection.stages[selection.stages.index(stopped) :]:
        stage, run = runner.pipeline.stage(name), OpenedRun(store, store.manifest())
        if (lock := run.manifest.stages.get(name)) is None:
            store.save(runner.configured(run.manifest, name))  # a part is read by the settings of the manifest
            done = _completed_queries(run, stage) if name == stopped else CompletedQueries()
            work_on(runner, run, stage, BudgetEnded(), done=done)
        elif not _is_complete(runner, stage, lock):
            return  # a whole result of before is not replaced by a part
        if name == stopped and lock is None and not store.partial(name).stat().st_size:
            store.forget_partial(name)
            return


def _completed_queries(run: OpenedRun, stage: AnyStage) -> CompletedQueries:
    """The queries that a stopped stage has done to their end."""

    artifacts = stage.artifacts()
    if not all(run.store.partial(artifact).is_file() for artifact in artifacts):
        return CompletedQueries()
    cut = {record.qid for artifact in artifacts for record in run.records(artifact) if stage.cut_short(record)}
    qids = frozenset(record.qid for record in run.records(stage.NAME)) - cut
    return CompletedQueries(qids, tuple(_records_of_queries(qids, run.records(artifact)) for artifact in artifacts))


def _records_of_queries(qids: frozenset[str], records: Iterator[Record]) -> Iterator[Record]:
    return (record for record in records if record.qid in qids)
