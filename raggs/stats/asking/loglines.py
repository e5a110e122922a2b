"""What users typed, made into questions: what is no question goes, and what is the same is counted together.

Two lines are the same when they have the same words in the same order, whatever their case, accents and punctuation;
the spelling that was typed most often stays. Lines that are near each other in meaning are told by vectors elsewhere
(`raggs.stats.asking.filters.duplicates`), but only within one `guard`: "error 404" is not "error 403", and "with" is
not "without".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Reason = Literal["empty", "no words", "small talk", "too short", "too long"]
LONGEST = 2000  # characters; longer ones are pasted documents
LEAST_WORDS = 2
WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")  # scripts of long words
WIDE_LEAST = 4  # characters of these
ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+")
LETTERS = re.compile(r"[^\W\d_]{2,}")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
TALK = """hi hello hey yo hiya howdy thanks thank you thx ty ok okay yes no yep nope bye goodbye good morning afternoon
    evening night day please help cool great nice perfect sure test testing there all everyone a lot so much very lol
    hmm how are doing bonjour salut coucou bonsoir merci beaucoup oui non au revoir bonne journée soirée nuit svp stp
    d accord ça va bien tout le monde super génial parfait aide essai s il te vous plaît"""
SMALL_TALK = frozenset(TALK.split())
DENYING = """not no never without cannot nor t ne pas sans jamais aucun aucune ni non plus
    nicht kein keine ohne nie"""
NEGATIONS = frozenset(DENYING.split())


@dataclass(frozen=True)
class Asked:
    """Lines that are one question.

    Attributes:
        text: as it was typed most often, the first of equals.
        line: its number where it stands first.
        count: how often it was typed, in all spellings.
    """

    text: str
    line: int
    count: int


def fault(text: str) -> Reason | None:
    """Why a cleaned line is no question; None where it may be one."""
    if not text:
        return "empty"
    if len(text) > LONGEST:
        return "too long"
    words = WORD.findall(ADDRESS.sub(" ", text))
    if not any(LETTERS.search(word) or WIDE.search(word) for word in words):
        return "no words"
    if all(word.lower() in SMALL_TALK for word in words):
        return "small talk"
    wide = len(WIDE.findall(text))
    return "too short" if len(words) < LEAST_WORDS and wide < WIDE_LEAST else None


def same_key(text: str) -> str:
    """The words of a line, by which it is the same as another."""
    plain = unicodedata.normalize("NFD", text.casefold())
    return " ".join(WORD.findall("".join(char for char in plain if not unicodedata.combining(char))))


def guard(text: str) -> str:
    """What two lines must share besides their meaning to be near each other: numbers, and whether they deny."""
    words = set(same_key(text).split())
    return f"{' '.join(sorted(NUMBER.findall(text)))}|{bool(words & NEGATIONS)}"


def grouped(lines: Iterable[Asked]) -> tuple[Asked, ...]:
    """The lines that are the same made one each, the most frequent first, then by their lines."""
    spelled: dict[str, dict[str, Asked]] = {}
    for each in lines:
        spellings = spelled.setdefault(same_key(each.text), {})
        known = spellings.get(each.text)
        first = each.line if known is None else min(known.line, each.line)
        spellings[each.text] = Asked(each.text, first, each.count + (known.count if known else 0))
    return tuple(sorted((_most(list(each.values())) for each in spelled.values()), key=_order))


def merged(asked: Sequence[Asked], into: Iterable[tuple[int, int]]) -> tuple[Asked, ...]:
    """The questions that stay when near ones are counted with them, in the order of `grouped`.

    Args:
        asked: all of them.
        into: rows of a question that goes and of the one that stays for it.
    """
    counts = [each.count for each in asked]
    gone = set()
    for row, of in into:
        counts[of] += asked[row].count
        gone.add(row)
    kept = (Asked(each.text, each.line, counts[row]) for row, each in enumerate(asked) if row not in gone)
    return tuple(sorted(kept, key=_order))


def _most(spellings: Sequence[Asked]) -> Asked:
    best = min(spellings, key=_order)
    return Asked(best.text, min(each.line for each in spellings), sum(each.count for each in spellings))


def _order(asked: Asked) -> tuple[int, int]:
    return -asked.count, asked.line
