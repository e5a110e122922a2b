"""Which column of a table is which: one order of preference for all commands, and no guess between two columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.base.errors import DataError, UsageError
from raggs.base.tables import LABEL_ROLES, header_of, open_table, parse_column_names, resolve_columns

ALL = ("qid", "question", "doc_id", "passage", "grade", "title")


Q, D, G, P, T = "qid", "doc_id", "grade", "passage", "question"


def named(header: str, first: str = "", roles: tuple[str, ...] = ALL, **chosen: str) -> dict[str, str]:
    names = header.split(",")
    return {role: names[at] for role, at in resolve_columns(names, roles, chosen, first.split("|")).items()}


@pytest.mark.parametrize(
    ("header", "first", "found"),
    [
        ("qid,docid,score", "q|d|1", {"qid": "qid", "doc_id": "docid", "grade": "score"}),
        ("Query ID,Corpus-ID,Rel", "q|d|1", {"qid": "Query ID", "doc_id": "Corpus-ID", "grade": "Rel"}),
        (
            "query,doc_id,text,grade",
            "how do I|d|a text|3",
            {"question": "query", "doc_id": "doc_id", "passage": "text", "grade": "grade"},
        ),
        ("query,doc_id,grade", "q1|d|3", {"qid": "query", "doc_id": "doc_id", "grade": "grade"}),
        ("query,qid,doc_id,grade", "word|q|d|3", {T: "query", Q: "qid", D: "doc_id", G: "grade"}),
        ("query,question,doc_id,grade", "q|c d|d|3", {T: "question", Q: "query", D: "doc_id", G: "grade"}),
        ("text,doc_id,grade", "a b|d|3", {"question": "text", "doc_id": "doc_id", "grade": "grade"}),
        ("qid,text,grade", "q|a b|3", {"qid": "qid", "passage": "text", "grade": "grade"}),
        ("qid,document,grade", "q|d1|3", {"qid": "qid", "doc_id": "document", "grade": "grade"}),
        ("qid,document,grade", "q|a text|3", {"qid": "qid", "passage": "document", "grade": "grade"}),
        ("qid,doc_id,passage,grade", "q|d1|Paris|3", {Q: "qid", D: "doc_id", P: "passage", G: "grade"}),
    ],
)  # fmt: skip
def test_the_order_of_preference(header: str, first: str, found: dict[str, str]) -> None:
    assert named(header, first) == found
    labels = {role: name for role, name in found.items() if role in LABEL_ROLES}
    if set(labels) == set(LABEL_ROLES):
        assert named(header, first, LABEL_ROLES) == labels, "an evaluation takes the same columns as an import"


@pytest.mark.parametrize(
    ("header", "first", "said"),
    [
        ("qid,docid,grade,score", "", "'grade' and 'score' both mean the grade.*--column grade=score"),
        ("qid,passage_id,document_id,grade", "", "'passage_id' and 'document_id'.*--column doc_id=passage_id"),
        ("qid,passage,document,grade", "q|p1|d1|1", "'passage' and 'document' both mean the id of the passage"),
        ("qid,doc-id,doc_id,grade", "", "'doc-id' and 'doc_id'"),
        ("qid,doc_id,grade,grade", "", "'grade' occurs twice"),
        ("qid,query_id,doc_id,grade", "", "'qid' and 'query_id' both mean the id of the query"),
        ("qid,query,question,doc_id,grade", "q|a b|c d|d|1", "both mean the text of the query"),
        ("qid,text,doc_id,grade", "q|a b|d|1", "may be the text of the query or of the passage.*question=text"),
    ],
)  # fmt: skip
def test_two_columns_with_one_meaning_are_refused(header: str, first: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        named(header, first)


def test_a_choice_goes_before_everything() -> None:
    assert named("qid,docid,grade,score", grade="score")["grade"] == "score"
    assert named("qid,text,doc_id,grade", "q|a|d|1", question="text")["question"] == "text"
    assert named("a,b,c", qid="a", doc_id="b", grade="c") == {"qid": "a", "doc_id": "b", "grade": "c"}
    assert named("qid,docid,grade", grade="score")["grade"] == "grade", "another file may have the column"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["grade"], "the name of a column is missing"),
        (["grad=score"], "did you mean 'grade'"),
        (["grade=a", "grade=b"], "two columns for grade"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_column_names(texts, LABEL_ROLES)


def test_a_table_names_what_it_does_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffqid;url;docid;grade\r\nq1;"a;\r\n\r\nb";d1;3\r\n\r\nq1;c;d2;0\r\n'.encode())
    table = open_table(path, ("qid", "doc_id", "grade", "passage"), LABEL_ROLES, {"passage": "url"})
    rows = list(table.rows)
    assert (table.unread, header_of(path)) == ((), ["qid", "url", "docid", "grade"])
    assert [row.line for row in rows] == [2, 6]
    assert rows[0].cells == {"qid": "q1", "passage": "a;\r\n\r\nb", "doc_id": "d1", "grade": "3"}
    assert open_table(path, LABEL_ROLES, LABEL_ROLES, {}).unread == ("url",)
