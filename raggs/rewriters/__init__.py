"""Rewriters by name: one file and one line each (see `base.Rewriter`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

REGISTRY: Registry[Adapter] = Registry(
    "rewriter",
    {
        "none": "raggs.rewriters.none:NoRewriter",
        "clean": "raggs.rewriters.clean:CleanRewriter",
        "llm": "raggs.rewriters.llm:LlmRewriter",
    },
)
