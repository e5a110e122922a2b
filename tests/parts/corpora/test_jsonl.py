"""A corpus of JSON lines: what becomes of each field, and which line is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Passage, Span
from raggs.base.errors import DataError, NotFoundError
from raggs.parts.corpora import EmptyPassage
from raggs.parts.corpora.jsonl import JsonlConfig, JsonlCorpus

GOOD = '{"_id": "a", "text": "first"}'


def corpus(folder: Path, *lines: str, name: str = "corpus.jsonl", **settings: Any) -> JsonlCorpus:
    path = folder / name
    path.write_bytes("\n".join(lines).encode())
    return JsonlCorpus(JsonlConfig(path=path, **settings))


def test_fields_of_other_names_go_to_the_metadata(tmp_path: Path) -> None:
    row = {"_id": "a", "title": " T ", "text": " x\ny ", "metadata": {"year": 1999}, "url": "u", "tags": ["b"]}
    (found,) = corpus(tmp_path, json.dumps(row)).passages()
    assert found == Passage(doc_id="a", title="T", text="x\ny", metadata={"year": 1999, "url": "u", "tags": ["b"]})


def test_a_span_is_the_passages_place_and_anything_else_of_that_name_the_authors_own(tmp_path: Path) -> None:
    place = {"source": "a.md", "start": 3, "end": 9}
    rows = [{"_id": f"p{number}", "text": "x", "span": span} for number, span in enumerate([place, [3, 9], {"at": 3}])]
    found = list(corpus(tmp_path, *map(json.dumps, rows)).passages())
    assert [passage.span for passage in found] == [Span(source="a.md", start=3, end=9), None, None]
    assert [passage.metadata for passage in found] == [{}, {"span": [3, 9]}, {"span": {"at": 3}}]


def test_a_span_of_a_text_with_white_space_at_its_ends_gives_up_the_same_characters(tmp_path: Path) -> None:
    def of(text: str, start: int, end: int) -> Span | None:
        row = {"_id": "a", "text": text, "span": {"source": "a.md", "start": start, "end": end}}
        (found,) = corpus(tmp_path, json.dumps(row)).passages()
        return found.span

    assert of("whole line\n", 5, 16) == Span(source="a.md", start=5, end=15)
    assert of("\n both \n\n", 10, 19) == Span(source="a.md", start=12, end=16)
    assert of("already exact\n", 5, 18) == Span(source="a.md", start=5, end=18)


@pytest.mark.parametrize("wrong", [{"start": 9}, {"start": -1}, {"end": "12"}, {"source": ""}, {"source": None}])
def test_a_span_that_is_no_place_is_named(tmp_path: Path, wrong: dict[str, object]) -> None:
    place = {"source": "a.md", "start": 3, "end": 9, **wrong}
    with pytest.raises(DataError, match=r"corpus\.jsonl:2: span"):
        list(corpus(tmp_path, GOOD, json.dumps({"_id": "b", "text": "x", "span": place})).passages())


@pytest.mark.parametrize("name", ["_id", "id", "doc_id"])
def test_ids_have_three_names(tmp_path: Path, name: str) -> None:
    (found,) = corpus(tmp_path, json.dumps({name: "é1", "text": "x"})).passages()
    assert found == Passage(doc_id="é1", text="x")


def test_blank_lines_are_nothing_and_the_order_is_the_files(tmp_path: Path) -> None:
    lines = ["\ufeff" + GOOD, "", '{"_id": "c", "text": "x"}', "  ", '{"_id": "b", "text": "x"}', ""]
    assert [passage.doc_id for passage in corpus(tmp_path, *lines).passages()] == ["a", "c", "b"]


def test_a_compressed_corpus_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress(f"{GOOD}\n{{oops\n".encode()))
    passages = JsonlCorpus(JsonlConfig(path=path)).passages()
    assert next(passages).doc_id == "a"
    with pytest.raises(DataError, match=r"corpus\.jsonl\.gz:2: not valid JSON"):
        next(passages)


def test_a_title_alone_is_the_text(tmp_path: Path) -> None:
    (found,) = corpus(tmp_path, '{"_id": "a", "title": "only", "text": " "}').passages()
    assert (found.title, found.text) == ("", "only")


def test_empty_passages_are_left_out_and_named_or_refused(tmp_path: Path) -> None:
    lines = [GOOD, '{"_id": "b", "title": "", "text": "  "}', '{"_id": "c", "text": ""}']
    read = corpus(tmp_path, *lines)
    for _ in range(2):
        assert [passage.doc_id for passage in read.passages()] == ["a"]
        assert read.left_out == [EmptyPassage("b", 2), EmptyPassage("c", 3)]
    with pytest.raises(DataError, match=r":2: passage b has no text"):
        list(corpus(tmp_path, *lines, empty="error").passages())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "x"}', "_id is missing"),
        ('{"_id": 7, "text": "x"}', "_id is missing or is not a string"),
        ('{"_id": "", "text": "x"}', "_id is missing"),
        ('{"_id": "a b", "text": "x"}', "'a b' contains white space"),
        ('{"_id": "a\\u00a0", "text": "x"}', "contains white space"),
        ('{"_id": "b"}', "text of 'b' is missing"),
        ('{"_id": "b", "text": null}', "text of 'b' is missing"),
        ('{"_id": "b", "text": ["x"]}', "text of 'b' is missing or is not a string"),
        ('{"_id": "b", "text": "x", "title": 3}', "title of 'b' is not a string"),
        ('{"_id": "b", "text": "x", "metadata": "m"}', "metadata is not an object"),
        ('{"_id": "b", "text": "x\\ud800"}', "a lone surrogate"),
        ('{"_id": "b", "text": "x", "note": "\\ud800"}', "a lone surrogate"),
        ('{"_id": "b", "text": NaN}', "NaN is not a JSON number"),
        ('["b", "x"]', "not a JSON object"),
        ('{"_id": "b", "text": "x"', "not valid JSON"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    read = corpus(tmp_path, GOOD, "", line)
    with pytest.raises(DataError, match=message) as caught:
        list(read.passages())
    assert (caught.value.where, caught.value.line) == (str(tmp_path / "corpus.jsonl"), 3)
    assert caught.value.remedy


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    missing = JsonlCorpus(JsonlConfig(path=tmp_path / "none.jsonl"))
    folder = JsonlCorpus(JsonlConfig(path=tmp_path))
    for read in (missing, folder):
        with pytest.raises(NotFoundError):
            read.source_hash()
        with pytest.raises(NotFoundError):
            list(read.passages())
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"_id": "a", "text": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"latin\.jsonl:1: not UTF-8"):
        list(JsonlCorpus(JsonlConfig(path=path)).passages())


def test_the_hash_follows_the_bytes(tmp_path: Path) -> None:
    first = corpus(tmp_path, GOOD).source_hash()
    assert corpus(tmp_path, GOOD, name="other.jsonl").source_hash() == first
    assert corpus(tmp_path, GOOD, "").source_hash() != first


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
ID = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1)
JSON = st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3))


@given(st.lists(st.tuples(ID, TEXT, st.dictionaries(st.sampled_from(["year", "note", "x"]), JSON)), max_size=6))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, dict[str, Any]]]
) -> None:
    lines = [json.dumps({"_id": doc_id, "text": text, **more}) for doc_id, text, more in rows]
    found = list(corpus(tmp_path_factory.mktemp("corpus"), *lines).passages())
    assert [(p.doc_id, p.text, p.metadata) for p in found] == [(i, text.strip(), more) for i, text, more in rows]


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    path = folder / "corpus"
    path.write_text('{"_id": "b", "text": "Some text.", "title": "One"}\n{"_id": "a", "text": "Other text."}\n')
    return {"path": path}
