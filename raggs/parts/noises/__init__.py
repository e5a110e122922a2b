"""Noises: base class and registry. A noise adds text to a query or alters words, without changing its meaning.

Seeded generators add greetings, fillers, digressions, emoji and typing errors; `noisy` combines them. The same query,
seed and level always yield the same noise. A few phrases are from the paper that defines noise levels in this way. The
others were written independently of the word lists of the rewriter `clean`, which contain only some of them
(docs/how-to/diagnose/noise.md).

A noise depends on the seed and the query's id, not on earlier draws. The same query therefore has the same greeting
with any other noises and in any order of queries. A noise adds, misspells or translates words. Added phrases ask for no
other information. Words with a capital, except function words at the start, and words with digits stay unchanged, so
that names and numbers are preserved. The phrases are English and French.

Levels range from 0 (the original query) to 4. Each level includes all noises of the levels below:

1  a greeting, sometimes thanks
2  a filler                                                  ("moderate")
3  a digression, personal context, emoji, a second filler
4  typing errors and words of the other language             ("high")
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.errors import UsageError
from raggs.base.hashing import generator
from raggs.base.languages import FUNCTION_WORDS, fold_accents
from raggs.base.registry import Registry
from raggs.base.settings import Causes
from raggs.base.text import did_you_mean, one_line

LANGUAGES = ("en", "fr")
# function words that keep a capital, because they may also be names
NAME_LIKE_WORDS = ("i", "may", "will", "nice", "an")
FILLER_OPENERS = (  # first words of fillers
    "alors basically anyway actually bref bon bueno by dis du en erm guys just okay pardon right so sorry voila well"
)
OPENING_WORDS = {*FILLER_OPENERS.split(), *(word for code in LANGUAGES for word in FUNCTION_WORDS[code].split())} - {
    *NAME_LIKE_WORDS
}
Phrases = Mapping[str, Sequence[str]]  # by language


@dataclass(frozen=True)
class NoiseRequest:
    """Noise parameters of a query.

    Attributes:
        key: id of the query; the same key and seed yield the same noise.
        language: ISO 639-1 code, one of `LANGUAGES`.
        level: amount of noise, 0 (none) to 4.
        seed: seed of the run.
    """

    key: str
    language: str
    level: int
    seed: int


class NoiseConfig(AdapterConfig):
    """Settings common to all noises."""


class Noise(Adapter, ABC):
    """Adds one kind of noise. Created as ``cls(config)``.

    Attributes:
        FROM: lowest level that includes the noise.
        ORDER: order of application; noises that change the query's words come first, text around the query comes last.
    """

    Config: ClassVar[type[NoiseConfig]] = NoiseConfig
    FROM: ClassVar[int]
    ORDER: ClassVar[int]

    config: NoiseConfig

    def __init__(self, config: NoiseConfig | None = None) -> None:
        self.config = config or self.Config.model_validate({})

    @classmethod
    def fault(cls, adapter: type[Adapter], name: str) -> str | None:
        """Return a problem of the adapter class, or None; a noise must define its level and order."""
        if problem := super().fault(adapter, name):
            return problem
        lacking = [field for field in ("FROM", "ORDER") if not hasattr(adapter, field)]
        return f"{adapter.__qualname__} does not define {' and '.join(lacking)}" if lacking else None

    def causes(self) -> Causes:
        """Return everything that affects the noise."""
        return self.own_causes()

    def noisy(self, text: str, asked: NoiseRequest) -> str:
        """Return `text` with this noise.

        Raises:
            UsageError: the language is not supported.
        """
        check_language(asked.language)
        return self._add(text, asked, generator(asked.seed, "noise", self.config.type, asked.key))

    @abstractmethod
    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        """Return the text with the noise; all random choices use `draw`."""


def check_language(language: str) -> None:
    """Raise an error if a language is not supported.

    Raises:
        UsageError: the language is not in `LANGUAGES`; the remedy lists the supported languages.
    """
    if language not in LANGUAGES:
        raise UsageError(f"no noise supports language {language!r}", remedy=did_you_mean(language, LANGUAGES))


def one_of(phrases: Sequence[str], draw: np.random.Generator) -> str:
    """Return one of the phrases, with uniform probability."""
    return phrases[int(draw.integers(len(phrases)))]


def lower_first(text: str) -> str:
    """Return a sentence with a lower-case first letter if the first word is a function word."""
    first = fold_accents(re.split(r"\W", text, maxsplit=1)[0])
    return text[:1].lower() + text[1:] if first[1:] == first[1:].lower() and first.lower() in OPENING_WORDS else text


def append_sentence(text: str, phrase: str) -> str:
    """Return a query followed by a sentence; a missing full stop is added."""
    return f"{text}{'' if text[-1:] in '.!?…' else '.'} {phrase}"


def prepend_phrase(phrase: str, text: str) -> str:
    """Return a query after a phrase; `lower_first` changes the query if the phrase does not end a sentence."""
    return f"{phrase} {text if phrase[-1] in '.!?…' else lower_first(text)}"


REGISTRY: Registry[Noise] = Registry(
    "noise",
    "noises",
    "raggs.parts.noises:Noise",
    {
        "greetings": "raggs.parts.noises.phrases:Greetings",
        "fillers": "raggs.parts.noises.phrases:Fillers",
        "digressions": "raggs.parts.noises.phrases:Digressions",
        "personal_context": "raggs.parts.noises.phrases:PersonalContext",
        "emoji": "raggs.parts.noises.phrases:Emoji",
        "typing_errors": "raggs.parts.noises.phrases:TypingErrors",
        "code_switching": "raggs.parts.noises.phrases:CodeSwitching",
    },
)


NOISE_LEVELS = (0, 1, 2, 3, 4)


def noisy(text: str, asked: NoiseRequest, noises: Sequence[Noise] | None = None) -> str:
    """Return a query on one line, with the noise of a level.

    Args:
        text: query.
        asked: id and language of the query, and level of the noise; level 0 adds nothing.
        noises: noises that may be added; None: all noises.

    Raises:
        UsageError: the language is not supported.
    """
    check_language(asked.language)
    for noise in sorted(noises if noises is not None else all_noises(), key=lambda each: each.ORDER):
        if asked.level >= noise.FROM:
            text = noise.noisy(text, asked)
    return one_line(text)


def all_noises() -> list[Noise]:
    """Return every registered noise with default settings, in the order of application."""
    found = [REGISTRY.load(name)() for name in REGISTRY]
    return sorted(found, key=lambda noise: (noise.ORDER, noise.config.type))
