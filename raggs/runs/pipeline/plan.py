"""What has to run, and why: pure decisions over locks and hashes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from raggs.base.errors import UsageError
from raggs.base.hashing import canonical_json, hash_value
from raggs.base.settings import Settings, causes_of
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.reasons import (
    FailuresLeft,
    Forced,
    Interrupted,
    NeverRun,
    OutputEdited,
    OutputMissing,
    Reason,
    differences,
)
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
        return (Interrupted() if interrupted else NeverRun(),)
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
            yield Interrupted() if interrupted else OutputEdited(name)
    if lock.failed:
        yield FailuresLeft(lock.failed)
    if forced:
        yield Forced()
