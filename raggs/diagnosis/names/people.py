"""Whom texts name: those that a corpus' field holds, or what looks like a name.

The rule: two to four words in a row with a capital first letter, particles (van, de la) between them allowed and
initials counted as words; a first word that only makes sentences ("What") is left out. So places and titles of two
capitalised words are names too, and a person called by one word is none. What is kept of a question is the longest end
of such words that stands in a passage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import regex

from raggs.base.languages import FUNCTION_WORDS, fold_accents
from raggs.parts.perturbers.parts import PARTICLES

FEWEST_WORDS = 2
LETTERS = r"[\p{L}\p{M}]"
WORD = rf"(?:\p{{Lu}}\.(?:-?\p{{Lu}}\.)*|\p{{Lu}}{LETTERS}*+(?:['’‘ʻ-]{LETTERS}++)*+)"
PARTICLE = rf"(?:{'|'.join(sorted(map(regex.escape, PARTICLES), key=len, reverse=True))})"
INSIDE = r"[\p{L}\p{M}\p{N}]"
RUN = regex.compile(rf"(?<!{INSIDE}){WORD}(?: (?:{PARTICLE} ){{0,2}}{WORD}){{1,3}}(?!{INSIDE})")
POSSESSIVE = ("'s", "’s")
WORDS = regex.compile(r"[\p{L}\p{M}]+")
SENTENCE_WORDS = frozenset(word for words in FUNCTION_WORDS.values() for word in words.split())


def runs_in(text: str) -> list[str]:
    """What looks like a name, in the order of the text."""
    found = (_trimmed(match[0]) for match in RUN.finditer(text))
    return [run for run in found if len(run.split()) >= FEWEST_WORDS]


def _trimmed(run: str) -> str:
    """Without words that only make sentences in front, and without the sign of possession behind."""
    words = run.removesuffix(POSSESSIVE[0]).removesuffix(POSSESSIVE[1]).split()
    while words and fold_accents(words[0]).lower() in SENTENCE_WORDS:
        del words[0]
    return " ".join(words)


class People:
    """Names, and where they stand.

    Args:
        names: each once.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(set(names)))
        self._by_word: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            if words := WORDS.findall(name):
                self._by_word[words[0]].append(name)

    def within(self, text: str) -> list[str]:
        """Those that stand in a text as whole words, sorted."""
        near = (self._by_word[word] for word in set(WORDS.findall(text)) & self._by_word.keys())
        return sorted(name for names in near for name in names if _stands(name, text))


def asked_for(question: str, passages: Sequence[str]) -> list[str]:
    """The names in a question by rule that stand in some passage, each as the longest run that does."""
    found = []
    for run in runs_in(question):
        words = run.split()
        for start in range(len(words) - FEWEST_WORDS + 1):
            name = " ".join(words[start:])
            if any(_stands(name, text) for text in passages):
                found.append(name)
                break
    return found


def _stands(name: str, text: str) -> bool:
    """Whether it stands there as whole words."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return True
        at = text.find(name, at + 1)
    return False


def by_question(questions: Mapping[str, str], passages: Sequence[str], known: People | None) -> dict[str, list[str]]:
    """Of each question that names somebody who stands in a passage, these names.

    Args:
        known: names of the corpus' field; None: by rule.
    """
    there: set[str] = set()
    if known is not None:
        there = {name for text in passages for name in known.within(text)}

    def named(text: str) -> Iterator[str]:
        if known is None:
            yield from asked_for(text, passages)
        else:
            yield from (name for name in known.within(text) if name in there)

    found = {qid: list(dict.fromkeys(named(text))) for qid, text in questions.items()}
    return {qid: names for qid, names in found.items() if names}
