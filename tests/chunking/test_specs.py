"""Parts as one word."""

from __future__ import annotations

import pytest

from raggs import embedders
from raggs.chunking.specs import parse_spec, split_names
from raggs.embedders.base import EmbedderConfig
from raggs.errors import UsageError


def test_a_name_alone_is_the_part_as_it_is() -> None:
    assert parse_spec("wordllama", embedders.REGISTRY, EmbedderConfig).model_dump() == {
        "type": "wordllama",
        "batch": 256,
        "dims": 256,
    }


def test_what_follows_is_the_main_setting_and_settings_by_name() -> None:
    found = parse_spec("onnx:models/minilm:max_length=256:pooling=cls", embedders.REGISTRY, EmbedderConfig).model_dump(
        mode="json"
    )
    assert (found["path"], found["max_length"], found["pooling"]) == ("models/minilm", 256, "cls")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("wordlama", "did you mean .wordllama"),
        ("wordllama:dim=64", "did you mean .dims"),
        ("wordllama:dims=65", "dims"),
        ("wordllama:64:128", "'128' is no setting"),
        ("wordllama:64:dims=128", "dims is set twice"),
    ],
)
def test_what_cannot_be_is_told_with_the_word(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_spec(text, embedders.REGISTRY, EmbedderConfig)


def test_lists_are_separated_by_commas() -> None:
    assert split_names(["a,b", " c "], "chunker", "") == ("a", "b", "c")


@pytest.mark.parametrize(("given", "told"), [([""], "no chunker is named"), (["a,b", "a"], "a is named twice")])
def test_an_empty_list_and_a_name_that_stands_twice_are_refused(given: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        split_names(given, "chunker", "")
