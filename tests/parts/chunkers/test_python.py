"""A function of a user's as a chunker: places or texts, and what is said of anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.contracts import write_module

from raggs.base.errors import ConfigError, ProviderError
from raggs.parts.callables import PythonChunker
from raggs.parts.chunkers import Document


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    def made(body: str, name: str = "cut") -> PythonChunker:
        module = write_module(tmp_path, request, f"def cut(text):\n    {body}\n")
        return PythonChunker(PythonChunker.Config(callable=f"{module}:{name}", folder=tmp_path))

    return made


def test_places_and_texts(make: Any) -> None:
    text = "one two one two"
    places = list(make("return [(0, 3), (3, 7), (5, 15)]").chunk(Document(text)))
    assert [(chunk.start, chunk.text) for chunk in places] == [(0, "one"), (3, " two"), (5, "wo one two")]


@pytest.mark.parametrize(
    ("body", "starts"),
    [
        ("return text.split()", [0, 4, 8, 12]),
        ("return ['one two one', 'one two']", [0, 8]),
        ("return (word for word in ['two', 'two'])", [4, 12]),
        ("return []", []),
    ],
)
def test_texts_are_found_where_they_stand(make: Any, body: str, starts: list[int]) -> None:
    assert [chunk.start for chunk in make(body).chunk(Document("one two one two"))] == starts


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "returned NoneType instead of a list of ranges for the document"),
        ("return 'ab'", "returned str instead of a list of ranges"),
        ("return ['three']", "returned 'three', which is not in the document after character 0"),
        ("return [(0, 99)]", "returned 0:99 for the document, after 0:0"),
        ("return [(2, 4), (0, 2)]", "returned 0:2 for the document, after 2:4"),
        ("return [(3, 1)]", "returned 3:1 for the document"),
        ("return [(0.5, 2)]", "which is not a range, for the document"),
        ("return [3]", "returned 3, which is not a range"),
        ("return 1 / 0", "cut raised ZeroDivisionError on the document"),
    ],
)
def test_what_is_no_place_is_told_in_a_sentence(make: Any, body: str, message: str) -> None:
    with pytest.raises(ProviderError, match=message) as caught:
        list(make(body).chunk(Document("one two one two")))
    assert caught.value.remedy


def test_a_missing_function_is_found_before_anything_is_cut(make: Any) -> None:
    with pytest.raises(ConfigError, match="has no function 'find'"):
        make("return []", name="find").check()


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    module = write_module(folder, request, "def cut(text):\n    return [(0, len(text))]\n")
    return {"callable": f"{module}:cut", "folder": folder}
