"""Naming, configuring and pricing models loads nothing heavy."""

from __future__ import annotations

import os
import subprocess
import sys

from support.llm_server import LLMServer

SCRIPT = """
import sys
from pathlib import Path
import raggs.parts.judges.litellm, raggs.parts.rewriters.llm
from raggs.llm import LLM, BudgetSettings, LLMSettings
llm = LLM(LLMSettings(), BudgetSettings(), Path("nowhere"))
llm.price("openai/gpt-5-mini"), llm.spent
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


TIMED = """
import asyncio, sys
sys.path[:0] = sys.argv[2:]
from support.llm_bench import MODEL, PRICE, question
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.llm.ledger import CallTrace

seen = []
original = CallTrace.attempt
def attempt(self):
    seen.append(sorted({"litellm", "aiohttp"} & sys.modules.keys()))
    return original(self)
CallTrace.attempt = attempt

models = [MODEL, "hosted_vllm/x"]
llm = LLM(LLMSettings(api_base=sys.argv[1], prices={MODEL: PRICE}), BudgetSettings(), None)
for model in models:
    asyncio.run(llm.ask(question(model=model)))
print(seen)
"""


def test_no_calls_time_holds_what_is_loaded_for_it():
    with LLMServer() as server:
        command, keys = [sys.executable, "-c", TIMED, server.url, *sys.path], {**os.environ, "OPENAI_API_KEY": "x"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=keys)
    assert done.stdout.strip() == "[['aiohttp'], ['aiohttp', 'litellm']]"
