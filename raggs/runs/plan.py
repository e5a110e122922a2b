"""Decide which stages have to run, and why, from locks and hashes. Nothing is written.

`RunState.plan` returns for each stage the reasons to run it now. A stage without reasons is up to date.

The caller supplies a function that returns what a stage's result currently depends on. The function uses a
configuration with all its components, or only the run directory and the installed code (`as_locked`). `as_locked`
assumes that inputs outside the directory are unchanged.
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
    """Which stages to run, in order, and how.

    Attributes:
        stages: names of the stages.
        force: whether the stages run even if nothing has changed.
        discards_edits: whether manually edited artifacts may be replaced.
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
    """Select stages of a pipeline by first and last stage, or by a single one.

    Raises:
        UsageError: a stage is unknown, `only` is combined with `start` or `stop`, or the start is after the stop.
    """
    for name in (start, stop, only):
        if name is not None:
            pipeline.stage(name)
    order = pipeline.order
    if only is not None:
        if start is not None or stop is not None:
            raise UsageError("--only cannot be combined with --from or --to", remedy="remove --from and --to")
        return Selection((only,), force, discards_edits)
    first = order.index(start) if start else 0
    last = order.index(stop) if stop else len(order) - 1
    if first > last:
        raise UsageError(f"--from {start} is after --to {stop}", remedy="swap them")
    return Selection(order[first : last + 1], force, discards_edits)


def components(stage: AnyStage, config: Settings, services: Services, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that a stage's result depends on, as a tree with names. Locks store this tree, and the reasons
    to run a stage are its changes.
    """
    parts = {
        "code": stage.code,
        "config": causes_of(config),
        **stage.causes(config, services),
        **({"inputs": dict(inputs)} if inputs else {}),
    }
    # converted to the types that JSON has, so that it can be compared with the tree in a manifest
    tree: dict[str, Any] = json.loads(canonical_json(parts))
    return tree


def fingerprint(parts: Mapping[str, Any]) -> str:
    """Return the hash of a component tree."""
    return hash_value(parts)


def decide(
    lock: StageLock | None,
    parts: Mapping[str, Any],
    outputs: Mapping[str, str | None],
    *,
    forced: bool = False,
    interrupted: bool = False,
) -> tuple[Reason, ...]:
    """Return why a stage has to run; empty if it is up to date.

    Args:
        lock: the stage's lock, if it finished before.
        parts: its current components.
        outputs: current sha256 of each file that the lock names.
        forced: whether the stage was forced.
        interrupted: whether the last attempt did not finish. If so, changed outputs are not reported as manual edits.
    """
    if lock is None:
        return (RunInterrupted() if interrupted else NeverRun(),)
    found = list(_causes(lock, parts, outputs, forced, interrupted))
    return tuple(reason for number, reason in enumerate(found) if reason not in found[:number])


def _still_causes(components: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a lock's components without the judge's address. Older versions stored it, although results do not depend
    on it.
    """
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
    """Return the current component tree of a stage without its configuration: the lock's tree, with the versions of the
    installed code and the given hashes of inputs.
    """
    return {**lock.components, **made_by(stage, lock), **({"inputs": dict(inputs)} if inputs else {})}


@dataclass
class RunState:
    """Compares a run directory with the current settings, inputs and code.

    Args:
        store: the run directory.
        pipeline: its stages.
        components: returns the current component tree of a stage, given its lock and the hashes of its inputs.
    """

    store: RunStore
    pipeline: Pipeline
    components: Components = as_locked
    _hashes: dict[str, str | None] = field(default_factory=dict)

    def plan(self, selection: Selection | None = None) -> Plan:
        """Return for each selected stage (default: all) why it would run now; empty if it is up to date."""
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
        """Return why a stage would run now, without regard to whether earlier stages would run."""
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
        """The stages whose locks were changed since raggs wrote them. They are read once; `mended` updates them."""
        return set(edited_stages(self.store.content())) if self.store.exists else set()

    def mended(self, stage: str) -> None:
        """Record that a stage has a new lock, which is valid."""
        self.unsound.discard(stage)

    def inputs(self, stage: AnyStage) -> dict[str, str]:
        """Return the hashes of the artifacts that a stage reads, by file; empty for a missing file."""
        return {artifact_file(read): self.file_hash(artifact_file(read)) or "" for read in stage.READS}

    def file_hash(self, file: str) -> str | None:
        """Return the sha256 of a file of the run; None if it is missing. It is computed once; `wrote` updates it."""
        if file not in self._hashes:
            self._hashes[file] = self.store.file_hash(file)
        return self._hashes[file]

    def wrote(self, file: str, sha256: str) -> None:
        """Record a file's new content."""
        self._hashes[file] = sha256
