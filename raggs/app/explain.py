"""What a word means that a table uses: the glossary, which ships with raggs, and the measures, which say it themselves.

The entries stand in `words.md`, from which docs/glossary.md is written: one source for the terminal and for the pages.
A word is found whatever its case, its brackets' content and its cutoff. Computes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from raggs.app.catalog import measure_entries
from raggs.errors import NotFoundError, PrerequisiteError, UsageError
from raggs.metrics.names import glossary, parse_measure
from raggs.text import did_you_mean

WORDS = Path(__file__).with_name("words.md")
ENTRY = re.compile(r"^- ((?:\*\*[^*]+\*\*(?:, )?)+): (.+(?:\n  .+)*)", re.MULTILINE)
WORD = re.compile(r"\*\*([^*]+)\*\*")
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


@dataclass(frozen=True)
class Meaning:
    """An entry.

    Attributes:
        words: that it explains, as tables write them.
        text: plain sentences; pages are named by their path in the repository.
    """

    words: tuple[str, ...]
    text: str


def explain_word(word: str) -> tuple[Meaning, ...]:
    """What a word means: its entry in the glossary, the measure of that name, or both.

    Raises:
        NotFoundError: neither knows it; the nearest word is named.
    """
    known = meanings()
    found = tuple(dict.fromkeys(filter(None, (known.get(_plain(word)), _measure(word)))))
    if not found:
        names = sorted({*known, *measure_entries()})
        remedy = did_you_mean(_plain(word), names, "see: raggs explain")
        raise NotFoundError(f"{word!r} is not in the glossary", remedy=remedy)
    return found


@cache
def meanings() -> Mapping[str, Meaning]:
    """The entries by each of their words, in lower case, in the order of the page."""
    found: dict[str, Meaning] = {}
    for names, text in ENTRY.findall(WORDS.read_text(encoding="utf-8")):
        words = tuple(WORD.findall(names))
        entry = Meaning(words, LINK.sub(_named, " ".join(text.split())))
        found |= {_plain(word): entry for word in words}
    return found


def _named(link: re.Match[str]) -> str:
    return f"docs/{link[2].partition('#')[0]}"


def _plain(word: str) -> str:
    return " ".join(word.split()).lower()


def _measure(word: str) -> Meaning | None:
    try:
        named = parse_measure(word if "@" in word else f"{word}@10")
    except (UsageError, PrerequisiteError):
        return None
    name = named.measure.NAME
    entry = measure_entries()[name]
    wrapped = [f"{sign}: {said}." for sign, said in glossary([named.name]).items() if sign != name]
    text = f"{entry.summary} {entry.formula} ({entry.better} is better; docs/metrics.md)."
    return Meaning((entry.written,), " ".join([text, *wrapped]))
