"""Judges by name: one file and one line each (see `base.Judge`).

Imports: prompts, readers, reviews, fusion, llm, health, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.judges.base import Judge

REGISTRY: Registry[Judge] = Registry(
    "judge",
    "judges",
    "raggs.judges.base:Judge",
    {
        "cascade": "raggs.judges.cascade:CascadeJudge",
        "human": "raggs.judges.human:HumanJudge",
        "litellm": "raggs.judges.litellm:LiteLLMJudge",
        "nuggets": "raggs.judges.nuggets:NuggetJudge",
        "panel": "raggs.judges.panel:PanelJudge",
        "python": "raggs.judges.python:PythonJudge",
        "qrels": "raggs.judges.qrels:QrelsJudge",
        "reference": "raggs.judges.reference:ReferenceJudge",
        "scripted": "raggs.judges.scripted:ScriptedJudge",
    },
)
