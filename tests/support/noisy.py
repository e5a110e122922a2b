"""The questions of tests/parts/rewriters/noisy.txt: noise, question, and text that must never be touched."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[1] / "parts" / "rewriters" / "noisy.txt"
TOKEN = re.compile(r"[{}\[\]]|\w+")
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Noisy:
    """A question with its noise.

    Attributes:
        held_out: whether it was left aside while the rules were written.
        words: each word with what it is: noise, said (of the question), told (a name, a number or a negation).
        clean: the question without its noise.
    """

    kind: str
    language: str
    held_out: bool
    text: str
    clean: str
    words: tuple[tuple[str, str], ...]

    def missing(self, rewritten: str) -> Counter[str]:
        """How many words of each sort a rewrite lacks; one that it has but the question has not is an error."""
        left, lacking = WORD.findall(rewritten), Counter[str]()
        place = len(left)
        for word, sort in reversed(self.words):  # noise stands in front more often: match from the end
            if place and left[place - 1] == word:
                place -= 1
            else:
                lacking[sort] += 1
        assert place == 0, f"{rewritten!r} has words that are not in {self.text!r}"
        return lacking

    def count(self, sort: str) -> int:
        return sum(each == sort for _, each in self.words)


def read() -> list[Noisy]:
    """All 200, in the file's order."""
    found, seen = [], Counter[str]()
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            label, marked = line.split(" | ")
            found.append(_noisy(label, marked, seen[label] % 2 == 1))
            seen[label] += 1
    return found


def _noisy(label: str, marked: str, held_out: bool) -> Noisy:
    kind, language = label.split()
    plain = re.sub(r"[\[\]]", "", marked)
    clean = " ".join(re.sub(r"\{[^}]*\}", " ", plain).split())
    return Noisy(kind, language, held_out, re.sub(r"[{}]", "", plain), clean, tuple(_sorted(marked)))


def _sorted(marked: str) -> list[tuple[str, str]]:
    sort, outer, words = "said", "said", []
    for token in TOKEN.findall(marked):
        match token:
            case "{":
                sort = "noise"
            case "}" | "]":
                sort = "said" if token == "}" else outer
            case "[":
                outer, sort = sort, "told"
            case _:
                words.append((token, sort))
    return words
