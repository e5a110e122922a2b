"""Sweep: measure systems on the queries of a golden set, and choose one within limits of latency, cost and quality.

If the inputs and settings of a finished sweep have not changed, its results are read from its folder. If only the
limits change, raggs selects again from the existing measurements.

The judge of the golden run can also grade unjudged passages that the systems return. Passages that could change the
comparison most come first. Answers are cached in the golden run's cache, and stored in the sweep's folder. Their cost
is recorded in the sweep's ledger. The golden run does not change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.app.addresses import Approve, approve_nothing, permit
from raggs.app.status import stored_config
from raggs.base import __version__
from raggs.base.artifacts import JudgeRecord, MergeRecord, Query
from raggs.base.errors import BudgetError, DataError, UsageError
from raggs.base.files import relative_to_cwd
from raggs.base.hashing import hash_value
from raggs.base.settings import causes_of
from raggs.base.text import did_you_mean, plural
from raggs.base.types import BuildProgress, Notice, ProgressListener
from raggs.config.load import load_settings
from raggs.config.models import RunConfig
from raggs.config.source import refuse_stored
from raggs.evaluation.svg import Plot
from raggs.golden.sources import open_golden
from raggs.llm.prices import require_keys
from raggs.parts.indexes.passages import Passages
from raggs.parts.judges import Judge
from raggs.parts.workspace import Workspace, judge_prompts
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.runs.manifests.store import RunStore, config_place
from raggs.stages.judge import STAGE
from raggs.stats.annotation_value import UnjudgedPassage
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.deriving import derive
from raggs.sweeps.grid import CHUNKER, SystemGrid, cut_labels, make_grid
from raggs.sweeps.halving import drop_hopeless
from raggs.sweeps.judgments import ChunkingJudgments, find_holes, keep_holes, of_queries, with_holes
from raggs.sweeps.measuring import SystemMeasurement, plan
from raggs.sweeps.models import OutcomePart, SweepPlan, SweepReport, SystemRow
from raggs.sweeps.plots import make_frame, plots, report_files
from raggs.sweeps.scoring import SystemScorer
from raggs.sweeps.store import TIMINGS, SweepManifest, SweepStore, utc_now
from raggs.sweeps.world import SweepContext, lists_of, llm_of

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class SweepResult:
    """Report of a sweep, its folder, and whether it was already up to date."""

    report: SweepReport
    folder: Path
    unchanged: bool

    def to_pandas(self) -> DataFrame:
        """Return one row per system, with the columns of sweep.csv.

        Raises:
            PrerequisiteError: pandas is not installed.
        """
        return make_frame(self.report)

    def plot(self, name: str = "front") -> Plot:
        """Return one of the sweep's plots: front, front-cost, quality-over-k, latency-over-k or effects.

        Raises:
            UsageError: the sweep has no data for this plot, or no plot has this name.
        """
        drawn = {Path(file).stem: Plot(*each) for file, each in plots(self.report).items()}
        if name not in drawn:
            raise UsageError(f"no plot {name!r}", remedy=did_you_mean(name, list(drawn)))
        return drawn[name]

    def _repr_html_(self) -> str:
        from raggs.base.document import summary_fragment
        from raggs.sweeps.layout import lay_out
        from raggs.sweeps.summary import summarise_sweep

        config, folder = f"{self.report.name}.yaml", relative_to_cwd(self.folder)
        return summary_fragment(summarise_sweep(self.report, config, str(folder)), lay_out(self.report, config=config))


def load_sweep(path: Path | str | Mapping[str, object], overrides: Sequence[str] = ()) -> SweepConfig:
    """Load a sweep's configuration from its YAML file or from a mapping of the same content; see `load_config`."""
    return with_run_llm(load_settings(SweepConfig, path if isinstance(path, Mapping) else Path(path), overrides)[0])


