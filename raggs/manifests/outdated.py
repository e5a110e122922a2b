"""Was a stage's result made by code that this raggs still has? Only then deriving it again says anything about it."""

from __future__ import annotations

from raggs import ranking
from raggs.manifests.models import StageLock
from raggs.stages import load_stage
from raggs.stages.rank import engine_version


def outdated(lock: StageLock) -> str | None:
    """What made the result and what is here instead, as a clause; None where they are the same."""
    here = {"code": load_stage(lock.stage).code}
    if lock.stage == "rank":
        engine = str(lock.components.get("engine")).partition("/")[0]
        here["engine"] = engine_version(engine) if engine in ranking.REGISTRY else f"no engine {engine}"
    for name, version in here.items():
        if lock.components.get(name) != version:
            return f"it was made by {lock.components.get(name)}, and this raggs has {version}"
    return None
