"""References and passages must speak of the same documents."""

from __future__ import annotations

import pytest

from raggs.app.services import strange_places
from raggs.base.artifacts import Query, Reference, Span
from raggs.base.errors import DataError


def about(*names: str) -> dict[str, Query]:
    return {
        f"q{number}": Query(
            qid=f"q{number}",
            text="Why?",
            references=(Reference(text="so", span=Span(source=name, start=0, end=2)), Reference(text="so")),
        )
        for number, name in enumerate(names)
    }


def test_a_document_is_known_by_its_name_with_or_without_its_ending() -> None:
    assert strange_places(about("guide", "guide.md", "a/b"), ["guide.md", "a/b.txt"], "q.csv") is None
    assert strange_places(about("guide"), [], "q.csv") is None, "without places of passages words are compared"


def test_some_documents_that_are_not_there_are_told() -> None:
    told = strange_places(about("guide", "speech", "speech"), ["guide.md"], "q.csv")
    assert told is not None
    assert told.startswith("2 queries about documents")
    assert "query q1: its document 'speech' is not in the corpus" in told


def test_no_known_document_at_all_is_an_error() -> None:
    with pytest.raises(DataError, match=r"q\.csv: query q0: its document 'giude' .* did you mean 'guide'"):
        strange_places(about("giude"), ["guide.md", "other.md"], "q.csv")


def test_a_name_of_several_documents_is_an_error() -> None:
    with pytest.raises(DataError, match=r"matches both guide\.md and guide\.txt .* with its extension"):
        strange_places(about("guide"), ["guide.md", "guide.txt"], "q.csv")
    with pytest.raises(DataError, match="rename one of them"):
        strange_places(about("guide"), ["guide", "guide.txt"], "q.csv")
