"""Continue after a stopped stage with the queries that it has finished, or end a run whose budget is used up.

A partial result is never treated as a complete one. It is stored next to the artifacts under names that no lock refers
to, and is deleted when an earlier stage runs. Cached answers and the journal are kept. When the run is completed
later, no call is paid twice, and the artifacts have the same bytes as without the interruption. A partial result is
continued only if it matches the current configuration, and if the later stages have no complete results from an earlier
run.

If the budget is used up, raggs first makes a golden set from the paid answers, and then stops the run.

A provider outage or Ctrl-C stops a run immediately: an outage is temporary, and after Ctrl-C the user expects the run
to stop. A used-up budget stays used up until a cap is raised, so raggs completes what is already paid for. Fully graded
queries pass through all stages, other queries are omitted, and each ranking ends with the available answers. These
outputs are partial results. They depend only on the paid answers, because no model is called for them. With the same
caps, the next run therefore calls no model and ends with the same bytes.
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
    """Result of `run_part`: the run, the stopped stage, and the later stages that processed its finished queries."""

    run: OpenedRun
    stopped: UnfinishedStage
    stages: tuple[str, ...]


@dataclass(frozen=True)
class CompletedQueries:
    """The queries that a stopped stage has finished. Their records will not change.

    Attributes:
        qids: ids of these queries.
        records: a stream of their records for each artifact, sorted by query.
    """

    qids: frozenset[str] = frozenset()
    records: tuple[Iterator[Record], ...] = ()

    def beside(self, others: Iterator[Record]) -> Iterator[Record]:
        """Return the finished records merged with `others`, sorted by query."""
        return heapq.merge(others, *self.records, key=lambda record: record.qid)


def run_part(runner: Runner, selection: Selection) -> ResumedRun:
    """Run the stages after the stopped one, up to the last selected stage, for the queries that it has finished.

    Raises:
        DataError: no stage has a partial result, or it does not match the current settings or inputs.
        PartialError, PrerequisiteError, ProviderError: see `Runner.run`.
    """
    with runner.at_work():
        run = OpenedRun(runner.store, runner.store.manifest())
        stopped = _stopped(runner, run)
        stages = _after(runner, run, stopped.stage, selection.stages[-1])
        runner.services.check(stages)
        # the settings in the manifest apply to partial results, so they must be current
        runner.store.save(_of_today(runner, run.manifest))
        for name in stages:
            runner.store.forget_partial(name)
            work_on(runner, run, runner.pipeline.stage(name), PartlyDone(stopped.stage))
    return ResumedRun(run, stopped, stages)


def _stopped(runner: Runner, run: OpenedRun) -> UnfinishedStage:
    """Return the stopped stage, if its settings and inputs are unchanged.

    Raises:
        DataError: no stage was stopped, or settings or inputs have changed.
    """
    if (stopped := run.unfinished) is None:
        raise DataError(
            "no stage was stopped after finishing some of its queries", where=run.folder, remedy=WHOLE_RUN_REMEDY
        )
    for name in runner.pipeline.order[: runner.pipeline.order.index(stopped.stage)]:
        found = runner.standing.reasons(runner.pipeline.stage(name), run.manifest.stages.get(name))
        if stale := [reason for reason in found if not isinstance(reason, FailuresLeft)]:
            raise DataError(f"stage {name} is out of date: {stale[0]}", where=run.folder, remedy=WHOLE_RUN_REMEDY)
    stage = runner.pipeline.stage(stopped.stage)
    if runner.store.begun(stopped.stage) != fingerprint(runner.components(stage)):
        told = (
            f"the finished queries of stage {stopped.stage} were made with other settings or inputs than the "
            "current ones"
        )
        raise DataError(told, where=run.folder, remedy=f"{WHOLE_RUN_REMEDY}, or restore the previous settings")
    return stopped


def _after(runner: Runner, run: OpenedRun, stopped: str, last: str) -> tuple[str, ...]:
    """Return the stages after the stopped one, up to the stage `last`.

    Raises:
        DataError: there are no such stages, or one of them has a complete result.
    """
    order = runner.pipeline.order
    stages = order[order.index(stopped) + 1 : order.index(last) + 1]
    if not stages:
        told = f"stage {stopped} was stopped, and no selected stage follows it"
        raise DataError(told, where=run.folder, remedy="evaluate or export its finished queries as they are")
    if whole := [name for name in stages if name in run.manifest.stages]:
        told = f"stage {whole[0]} has a complete result, and a partial result must not replace it"
        raise DataError(told, where=run.folder, remedy=WHOLE_RUN_REMEDY)
    return stages


def work_on(
    runner: Runner, run: OpenedRun, stage: AnyStage, reason: Reason, *, done: CompletedQueries | None = None
) -> None:
    """Process the available queries of a stage, and write a partial result.

    Args:
        runner: the runner of the run.
        run: the run.
        stage: the stage.
        reason: why the stage runs, for the progress display.
        done: the finished queries of the stage, if the budget is used up. For the other queries, no model is called.
            None if the budget is not used up.
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
    """Run the selected stages (see `Runner.run`). If the budget is used up, complete what is paid for.

    Raises:
        BudgetSpent: the budget is used up. The results of the paid calls can be evaluated and exported.
        RaggsError: see `Runner.run`.
    """
    if (ended := _still_spent(runner, selection)) is None:
        try:
            return runner.run(selection)
        except BudgetSpent as error:
            ended = error
    raise _finish_after_budget(runner, selection, ended)


