"""Askers by name: who makes a question of a window of a document; one file and one line each (see `base.Asker`).

Imports: chunkers, prompts, asking, llm, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.askers.base import Asker

REGISTRY: Registry[Asker] = Registry(
    "asker",
    "askers",
    "raggs.askers.base:Asker",
    {
        "extractive": "raggs.askers.extractive:ExtractiveAsker",
        "litellm": "raggs.askers.litellm:LiteLLMAsker",
        "scripted": "raggs.askers.scripted:ScriptedAsker",
    },
)
