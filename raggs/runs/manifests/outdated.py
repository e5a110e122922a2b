"""Was a stage's result made by code that this raggs still has? Only then deriving it again says anything about it."""

from __future__ import annotations

from raggs import ranking
from raggs.runs.manifests.models import StageLock
from raggs.stages.base import AnyStage
from raggs.stages.pipeline import pipeline_of
from raggs.stages.rank_config import engine_version


def made_by(stage: AnyStage, lock: StageLock) -> dict[str, str]:
    """The versions of this raggs' code that would make the result now, as component trees name them."""
    here = {"code": stage.code}
    if "engine" in lock.components:
        engine = str(lock.components["engine"]).partition("/")[0]
        known, size = engine in ranking.REGISTRY, lock.params.get("batch_size")
        here["engine"] = engine_version(engine, size) if known else f"no engine {engine}"
    return here


def outdated(lock: StageLock) -> str | None:
    """What made the result and what is here instead, as a clause; None where they are the same."""
    for name, version in made_by(pipeline_of(lock.stage).stage(lock.stage), lock).items():
        if lock.components.get(name) != version:
            return f"it was made by {lock.components.get(name)}, and this raggs has {version}"
    return None
