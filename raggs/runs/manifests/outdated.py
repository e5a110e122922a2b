"""Check whether a stage's result was made by the code of the installed version of raggs. A result can be recomputed
only by the same code.
"""

from __future__ import annotations

from raggs import ranking
from raggs.runs.manifests.models import StageLock
from raggs.stages.base import AnyStage
from raggs.stages.pipeline import pipeline_of
from raggs.stages.rank_config import engine_version


def made_by(stage: AnyStage, lock: StageLock) -> dict[str, str]:
    """Return the versions of the installed code that would make the result now, with the same keys as in component
    trees.
    """
    here = {"code": stage.code}
    if "engine" in lock.components:
        engine = str(lock.components["engine"]).partition("/")[0]
        known, size = engine in ranking.REGISTRY, lock.params.get("batch_size")
        here["engine"] = engine_version(engine, size) if known else f"no engine {engine}"
    return here


def outdated(lock: StageLock) -> str | None:
    """Return which version made the result and which version is installed, as a clause. Return None if the versions are
    the same.
    """
    for name, version in made_by(pipeline_of(lock.stage).stage(lock.stage), lock).items():
        if lock.components.get(name) != version:
            return f"it was made by {lock.components.get(name)}, but {version} is installed"
    return None
