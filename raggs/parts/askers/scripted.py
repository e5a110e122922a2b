"""An asker that reads its questions from a file: for tests, demonstrations and a person's own questions.

The file is JSON lines, of these forms:

    {"qid": "q00001", "question": "...", "references": ["..."]}      the question of one assignment
    {"within": "...", "question": "...", "references": ["..."]}      of every window that holds these words
    {"qid": "q00002", "fail": "refused"}                             the asker fails on this assignment

An assignment without a line fails. Of several lines that fit, the first counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.errors import DataError
from raggs.base.jsonl import read_objects
from raggs.base.settings import InputPath
from raggs.parts.askers.base import Asker, Assignment, Question

REMEDY = 'for example {"qid": "q00001", "question": "...", "references": ["..."]}'
UNWRITTEN = "the script has no line for it"


class ScriptedConfig(AdapterConfig):
    type: Literal["scripted"] = "scripted"
    path: InputPath = Field(description="one JSON object a line: qid or within, question, references")


class ScriptedAsker(Asker):
    """Questions from a JSON-lines file, as written."""

    NOTE = "read from a script"
    Config = ScriptedConfig
    config: ScriptedConfig

    @property
    def name(self) -> str:
        return f"scripted {self.config.path.name}"

    def check(self) -> None:
        self._script  # noqa: B018 - it is read, and so checked

    async def ask(self, assignment: Assignment) -> Question:
        text = "\n".join(assignment.windows)
        for qid, words, question in self._script:
            if qid == assignment.qid or (words and words in text):
                return question
        return Question(None, error=UNWRITTEN)

    @cached_property
    def _script(self) -> list[tuple[str, str, Question]]:
        found = []
        for number, row in read_objects(self.config.path):
            try:
                found.append(_read(row))
            except ValueError as error:
                raise DataError(str(error), where=self.config.path, line=number, remedy=REMEDY) from error
        return found


def _read(row: Mapping[str, object]) -> tuple[str, str, Question]:
    """The id, the words and the question of one line.

    Raises:
        ValueError: what is wrong with it.
    """
    qid, words, question, references = (row.get(name) for name in ("qid", "within", "question", "references"))
    if not any(isinstance(each, str) and each for each in (qid, words)):
        raise ValueError("qid and within are missing, or no texts")
    if isinstance(failure := row.get("fail"), str):
        return str(qid or ""), str(words or ""), Question(None, error=failure)
    if not isinstance(question, str) or not question.strip():
        raise ValueError("question is missing, or is not a text")
    if not isinstance(references, list) or not all(isinstance(each, str) for each in references):
        raise ValueError("references is not a list of texts")
    return str(qid or ""), str(words or ""), Question(question, tuple(references))
