"""Sweep: measure systems on the questions of a golden set, and choose one under limits.

A sweep whose inputs and settings have not changed is read, not run. Other limits choose again from what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.app.addresses import Approve, nobody, permit
from raggs.app.beside import beside, in_loop
from raggs.base.errors import DataError
from raggs.base.hashing import hash_value
from raggs.base.progress import Hear, Notice
from raggs.base.settings import causes_of
from raggs.base.version import __version__
from raggs.config.environment import refuse_stored
from raggs.config.load import load_settings
from raggs.runs.pipeline.events import Listener, silent
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.deriving import derive
from raggs.sweeps.grid import Grid, make_grid
from raggs.sweeps.halving import drop_hopeless
from raggs.sweeps.holes import with_holes
from raggs.sweeps.labels import of_queries
from raggs.sweeps.measuring import Measuring
from raggs.sweeps.models import OutcomePart, Plan, SweepReport
from raggs.sweeps.planning import plan
from raggs.sweeps.projecting import Sheet
from raggs.sweeps.scoring import Scorer
from raggs.sweeps.store import TIMINGS, SweepManifest, SweepStore, now
from raggs.sweeps.world import World, llm_of
from raggs.sweeps.writers import report_files

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class SweepResult:
    """A sweep's report, where it lies, and whether anything was done for it."""

    report: SweepReport
    folder: Path
    unchanged: bool

    def to_pandas(self) -> DataFrame:
        """A row for each system, with the columns of sweep.csv.

        Raises:
            PrerequisiteError: pandas is not installed.
        """
        return self.report.frame()

    def _repr_html_(self) -> str:
        from raggs.evaluation.markup import fragment
        from raggs.sweeps.layout import lay_out

        return fragment(lay_out(self.report))


def load_sweep(path: Path | str | Mapping[str, object], overrides: Sequence[str] = ()) -> SweepConfig:
    """A sweep's configuration from its YAML file, or from a mapping of what that would hold; see `load_config`."""
    return with_run_llm(load_settings(SweepConfig, path if isinstance(path, Mapping) else Path(path), overrides)[0])


def with_run_llm(config: SweepConfig) -> SweepConfig:
    """Return the sweep with the `llm` settings of the run that made its golden set wherever it has none of its own.

    So a sweep calls the servers that the run called, not the providers themselves with the user's key.
    """
    stored = llm_of(config.golden)
    return config if stored is None else config.model_copy(update={"llm": config.llm.over(stored)})


def sweep(
    config: SweepConfig | Mapping[str, object] | Path | str,
    *,
    listen: Listener = silent,
    approve: Approve = nobody,
) -> SweepResult:
    """Measure all systems and choose. Works in notebooks too.

    Args:
        config: a configuration, a mapping as the YAML has it, or the path of its file.
        listen: hears how far the work is.
        approve: says whether a key may go to an address that is new (see `raggs.app.addresses`).

    Raises:
        RaggsError: see `raggs.base.errors`; whatever was measured or paid for is kept.
    """
    if in_loop():
        return beside(lambda hear: sweep(config, listen=hear, approve=approve), listen)
    if not isinstance(config, SweepConfig):
        config = load_sweep(config)
    config = with_run_llm(config)
    permit(config, ["sweep"], approve)
    stored = config.model_dump(mode="json")
    refuse_stored(stored)
    with closing(World(config, listen)) as world:
        return _sweep(config, stored, world, make_grid(config))


def plan_sweep(config: SweepConfig, listen: Listener = silent) -> Plan:
    """What a sweep would do and cost. Nobody is asked, nothing is searched.

    Raises:
        RaggsError: as `sweep`, for what can be known before.
    """
    if in_loop():
        return beside(lambda hear: plan_sweep(config, hear), listen)
    config = with_run_llm(config)
    with closing(World(config, listen)) as world:
        grid = make_grid(config)
        return plan(Measuring(world, grid.systems, SweepStore(world.folder)), world, grid)


def _sweep(config: SweepConfig, stored: Mapping[str, object], world: World, grid: Grid) -> SweepResult:
    store = SweepStore(world.folder)
    Scorer(config, world.labels, sheet=_any_sheet(world)).measures()  # a wrong name is told before the work
    _require_relevant(world)
    measuring = Measuring(world, grid.systems, store)
    causes = hash_value(
        {
            "config": causes_of(config),
            "golden": world.labels.digest,
            "systems": [measuring.fingerprint(system) for system in grid.systems],
            "raggs": __version__,  # the packages of parts stand among the causes of these
        }
    )
    settings = hash_value(
        {name: stored[name] for name in ("limits", "latency", "prices", "cost_jitter", "margin", "slos")}
    )
    if (found := _finished(store, causes, settings, world.hear)) is not None:
        return found
    measuring.check()
    with store.hold():
        if store.drop_edited_timings():
            world.hear(Notice(f"{store.folder / TIMINGS}: not what the sweep wrote, so everything is timed again"))
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
            created=now(),
            config=stored,
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


def choose_again(config: SweepConfig, listen: Listener = silent) -> SweepResult:
    """The choice under the limits of `config`, from what an earlier sweep measured. Nothing is searched or written.

    Raises:
        NotFoundError: there is no finished sweep.
        DataError: its files cannot be read.
    """
    with closing(World(config, listen)) as world:
        store = SweepStore(world.folder)
        asked, report = store.manifest().questions, store.report()
        labels = with_holes(of_queries(world.judgments, asked), store.folder)
        atlas = store.atlas(world.golden, world.judgments, labels)
        fresh = derive(config, labels, store.systems(), store.run, report.left_out, listen, atlas)
        return SweepResult(fresh, store.folder, unchanged=True)


def _any_sheet(world: World) -> Sheet | None:
    """What systems of one of several cuts are scored by; all cuts and documents are known to be right by then."""
    return None if world.atlas is None else world.atlas.sheet(world.atlas.parts[0].label)


def _finished(store: SweepStore, causes: str, settings: str, hear: Hear) -> SweepResult | None:
    """Return the sweep that lies there; None if there is none, it is another one, unfinished, or not as it was written.

    Raises:
        UsageError: a run lies there.
    """
    if not store.exists:
        return None
    try:
        manifest = store.manifest()
        if (manifest.causes, manifest.settings) != (causes, settings):
            return None
        if changed := store.changed():
            hear(Notice(f"{store.folder / changed[0]}: not what the sweep wrote, so it is made again"))
            return None
        unfinished = any(row.failed for row in store.systems())
        return None if unfinished else SweepResult(store.report(), store.folder, unchanged=True)
    except DataError as error:
        hear(Notice(f"{error.where}: {error.message}, so the sweep is made again"))
        return None


def _require_relevant(world: World) -> None:
    """Refuse grades by which all systems are worth the same.

    Raises:
        DataError: no passage has more than the lowest grade.
    """
    qrels = world.labels.qrels
    if not (qrels.grade > qrels.scale.low).any():
        raise DataError(
            f"no passage of any question has a grade above {qrels.scale.low}, so nothing tells systems apart",
            where=world.golden.source,
            remedy="judge more passages, or name other questions under `queries`",
        )
