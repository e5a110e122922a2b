"""Words misspelled as fingers misspell them, and marks that come in crowds."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
from pydantic import Field

from raggs.base.languages import fold_accents
from raggs.parts.noises.base import Asked, Noise, NoiseConfig, one_of

WORD = re.compile(r"[^\W\d_]{4,}")
NEGATIONS = (
    *("cannot", "hardly", "neither", "never", "nobody", "none", "nothing", "nowhere", "unless", "without"),
    *("aucun", "aucune", "guère", "jamais", "nulle", "personne", "rien", "sans", "sauf"),
)
NEAR = {"a": "s", "e": "r", "i": "o", "o": "p", "u": "y", "t": "r", "n": "b", "m": "n", "s": "d", "l": "k", "r": "t"}


class TypingErrors(Noise):
    """Some words misspelled: letters swapped, left out, doubled, hit beside; marks in crowds.

    Words with a capital or a digit stay, so that no name becomes another, and so do negations.
    """

    FROM, ORDER = 4, 10

    class Config(NoiseConfig):
        type: Literal["typing_errors"] = "typing_errors"
        rate: float = Field(0.12, ge=0, le=1, description="of the words of four letters or more that are misspelled")

    config: Config

    def _add(self, text: str, asked: Asked, draw: np.random.Generator) -> str:
        def spelled(match: re.Match[str]) -> str:
            hit = draw.random() < self.config.rate  # drawn for each word, so that one more name moves no other slip
            return _slip(match[0], draw) if hit and _common(match) else match[0]

        text = WORD.sub(spelled, text)
        return re.sub(r"\s*\?$", one_of(("??", "???", "?!", " ?", "?"), draw), text)


def _common(match: re.Match[str]) -> bool:
    """Whether a word is in small letters, no negation, and nothing hangs on it: "covid-19" and "iPhone" are names."""
    if not match[0].islower() or match[0] in NEGATIONS or match.string.startswith(("'", "’"), match.end()):
        return False
    around = match.string[match.start() - 1 : match.start()] + match.string[match.end() : match.end() + 1]
    return not re.search(r"[\w+#/@&.-]", around.removesuffix("."))


def _slip(word: str, draw: np.random.Generator) -> str:
    if (plain := fold_accents(word)) != word:
        return plain
    at = int(draw.integers(1, len(word) - 1))
    match int(draw.integers(4)):
        case 0:
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case 1:
            return word[:at] + word[at + 1 :]
        case 2:
            return word[:at] + word[at] + word[at:]
        case _:
            return word[:at] + NEAR.get(word[at], word[at]) + word[at + 1 :]
