"""Windows of tokens: their number, their edges, and the counts of a published comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raggs.base.errors import PrerequisiteError
from raggs.base.text import count_tokens, encoding
from raggs.parts.chunkers import Document
from raggs.parts.chunkers.recursive import RecursiveChunker
from raggs.parts.chunkers.sentence import TokenChunker

CORPORA = Path(__file__).resolve().parents[4] / "shared" / "data" / "chunking" / "corpora"


def cut(text: str, size: int, overlap: int = 0, **settings: Any) -> list[str]:
    chunker = TokenChunker(TokenChunker.Config(size=size, overlap=overlap, **settings))
    return [chunk.text for chunk in chunker.chunk(Document(text))]


def test_windows_of_characters() -> None:
    assert cut("abcdefgh", 3, unit="characters") == ["abc", "def", "gh"]
    assert cut("abcdefgh", 4, 2, unit="characters") == ["abcd", "cdef", "efgh"]
    assert cut("abc", 4, 2, unit="characters") == ["abc"]


def test_windows_of_tokens_hold_so_many_and_join_to_the_text() -> None:
    text = "Whatever is cut here, however it is cut, comes back. " * 20
    found = cut(text, 7)
    assert "".join(found) == text
    assert {count_tokens([chunk])[0] for chunk in found[:-1]} == {7}


def test_a_character_of_several_tokens_is_not_cut() -> None:
    text = "\U0001f9ff翼\U0001f6e9" * 20
    assert count_tokens([text])[0] > len(text)
    assert "".join(cut(text, 1)) == text


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the corpora of the comparison are not here")
@pytest.mark.parametrize(
    ("chunker", "size", "overlap", "count"),
    [
        (TokenChunker, 222, 0, 1481),
        (TokenChunker, 278, 0, 1182),
        (TokenChunker, 278, 139, 2359),
        (TokenChunker, 200, 0, 1644),
        (RecursiveChunker, 200, 0, 2386),
    ],
)
def test_counts_are_those_of_the_comparison(chunker: Any, size: int, overlap: int, count: int) -> None:
    made = chunker(chunker.Config(size=size, overlap=overlap))
    texts = [path.read_bytes().decode() for path in sorted(CORPORA.glob("*.md"))]
    assert sum(len(list(made.chunk(Document(text)))) for text in texts) == count


def test_without_its_vocabulary_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.base.text.find_spec", lambda name: None)
    encoding.cache_clear()
    try:
        with pytest.raises(PrerequisiteError, match="cl100k_base is not installed"):
            cut("text", 3)
        recursive = RecursiveChunker(RecursiveChunker.Config(size=3))
        assert recursive.causes()["ruler"] == {"estimated": True}
        assert len(list(recursive.chunk(Document("some words of a text")))) > 1
    finally:
        encoding.cache_clear()


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


CONTRACT_VARIANTS = [
    {"size": 5},
    {"size": 7, "overlap": 3},
    {"size": 1, "unit": "o200k"},
    {"size": 30, "overlap": 29, "unit": "characters"},
]
