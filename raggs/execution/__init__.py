"""Ways to execute a stage by name: one file and one line each (see `base.Execution`).

Imports: manifests, stages, judges, indexes, elastic, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.execution.base import Execution

REGISTRY: Registry[Execution] = Registry(
    "execution",
    "executions",
    "raggs.execution.base:Execution",
    {
        "dask": "raggs.execution.dask:DaskExecution",
        "local": "raggs.execution.local:LocalExecution",
    },
)
