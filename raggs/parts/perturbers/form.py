"""The author first: whether a score hangs on where a name stands.

Names as databases spoil them: another case, straight apostrophes, blanks for hyphens.

Letters without their marks, as many search engines fold them.

The same text in other code points: decomposed letters and narrow spaces, as PDF files give them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal

from pydantic import Field

from raggs.base.languages import fold_accents
from raggs.base.seeds import derive_seed
from raggs.parts.perturbers.base import AUTHOR, Perturber, PerturberConfig, Piece, Place

SENTENCE = re.compile(r"(?<=[^\s.][^\s.][.!?])\s+")  # no end: the point of an initial


class AuthorPositionShift(Perturber):
    """The sentence with the author comes first in each candidate: Author: X. Research paper: 'Y'."""

    FAMILY = "layout"

    class Config(PerturberConfig):
        type: Literal["author_position_shift"] = "author_position_shift"

    def layout(self, piece: Piece) -> Piece:
        return replace(piece, segments=tuple(sorted(piece.segments, key=lambda segment: AUTHOR not in segment)))

    def text(self, text: str, renamed: Mapping[str, str], names: Iterable[str], place: Place) -> str:
        """Sentences with a name come first; a question stays."""
        held = list(names)
        if place.side == "question" or not held:
            return text
        return " ".join(sorted(SENTENCE.split(text), key=lambda sentence: not any(name in sentence for name in held)))


CASES: tuple[Callable[[str], str], ...] = (str.upper, str.lower, str.title)
PUNCTUATION = str.maketrans({"’": "'", "‘": "'", "-": " ", "‐": " ", "‑": " "})


class CasePunctPerturb(Perturber):
    """Names change their case, with straight apostrophes and blanks for hyphens, on both sides."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["case_punct_perturb"] = "case_punct_perturb"
        candidates_only: bool = Field(False, description="whether the question keeps the names as they were")

    config: Config

    def author(self, name: str, place: Place) -> str:
        if self.config.candidates_only and place.side == "question":
            return name
        case = CASES[derive_seed(place.seed, self.config.type, place.key, name) % len(CASES)]
        return case(name.translate(PUNCTUATION))


class StripDiacritics(Perturber):
    """All texts lose their diacritical marks: é becomes e, in names, topics and all other words."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["strip_diacritics"] = "strip_diacritics"

    def words(self, text: str, place: Place) -> str:
        return fold_accents(text)


NARROW = "\u202f"
MARKS = re.compile(r"\s*([:;!])")


class UnicodeNormalizationStress(Perturber):
    """Questions in NFC; candidates in NFD with a narrow no-break space before colons, semicolons and !."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["unicode_normalization_stress"] = "unicode_normalization_stress"

    def words(self, text: str, place: Place) -> str:
        if place.side == "question":
            return unicodedata.normalize("NFC", text)
        return unicodedata.normalize("NFD", MARKS.sub(NARROW + r"\1", text))
