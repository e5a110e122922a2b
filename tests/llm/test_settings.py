"""What the settings accept, and which of them count as a cause."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from raggs.base.settings import causes_of
from raggs.llm import BudgetSettings, LLMSettings, Price

PRICE = {"input": 1, "output": 2}


def test_only_what_can_change_an_answer_is_a_cause():
    changed = LLMSettings(
        concurrency=1,
        requests_per_minute=1,
        tokens_per_minute=1,
        timeout_s=1,
        max_attempts=1,
        prices={"m": Price(input=1, output=1)},
    )
    assert causes_of(changed) == causes_of(LLMSettings())
    assert causes_of(BudgetSettings(max_usd=None, max_calls=1)) == {}
    assert causes_of(LLMSettings(parameters={"seed": 1})) != causes_of(LLMSettings())
    assert causes_of(LLMSettings(api_base="http://localhost")) == causes_of(LLMSettings())
    assert causes_of(LLMSettings(max_repairs=0)) != causes_of(LLMSettings())


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"requests_per_minute": 0},
        {"tokens_per_minute": 0},
        {"timeout_s": 0},
        {"max_attempts": 0},
        {"max_repairs": -1},
        {"prices": {"m": {"input": -1, "output": 0}}},
        {"parameters": {"model": "x"}},
        {"parameters": {"stream": True}},
        {"parameters": {"temperature": float("nan")}},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValidationError):
        LLMSettings.model_validate(wrong)


def test_a_key_in_the_configuration_is_refused_without_repeating_it():
    with pytest.raises(ValidationError) as caught:
        LLMSettings.model_validate({"parameters": {"api_key": "sk-secret"}})
    (problem,) = caught.value.errors(include_input=False)
    assert "environment variable" in problem["msg"]
    assert "sk-secret" not in problem["msg"]


def test_a_price_is_per_million_tokens():
    assert Price(input=0.25, output=2).usd(1_000_000, 500_000) == pytest.approx(1.25)


def test_what_a_provider_remembers_costs_less_and_what_it_writes_may_cost_more():
    price = Price(input=2.0, output=8.0, cached_input=0.5, cache_write=2.5)
    assert price.discount(1_000_000) == pytest.approx(1.5)
    assert price.discount(0, 1_000_000) == pytest.approx(-0.5)
    assert price.times(0.5).discount(1_000_000) == pytest.approx(0.75)
    assert price.most_usd(1_000_000, 0, written_tokens=1_000_000) == pytest.approx(2.5)
    assert Price(input=2.0, output=8.0).discount(1_000_000, 1_000_000) == 0.0
    assert set(Price(input=2.0, output=8.0).model_dump()) == {"input", "output", "per_1k_searches"}, "as it always was"


def test_of_one_model_alone_only_its_id_and_parameters_are_causes():
    plain = LLMSettings().causes_for(["openai/m"])
    assert plain == {"api_base": None, "max_repairs": 2, "parameters": {}}, "locks of every version"
    moved = {"api_base": "http://localhost:1/v1", "api_key_env": "MINE", "concurrency": 2, "prices": PRICE}
    assert LLMSettings(models={"openai/m": moved}).causes_for(["openai/m"]) == plain
    for own in ({"model_id": "m, 4 bits"}, {"parameters": {"seed": 1}}):
        changed = LLMSettings(models={"openai/m": own})
        assert changed.causes_for(["openai/m"]) == {**plain, "models": {"openai/m": own}}
        assert changed.causes_for(["openai/other"]) == plain


@pytest.mark.parametrize("wrong", ["sk-test-0123456789", "", "MY KEY", "$KEY"])
def test_a_models_key_is_named_by_its_variable(wrong):
    with pytest.raises(ValidationError) as caught:
        LLMSettings.model_validate({"models": {"openai/m": {"api_key_env": wrong}}})
    (problem,) = caught.value.errors(include_input=False)
    assert "environment variable" in problem["msg"]
    assert not wrong or wrong not in problem["msg"]
