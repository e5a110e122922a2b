"""A pipeline: an ordered list of stages and their artifacts. The runner and the audit take a pipeline as an argument.

Each stage is one module of the pipeline's package and is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from raggs.base.artifacts import Record
from raggs.base.errors import UsageError
from raggs.base.text import did_you_mean

if TYPE_CHECKING:
    from raggs.stages.base import AnyStage  # imported lazily: it needs numpy, and opening a run usually does not


@dataclass(frozen=True)
class Pipeline:
    """Stages that pass artifacts on to later stages.

    Attributes:
        name: name in manifests.
        home: package whose modules are the stages, each with its `STAGE`.
        order: names of the stages; each reads artifacts of earlier stages.
        artifacts: every artifact by name, with the record type of its lines. An artifact has the name of its stage, or
            this name with a suffix after a dot. An artifact with any other name belongs to the first stage.
        stopped: message about which results are usable after a stage that calls models was stopped.
        command: command that makes a run of this pipeline.
        beside: how to make a second run without replacing the existing one.
        optional: stages that a configuration may omit.
        left_out: stages that this run omits. Their artifacts from earlier runs are not part of the run.
    """

    name: str
    home: str
    order: tuple[str, ...]
    artifacts: Mapping[str, type[Record]]
    stopped: str = "the queries that are done can be evaluated and exported"
    command: str = "raggs run --config CONFIG"
    beside: str = "pass --run-id NAME"
    optional: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()

    def of(self, config: Mapping[str, object]) -> Pipeline:
        """Return the pipeline for a configuration: without the optional stages whose section is null."""
        out = tuple(name for name in self.order if name in self.optional and config.get(name, name) is None)
        if not out:
            return self
        kept = {name: record for name, record in self.artifacts.items() if name.partition(".")[0] not in out}
        order = tuple(name for name in self.order if name not in out)
        return replace(self, order=order, artifacts=kept, left_out=out)

    def number(self, stage: str) -> str:
        """Return the number and name of a stage: ``[2/4] ask``."""
        return f"[{self.order.index(stage) + 1}/{len(self.order)}] {stage}"

    def stage(self, name: str) -> AnyStage:
        """Return the stage called `name`.

        Raises:
            UsageError: the stage does not exist, or the run omits it.
        """
        if name in self.left_out:
            raise self._without(name)
        if name not in self.order:
            raise UsageError(f"unknown stage {name!r}", remedy=did_you_mean(name, self.order))
        return _load(self.home, name)

    def writer(self, artifact: str) -> str:
        """Return the stage that writes an artifact.

        Raises:
            UsageError: no stage writes it.
        """
        self.record(artifact)
        stem = artifact.partition(".")[0]
        return stem if stem in self.order else self.order[0]

    def record(self, artifact: str) -> type[Record]:
        """Return the record type of an artifact.

        Raises:
            UsageError: the artifact does not exist, or the run omits its stage.
        """
        if (stage := artifact.partition(".")[0]) in self.left_out:
            raise self._without(stage)
        if artifact not in self.artifacts:
            other = next((each for each in pipelines() if artifact in each.artifacts), None)
            if other is not None:
                remedy = f"use a {other.name} run; create one with {other.command}"
                raise UsageError(f"this is a {self.name} run, which has no artifact {artifact}", remedy=remedy)
            raise UsageError(f"unknown artifact {artifact!r}", remedy=did_you_mean(artifact, self.artifacts))
        return self.artifacts[artifact]

    def _without(self, stage: str) -> UsageError:
        remedy = f"add settings for {stage} (--set {stage}={{}} uses the defaults) and run again"
        return UsageError(f"this run omits the stage {stage} ({stage}: null)", remedy=remedy)


PIPELINES: Mapping[str, str] = {  # by name: the module with the constant of that name in capitals
    "golden": "raggs.stages",
    "questions": "raggs.stages.questions",
}


def load_pipeline(name: str) -> Pipeline:
    """Return the pipeline called `name`.

    Raises:
        UsageError: this version of raggs has no such pipeline.
    """
    if name not in PIPELINES:
        raise UsageError(
            f"unknown pipeline {name!r}", remedy=f"known: {', '.join(PIPELINES)}; a newer version of raggs may have it"
        )
    found: Pipeline = getattr(import_module(PIPELINES[name]), name.upper())
    return found


def pipelines() -> tuple[Pipeline, ...]:
    """Return all pipelines. Their stages and artifacts have distinct names."""
    return tuple(load_pipeline(name) for name in PIPELINES)


def pipeline_of(stage: str) -> Pipeline:
    """Return the pipeline that contains a stage.

    Raises:
        UsageError: no pipeline contains it; the message lists all stages.
    """
    found = next((pipeline for pipeline in pipelines() if stage in pipeline.order), None)
    if found is None:
        stages = [name for pipeline in pipelines() for name in pipeline.order]
        raise UsageError(f"unknown stage {stage!r}", remedy=did_you_mean(stage, stages))
    return found


@cache
def _load(home: str, name: str) -> AnyStage:
    stage: AnyStage = import_module(f"{home}.{name}").STAGE
    return stage
