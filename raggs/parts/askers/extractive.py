"""An asker without a model: questions by rule, from headings and definitions. Good enough to try the tool.

Its questions copy the words of the text, which flatters lexical search; whoever reads scores over them is told so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from raggs.base.adapter import AdapterConfig
from raggs.base.seeds import derive_seed
from raggs.parts.askers.base import Asker, Assignment, Kind, Question

if TYPE_CHECKING:
    from raggs.stats.asking.wording import Extracted

RULE = re.compile(r"^([^\w\s])\1{2,}\s+")  # above a title of reStructuredText, which Markdown takes for words of it
NOTHING = "no rule finds anything more to ask about"


class ExtractiveAsker(Asker):
    """No model: questions by rule from headings and definitions (English, French), to try the tool."""

    NOTE = "made by rule, not by a model or user: they repeat words of the text, which flatters search by words"

    class Config(AdapterConfig):
        type: Literal["extractive"] = "extractive"

    config: Config

    @property
    def name(self) -> str:
        return "extractive"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return ("fact", "procedure", "list")

    async def ask(self, assignment: Assignment) -> Question:
        from raggs.parts.chunkers.markdown import Outline
        from raggs.stats.asking.wording import Section, extract

        text = assignment.windows[0]
        sections = [
            Section(tuple(RULE.sub("", each) for each in path), start, end)
            for path, start, end in Outline(text).sections()
        ]
        fresh = [
            each for each in extract(text, sections, assignment.language) if each.question not in assignment.earlier
        ]
        if not fresh:
            return Question(None, error=NOTHING)
        fitting = [each for each in fresh if each.kind == assignment.kind]
        # Windows may be asked about several times at once: each takes another of the questions.
        return _question(text, (fitting or fresh)[derive_seed(0, assignment.qid) % len(fitting or fresh)])


def _question(text: str, found: Extracted) -> Question:
    return Question(found.question, (text[found.start : found.end],), kind=found.kind)
