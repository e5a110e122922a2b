"""Cutting by separators: what is cut where, what a separator stays with, and what an overlap repeats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from raggs.base.errors import DataError
from raggs.parts.chunkers import Document
from raggs.parts.chunkers.recursive import RecursiveChunker


def cut(text: str, size: int, **settings: Any) -> list[str]:
    chunker = RecursiveChunker(RecursiveChunker.Config(**{"size": size, "unit": "characters", **settings}))
    return [chunk.text for chunk in chunker.chunk(Document(text))]


def test_the_first_separator_that_fits_counts() -> None:
    assert cut("one two\n\nthree\nfour five six seven\n\neight", 12) == [
        "one two",
        "three",
        "four five",
        "six seven",
        "eight",
    ]
    assert cut("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert cut("One two. Three? Four! Five", 9) == ["One two", ". Three", "? Four", "! Five"]


def test_a_separator_may_end_the_piece_before_it() -> None:
    assert cut("One two. Three? Four! Five", 9, keep="end") == ["One two.", "Three?", "Four!", "Five"]
    assert cut("one|two|three", 5, separators=["|"], keep="end") == ["one|", "two|", "three"]


def test_what_no_separator_cuts_stays_too_long() -> None:
    assert cut("abcdefgh ij", 4, separators=[" "]) == ["abcdefgh", "ij"]


def test_an_overlap_repeats_whole_pieces() -> None:
    assert cut("a b c d e f", 5, overlap=2) == ["a b c", "c d", "d e", "e f"]


def test_tokens_are_counted_by_vocabulary_or_file(tmp_path: Path) -> None:
    text = "internationalization " * 40
    by_unit = {unit: len(cut(text, 10, unit=unit)) for unit in ("cl100k", "o200k", "characters")}
    assert by_unit["characters"] > by_unit["cl100k"] > 1
    file = tmp_path / "tokenizer.json"
    file.write_text(words_tokenizer())
    found = cut(text, 10, tokenizer=file)
    assert {len(chunk.split()) for chunk in found} == {10}
    assert {len(chunk.split()) for chunk in cut("a\n\n" * 40, 10, tokenizer=file)} == {10}


def words_tokenizer(marks: int = 0) -> str:
    """A tokenizer of which each word is a token, and so is each of the marks before a text."""
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "[CLS]": 1}, "unk_token": "[UNK]"}
    single = [*[{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * marks, {"Sequence": {"id": "A", "type_id": 0}}]
    special = {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}
    after = {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": special}
    known = {"model": model, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": after if marks else None}
    return json.dumps({"version": "1.0", **known})


@pytest.mark.parametrize(
    ("overlap", "chunks"), [(0, ["a b c"] * 4), (4, ["a b c", "c a b", "b c a", "a b c", "c a b"])]
)
def test_marks_of_a_tokenizer_count_with_each_piece_and_at_each_join(
    tmp_path: Path, overlap: int, chunks: list[str]
) -> None:
    """A piece takes 1 + 2, a join 2: three words make 13, four would make 18."""
    file = tmp_path / "tokenizer.json"
    file.write_text(words_tokenizer(marks=2))
    text = " ".join(["a b c"] * 4)
    assert cut(text, 13, tokenizer=file, special_tokens=True, overlap=overlap)[: len(chunks)] == chunks
    assert {len(chunk.split()) for chunk in cut("a " * 12, 12, tokenizer=file, special_tokens=False)} == {12}


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path / "bad.json"):
        if path.stem == "bad":
            path.write_text("{}")
        chunker = RecursiveChunker(RecursiveChunker.Config(tokenizer=path))
        with pytest.raises(DataError, match="not a tokenizer") as caught:
            chunker.check()
        assert caught.value.where == str(path)


def test_causes_follow_the_tokenizer_file(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(words_tokenizer())
    chunker = RecursiveChunker(RecursiveChunker.Config(tokenizer=file))
    before = chunker.causes()
    file.write_text(words_tokenizer() + " ")
    assert chunker.causes() != before


@pytest.mark.parametrize("settings", [{"size": 0}, {"size": 5, "overlap": 5}, {"separators": []}, {"unit": "words"}])
def test_settings_that_cannot_be_right(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RecursiveChunker.Config(**settings)


def test_a_text_of_one_word_is_cut_in_time() -> None:
    assert len(cut("x" * 200_000, 100, unit="cl100k")) > 100


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


CONTRACT_VARIANTS = [
    {"size": 30, "overlap": 10, "unit": "characters"},
    {"size": 1, "unit": "characters"},
    {"size": 12, "overlap": 6, "keep": "end"},
    {"size": 9, "unit": "o200k"},
]
