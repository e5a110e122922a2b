"""Rewriters by name: one file and one line each (see `base.Rewriter`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.rewriters.base import Rewriter

REGISTRY: Registry[Rewriter] = Registry(
    "rewriter",
    "rewriters",
    "raggs.parts.rewriters.base:Rewriter",
    {
        "clean": "raggs.parts.rewriters.clean:CleanRewriter",
        "llm": "raggs.parts.rewriters.llm:LlmRewriter",
        "none": "raggs.parts.rewriters.none:NoRewriter",
    },
)
