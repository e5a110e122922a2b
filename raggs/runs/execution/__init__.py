"""Ways to execute a stage by name: one file and one line each (see `base.Execution`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.runs.execution.base import Execution

REGISTRY: Registry[Execution] = Registry(
    "execution",
    "executions",
    "raggs.runs.execution.base:Execution",
    {
        "dask": "raggs.runs.execution.dask:DaskExecution",
        "local": "raggs.runs.execution.local:LocalExecution",
    },
)
