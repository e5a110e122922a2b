"""Reading what a model said: taken or refused, never bent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.llm.calls import Completion
from raggs.llm.conversation import Unusable, correction, read_completion, read_text


def any_object(answer):
    return answer


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.none()))
def test_any_object_is_read_as_it_is(value):
    assert read_text(json.dumps(value), any_object) == value


@pytest.mark.parametrize(
    "raw", ['```json\n{"a": 1}\n```', '```\n{"a": 1}\n```', '  {"a": 1}\n', '```json\n{"a": 1}```']
)
def test_space_and_a_markdown_fence_are_taken_off(raw):
    assert read_text(raw, any_object) == {"a": 1}


@pytest.mark.parametrize(
    ("raw", "phrase"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("```\n\n```", "empty"),
        ("four", "not one JSON object"),
        ('{"a": 1', "not one JSON object"),
        ('{"a": 1} {"a": 2}', "not one JSON object"),
        ('Sure: {"a": 1}', "not one JSON object"),
        ("[1]", "not one JSON object"),
        ("4", "not one JSON object"),
        ("null", "not one JSON object"),
        ('{"a": NaN}', "not one JSON object"),
        ('{"a": 1, "a": 5}', "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_anything_else_is_refused_with_a_phrase(raw, phrase):
    with pytest.raises(Unusable, match=phrase):
        read_text(raw, any_object)


def test_the_phrase_of_the_check_is_passed_on():
    def check(_):
        raise ValueError("it must be green")

    with pytest.raises(Unusable, match="it must be green"):
        read_text("{}", check)


@pytest.mark.parametrize(
    ("finish", "refusal", "phrase", "truncated"),
    [
        ("length", None, "cut off", True),
        ("content_filter", None, "refusal", False),
        ("stop", "I cannot", "refusal", False),
    ],
)
def test_how_an_answer_ended_goes_before_what_it_says(finish, refusal, phrase, truncated):
    with pytest.raises(Unusable, match=phrase) as caught:
        read_completion(Completion(1, 1, {}, '{"a": 1}', finish, refusal), any_object)
    assert caught.value.truncated is truncated


def test_an_answer_that_ended_well_is_read():
    assert read_completion(Completion(1, 1, {}, '{"a": 1}', "stop", None), any_object) == {"a": 1}
    assert read_completion(Completion(None, None, {}, '{"a": 1}', None, None), any_object) == {"a": 1}


def test_a_correction_names_the_problem():
    message = correction(Unusable("it is blue"))
    assert message["role"] == "user"
    assert "it is blue" in message["content"]
