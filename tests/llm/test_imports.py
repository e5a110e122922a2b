"""Naming, configuring and pricing models loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from pathlib import Path
import raggs.judges.litellm, raggs.rewriters.llm
from raggs.llm import LLM, BudgetSettings, LLMSettings
llm = LLM(LLMSettings(), BudgetSettings(), Path("nowhere"))
llm.price("openai/gpt-5-mini"), llm.estimate_tokens("text"), llm.spent
heavy = ("litellm", "openai", "httpx", "aiohttp", "tenacity", "diskcache", "numpy")
print([name for name in heavy if name in sys.modules])
"""


def test_nothing_heavy_is_loaded_before_something_is_asked():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_library_is_told_to_stay_at_home(monkeypatch):
    from raggs.llm.providers import library

    litellm = library()
    assert litellm.telemetry is False
    assert litellm.suppress_debug_info is True
