"""Bundles, drawn: the same questions in all runs, with impostors, other topics and wordings that are new in each.

What is drawn hangs on the seed, the language and the number of run and question alone: more runs or questions change
none of those before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.seeds import generator
from raggs.diagnosis.names.lists import Lists
from raggs.parts.perturbers.bundles import Bundle, Piece
from raggs.parts.perturbers.parts import name_parts

BY = "{label}{author}."
TRIES = 200  # for a name that shares nothing with those there are; in a corpus of few families, one that does


@dataclass(frozen=True)
class Wording:
    """How a language asks and how it describes a work; the first of each is the plain one."""

    questions: tuple[str, ...]
    works: tuple[str, ...]
    label: str


WORDINGS = {
    "en": Wording(
        (
            "Which works by {author} on {topic}?",
            "Which papers by {author} on {topic}?",
            "Which publications by {author} on {topic}?",
            "Are there works by {author} on {topic}?",
        ),
        ("Research paper: '{topic}'.", 'Research paper "{topic}".', "Research article '{topic}'."),
        "Author: ",
    ),
    "fr": Wording(
        (
            "Quels travaux de {author} sur {topic} ?",
            "Quels articles de {author} sur {topic} ?",
            "Quelles publications de {author} sur {topic} ?",
            "Y a-t-il des travaux de {author} sur {topic} ?",
        ),
        ("Article de recherche : '{topic}'.", "Article de recherche « {topic} ».", "Travail de recherche '{topic}'."),
        "Auteur : ",
    ),
}


def draw(lists: Lists, language: str, *, questions: int, runs: int, seed: int) -> list[list[Bundle]]:
    """Bundles by run and question.

    Args:
        lists: at least `FEWEST` names and topics.
        language: one of `WORDINGS`.
        questions, runs: how many; at least 1.
    """
    asked = _asked(lists, language, questions, seed)
    return [
        [
            _bundle(lists, language, author, topic, f"{language}/{run}/{number}", seed)
            for number, (author, topic) in enumerate(asked)
        ]
        for run in range(runs)
    ]


def _asked(lists: Lists, language: str, questions: int, seed: int) -> list[tuple[str, str]]:
    """Who and what is asked for: each topic, or each pair of a corpus, once before any comes again."""
    found: list[tuple[str, str]] = []
    while len(found) < questions:
        rng = generator(seed, "asked", language, len(found))
        order: Sequence[tuple[str, str]] = lists.pairs or [(_name(lists, rng), topic) for topic in lists.topics]
        found += [order[at] for at in rng.permutation(len(order))]
    return found[:questions]


def _bundle(lists: Lists, language: str, author: str, topic: str, key: str, seed: int) -> Bundle:
    rng, wording = generator(seed, "bundle", key), WORDINGS[language]
    others: list[str] = []
    for _ in range(3):
        others.append(_other(lambda: _name(lists, rng), lambda name: _alike(name, [author, *others])))
    away = _other(lambda: lists.topics[rng.integers(len(lists.topics))], lambda other: other == topic)
    question = wording.questions[rng.integers(len(wording.questions))]
    shown = (wording.works[rng.integers(len(wording.works))], BY)
    first, second, third = others

    def candidate(who: str, what: str) -> Piece:
        return Piece(who, what, shown, wording.label)

    return Bundle(
        key,
        language,
        Piece(author, topic, (question,)),
        (
            candidate(author, topic),
            candidate(first, topic),
            candidate(second, topic),
            candidate(author, away),
            candidate(third, away),
        ),
    )


def _name(lists: Lists, rng: np.random.Generator) -> str:
    names = lists.abroad if lists.abroad and rng.random() < 0.5 else lists.home or lists.abroad
    return names[rng.integers(len(names))]


def _other(drawn: Callable[[], str], wrong: Callable[[str], bool]) -> str:
    for _ in range(TRIES):
        if not wrong(found := drawn()):
            break
    return found


def _alike(name: str, others: Sequence[str]) -> bool:
    """Whether a name shares its given or its family name with another one."""
    parts = set(name_parts(name)) - {""}
    return any(parts & set(name_parts(other)) for other in others)
