"""Judges by name: one file and one line each (see `base.Judge`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.judges.base import Judge

REGISTRY: Registry[Judge] = Registry(
    "judge",
    "judges",
    "raggs.parts.judges.base:Judge",
    {
        "cascade": "raggs.parts.judges.cascade:CascadeJudge",
        "human": "raggs.parts.judges.human:HumanJudge",
        "litellm": "raggs.parts.judges.litellm:LiteLLMJudge",
        "nuggets": "raggs.parts.judges.nuggets:NuggetJudge",
        "panel": "raggs.parts.judges.panel:PanelJudge",
        "python": "raggs.parts.judges.python:PythonJudge",
        "qrels": "raggs.parts.judges.qrels:QrelsJudge",
        "reference": "raggs.parts.judges.reference:ReferenceJudge",
        "scripted": "raggs.parts.judges.scripted:ScriptedJudge",
    },
)
