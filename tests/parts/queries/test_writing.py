"""Questions that are written come back as they were, in the bytes that benchmarks have where these can say it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Nugget, Query, Reference, Span
from raggs.base.errors import ProviderError, UsageError
from raggs.parts.queries import REGISTRY, format_of
from raggs.parts.queries.fields import made_id
from raggs.parts.queries.writing import write_queries

REPORT = Path("../shared/data/chunking/questions.csv")
KINDS = ("csv", "jsonl", "yaml")
UGLY = 'Why, "so"\n or\thow?\r\nÉté\u202f: \u2028 ; 😀 \x85'
TABLE = """question,references,corpus_id
"What, ""then""?","[{""content"": ""so \\u2014 be it"", ""start_index"": 3, ""end_index"": 13}]",state
"""


def read(path: Path) -> list[Query]:
    adapter: Any = REGISTRY.load(format_of(path))
    return [query for _, query in adapter(adapter.Config(path=path)).queries()]


def placed(text: str, *places: tuple[str, int], **more: Any) -> Query:
    references = tuple(Reference(text="x" * 5, span=Span(source=source, start=at, end=at + 5)) for source, at in places)
    return Query(qid=more.pop("qid", made_id(text)), text=text, references=references, **more)


def written(folder: Path, *queries: Query, kind: str = "csv") -> tuple[str, list[Query]]:
    path = folder / f"questions.{kind}"
    write_queries(queries, path)
    return path.read_bytes().decode(), read(path)


def test_a_table_of_benchmarks_comes_back_byte_by_byte(tmp_path: Path) -> None:
    source = tmp_path / "given.csv"
    source.write_bytes(TABLE.encode())
    text, again = written(tmp_path, *read(source))
    assert text == TABLE
    assert again == read(source)


@pytest.mark.skipif(not REPORT.exists(), reason="the report's questions are not part of raggs")
def test_the_reports_own_table_comes_back_byte_by_byte(tmp_path: Path) -> None:
    queries = read(REPORT)
    text, again = written(tmp_path, *queries)
    assert len(queries) == 472
    assert text.encode() == REPORT.read_bytes()
    assert again == queries


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_a_question_has_comes_back_in_every_format(kind: str, tmp_path: Path) -> None:
    queries = [
        placed(UGLY, ("guide/a.md", 3), ("b.md", 0), qid="q1", language="fr", answer="=1+1", metadata={"kind": "fact"}),
        Query(qid="-q2", text="'=SUM(A1) then?", references=(Reference(text="so", doc_id="p1"),)),
        Query(
            qid="q3",
            text="@all",
            nuggets=(Nugget(any=("a|b", "c\\b")), Nugget(any=("d",), vital=False)),
            metadata={"deep": {"level": [1, None]}, "kind": "007", "corpus_id": "a", "=x": "y", "answer": "z"},
        ),
    ]
    assert written(tmp_path, *queries, kind=kind)[1] == queries


def test_a_question_that_names_no_document_gets_that_of_its_references(tmp_path: Path) -> None:
    query = placed("Where?", ("a.md", 3), ("a.md", 9))
    text, [again] = written(tmp_path, query)
    assert text.splitlines()[1].endswith('""start_index"": 9, ""end_index"": 14}]",a.md')
    assert again == query.model_copy(update={"metadata": {"corpus_id": "a.md"}})
    assert written(tmp_path, query, kind="jsonl")[1] == [query]


def test_no_cell_is_one_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    bad = ["=cmd|' /C calc'!A0", "+1", "-1", "@x", "\t=1", "\r=1", "'=x", "''-y"]
    queries = [placed(text, ("-a.md", 0), qid=f"={number}", answer=text) for number, text in enumerate(bad)]
    text, again = written(tmp_path, *queries)
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header[-1] == "guarded"
    assert rows[0][-1].split() == ["_id", "question", "corpus_id", "answer"]
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [query.model_copy(update={"metadata": {}}) for query in again] == queries


def test_a_column_called_guarded_that_names_no_cells_is_metadata(tmp_path: Path) -> None:
    source = tmp_path / "given.csv"
    source.write_text("question,guarded\n'-v' or -q?,yes\n")
    [query] = read(source)
    assert (query.text, query.metadata) == ("'-v' or -q?", {"guarded": "yes"})
    assert written(tmp_path, query)[1] == [query]


def test_many_references_of_one_question(tmp_path: Path) -> None:
    query = placed("Which?", *(("a.md", 10 * number) for number in range(5000)))
    assert written(tmp_path, query)[1][0].references == query.references


def test_a_folder_that_is_missing_is_made_and_an_unknown_ending_refused(tmp_path: Path) -> None:
    write_queries([placed("Why?")], tmp_path / "new" / "q.YAML")
    assert read(tmp_path / "new" / "q.YAML") == [placed("Why?")]
    with pytest.raises(UsageError, match="unknown query format"):
        write_queries([], tmp_path / "q.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderError):
        write_queries([], tmp_path / "file" / "q.csv")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda text: any(char.isalnum() for char in text)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXTS, lambda inner: st.lists(inner, max_size=2)
)


@st.composite
def questions(draw: st.DrawFn) -> list[Query]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        references = tuple(
            Reference(
                text=draw(TEXTS),
                doc_id=draw(st.sampled_from([None, "p1"])),
                span=draw(
                    st.sampled_from([None, Span(source="a.md", start=0, end=4), Span(source="é", start=1, end=2)])
                ),
            )
            for _ in range(draw(st.integers(0, 2)))
        )
        found.append(
            Query(
                qid=f"q{number}",
                text=draw(TEXTS),
                answer=draw(st.none() | TEXTS),
                references=references,
                # A mapping under a name of questions or ids is a text in YAML, whatever it looks like.
                metadata={"corpus_id": "a.md", **draw(st.dictionaries(TEXTS, VALUES, max_size=2))},
            )
        )
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(questions())
def test_whatever_is_written_is_read_again(kind: str, tmp_path_factory: Any, queries: list[Query]) -> None:
    assert written(tmp_path_factory.mktemp("questions"), *queries, kind=kind)[1] == queries
