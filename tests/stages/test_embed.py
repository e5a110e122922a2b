"""What the first stage keeps of the questions: their authors' words beside the cleaned ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.project import make_project, write_lines

from raggs import load_config, open_run, run
from raggs.base.artifacts import EmbedRecord, QueryRecord

WORDS = "  Where\tis the “amber”\u200b — ﬁrst\r\nof all? "
ASKED = {
    "_id": "q01",
    "text": WORDS,
    "answer": " By the brook. ",
    "references": [{"text": "The amber …", "doc_id": "p000", "span": {"source": "a.md", "start": 2, "end": 9}}],
    "nuggets": [{"any": ["brook", "stream"], "vital": False}],
    "metadata": {"Größe": [1, 2.5, None]},
    "level": "hard",
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory):
    project = make_project(tmp_path_factory.mktemp("embed"), queries=3, corpus=12, rank={"top": 2, "max_calls": 2})
    rest = [{"_id": name, "text": f"Where is {name}?", "language": "fr"} for name in ("q02", "q00")]
    write_lines(project.folder / "queries.jsonl", [ASKED, *rest])
    return open_run(run(load_config(project.config)).store.folder)


def test_questions_are_kept_as_their_author_gave_them(opened) -> None:
    found = {record.qid: record for record in opened.typed("queries", QueryRecord)}
    assert list(found) == ["q00", "q01", "q02"]
    one = found["q01"]
    assert (one.text, one.answer, one.language) == (WORDS, ASKED["answer"], None)
    assert [reference.model_dump() for reference in one.references] == ASKED["references"]
    assert [nugget.model_dump(mode="json") for nugget in one.nuggets] == ASKED["nuggets"]
    assert one.metadata == {**ASKED["metadata"], "level": "hard"}
    cleaned = {record.qid: record.text for record in opened.typed("embed", EmbedRecord)}
    assert cleaned["q01"] != WORDS


def test_its_lines_are_locked_and_audited_like_any_others(opened) -> None:
    from raggs.runs.manifests.audit import audit

    lock = opened.manifest.stages["embed"]
    assert list(lock.outputs) == ["embed.jsonl", "queries.jsonl"]
    assert not list(audit(opened))
    path: Path = opened.folder / "queries.jsonl"
    before = path.read_bytes()
    try:
        path.write_bytes(before.replace(b"brook.", b"creek."))
        findings = [str(finding) for finding in audit(opened)]
    finally:
        path.write_bytes(before)
    assert findings[0].startswith("queries.jsonl: sha256 is")
    assert findings[1].startswith("queries.jsonl:2: differs from the line that stage embed wrote")
    assert len(findings) == 2


def test_a_line_holds_what_json_can_and_nothing_else(opened) -> None:
    for line in (opened.folder / "queries.jsonl").read_bytes().splitlines():
        fields = [name for name, field in QueryRecord.model_fields.items() if field.exclude_if is None and name != "v"]
        assert list(json.loads(line)) == ["v", *fields]
