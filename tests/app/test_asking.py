"""Questions are asked about what a document says, not about what stands before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.asking import make_config
from support.cli import call
from support.llm_server import LLMServer

from raggs.app.question_results import QuestionRunServices
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
    world = QuestionRunServices(load_config(file).run)
    (text,) = world.documents
    assert (text.source, text.text, text.start) == ("a.md", "words", len(matter))
    world.close()


@pytest.mark.parametrize(
    ("sections", "code", "words"),
    [
        ({"embed": {"embedder": None}}, 3, "embed.embedder is null"),
        ({"embed": {"embedder": {"type": "onnx", "path": "gone"}}}, 4, "gone"),
        (
            {"retrieve": {"retrievers": [{"type": "elasticsearch", "url": "http://localhost:9", "index": "x"}]}},
            3,
            "localhost:9",
        ),
    ],
)
def test_what_the_filter_lacks_is_found_before_questions_are_paid_for(
    server: LLMServer, tmp_path: Path, sections: dict[str, object], code: int, words: str
) -> None:
    llm = {"api_base": server.url, "prices": {"openai/asker": {"input": 1.0, "output": 1.0}}}
    asker = {"ask": {"asker": {"type": "litellm", "model": "openai/asker"}}, "sample": {"n": 4, "window": 600}}
    config = make_config(tmp_path, questions=asker, llm=llm, **sections)
    told = call("questions", "make", "--config", config, "--quiet", code=code)
    assert words in told.stderr
    assert server.count == 0