def with_run_llm(config: SweepConfig) -> SweepConfig:
    """Return the sweep with missing `llm` settings taken from the run that made its golden set.

    Otherwise a sweep would call the providers themselves, with the user's key, instead of the servers that the run
    called.
    """
    stored = llm_of(config.golden)
    return config if stored is None else config.model_copy(update={"llm": config.llm.over(stored)})


def sweep(
    config: SweepConfig | Mapping[str, object] | Path | str,
    *,
    listen: Listener = ignore_event,
    approve: Approve = approve_nothing,
    config_file: Path | None = None,
) -> SweepResult:
    """Measure all systems and choose. Works in notebooks.

    Args:
        config: a configuration, a mapping with the content of the YAML file, or the path of the file.
        config_file: file of a loaded configuration, for the commands of reports.
        listen: called with progress events.
        approve: decides whether a key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        RaggsError: see `raggs.base.errors`; finished measurements and paid answers are kept.
    """
    if in_loop():
        return run_in_thread(lambda hear: sweep(config, listen=hear, approve=approve, config_file=config_file), listen)
    if isinstance(config, Path | str):
        config_file = Path(config)
    if not isinstance(config, SweepConfig):
        config = load_sweep(config)
    config = with_run_llm(config)
    permit(config, ["sweep"], approve)
    stored = config.model_dump(mode="json")
    refuse_stored(stored)
    with closing(SweepContext(config, listen)) as world:
        return _sweep(config, stored, world, make_grid(config), config_file)


def plan_sweep(config: SweepConfig, listen: Listener = ignore_event) -> SweepPlan:
    """Estimate what a sweep would do and cost. No model is called, and nothing is searched.

    Raises:
        RaggsError: see `sweep`; only errors that can be detected in advance.
    """
    if in_loop():
        return run_in_thread(lambda hear: plan_sweep(config, hear), listen)
    config = with_run_llm(config)
    with closing(SweepContext(config, listen)) as world:
        grid = make_grid(config)
        return plan(SystemMeasurement(world, grid.systems, SweepStore(world.folder)), world, grid)


def _sweep(
    config: SweepConfig,
    stored: Mapping[str, object],
    world: SweepContext,
    grid: SystemGrid,
    config_file: Path | None,
) -> SweepResult:
    store = SweepStore(world.folder)
    # report an unknown measure before the work starts
    SystemScorer(config, world.labels, sheet=_any_sheet(world)).measures()
    _require_relevant(world)
    measuring = SystemMeasurement(world, grid.systems, store)
    causes = hash_value(
        {
            "config": causes_of(config),
            "golden": world.labels.digest,
            "systems": [measuring.fingerprint(system) for system in grid.systems],
            "raggs": __version__,  # versions of packages that provide parts are already in the systems' fingerprints
        }
    )
    settings = hash_value(
        {name: stored[name] for name in ("limits", "latency", "prices", "cost_jitter", "margin", "slos")}
    )
    if (found := _finished_sweep(store, causes, settings, world.hear)) is not None:
        return found
    measuring.check()
    with store.hold():
        if store.drop_edited_timings():
            world.hear(
                Notice(f"{store.folder / TIMINGS}: changed after the sweep wrote it, so everything is timed again")
            )
        if config.search.halves(len(grid.searched)):
            measuring.give_up(*drop_hopeless(world, grid.searched, store))
        measuring.make()
        for number in range(2, config.latency.passes + 1):
            measuring.time(number)
        rows = list(measuring.rows())
        store.keep_cuts(world.atlas, measuring.shown())
        report = derive(config, world.labels, rows, store.run, grid.left_out, world.hear, world.atlas)
        manifest = SweepManifest(
            name=config.name,
            created=utc_now(),
            config=stored,
            config_file=None if config_file is None else config_place(config_file, store.folder),
            golden=world.given.digest,
            questions=tuple(world.queries),
            world=world.fingerprint if grid.searched else None,
            causes=causes,
            settings=settings,
            outcome=OutcomePart.of(report),
            files={},
        )
        store.keep(manifest, report.systems, report_files(report))
    return SweepResult(report, store.folder, unchanged=False)


