"""Marks on what of a prompt comes again: for who needs them, and without a change of any word."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from raggs.llm import BudgetSettings, LLMSettings, Price, messages, providers
from raggs.llm.caller import Caller
from raggs.llm.calls import ChatCall
from raggs.llm.faults import fault_of
from raggs.llm.ledger import CallTrace
from raggs.llm.messages import add_cache_marks, written_unasked
from raggs.llm.prices import list_price, mode_of, remembered_tokens

WRITES = "openai/gpt-5.6"  # charges for writing into its cache
SHORT, LONG = "Grade what is shown.", "Grade what is shown. " * 400


def body(system: str) -> dict[str, object]:
    return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": "Which?"}], "seed": 1}


def call(model: str, system: str) -> ChatCall:
    return ChatCall(model, {}, ({"role": "system", "content": system}, {"role": "user", "content": "Which?"}), {}, 10)


def test_a_model_that_charges_for_writing_writes_the_rubric_or_nothing() -> None:
    assert mode_of(WRITES) == "chat", "it is asked by the protocol that has these marks"
    told = {"prompt_cache_options": {"mode": "explicit"}}
    assert add_cache_marks(WRITES, body(SHORT), home=True) == body(SHORT) | told
    found = add_cache_marks(WRITES, body(LONG), home=True)
    part = {"type": "text", "text": LONG, "prompt_cache_breakpoint": {"mode": "explicit"}}
    user = {"role": "user", "content": "Which?"}
    assert found == {**body(LONG), **told, "messages": [{"role": "system", "content": [part]}, user]}


def test_anthropic_is_told_of_a_rubric_that_it_can_remember() -> None:
    model = "anthropic/claude-sonnet-4-5"
    assert add_cache_marks(model, body(SHORT), home=True) == body(SHORT)
    found = add_cache_marks(model, body(LONG), home=True)["messages"]
    part = {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}
    assert found == [{"role": "system", "content": [part]}, {"role": "user", "content": "Which?"}]
    assert add_cache_marks("anthropic/claude-haiku-4-5", body(LONG), home=True) == body(LONG), (
        "it remembers 4,096 or more"
    )


@pytest.mark.parametrize(
    ("model", "home", "more"),
    [
        ("openai/gpt-5-mini", True, {}),
        ("openai/nobody-knows", True, {}),
        ("mistral/mistral-small-latest", True, {}),
        (WRITES, False, {}),
        ("anthropic/claude-sonnet-4-5", False, {}),
        (WRITES, True, {"prompt_cache_options": {"mode": "implicit"}}),
    ],
)
def test_nobody_else_is_sent_another_byte(model: str, home: bool, more: dict[str, object]) -> None:
    asked = body(LONG) | more
    assert add_cache_marks(model, asked, home=home) is asked


def test_what_may_be_written_is_set_aside_and_nothing_else() -> None:
    price = Price(input=1.0, output=0.0, cached_input=0.1, cache_write=1.25)
    for model, system, dearer in (
        (WRITES, SHORT, 1.0),
        (WRITES, LONG, 1.25),
        ("anthropic/claude-sonnet-4-5", LONG, 1.25),
        ("anthropic/claude-haiku-4-5", LONG, 1.0),
        ("openai/gpt-5-mini", LONG, 1.0),
    ):
        asked = call(model, system)
        assert asked.most_usd(price, 0) == pytest.approx(dearer * price.usd(asked.prompt_tokens, 0)), model


def test_what_no_mark_keeps_a_provider_from_writing_is_estimated() -> None:
    assert written_unasked("azure/gpt-5.6", 2000, home=True) == 2000
    assert written_unasked(WRITES, 2000, home=False) == 2000, "whoever stands between may not know the marks"
    assert written_unasked(WRITES, 2000, home=True) == written_unasked(WRITES, 1000, home=False) == 0
    assert written_unasked("openai/gpt-5-mini", 2000, home=False) == 0


def test_what_is_likely_to_be_remembered_is_less_than_what_was_sent() -> None:
    assert remembered_tokens("openai/gpt-5-mini", LONG) % 128 == 0
    assert 1024 <= remembered_tokens("openai/gpt-5-mini", LONG) <= len(LONG) / 4
    assert remembered_tokens("openai/gpt-5-mini", SHORT) == 0
    assert list_price("ollama/anything") == Price(input=0, output=0)


def test_a_provider_that_refuses_its_own_marks_is_asked_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Mapping[str, object]] = []

    async def post(_path: str, model: str, body: Mapping[str, object], _settings: LLMSettings) -> providers.Answered:
        sent.append(body)
        if "prompt_cache_options" in body:
            refusal = providers.Refused("Unknown parameter: 'prompt_cache_options'.", 400, "unknown_parameter")
            raise fault_of(refusal, model)
        return {"choices": []}, {}

    monkeypatch.setattr(providers, "_post", post)
    monkeypatch.setattr(messages, "_unmarked_models", set())
    calls = []
    for _ in range(2):
        caller, trace = Caller(LLMSettings(), BudgetSettings()), CallTrace()
        asyncio.run(caller.call(call(WRITES, SHORT), trace))
        calls.append(trace.spent.calls)
    assert calls == [2, 1], "what was refused was sent as well"
    assert ["prompt_cache_options" in each for each in sent] == [True, False, False]
