"""Parts as one word."""

from __future__ import annotations

import pytest

from raggs.base.errors import UsageError
from raggs.chunking.models import parse_spec, split_names
from raggs.parts import chunkers, embedders
from raggs.parts.chunkers import ChunkerConfig
from raggs.parts.embedders import EmbedderConfig


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
        ("wordllama:64:128", "dims"),
        ("wordllama:dims=64:128", "'128' is not a setting"),
        ("wordllama:64:dims=128", "dims is set twice"),
    ],
)
def test_what_cannot_be_is_told_with_the_word(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_spec(text, embedders.REGISTRY, EmbedderConfig)


def test_numbers_and_functions_are_read_as_what_they_are() -> None:
    assert parse_spec("wordllama:64", embedders.REGISTRY, EmbedderConfig).model_dump()["dims"] == 64
    found = parse_spec("onnx:2024:dims=null", embedders.REGISTRY, EmbedderConfig).model_dump(mode="json")
    assert (found["path"], found["dims"]) == ("2024", None)
    assert parse_spec("python:json:loads:dims=3", embedders.REGISTRY, EmbedderConfig).model_dump()["callable"] == (
        "json:loads"
    )


def test_a_part_of_a_part_is_named_by_its_type_and_its_settings() -> None:
    word = "cluster:200:embedder=onnx:embedder.path=models/minilm:embedder.max_length=256"
    found = parse_spec(word, chunkers.REGISTRY, ChunkerConfig).model_dump(mode="json")
    inner = found["embedder"]
    assert (found["size"], inner["type"], inner["path"], inner["max_length"]) == (200, "onnx", "models/minilm", 256)


def test_lists_are_separated_by_commas() -> None:
    assert split_names(["a,b", " c "], "chunker", "") == ("a", "b", "c")


@pytest.mark.parametrize(("given", "told"), [([""], "no chunker is given"), (["a,b", "a"], "a is given twice")])
def test_an_empty_list_and_a_name_that_stands_twice_are_refused(given: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        split_names(given, "chunker", "")
