"""Rewriters by name: one file and one line each (see `base.Rewriter`).

Imports: prompts, llm, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.rewriters.base import Rewriter

REGISTRY: Registry[Rewriter] = Registry(
    "rewriter",
    "rewriters",
    "raggs.rewriters.base:Rewriter",
    {
        "clean": "raggs.rewriters.clean:CleanRewriter",
        "llm": "raggs.rewriters.llm:LlmRewriter",
        "none": "raggs.rewriters.none:NoRewriter",
    },
)