def choose_again(config: SweepConfig, listen: Listener = ignore_event) -> SweepResult:
    """Choose again under the limits of `config`, from an earlier sweep's measurements. Nothing is searched or written.

    Raises:
        NotFoundError: there is no finished sweep.
        DataError: the files of the sweep cannot be read.
    """
    with closing(SweepContext(config, listen)) as world:
        store = SweepStore(world.folder)
        asked, report = store.manifest().questions, store.report()
        labels = with_holes(of_queries(world.judgments, asked), store.folder)
        atlas = store.atlas(world.golden, world.judgments, labels)
        fresh = derive(config, labels, store.systems(), store.run, report.left_out, listen, atlas)
        return SweepResult(fresh, store.folder, unchanged=True)


def _any_sheet(world: SweepContext) -> ChunkingJudgments | None:
    """Return the judgments of the first chunking, or None if the sweep has only one. Opening it validates all
    chunkings.
    """
    return None if world.atlas is None else world.atlas.sheet(world.atlas.parts[0].label)


def _finished_sweep(store: SweepStore, causes: str, settings: str, hear: ProgressListener) -> SweepResult | None:
    """Return the finished sweep in the folder; None if it is missing, different, unfinished, or was changed.

    Raises:
        UsageError: the folder holds a run.
    """
    if not store.exists:
        return None
    try:
        manifest = store.manifest()
        if (manifest.causes, manifest.settings) != (causes, settings):
            return None
        if changed := store.changed():
            hear(Notice(f"{store.folder / changed[0]}: changed after the sweep wrote it, so it is created again"))
            return None
        unfinished = any(row.failed for row in store.systems())
        return None if unfinished else SweepResult(store.report(), store.folder, unchanged=True)
    except DataError as error:
        hear(Notice(f"{error.where}: {error.message}, so the sweep is computed again"))
        return None


def _require_relevant(world: SweepContext) -> None:
    """Raise an error if the grades cannot distinguish systems.

    Raises:
        DataError: no passage has more than the lowest grade.
    """
    qrels = world.labels.qrels
    if not (qrels.grade > qrels.scale.low).any():
        raise DataError(
            f"no passage of any question has a grade above {qrels.scale.low}, so scores cannot distinguish systems",
            where=world.golden.source,
            remedy="judge more passages, or select other questions with `queries`",
        )


HOLES_STAGE = "holes"


@dataclass(frozen=True)
class UnjudgedGrading:
    """Result of grading: number of unjudged passages, number graded now, why grading stopped, and number left
    without a grade.
    """

    holes: int
    graded: int
    stopped: str = ""
    silent: int = 0

    def __str__(self) -> str:
        rest = f", the judge gave no grade for {self.silent:,}" if self.silent else ""
        rest += f"; {self.stopped}" if self.stopped else ""
        return f"{plural(self.holes, 'unjudged passage')} in the top results, {self.graded:,} graded now{rest}"


@dataclass(frozen=True)
class _Services:
    queries: Mapping[str, Query]
    judge: Judge
    passages: Passages


def judge_holes(
    config: SweepConfig, listen: Listener = ignore_event, approve: Approve = approve_nothing
) -> UnjudgedGrading:
    """Grade unjudged passages of a finished sweep, within the budget.

    Raises:
        UsageError: the golden set is not a run of raggs, so it has no judge.
        PrerequisiteError: a key is missing.
        RaggsError: the judge cannot be called; paid answers are kept.
    """
    if in_loop():
        return run_in_thread(lambda hear: judge_holes(config, hear, approve), listen)
    run = _golden_run(config.golden)
    permit(run, ["judge"], approve)
    store, llm = SweepStore(config.folder / config.name), run.llm.mixing() if config.llm.allow_mixed else run.llm
    with (
        closing(SweepContext(config, listen)) as world,
        Workspace(run.workspace, llm, config.budget, hear=listen) as workspace,
    ):
        rows, passages = _judged_alike(world, [row for row in store.systems() if row.file])
        lists = (lists_of(store.run(row), max(config.cutoffs)) for row in rows)
        holes = find_holes(world.labels, lists, config.cutoffs)
        judge = workspace.judge(run.judge.judge, *judge_prompts(run.judge.prompt, run.ordering.prompt))
        judge.check(world.queries.values())
        require_keys(judge.models, run.llm)
        with store.hold():
            workspace.ledger.turn_to(world.ledger, HOLES_STAGE)
            return _grade_holes(holes, world, run, workspace, _Services(world.queries, judge, passages))


