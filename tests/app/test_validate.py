"""What `raggs validate` finds at the inputs: their sizes, and what of a folder is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import invoke

from raggs.app.housekeeping import validate


def test_what_is_left_out_of_a_folder_is_told_each_time(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in {"a.md": "---\ntitle: a: b\n---\nwords", "b.md": "", "c.docx": "x", ".env": "x"}.items():
        (tmp_path / "docs" / name).write_text(text)
    (tmp_path / "q.jsonl").write_text('{"_id": "q", "text": "What?", "nuggets": ["words"]}\n')
    file = tmp_path / "raggs.yaml"
    file.write_text(
        "name: x\ncorpus: {type: folder, path: docs}\nqueries: {type: jsonl, path: q.jsonl}\n"
        "judge: {judge: {type: nuggets}}\n"
    )
    first = validate(file)
    assert (first.queries, first.passages) == (1, 1)
    assert [note[:39] for note in first.notes] == [
        "skipped 2 files: 1 hidden (.env), 1 .do",
        "1 file without text skipped: b.md",
        "unparsed front matter skipped: a.md:2: ",
    ]
    assert validate(file) == first


@pytest.mark.parametrize("words", [["raggs.yaml"], ["--config", "raggs.yaml"], []])
def test_a_configuration_is_named_as_for_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    invoke("init", ".")
    result = invoke("validate", *words)
    assert result.exit_code == 0, result.output
    assert "raggs.yaml is valid" in result.stdout
    (tmp_path / "raggs.yaml").unlink()
    assert invoke("validate").exit_code == 2
