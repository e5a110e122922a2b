"""Judges by name: one file and one line each (see `base.Judge`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

REGISTRY: Registry[Adapter] = Registry(
    "judge",
    {
        "litellm": "raggs.judges.litellm:LiteLLMJudge",
        "nuggets": "raggs.judges.nuggets:NuggetJudge",
        "reference": "raggs.judges.reference:ReferenceJudge",
        "qrels": "raggs.judges.qrels:QrelsJudge",
        "scripted": "raggs.judges.scripted:ScriptedJudge",
    },
)
