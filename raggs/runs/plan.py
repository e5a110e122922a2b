"""What has to run, and why: pure decisions over locks and hashes.

How a run stands: for each stage why it would run now, or that it would not. Nothing is written.

What a stage's result depends on today is told by whoever asks: from a configuration, with all of its parts; or from
the run's own directory alone, where inputs that lie elsewhere are taken to be as they were.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from raggs.base.artifacts import artifact_file
from raggs.base.errors import UsageError
from raggs.base.hashing import canonical_json, hash_value
from raggs.base.settings import Settings, causes_of
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.outdated import made_by
from raggs.runs.manifests.reasons import (
    FailuresLeft,
    ForcedRerun,
    LockEdited,
    NeverRun,
    OutputEdited,
    OutputMissing,
    Reason,
    RunInterrupted,
    UpstreamReruns,
    differences,
)
from raggs.runs.manifests.store import RunStore, edited_stages
from raggs.stages.base import AnyStage, Services
from raggs.stages.pipeline import Pipeline


@dataclass(frozen=True)
class Selection:
    """The stages that are asked for, in order.

    Attributes:
        force: whether they run even where nothing changed.
        discards_edits: whether artifacts that were edited by hand may be replaced.
    """

    stages: tuple[str, ...]
    force: bool = False
    discards_edits: bool = False


def select(
    pipeline: Pipeline,
    start: str | None = None,
    stop: str | None = None,
    only: str | None = None,
    force: bool = False,
    discards_edits: bool = False,
) -> Selection:
    """A selection of a pipeline's stages from the three ways to name it.

    Raises:
        UsageError: an unknown stage, `only` beside another, or a start after the stop.
    """
    for name in (start, stop, only):
        if name is not None:
            pipeline.stage(name)
    order = pipeline.order
    if only is not None:
        if start is not None or stop is not None:
            raise UsageError("--only stands alone", remedy="leave out --from and --to")
        return Selection((only,), force, discards_edits)
    first = order.index(start) if start else 0
    last = order.index(stop) if stop else len(order) - 1
    if first > last:
        raise UsageError(f"--from {start} comes after --to {stop}", remedy="swap them")
    return Selection(order[first : last + 1], force, discards_edits)


def components(stage: AnyStage, config: Settings, services: Services, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Everything that a stage's result depends on, by name; the tree is what a lock keeps and reasons compare."""
    parts = {
        "code": stage.code,
        "config": causes_of(config),
        **stage.causes(config, services),
        **({"inputs": dict(inputs)} if inputs else {}),
    }
    tree: dict[str, Any] = json.loads(canonical_json(parts))  # as a manifest would give it back
    return tree


def fingerprint(parts: Mapping[str, Any]) -> str:
    """The hash that stands for a component tree."""
    return hash_value(parts)


def decide(
    lock: StageLock | None,
    parts: Mapping[str, Any],
    outputs: Mapping[str, str | None],
    *,
    forced: bool = False,
    interrupted: bool = False,
) -> tuple[Reason, ...]:
    """Why a stage has to run; empty if it need not.

    Args:
        lock: the stage's lock, if it has finished before.
        parts: the components of today.
        outputs: sha256 of each file that the lock names, as it is on disk now.
        interrupted: the last attempt did not finish, so that nobody else need have changed an output.
    """
    if lock is None:
        return (RunInterrupted() if interrupted else NeverRun(),)
    found = list(_causes(lock, parts, outputs, forced, interrupted))
    return tuple(reason for number, reason in enumerate(found) if reason not in found[:number])


def _still_causes(components: Mapping[str, Any]) -> Mapping[str, Any]:
    """A lock's components without what was a cause once: where a judge was asked."""
    judge = components.get("judge")
    if not (isinstance(judge, Mapping) and isinstance(asked := judge.get("llm"), Mapping)):
        return components
    return {**components, "judge": {**judge, "llm": {**asked, "api_base": None}}}


def _causes(
    lock: StageLock, parts: Mapping[str, Any], outputs: Mapping[str, str | None], forced: bool, interrupted: bool
) -> Iterator[Reason]:
    if lock.fingerprint != fingerprint(parts):
        yield from differences(_still_causes(lock.components), parts)
    for name, output in lock.outputs.items():
        found = outputs.get(name)
        if found is None:
            yield OutputMissing(name)
        elif found != output.sha256:
            yield RunInterrupted() if interrupted else OutputEdited(name)
    if lock.failed:
        yield FailuresLeft(lock.failed)
    if forced:
        yield ForcedRerun()


Plan = dict[str, tuple[Reason, ...]]
Components = Callable[[AnyStage, StageLock, Mapping[str, str]], Mapping[str, Any]]


def as_locked(stage: AnyStage, lock: StageLock, inputs: Mapping[str, str]) -> Mapping[str, Any]:
    """What a result depends on, as far as the run's own directory and this raggs tell."""
    return {**lock.components, **made_by(stage, lock), **({"inputs": dict(inputs)} if inputs else {})}


@dataclass
class RunState:
    """One run directory, held against what its results depend on today.

    Args:
        store: the run directory.
        pipeline: its stages.
        components: today's component tree of a stage, given its lock and the hashes of the artifacts it reads.
    """

    store: RunStore
    pipeline: Pipeline
    components: Components = as_locked
    _hashes: dict[str, str | None] = field(default_factory=dict)

    def plan(self, selection: Selection | None = None) -> Plan:
        """For each selected stage (default: all) why it would run now; empty if it would not."""
        chosen = selection or Selection(self.pipeline.order)
        locks = self.store.manifest().stages if self.store.exists else {}
        planned: Plan = {}
        for name in self.pipeline.order:
            stage, lock = self.pipeline.stage(name), locks.get(name)
            waits = tuple(UpstreamReruns(before) for before in stage.READS if planned.get(self.pipeline.writer(before)))
            forced = chosen.force and name in chosen.stages
            planned[name] = waits if waits and lock is not None else self.reasons(stage, lock, forced=forced)
        return {name: planned[name] for name in chosen.stages}

    def reasons(self, stage: AnyStage, lock: StageLock | None, *, forced: bool = False) -> tuple[Reason, ...]:
        """Why a stage would run, whatever the stages before it do."""
        if stage.NAME in self.unsound:
            return (LockEdited(stage.NAME),)
        interrupted = self.store.marker(stage.NAME).exists()
        if lock is None:
            return decide(None, {}, {}, interrupted=interrupted)
        found = {file: self.file_hash(file) for file in lock.outputs}
        today = self.components(stage, lock, self.inputs(stage))
        return decide(lock, today, found, forced=forced, interrupted=interrupted)

    @cached_property
    def unsound(self) -> set[str]:
        """The stages whose locks were changed since raggs wrote them; read once, unless `mended` tells better."""
        return set(edited_stages(self.store.content())) if self.store.exists else set()

    def mended(self, stage: str) -> None:
        """Take note that a stage has a new lock."""
        self.unsound.discard(stage)

    def inputs(self, stage: AnyStage) -> dict[str, str]:
        """The hashes of the artifacts that a stage reads, by file; empty for one that is not there."""
        return {artifact_file(read): self.file_hash(artifact_file(read)) or "" for read in stage.READS}

    def file_hash(self, file: str) -> str | None:
        """sha256 of a file of the run; read once, unless `wrote` tells better."""
        if file not in self._hashes:
            self._hashes[file] = self.store.file_hash(file)
        return self._hashes[file]

    def wrote(self, file: str, sha256: str) -> None:
        """Take note of a file's new content."""
        self._hashes[file] = sha256
