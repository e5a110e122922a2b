"""Askers by name: who makes a question of a window of a document; one file and one line each (see `base.Asker`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.askers.base import Asker

REGISTRY: Registry[Asker] = Registry(
    "asker",
    "askers",
    "raggs.parts.askers.base:Asker",
    {
        "extractive": "raggs.parts.askers.extractive:ExtractiveAsker",
        "litellm": "raggs.parts.askers.litellm:LiteLLMAsker",
        "scripted": "raggs.parts.askers.scripted:ScriptedAsker",
    },
)
