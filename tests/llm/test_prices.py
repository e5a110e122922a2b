"""Prices, names of keys and estimates of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.llm import LLM, BudgetSettings, LLMSettings, Price
from raggs.llm.prices import estimate_tokens, key_variable, list_price, nearest_model, provider_of

PROSE = {
    "English": "A golden set names, for each question, the passages that answer it, and how well each one does. " * 4,
    "French": "Un jeu de référence indique, pour chaque question, les passages qui y répondent, parfois en partie. "
    * 4,
    "German": "Die Straßenverkehrsordnung regelt Geschwindigkeitsbegrenzungen innerhalb geschlossener Ortschaften. "
    * 4,
    "Chinese": "检索系统的评估需要一个可靠的数据集，每个问题都配有经过评分的段落。" * 4,
    "code": "def label(position: int) -> str:\n    head, tail = divmod(position, 26)\n    return chr(65 + tail)\n" * 4,
}


def test_the_list_knows_a_model_with_and_without_its_provider():
    price = list_price("openai/gpt-5-mini")
    assert price is not None and price == list_price("gpt-5-mini")
    assert (price.input, price.output, price.cached_input) == pytest.approx((0.25, 2.0, 0.025))


def test_the_list_agrees_with_litellm(bench):
    from raggs.llm.providers import library

    entry = library().model_cost["claude-sonnet-4-5"]
    price = list_price("anthropic/claude-sonnet-4-5")
    assert price is not None
    assert price.input == pytest.approx(entry["input_cost_per_token"] * 1e6)
    assert price.output == pytest.approx(entry["output_cost_per_token"] * 1e6)


@pytest.mark.parametrize("model", ["openai/nobody-knows", "mistral/gpt-5-mini", "nonsense", ""])
def test_an_unknown_model_has_no_price(model):
    assert list_price(model) is None


@pytest.mark.parametrize("model", ["ollama/anything", "hosted_vllm/anything"])
def test_a_server_of_ones_own_costs_nothing_and_needs_no_key(model):
    assert list_price(model) == Price(input=0, output=0)
    assert key_variable(model) is None


def test_the_settings_go_before_the_list():
    own = Price(input=7, output=8)
    llm = LLM(LLMSettings(prices={"openai/gpt-5-mini": own}), BudgetSettings(), None)
    assert llm.price("openai/gpt-5-mini") == own


@pytest.mark.parametrize(
    ("model", "provider", "variable"),
    [
        ("openai/gpt-5-mini", "openai", "OPENAI_API_KEY"),
        ("gpt-5-mini", "openai", "OPENAI_API_KEY"),
        ("claude-sonnet-4-5", "anthropic", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash", "gemini", "GEMINI_API_KEY"),
        ("together_ai/any/model", "together_ai", "TOGETHERAI_API_KEY"),
    ],
)
def test_provider_and_key_follow_from_the_name(model, provider, variable):
    assert provider_of(model) == provider
    assert key_variable(model) == variable


@pytest.mark.parametrize("language", PROSE)
@pytest.mark.parametrize("model", ["gpt-4", "gpt-4o"])
def test_prose_is_never_underestimated_and_at_most_doubled(language, model):
    from raggs.llm.providers import library

    true = library().token_counter(model=model, text=PROSE[language])
    assert true <= estimate_tokens(PROSE[language]) <= 2 * true


@given(st.text(), st.text())
def test_more_text_never_has_fewer_tokens(one, other):
    assert estimate_tokens(one + other) >= max(estimate_tokens(one), estimate_tokens(other))


@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("gpt5-mini", "gpt-5-mini"),
        ("openai/gpt5-mini", "openai/gpt-5-mini"),
        ("mistral/mistal-large-latest", "mistral/mistral-large-latest"),
        ("gpt-5-mini", None),
        ("mistral", None),
        ("hosted_vllm/mine", None),
    ],
)
def test_the_nearest_known_model_is_named(model: str, near: str | None) -> None:
    assert nearest_model(model) == near
