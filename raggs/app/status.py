"""State of a run: which stages are done, and why a stage would run again.

Without a configuration, only the run directory is read. The corpus, queries, prompts and servers are assumed to be
unchanged. With a configuration, everything that `raggs run` compares is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from raggs.app.questions import open_questions
from raggs.app.run import open_runner
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, artifact_file
from raggs.base.errors import DataError, RaggsError, UsageError
from raggs.base.text import plural
from raggs.config.load import load_config
from raggs.config.models import RunConfig
from raggs.runs.manifests.costs import LedgerSum, answerers_in, costs
from raggs.runs.manifests.models import LockedAnswerer, RunManifest, StageLock
from raggs.runs.manifests.open_run import BudgetCoverage, OpenedRun, budget_coverage, open_run
from raggs.runs.manifests.reasons import Reason, UngradedQueries, ungraded
from raggs.runs.manifests.store import RunStore
from raggs.runs.plan import Plan, RunState
from raggs.stages.pipeline import load_pipeline, pipeline_of
from raggs.stages.questions import QUESTIONS

if TYPE_CHECKING:
    from raggs.reporting.surveying import LabelMix

JUDGE = "judge"


@dataclass(frozen=True)
class RunStatus:
    """State of a run.

    Attributes:
        run: the run.
        plan: by stage, the reasons why it would run now; empty if it would not.
        config: the configuration that the run was compared with, if any.
        unread: why the requested comparison failed; empty if it succeeded or was not requested.
        overrides: `--set` overrides of the configuration.
    """

    run: OpenedRun
    plan: Plan
    config: Path | None = None
    unread: str = ""
    overrides: Sequence[str] = ()

    @property
    def manifest(self) -> RunManifest:
        """Manifest of the run."""
        return self.run.manifest

    @property
    def left_out(self) -> Mapping[str, str]:
        """Disabled stages, each with a sentence about its earlier result."""
        whole = load_pipeline(self.manifest.pipeline)
        return {name: self._left_out(name) for name in whole.order if name not in self.plan}

    def _left_out(self, stage: str) -> str:
        said = f"disabled ({stage}: null)"
        if stage in self.manifest.stages:
            return f"{said} after the next run"
        return f"{said}; its earlier files are ignored" if self.run.store.path(stage).is_file() else said

    @cached_property
    def spent(self) -> Mapping[str, LedgerSum]:
        """Cost of each stage over all invocations, as in `raggs cost`."""
        return costs(self.run.store).stage

    @cached_property
    def total(self) -> LedgerSum:
        """Cost of all stages together."""
        return sum(self.spent.values(), LedgerSum())

    @cached_property
    def begun(self) -> Mapping[str, str]:
        """Progress of each stage that has started and is not finished, as a clause."""
        parts = self._parts
        return {name: self._begun(name) for name in self.plan if name in parts or self.run.store.marker(name).exists()}

    @cached_property
    def _parts(self) -> Mapping[str, str]:
        """Number of finished queries of each partly finished stage, as a clause."""
        total, undone, told = self.manifest_queries, 0, {}
        for part in self.run.parts:
            undone += len(part.left)
            short = f", {plural(len(part.short), 'ranking')} stopped early" if part.short else ""
            done = f"{total - undone:,} of {plural(total, 'query')} done"
            told[part.stage] = f"{'stopped: ' if part.left else ''}{done}{short}"
        return told

    @cached_property
    def answerers(self) -> tuple[LockedAnswerer, ...]:
        """Model versions that answered, from the locks; for stages without a lock, from the ledger."""
        begun = (name for name in self.plan if name not in self.manifest.stages)
        return (*self.manifest.answerers, *(each for name in begun for each in answerers_in(self.run.store, name)))

    @cached_property
    def bought(self) -> BudgetCoverage | None:
        """Queries that the budget covered, if it was used up; otherwise None."""
        return budget_coverage(self.run)

    def _begun(self, stage: str) -> str:
        total = self.manifest_queries
        if stage in self._parts:
            return self._parts[stage]
        asked = len(costs(self.run.store, stage).query)
        return f"started: {asked:,} of {plural(total, 'query')} sent" if asked else "started"

    @property
    def manifest_queries(self) -> int:
        """Number of queries of the run; 0 if the first stage has not finished."""
        first = self.manifest.stages.get(self.run.pipeline.order[0])
        return first.outputs[artifact_file(first.stage)].rows if first else 0

    @cached_property
    def labels(self) -> LabelMix | None:
        """Distribution of grades over the queries; None if no passage is graded or the artifact cannot be read."""
        from raggs.golden.judgments import Judgments  # imported lazily: needs arrays
        from raggs.metrics.columns import GradeScale, Qrels
        from raggs.reporting.surveying import labels_of

        try:
            grades = self._grades()
        except RaggsError:  # reported by `raggs audit`
            return None
        if not grades:
            return None
        return labels_of(Judgments(str(self.run.folder), Qrels.of(grades, GradeScale.of(MIN_GRADE, MAX_GRADE))))

    def _grades(self) -> Mapping[str, Mapping[str, int]]:
        found: dict[str, dict[str, int]] = {}
        if JUDGE in self.plan and self.run.file(JUDGE).is_file():
            for record in self.run.typed(JUDGE, JudgeRecord):
                if record.grade is not None:
                    found.setdefault(record.qid, {})[record.doc_id] = record.grade
        return found

    @cached_property
    def ungraded(self) -> UngradedQueries | None:
        """Why a judged golden set has no grade; None if it has one, was not judged, or cannot be read."""
        if JUDGE not in self.plan or JUDGE not in self.manifest.stages:
            return None
        try:
            return None if self.run.graded else ungraded(self.run)
        except RaggsError:  # reported by `raggs audit`
            return None

    @property
    def compared(self) -> bool:
        """Whether inputs outside of the run directory were compared."""
        return self.config is not None and not self.unread


@dataclass(frozen=True)
class StageStatus:
    """State of one stage: the reasons why it would run again, and the manifest's entry on its last result."""

    stage: str
    reasons: tuple[Reason, ...]
    lock: StageLock | None
    status: RunStatus