def _judged_alike(world: SweepContext, rows: Sequence[SystemRow]) -> tuple[Sequence[SystemRow], Passages]:
    """Return the systems whose passages the judge can grade, and these passages.

    Only systems with the golden set's own chunking qualify.

    Raises:
        UsageError: there is no such system.
    """
    if world.atlas is None:
        return rows, world.passages
    labels = cut_labels(world.config)
    own = {part.label for part in world.atlas.parts if part.golden}
    kept = [row for row in rows if row.levels[CHUNKER] in own]
    if not kept:
        raise UsageError(
            "no system uses the chunks of the golden set, so the judge has no passages to grade",
            where=world.golden.source,
            remedy="add the golden set's chunker to `axes.chunker`: its grades are projected to the others",
        )
    if left := len(rows) - len(kept):
        said = f"{plural(left, 'system')} with other chunks omitted: only chunks of the golden set are judged"
        world.hear(Notice(f"{said}, and its grades are projected to the others"))
    return kept, world.passages_of(next(cut for cut in world.config.cuts if labels[repr(cut)] in own))


def _grade_holes(
    holes: Sequence[UnjudgedPassage], world: SweepContext, run: RunConfig, workspace: Workspace, services: _Services
) -> UnjudgedGrading:
    """Grade passages in batches, in order of importance, so that a limited budget has the largest effect."""
    done = silent = 0
    settings = run.judge.model_copy(update={"stop_after": None})

    async def grade(hole: UnjudgedPassage) -> JudgeRecord:
        passage = services.passages.get([hole.doc_id])[hole.doc_id]
        shown = MergeRecord(
            qid=hole.qid, rank=1, doc_id=hole.doc_id, score=0.0, sources={}, title=passage.title, text=passage.text,
            span=passage.span, metadata=passage.metadata,
        )  # fmt: skip
        return (await STAGE.pool([shown], settings, services))[0]

    async def several(part: Sequence[UnjudgedPassage]) -> list[JudgeRecord | BaseException]:
        return await asyncio.gather(*map(grade, part), return_exceptions=True)

    for start in range(0, len(holes), run.llm.concurrency):
        world.hear(BuildProgress("holes judged", start, len(holes)))
        found = workspace.loop.run(several(holes[start : start + run.llm.concurrency]))
        records = [each for each in found if isinstance(each, JudgeRecord)]
        keep_holes(world.folder, (record for record in records if record.skipped is None))
        silent += sum(record.skipped is not None for record in records)
        done += sum(record.grade is not None for record in records)
        for each in found:
            if isinstance(each, BudgetError):
                world.hear(Notice(str(each)))
                return UnjudgedGrading(len(holes), done, "the budget is used up", silent)
            if isinstance(each, BaseException):
                raise each
    return UnjudgedGrading(len(holes), done, silent=silent)


def _golden_run(golden: Path) -> RunConfig:
    """Return the configuration of the golden set's run."""
    store = RunStore(golden)
    if not golden.is_dir() or not store.exists:
        remedy = "a file of labels has no judge: create a golden set with raggs run, or judge the passages yourself"
        raise UsageError("--judge-holes needs a golden set that is a run of raggs", where=golden, remedy=remedy)
    open_golden(golden)
    return stored_config(golden)
