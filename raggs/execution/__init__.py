"""Ways to execute a stage by name: one file and one line each (see `base.Execution`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

REGISTRY: Registry[Adapter] = Registry(
    "execution",
    {
        "local": "raggs.execution.local:LocalExecution",
        "dask": "raggs.execution.dask:DaskExecution",
    },
)
