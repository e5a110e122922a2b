"""Questions from a file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from raggs.base.errors import DataError
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.parts.askers import AskerContext, Assignment, Question
from raggs.parts.askers.offline import UNWRITTEN, ScriptedAsker, ScriptedAskerConfig


def asker(folder: Path, *lines: str) -> ScriptedAsker:
    path = folder / "script.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ScriptedAsker(ScriptedAskerConfig(path=path), AskerContext(LLM(LLMSettings(), BudgetSettings(), None)))


def asked(found: ScriptedAsker, qid: str, *windows: str) -> Question:
    return asyncio.run(found.ask(Assignment(qid, windows)))


def test_a_line_is_found_by_the_assignment_or_by_words_of_its_window(tmp_path: Path) -> None:
    found = asker(
        tmp_path,
        '{"qid": "q1", "question": "One?", "references": ["a"]}',
        '{"within": "keel", "question": "Two?", "references": []}',
        '{"qid": "q3", "fail": "refused"}',
    )
    assert asked(found, "q1", "keel") == Question("One?", ("a",))
    assert asked(found, "q2", "a", "the keel") == Question("Two?")
    assert asked(found, "q3", "a").error == "refused"
    assert asked(found, "q4", "a").error == UNWRITTEN


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"question": "One?", "references": []}', "qid and within are missing"),
        ('{"qid": "q1", "question": " ", "references": []}', "question is missing"),
        ('{"qid": "q1", "question": "One?", "references": "a"}', "references is not a list"),
        ('{"qid": "q1", "question": "One?", "references": [1]}', "references is not a list"),
    ],
)
def test_a_line_that_says_nothing_is_told(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        asker(tmp_path, line).check()
