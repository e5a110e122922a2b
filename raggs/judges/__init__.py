"""Judges by name: one file and one line each (see `base.Judge`)."""

from __future__ import annotations

from raggs.registry import Adapter, Registry

ALONE = {
    "litellm": "raggs.judges.litellm:LiteLLMJudge",
    "nuggets": "raggs.judges.nuggets:NuggetJudge",
    "reference": "raggs.judges.reference:ReferenceJudge",
    "qrels": "raggs.judges.qrels:QrelsJudge",
    "scripted": "raggs.judges.scripted:ScriptedJudge",
}

SINGLE: Registry[Adapter] = Registry("judge", ALONE)  # who may sit in a panel
REGISTRY: Registry[Adapter] = Registry("judge", {**ALONE, "panel": "raggs.judges.panel:PanelJudge"})
