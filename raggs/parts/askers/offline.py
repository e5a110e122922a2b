"""Askers without a model: `extractive` applies rules to the text, `scripted` reads questions from a file.

Extractive: questions from headings and definitions, to try raggs without a model. The questions repeat words of the
text, which raises the scores of lexical search. A note in the reports points this out.

Scripted: for tests, demonstrations and questions written by hand. The file is JSON lines. Each line has one of these
forms:

    {"qid": "q00001", "question": "...", "references": ["..."]}      question of one assignment
    {"within": "...", "question": "...", "references": ["..."]}      question of every window that contains the text
    {"qid": "q00002", "fail": "refused"}                             the asker fails on this assignment

If no line matches an assignment, the asker fails on it. If several lines match, the first one is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.errors import DataError
from raggs.base.hashing import derive_seed
from raggs.base.jsonl import read_objects
from raggs.base.settings import InputPath
from raggs.parts.askers import Asker, Assignment, Question, QuestionKind

if TYPE_CHECKING:
    from raggs.stats.question_wording import ExtractedQuestion

# reStructuredText overline, which Markdown parses as part of the title
RST_OVERLINE = re.compile(r"^([^\w\s])\1{2,}\s+")
NO_QUESTION_ERROR = "the rules find no further question in this window"


class ExtractiveAsker(Asker):
    """Derives questions from headings and definitions by rule (English, French), without a model."""

    NOTE = (
        "made by rule, not by a model or user; they repeat words of the text, so scores of lexical search are too high"
    )

    class Config(AdapterConfig):
        type: Literal["extractive"] = "extractive"

    config: Config

    @property
    def name(self) -> str:
        return "extractive"

    @property
    def kinds(self) -> tuple[QuestionKind, ...]:
        return ("fact", "procedure", "list")

    async def ask(self, assignment: Assignment) -> Question:
        from raggs.parts.chunkers.markdown import Outline
        from raggs.stats.question_wording import TextSection, extract

        text = assignment.windows[0]
        sections = [
            TextSection(tuple(RST_OVERLINE.sub("", each) for each in path), start, end)
            for path, start, end in Outline(text).sections()
        ]
        fresh = [
            each for each in extract(text, sections, assignment.language) if each.question not in assignment.earlier
        ]
        if not fresh:
            return Question(None, error=NO_QUESTION_ERROR)
        fitting = [each for each in fresh if each.kind == assignment.kind]
        # Several assignments may share a window, so the id of the assignment selects the question.
        return _question(text, (fitting or fresh)[derive_seed(0, assignment.qid) % len(fitting or fresh)])


def _question(text: str, found: ExtractedQuestion) -> Question:
    return Question(found.question, (text[found.start : found.end],), kind=found.kind)


SCRIPT_REMEDY = 'for example {"qid": "q00001", "question": "...", "references": ["..."]}'
UNWRITTEN = "the script has no line for this assignment"


class ScriptedAskerConfig(AdapterConfig):
    type: Literal["scripted"] = "scripted"
    path: InputPath = Field(
        description="JSON-lines file. Each line has `qid` (id of the assignment) or `within` (text that the window "
        "contains), and `question` with `references`, or `fail` (error message)"
    )


class ScriptedAsker(Asker):
    """Questions from a JSON-lines file."""

    NOTE = "read from a script"
    Config = ScriptedAskerConfig
    config: ScriptedAskerConfig

    @property
    def name(self) -> str:
        return f"scripted {self.config.path.name}"

    def check(self) -> None:
        self._script  # noqa: B018 - reading it checks it

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
                raise DataError(str(error), where=self.config.path, line=number, remedy=SCRIPT_REMEDY) from error
        return found


def _read(row: Mapping[str, object]) -> tuple[str, str, Question]:
    """Return the id, the text to match, and the question of one line.

    Raises:
        ValueError: the line is invalid.
    """
    qid, words, question, references = (row.get(name) for name in ("qid", "within", "question", "references"))
    if not any(isinstance(each, str) and each for each in (qid, words)):
        raise ValueError("qid and within are missing or not strings")
    if isinstance(failure := row.get("fail"), str):
        return str(qid or ""), str(words or ""), Question(None, error=failure)
    if not isinstance(question, str) or not question.strip():
        raise ValueError("question is missing, blank or not a string")
    if not isinstance(references, list) or not all(isinstance(each, str) for each in references):
        raise ValueError("references is not a list of strings")
    return str(qid or ""), str(words or ""), Question(question, tuple(references))
