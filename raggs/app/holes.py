"""Have the judge of a golden run grade what the systems of a sweep show and nobody judged.

Those passages are asked about first that could change most between the systems. The answers are cached where the
golden run keeps its own, booked in the sweep's ledger, and kept in the sweep's folder; the golden run stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raggs.app.addresses import Approve, nobody, permit
from raggs.app.beside import beside, in_loop
from raggs.app.stored import stored_config
from raggs.base.artifacts import JudgeRecord, MergeRecord, Query
from raggs.base.errors import BudgetError, UsageError
from raggs.base.progress import Building, Notice
from raggs.base.text import plural
from raggs.config.models import RunConfig
from raggs.golden.opened import open_golden
from raggs.llm.credentials import require_keys
from raggs.parts.workshop import Judge, Passages, Workshop, judge_prompts
from raggs.runs.manifests.store import RunStore
from raggs.runs.pipeline.events import Listener, silent
from raggs.stages.judge import STAGE
from raggs.stats.decision.holes import Hole
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.foreign import lists_of
from raggs.sweeps.grid import CHUNKER, cut_labels
from raggs.sweeps.holes import find_holes, keep_holes
from raggs.sweeps.models import SystemRow
from raggs.sweeps.store import SweepStore
from raggs.sweeps.world import World

BOOKED = "holes"


@dataclass(frozen=True)
class Asked:
    """How many holes there were, how many of them got a grade now, on how many the judge abstained; why it stopped."""

    holes: int
    graded: int
    stopped: str = ""
    silent: int = 0

    def __str__(self) -> str:
        rest = f", nobody spoke on {self.silent:,}" if self.silent else ""
        rest += f"; {self.stopped}" if self.stopped else ""
        return f"{plural(self.holes, 'unjudged passage')} in the tops, {self.graded:,} graded now{rest}"


@dataclass(frozen=True)
class _Services:
    queries: Mapping[str, Query]
    judge: Judge
    passages: Passages


def judge_holes(config: SweepConfig, listen: Listener = silent, approve: Approve = nobody) -> Asked:
    """Grade holes of a finished sweep, as far as `budget` goes.

    Raises:
        UsageError: the golden set is no run of raggs, so it has no judge.
        PrerequisiteError: a key is missing.
        RaggsError: the judge cannot be asked; what was paid for is kept.
    """
    if in_loop():
        return beside(lambda hear: judge_holes(config, hear, approve), listen)
    run = _golden_run(config.golden)
    permit(run, ["judge"], approve)
    world, store = World(config, listen), SweepStore(config.folder / config.name)
    llm = run.llm.mixing() if config.llm.allow_mixed else run.llm
    workshop = Workshop(run.workspace, llm, config.budget, hear=listen)
    try:
        rows, passages = _judged_alike(world, [row for row in store.systems() if row.file])
        lists = (lists_of(store.run(row), max(config.cutoffs)) for row in rows)
        holes = find_holes(world.labels, lists, config.cutoffs)
        judge = workshop.judge(run.judge.judge, *judge_prompts(run.judge.prompt, run.ordering.prompt))
        judge.check(world.queries.values())
        require_keys(judge.models, run.llm)
        with store.hold():
            workshop.ledger.turn_to(world.ledger, BOOKED)
            return _ask(holes, world, run, workshop, _Services(world.queries, judge, passages))
    finally:
        workshop.close()
        world.close()


def _judged_alike(world: World, rows: Sequence[SystemRow]) -> tuple[Sequence[SystemRow], Passages]:
    """The systems whose passages are cut as those of the golden set, which alone get grades of their own, and these.

    Raises:
        UsageError: there is none.
    """
    if world.atlas is None:
        return rows, world.passages
    labels = cut_labels(world.config)
    own = {part.label for part in world.atlas.parts if part.golden}
    kept = [row for row in rows if row.levels[CHUNKER] in own]
    if not kept:
        raise UsageError(
            "every system is cut in another way than the golden set, and a grade of its passages would be of no use to "
            "the others",
            where=world.golden.source,
            remedy="add the golden set's own cut to `axes.chunker`: what is judged of it then counts for all cuts",
        )
    if left := len(rows) - len(kept):
        said = f"{plural(left, 'system')} of other cuts left out: passages of the golden set's own cut alone are judged"
        world.hear(Notice(f"{said}, and count for all by projection"))
    return kept, world.passages_of(next(cut for cut in world.config.cuts if labels[repr(cut)] in own))


def _ask(holes: Sequence[Hole], world: World, run: RunConfig, workshop: Workshop, services: _Services) -> Asked:
    """Some at a time, in order, so that what the money buys is what matters most."""
    done = silent = 0
    settings = run.judge.model_copy(update={"stop_after": None})

    async def grade(hole: Hole) -> JudgeRecord:
        passage = services.passages.get([hole.doc_id])[hole.doc_id]
        shown = MergeRecord(
            qid=hole.qid, rank=1, doc_id=hole.doc_id, score=0.0, sources={}, title=passage.title, text=passage.text,
            span=passage.span, metadata=passage.metadata,
        )  # fmt: skip
        return (await STAGE.pool([shown], settings, services))[0]

    async def several(part: Sequence[Hole]) -> list[JudgeRecord | BaseException]:
        return await asyncio.gather(*map(grade, part), return_exceptions=True)

    for start in range(0, len(holes), run.llm.concurrency):
        world.hear(Building("holes judged", start, len(holes)))
        found = workshop.loop.run(several(holes[start : start + run.llm.concurrency]))
        records = [each for each in found if isinstance(each, JudgeRecord)]
        keep_holes(world.folder, (record for record in records if record.skipped is None))
        silent += sum(record.skipped is not None for record in records)
        done += sum(record.grade is not None for record in records)
        for each in found:
            if isinstance(each, BudgetError):
                world.hear(Notice(str(each)))
                return Asked(len(holes), done, "the budget is spent", silent)
            if isinstance(each, BaseException):
                raise each
    return Asked(len(holes), done, silent=silent)


def _golden_run(golden: Path) -> RunConfig:
    """The configuration of the run that a golden set is."""
    store = RunStore(golden)
    if not golden.is_dir() or not store.exists:
        remedy = "labels have no judge; make a golden set with raggs run, or judge the passages yourself"
        raise UsageError("--judge-holes needs a run of raggs as golden set", where=golden, remedy=remedy)
    open_golden(golden)
    return stored_config(golden)