def part_within_budget(runner: Runner, selection: Selection) -> ResumedRun:
    """Continue after a stopped stage (see `run_part`). If the budget is used up, complete what is paid for.

    Raises:
        BudgetSpent, RaggsError: see `run_within_budget`.
    """

    try:
        return run_part(runner, selection)
    except BudgetSpent as error:
        raise _finish_after_budget(runner, selection, error) from None


def _finish_after_budget(runner: Runner, selection: Selection, ended: BudgetSpent) -> BudgetSpent:
    """Complete what is paid for, and add the progress to the message of the error."""
    from raggs.runs.manifests.open_run import budget_coverage

    with runner.at_work():
        _finish(runner, selection, ended)
        runner.services.workspace.arrive()
        runner.store.seal_ledger()
        found = budget_coverage(OpenedRun(runner.store, runner.store.manifest()))
    ended.message += f"; {found or 'no further query is finished'}"
    return ended


def _still_spent(runner: Runner, selection: Selection) -> BudgetSpent | None:
    """Return the error of the last run if it was stopped by a cap that still applies, else None."""
    if selection.force or not runner.store.exists:
        return None
    if all(runner.store.spent(name) is None for name in runner.pipeline.order):
        return None  # checked first, because it needs no hashes of files
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
    """Return whether the cap still stops the stage: the stage has the same inputs and settings, and the cap was not
    raised. If there is no ledger, nothing was spent, so return False.
    """
    same = runner.store.begun(stage.NAME) == fingerprint(runner.components(stage))
    budget = BudgetSettings.model_validate(runner.config["budget"])
    return same and cap.binds(budget) and runner.store.ledger.is_file()


def _is_complete(runner: Runner, stage: AnyStage, lock: StageLock | None) -> bool:
    """Return whether a stage has a complete result that is up to date. Failed judgments do not matter."""
    reasons = runner.standing.reasons(stage, lock)
    return lock is not None and all(isinstance(reason, FailuresLeft) for reason in reasons)


def _finish(runner: Runner, selection: Selection, ended: BudgetSpent) -> None:
    """Process the incomplete stages with the paid answers only."""

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
            # the settings in the manifest apply to partial results, so they must be current
            store.save(runner.configured(run.manifest, name))
            done = _completed_queries(run, stage) if name == stopped else CompletedQueries()
            work_on(runner, run, stage, BudgetEnded(), done=done)
        elif not _is_complete(runner, stage, lock):
            return  # an earlier complete result is not replaced by a partial one
        if name == stopped and lock is None and not store.partial(name).stat().st_size:
            store.forget_partial(name)
            return


def _completed_queries(run: OpenedRun, stage: AnyStage) -> CompletedQueries:
    """Return the queries that a stopped stage has finished."""

    artifacts = stage.artifacts()
    if not all(run.store.partial(artifact).is_file() for artifact in artifacts):
        return CompletedQueries()
    cut = {record.qid for artifact in artifacts for record in run.records(artifact) if stage.cut_short(record)}
    qids = frozenset(record.qid for record in run.records(stage.NAME)) - cut
    return CompletedQueries(qids, tuple(_records_of_queries(qids, run.records(artifact)) for artifact in artifacts))


def _records_of_queries(qids: frozenset[str], records: Iterator[Record]) -> Iterator[Record]:
    return (record for record in records if record.qid in qids)
