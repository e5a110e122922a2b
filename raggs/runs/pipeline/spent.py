"""A run whose budget ends: what is paid for becomes the best set that it can buy, and then the run stops.

A provider that is gone is back in an hour, and who pressed Ctrl-C wants an end at once: such runs stop where they are.
Money that has ended stays ended until somebody raises a cap, so what it bought is finished: queries that are graded in
full go on to the end, others are left out as a whole, and each ranking ends with the answers that there are. All of
that are parts (see `raggs.runs.pipeline.part`), never results, and nobody is asked: they hang on what is paid for
alone. So under the same caps the next run asks nobody, and ends with the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from raggs.base.artifacts import Record
from raggs.base.text import plural
from raggs.llm import BudgetSettings, BudgetSpent
from raggs.llm.budget import Cap
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.reasons import FailuresLeft, PaidFor
from raggs.runs.pipeline.plan import Selection, fingerprint
from raggs.runs.pipeline.runner import Runner, RunResult
from raggs.stages.base import AnyStage

if TYPE_CHECKING:
    from raggs.runs.pipeline.part import Done, Part


def run_within_budget(runner: Runner, selection: Selection) -> RunResult:
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
    raise _ended(runner, selection, ended)


def part_within_budget(runner: Runner, selection: Selection) -> Part:
    """As `run_part`, but where the budget ends what is paid for is finished.

    Raises:
        BudgetSpent, RaggsError: as `run_within_budget`.
    """
    from raggs.runs.pipeline.part import run_part  # late: most runs have money to the end

    try:
        return run_part(runner, selection)
    except BudgetSpent as error:
        raise _ended(runner, selection, error) from None


def _ended(runner: Runner, selection: Selection, ended: BudgetSpent) -> BudgetSpent:
    """The error, after what was paid for is finished; it says how far that went."""
    from raggs.runs.manifests.bought import bought

    with runner.at_work():
        _finish(runner, selection, ended)
        runner.services.arrive()
        runner.store.seal_ledger()
        found = bought(OpenedRun(runner.store, runner.store.manifest()))
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
            return BudgetSpent(cap, _told(cap)) if name in selection.stages and _binds(runner, stage, cap) else None
        if not _whole(runner, stage, locks.get(name)):
            return None
    return None


def _told(cap: Cap) -> str:
    if cap.money:
        return f"{cap.spent:.4f} of {cap.limit:.4f} USD spent"
    return f"{cap.spent:,.0f} of {plural(int(cap.limit), 'call')} made"


def _binds(runner: Runner, stage: AnyStage, cap: Cap) -> bool:
    """Whether the same is to be done under a cap that is no higher; what the ledger does not know was not spent."""
    same = runner.store.begun(stage.NAME) == fingerprint(runner.components(stage))
    budget = BudgetSettings.model_validate(runner.config["budget"])
    return same and cap.binds(budget) and runner.store.ledger.is_file()


def _whole(runner: Runner, stage: AnyStage, lock: StageLock | None) -> bool:
    """Whether a stage has a result of what is to be done now, with or without failures."""
    reasons = runner.standing.reasons(stage, lock)
    return lock is not None and all(isinstance(reason, FailuresLeft) for reason in reasons)


def _finish(runner: Runner, selection: Selection, ended: BudgetSpent) -> None:
    """Make of the stages that are not whole what can be made of what is paid for."""
    from raggs.runs.pipeline.part import Done, work_on

    store = runner.store
    stopped = next((name for name in selection.stages if store.marker(name).exists()), None)
    if stopped is None or not runner.pipeline.stage(stopped).ASKS:
        return
    runner.services.arrive()
    runner.services.pay_no_more(ended)
    store.note_spent(stopped, ended.cap)
    for name in selection.stages[selection.stages.index(stopped) :]:
        stage, run = runner.pipeline.stage(name), OpenedRun(store, store.manifest())
        if (lock := run.manifest.stages.get(name)) is None:
            store.save(runner.configured(run.manifest, name))  # a part is read by the settings of the manifest
            done = _done(run, stage) if name == stopped else Done()
            work_on(runner, run, stage, PaidFor(), done=done)
        elif not _whole(runner, stage, lock):
            return  # a whole result of before is not replaced by a part
        if name == stopped and lock is None and not store.partial(name).stat().st_size:
            store.forget_partial(name)
            return


def _done(run: OpenedRun, stage: AnyStage) -> Done:
    """The queries that a stopped stage has done to their end."""
    from raggs.runs.pipeline.part import Done

    artifacts = stage.artifacts()
    if not all(run.store.partial(artifact).is_file() for artifact in artifacts):
        return Done()
    cut = {record.qid for artifact in artifacts for record in run.records(artifact) if stage.cut_short(record)}
    qids = frozenset(record.qid for record in run.records(stage.NAME)) - cut
    return Done(qids, tuple(_of(qids, run.records(artifact)) for artifact in artifacts))


def _of(qids: frozenset[str], records: Iterator[Record]) -> Iterator[Record]:
    return (record for record in records if record.qid in qids)
