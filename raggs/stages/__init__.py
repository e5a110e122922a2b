"""The six stages in their order. Each is one file; none knows another.

Imports: adapters, libraries, llm, health, leaves.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from raggs.stages.base import Stage

ORDER = ("embed", "retrieve", "merge", "judge", "prune", "rank")


@cache
def load_stage(name: str) -> Stage[Any]:
    """The stage that bears `name`."""
    stage: Stage[Any] = import_module(f"raggs.stages.{name}").STAGE
    return stage