def status(folder: Path, config: Path | None = None, overrides: Sequence[str] = ()) -> RunStatus:
    """Return the state of the run in `folder`. If a configuration is given, also compare the run with it.

    If the inputs of the configuration cannot be read, only the run directory is used, and `unread` contains the error.

    Raises:
        NotFoundError, DataError: there is no run, or its manifest is damaged.
        UsageError: there are `overrides` but no configuration.
        ConfigError: the configuration is invalid.
    """
    run = open_run(folder)
    if overrides and config is None:
        raise UsageError("--set needs --config", remedy="name the YAML file that it overrides")
    alone = RunState(run.store, run.pipeline)
    if config is None:
        return RunStatus(run, alone.plan())
    loaded = load_config(config, overrides)
    try:
        opener = open_questions if run.pipeline.name == QUESTIONS.name else open_runner
        with opener(loaded, folder=folder) as runner:
            return RunStatus(run, runner.plan(), config, overrides=overrides)
    except RaggsError as error:
        return RunStatus(run, alone.plan(), config, str(error), overrides)


def stage_status(folder: Path, stage: str, config: Path | None = None, overrides: Sequence[str] = ()) -> StageStatus:
    """Return why one stage would run again.

    Raises:
        UsageError: the stage does not exist, or is disabled.
        RaggsError: as `status`.
    """
    pipeline_of(stage)
    found = status(folder, config, overrides)
    load_pipeline(found.manifest.pipeline).of(dict.fromkeys(found.left_out)).stage(stage)
    return StageStatus(stage, found.plan[stage], found.manifest.stages.get(stage), found)


def stored_config(folder: Path) -> RunConfig:
    """Return the configuration of a run's latest invocation.

    Raises:
        NotFoundError: there is no run.
        DataError: its manifest is damaged, or has no valid configuration.
    """
    try:
        return RunConfig.model_validate(dict(RunStore(folder).manifest().config))
    except ValidationError as error:
        raise DataError(
            "the manifest of this run contains no valid configuration", where=folder, remedy="run it again"
        ) from error
