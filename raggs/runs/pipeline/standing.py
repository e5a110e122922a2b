"""How a run stands: for each stage why it would run now, or that it would not. Nothing is written.

What a stage's result depends on today is told by whoever asks: from a configuration, with all of its parts; or from
the run's own directory alone, where inputs that lie elsewhere are taken to be as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from raggs.base.artifacts import artifact_file
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.outdated import made_by
from raggs.runs.manifests.reasons import LockEdited, Reason, Upstream
from raggs.runs.manifests.seal import unsound
from raggs.runs.manifests.store import RunStore
from raggs.runs.pipeline.plan import Selection, decide
from raggs.stages.base import AnyStage
from raggs.stages.pipeline import Pipeline

Plan = dict[str, tuple[Reason, ...]]
Components = Callable[[AnyStage, StageLock, Mapping[str, str]], Mapping[str, Any]]


def as_locked(stage: AnyStage, lock: StageLock, inputs: Mapping[str, str]) -> Mapping[str, Any]:
    """What a result depends on, as far as the run's own directory and this raggs tell."""
    return {**lock.components, **made_by(stage, lock), **({"inputs": dict(inputs)} if inputs else {})}


@dataclass
class Standing:
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
            waits = tuple(Upstream(before) for before in stage.READS if planned.get(self.pipeline.writer(before)))
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
        return set(unsound(self.store.content())) if self.store.exists else set()

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
