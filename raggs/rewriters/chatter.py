"""What people say around a question, in English and French: `chatter.toml` as patterns and sets of words.

All lists are closed, and know words only as `fold` leaves them. What a question is, `stripping` knows.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache
from importlib.resources import files

DRAWN_OUT = re.compile(r"([^\W\d_])\1{2,}")
OUTER = re.compile(r"^\W+|\W+$")
REFERENCE = re.compile(r"<([a-z_]+)>")

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


_POLITE = "|".join(map(phrase, ("greeting", "address", "filler", "question", "sorry", "please", "wondering", "praise")))

POLITE = re.compile(rf"(?:(?:{_POLITE})(?:(?: and| but| so| et| mais)?(?: |$)))+")
CLOSER = re.compile(rf"(?:{phrase('filler')} )?{phrase('closing')}(?: {phrase('people')})?")
LEAD = re.compile(phrase("lead"))
TAIL = re.compile(rf" {phrase('sure_closing')}$")
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
