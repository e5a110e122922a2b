"""What comes after a stage that was stopped, over the queries that it has done.

A part of a result is never a result: it lies beside the artifacts under names that no lock knows, and goes when the
stage before it goes on. Answers and journal stay, so that the whole run pays nothing twice and ends with the bytes of
an undisturbed one. A part of anything but what the configuration asks for now is not gone on with, nor is one beside
results of an earlier, whole run.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from raggs.base.artifacts import Record
from raggs.base.errors import DataError
from raggs.runs.manifests.journal import RunJournal
from raggs.runs.manifests.models import RunManifest
from raggs.runs.manifests.opened import OpenedRun, Unfinished
from raggs.runs.manifests.reasons import FailuresLeft, InPart, Reason
from raggs.runs.pipeline.events import Notice, StageStarted
from raggs.runs.pipeline.plan import Selection, fingerprint
from raggs.runs.pipeline.runner import Runner
from raggs.runs.pipeline.watch import Watch
from raggs.stages.base import AnyStage, Work

WHOLE = "run without --partial"


@dataclass(frozen=True)
class Part:
    """What was gone on with: the run, the stage that was stopped, and the stages after it that are done in part."""

    run: OpenedRun
    stopped: Unfinished
    stages: tuple[str, ...]


@dataclass(frozen=True)
class Done:
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


def run_part(runner: Runner, selection: Selection) -> Part:
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
            work_on(runner, run, runner.pipeline.stage(name), InPart(stopped.stage))
    return Part(run, stopped, stages)


def _stopped(runner: Runner, run: OpenedRun) -> Unfinished:
    """The stage that was stopped, if all that it was made of is as it was.

    Raises:
        DataError: there is none, or it is not.
    """
    if (stopped := run.unfinished) is None:
        raise DataError("no stage was stopped with queries done", where=run.folder, remedy=WHOLE)
    for name in runner.pipeline.order[: runner.pipeline.order.index(stopped.stage)]:
        found = runner.standing.reasons(runner.pipeline.stage(name), run.manifest.stages.get(name))
        if stale := [reason for reason in found if not isinstance(reason, FailuresLeft)]:
            raise DataError(f"stage {name} is out of date: {stale[0]}", where=run.folder, remedy=WHOLE)
    stage = runner.pipeline.stage(stopped.stage)
    if runner.store.begun(stopped.stage) != fingerprint(runner.components(stage)):
        told = f"what stage {stopped.stage} has done was made with other settings or inputs than those of now"
        raise DataError(told, where=run.folder, remedy=f"{WHOLE}, or with the settings of before")
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
        raise DataError(told, where=run.folder, remedy=WHOLE)
    return stages


def work_on(runner: Runner, run: OpenedRun, stage: AnyStage, reason: Reason, *, done: Done | None = None) -> None:
    """Do a part of a stage.

    Args:
        done: where the budget has ended, what is done of the stage already; nobody is asked for the rest.
    """
    name, config = stage.NAME, runner.configs[stage.NAME]
    runner.listen(StageStarted(name, (reason,)))
    journal = RunJournal(runner.store.path(stage.JOURNAL)) if stage.JOURNAL else None
    runner.services.book(name, runner.store.ledger)
    watch = Watch(stage, stage.statistics(config))
    try:
        readers = {read: partial(run.records, read) for read in stage.READS}
        hear = partial(runner.progress, name)
        work = Work(readers, journal, hear, spent=done is not None, done=done.qids if done else ())
        records = stage.run(work, config, runner.services)
        every = done.beside(records) if done else records
        runner.store.write_partial(stage.artifacts(), watch.until_stopped(every))
    finally:
        runner.services.book(name, runner.store.ledger)
        if journal is not None:
            journal.close()
    if watch.stopped is not None:
        runner.listen(Notice(f"{name}: {runner.pipeline.stopped}"))
        raise watch.stopped


def _of_today(runner: Runner, manifest: RunManifest) -> RunManifest:
    now = {"config": runner.config, "config_file": runner.config_file, "stages": runner.kept(manifest)}
    return manifest.model_copy(update=now)
