"""What people say around a question, by seeded generators: greetings, fillers, digressions, emoji, slips.

One file each and one line here, as other adapters; `noisy` puts them together. The same question, seed and level
give the same noise. A few phrases are those of the paper that this follows; the others are written for themselves and
not for the lists of the rewriter `clean`, which knows only some of them (docs/how-to/diagnose/noise.md).

What a noise is: what people add to a question without asking for anything else.

A noise is drawn by the seed and the question's id, never by what was drawn before, so the same question has the same
greeting whatever other noises it is given and in whatever order questions come. It adds words or misspells them; it
never adds a question mark of its own content, a name or a number, and of the question it leaves each name and number
as it is. The phrases are English and French.

Noise in levels from 0, the question itself, to 4: each level has all noises of the one below, and more of them.

1  a greeting, at times thanks
2  and a filler                                              ("moderate")
3  and a digression, personal context, emoji, a second filler
4  and typing errors and words of the other language         ("high")
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
NAME_LIKE_WORDS = ("i", "may", "will", "nice", "an")  # that look like words of grammar
FILLER_OPENERS = (  # words that open a filler
    "alors basically anyway actually bref bon bueno by dis du en erm guys just okay pardon right so sorry voila well"
)
OPENING_WORDS = {*FILLER_OPENERS.split(), *(word for code in LANGUAGES for word in FUNCTION_WORDS[code].split())} - {
    *NAME_LIKE_WORDS
}
Phrases = Mapping[str, Sequence[str]]  # by language


@dataclass(frozen=True)
class NoiseRequest:
    """A question that is to be made noisy.

    Attributes:
        key: its id; the same key and seed give the same noise.
        language: ISO 639-1 code, one of `LANGUAGES`.
        level: how much noise, 1 to 4.
        seed: of the run.
    """

    key: str
    language: str
    level: int
    seed: int


class NoiseConfig(AdapterConfig):
    """What every noise's settings hold."""


class Noise(Adapter, ABC):
    """Adds one sort of noise. Built as ``cls(config)``.

    Attributes:
        FROM: the level from which questions hold it.
        ORDER: of use; what changes the question's own words comes first, what stands outermost last.
    """

    Config: ClassVar[type[NoiseConfig]] = NoiseConfig
    FROM: ClassVar[int]
    ORDER: ClassVar[int]

    config: NoiseConfig

    def __init__(self, config: NoiseConfig | None = None) -> None:
        self.config = config or self.Config.model_validate({})

    @classmethod
    def fault(cls, adapter: type[Adapter], name: str) -> str | None:
        """As of every adapter; a noise says from which level questions hold it, and when it is added."""
        if problem := super().fault(adapter, name):
            return problem
        lacking = [field for field in ("FROM", "ORDER") if not hasattr(adapter, field)]
        return f"{adapter.__qualname__} has no {' and no '.join(lacking)}" if lacking else None

    def causes(self) -> Causes:
        """All that can change what it adds."""
        return self.own_causes()

    def noisy(self, text: str, asked: NoiseRequest) -> str:
        """`text` with this noise.

        Raises:
            UsageError: it has no phrases in this language.
        """
        check_language(asked.language)
        return self._add(text, asked, generator(asked.seed, "noise", self.config.type, asked.key))

    @abstractmethod
    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        """The text with the noise; all that is random comes from `draw`."""


def check_language(language: str) -> None:
    """Refuse a language that noises do not speak.

    Raises:
        UsageError: with those that they do.
    """
    if language not in LANGUAGES:
        raise UsageError(f"there is no noise in {language!r}", remedy=did_you_mean(language, LANGUAGES))


def one_of(phrases: Sequence[str], draw: np.random.Generator) -> str:
    """One of the phrases, each as likely."""
    return phrases[int(draw.integers(len(phrases)))]


def lower_first(text: str) -> str:
    """A sentence that goes on: its first letter small where the first word is one of grammar, and no name."""
    first = fold_accents(re.split(r"\W", text, maxsplit=1)[0])
    return text[:1].lower() + text[1:] if first[1:] == first[1:].lower() and first.lower() in OPENING_WORDS else text


def append_sentence(text: str, phrase: str) -> str:
    """A sentence behind a question, which ends if it did not."""
    return f"{text}{'' if text[-1:] in '.!?…' else '.'} {phrase}"


def prepend_phrase(phrase: str, text: str) -> str:
    """A phrase in front of a question, which goes on with a small letter unless the phrase ends a sentence."""
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
    """A question with the noise of a level.

    Args:
        text: the question.
        asked: its id, language and level; level 0 leaves it as it is.
        noises: those that may be added; all that there are where none is named.

    Raises:
        UsageError: no noise speaks the language.
    """
    check_language(asked.language)
    for noise in sorted(noises if noises is not None else all_noises(), key=lambda each: each.ORDER):
        if asked.level >= noise.FROM:
            text = noise.noisy(text, asked)
    return one_line(text)


def all_noises() -> list[Noise]:
    """Every noise that is registered, with its own settings, in the order in which they are added."""
    found = [REGISTRY.load(name)() for name in REGISTRY]
    return sorted(found, key=lambda noise: (noise.ORDER, noise.config.type))
