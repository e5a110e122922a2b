"""Questions are asked about what a document says, not about what stands before it."""

from __future__ import annotations

from pathlib import Path

from raggs.app.asking import QuestionWorld
from raggs.config.load import load_config


def test_windows_begin_after_front_matter_and_count_from_the_files_start(tmp_path: Path) -> None:
    matter = "---\ntitle: A\n---\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(f"{matter}words")
    (tmp_path / "docs" / "b.md").write_text(matter)
    (tmp_path / "q.jsonl").write_text('{"_id": "q", "text": "What?"}\n')
    file = tmp_path / "raggs.yaml"
    file.write_text(
        "name: x\ncorpus: {type: folder, path: docs}\nqueries: {type: jsonl, path: q.jsonl}\n"
        "judge: {judge: {type: nuggets}}\n"
    )
    world = QuestionWorld(load_config(file).run)
    (text,) = world.documents
    assert (text.source, text.text, text.start) == ("a.md", "words", len(matter))
    world.close()
