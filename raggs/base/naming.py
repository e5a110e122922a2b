"""Does a question hold a proper name? A rule about capitals, cheap enough to be asked of every question.

A name is a word with a capital and a small letter ("Prandtl", "McCabe", "d'Alembert") that stands where nothing but a
name brings a capital: within a sentence. The first word of a sentence counts where another such word follows at once
("Ludwig Prandtl wrote ..."), and so does, in German, whose nouns all have capitals, any word. Where most words have a
capital, as in titles, or none has a small letter, capitals say nothing and no name is found. Words of all capitals
("NASA") are none; nor is "I", nor a function word of the language.

It must not be taken for a recogniser of entities: it misses names in small letters, and takes "March" for one.
"""

from __future__ import annotations

import re
from itertools import pairwise

from raggs.base.languages import FUNCTION_WORDS

WORD = re.compile(r"[^\W\d_]+(?:['’\-‐][^\W\d_]+)*")
ENDS = re.compile(r"[.?!:;«»\"“”\n]")
MOST_CAPITALS = 0.6  # of the words that are no function words; beyond, capitals are a habit
NOUNS = ("de",)  # languages in which every noun has a capital


def names_in(text: str, language: str = "en") -> tuple[str, ...]:
    """The words of a question that are taken for names, in their order; empty where capitals say nothing.

    Args:
        text: the question, character for character.
        language: ISO 639-1 code.
    """
    words = list(WORD.finditer(text))
    small = set(FUNCTION_WORDS.get(language, "").split())
    capital = [_capital(word.group(), small) for word in words]
    alone = language not in NOUNS
    telling = sum(word.group().lower() not in small for word in words)
    if alone and sum(capital) > max(2, MOST_CAPITALS * telling):
        return ()
    if not words:
        return ()
    first = [True, *(bool(ENDS.search(text, one.end(), two.start())) for one, two in pairwise(words))]
    beside = [False, *(a and b and not new for a, b, new in zip(capital, capital[1:], first[1:], strict=False)), False]
    return tuple(
        word.group()
        for at, word in enumerate(words)
        if capital[at] and ((alone and not first[at]) or beside[at] or beside[at + 1])
    )


def _capital(word: str, small: set[str]) -> bool:
    """Whether a word has a capital where a name has one: at its start, or after d', l', o', and so on."""
    if word.lower() in small or word.isupper():
        return False
    parts = re.split(r"['’]", word)
    return word[0].isupper() or (len(parts) > 1 and len(parts[0]) <= 2 and parts[1][:1].isupper())
