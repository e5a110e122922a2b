"""A pipeline: stages in their order, and the artifacts that they write. The runner and the audit are given one.

A stage is one module of the pipeline's package, and is imported when it is first used.
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
    from raggs.stages.base import AnyStage  # late: it needs numpy, and most who open a run do not


@dataclass(frozen=True)
class Pipeline:
    """Stages that hand artifacts on.

    Attributes:
        name: as manifests state it.
        home: the package whose modules are the stages, each with its `STAGE`.
        order: the stages' names; each reads artifacts of stages before it.
        artifacts: every artifact by name, with the record on its lines. One is called by its stage's name, or by that
            and more after a dot; the first stage writes those with other names.
        stopped: what is told of a stage that asks somebody and was stopped.
        command: what makes a run of it.
        beside: how another run of it is made beside one.
        optional: stages without which a run is whole, where its configuration says so.
        left_out: those that this run's does without; what an earlier run left of them is no part of it.
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
        """The pipeline as a configuration has it: without the stages, of those that may go, whose section is null."""
        out = tuple(name for name in self.order if name in self.optional and config.get(name, name) is None)
        if not out:
            return self
        kept = {name: record for name, record in self.artifacts.items() if name.partition(".")[0] not in out}
        order = tuple(name for name in self.order if name not in out)
        return replace(self, order=order, artifacts=kept, left_out=out)

    def number(self, stage: str) -> str:
        """Which of its stages one is: ``[2/4] ask``."""
        return f"[{self.order.index(stage) + 1}/{len(self.order)}] {stage}"

    def stage(self, name: str) -> AnyStage:
        """The stage that bears `name`.

        Raises:
            UsageError: there is none; the message lists those there are.
        """
        if name in self.left_out:
            raise self._without(name)
        if name not in self.order:
            raise UsageError(f"there is no stage {name!r}", remedy=did_you_mean(name, self.order))
        return _load(self.home, name)

    def writer(self, artifact: str) -> str:
        """The stage that writes an artifact.

        Raises:
            UsageError: no stage does.
        """
        self.record(artifact)
        stem = artifact.partition(".")[0]
        return stem if stem in self.order else self.order[0]

    def record(self, artifact: str) -> type[Record]:
        """The record on the lines of an artifact.

        Raises:
            UsageError: no such artifact; the message lists the known ones.
        """
        if (stage := artifact.partition(".")[0]) in self.left_out:
            raise self._without(stage)
        if artifact not in self.artifacts:
            other = next((each for each in pipelines() if artifact in each.artifacts), None)
            if other is not None:
                remedy = f"name a {other.name} run, which {other.command} makes"
                raise UsageError(f"this is a {self.name} run, which has no {artifact}", remedy=remedy)
            raise UsageError(f"there is no artifact {artifact!r}", remedy=did_you_mean(artifact, self.artifacts))
        return self.artifacts[artifact]

    def _without(self, stage: str) -> UsageError:
        remedy = f"give {stage} its settings (--set {stage}={{}} takes the defaults) and run again"
        return UsageError(f"this run leaves {stage} out ({stage}: null)", remedy=remedy)


PIPELINES: Mapping[str, str] = {  # by name, the module that holds it in capitals
    "golden": "raggs.stages",
    "questions": "raggs.stages.questions",
}


def load_pipeline(name: str) -> Pipeline:
    """The pipeline that bears `name`.

    Raises:
        UsageError: this raggs has none of that name.
    """
    if name not in PIPELINES:
        raise UsageError(f"unknown pipeline {name!r}", remedy=f"known: {', '.join(PIPELINES)}; upgrade raggs")
    found: Pipeline = getattr(import_module(PIPELINES[name]), name.upper())
    return found


def pipelines() -> tuple[Pipeline, ...]:
    """All that this raggs has; no two have a stage or an artifact of the same name."""
    return tuple(load_pipeline(name) for name in PIPELINES)


def pipeline_of(stage: str) -> Pipeline:
    """The pipeline that has a stage of this name.

    Raises:
        UsageError: none has; the message lists all stages.
    """
    found = next((pipeline for pipeline in pipelines() if stage in pipeline.order), None)
    if found is None:
        stages = [name for pipeline in pipelines() for name in pipeline.order]
        raise UsageError(f"there is no stage {stage!r}", remedy=did_you_mean(stage, stages))
    return found


@cache
def _load(home: str, name: str) -> AnyStage:
    stage: AnyStage = import_module(f"{home}.{name}").STAGE
    return stage
