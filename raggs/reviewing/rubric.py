"""What the grades mean, in people's words: the lines of the prompt by which the judge grades."""

from __future__ import annotations

import re

from raggs.prompts import Prompt

LINE = re.compile(r"^- ([1-5])\s*:\s*(.+(?:\n(?!- |\n).+)*)", re.MULTILINE)
USUAL = "grade@1"


def rubric_of(prompt: Prompt) -> dict[str, dict[int, str]]:
    """By language, the meaning of each grade, best first; without the languages that do not tell all five."""
    found = {language: _lines(template.system) for language, template in prompt.templates.items()}
    return {language: lines for language, lines in found.items() if len(lines) == 5}


def _lines(text: str) -> dict[int, str]:
    return {int(grade): " ".join(words.split()) for grade, words in LINE.findall(text)}
