"""What would be asked of a model, as a line of a dry run."""

from __future__ import annotations

from raggs.llm import LLMSettings
from raggs.llm.rehearsal import CallEstimate, DryRunLLM
from raggs.runs.forecast import line_of


def test_searches_cost_too_and_an_unknown_price_is_none():
    asked = CallEstimate(known=2, missing=8, tokens=1000, calls=3, searches=3)
    prices = {"openai/m": {"input": 1.0, "output": 10.0, "per_1k_searches": 2.0}}
    llm = DryRunLLM(LLMSettings.model_validate({"prices": prices}), None)
    found = line_of(llm, "rerank", "openai/m", asked, (100, 0))
    assert (found.calls, found.cached, found.output_tokens) == (3, 2, 300)
    assert found.usd == 1000 / 1e6 + 300 * 10 / 1e6 + 3 * 2 / 1000
    assert line_of(llm, "rerank", "openai/nobody-knows", asked).usd is None
