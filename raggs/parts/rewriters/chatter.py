"""What people say around a question, in English and French: `chatter.toml` as patterns and sets of words.

All lists are closed, and know words only as `fold` leaves them. What a sentence is, `stripping` knows.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

DRAWN_OUT = re.compile(r"([^\W\d_])\1{2,}")
OUTER = re.compile(r"^\W+|\W+$")
REFERENCE = re.compile(r"<([a-z_]+)>")

LONGEST = 14  # words of a phrase
MOST = 60  # words of a row of phrases; what goes on for longer is no courtesy
JOINTS = frozenset(("and", "but", "so", "et", "mais"))

_LISTS = tomllib.loads((files(__package__) / "chatter.toml").read_text(encoding="utf-8"))


@cache
def phrase(name: str) -> str:
    """The alternatives of a list of phrases as one group of a regular expression."""
    lines = str(_LISTS["phrases"][name]).strip("\n").split("\n")
    return "(?:" + "|".join(REFERENCE.sub(lambda match: phrase(match[1]), line) for line in lines) + ")"


def words(name: str) -> frozenset[str]:
    """A list of words."""
    return frozenset(str(_LISTS["words"][name]).split())


def fold(word: str) -> str:
    """A word as it stands in the lists: ``Heyyyy`` is ``hey``, ``Désolé`` is ``desole``."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(char))
    return OUTER.sub("", DRAWN_OUT.sub(r"\1", plain.replace("’", "'").replace("œ", "oe")))


def _any(*names: str) -> re.Pattern[str]:
    return re.compile("|".join(map(phrase, names)))


POLITE = _any("greeting", "address", "filler", "question", "sorry", "please", "wondering", "praise")
FILLER, CLOSING, PEOPLE, SURE_CLOSING = _any("filler"), _any("closing"), _any("people"), _any("sure_closing")
GREETED = _any("greeting", "please", "question", "interjection")
REQUESTED = _any("question", "request", "please", "sorry")
OPENED, WORDED = re.compile(rf"{phrase('asking')}|{phrase('request')} "), _any("question_word")
ASKS = re.compile(phrase("opener"))
INTERROGATES = re.compile(rf"{phrase('interrogative')}|{phrase('question_word')}")
JOINING = re.compile(rf"^{phrase('joining')}")
HESITATION = re.compile(phrase("hesitation"))
ABOUT_ASKING = re.compile(phrase("about_asking"))
ABOUT_ONESELF = re.compile(rf"{phrase('about_oneself')}\b")
SOMEWHERE = re.compile(phrase("somewhere"))
POINTING = re.compile(phrase("pointing"))
EXPLETIVE = re.compile(rf"\b{phrase('expletive')}\b")
DETERMINED = re.compile(phrase("determined"))
INVERTED = re.compile(r"-(?:t-)?(?:il|elle|ils|elles)\b")
ELIDED = re.compile(r"\b(?:j|m|t|l|d|s|c|n|qu|jusqu|quelqu|aujourd)'")

FIRST_PERSON, OWN_CAPITALS, ACRONYMS = words("first_person"), words("own_capitals"), words("acronyms")
OPEN_END, ORDINARY, CHAT = words("open_end"), words("ordinary"), words("chat")


def ends(words: Sequence[str], phrases: re.Pattern[str]) -> list[int]:
    """After how many of some words a row of phrases ends that begins with the first of them, rising.

    Words are taken phrase by phrase, so that no text takes longer than its length allows: one pattern for the whole row
    would try every way to part it.
    """
    found = {0}
    words = words[:MOST]
    for start in range(len(words)):
        if start in found and phrases.match(" ".join(words[start : start + LONGEST])):
            found |= set(_next(words, start, phrases))
    return sorted(found - {0})


def _next(words: Sequence[str], start: int, phrases: re.Pattern[str]) -> Iterator[int]:
    for end in range(start + 1, min(len(words), start + LONGEST) + 1):
        if phrases.fullmatch(" ".join(words[start:end])):
            yield end
            if end < len(words) and words[end] in JOINTS:
                yield end + 1


def polite(words: Sequence[str]) -> bool:
    """Whether all of it is said in front of a question, and says nothing."""
    return len(words) <= MOST and len(words) in ends(words, POLITE)


def closing(words: Sequence[str]) -> bool:
    """Whether all of it is said behind a question, and says nothing."""
    if len(words) > MOST:
        return False
    starts = (0, *(end for end in range(1, len(words)) if end < LONGEST and FILLER.fullmatch(" ".join(words[:end]))))
    return any(_closes(words[start:]) for start in starts)


def _closes(words: Sequence[str]) -> bool:
    return any(end == len(words) or PEOPLE.fullmatch(" ".join(words[end:])) for end in ends(words, CLOSING))


def leading(words: Sequence[str]) -> int:
    """How many words stand in front of a question without a mark between, and say nothing."""
    greeted = (end for end in ends(words, GREETED) if OPENED.match(" ".join(words[end:])))
    requested = (end for end in ends(words, REQUESTED) if WORDED.match(" ".join(words[end:])))
    return max((*greeted, *requested), default=0)


def trailing(words: Sequence[str]) -> int:
    """How many words of thanks stand at the end without a mark before them."""
    lengths = range(min(LONGEST, len(words)), 0, -1)
    return next((length for length in lengths if SURE_CLOSING.fullmatch(" ".join(words[-length:]))), 0)
