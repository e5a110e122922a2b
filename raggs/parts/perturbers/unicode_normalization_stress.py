"""The same text in other code points: decomposed letters and narrow spaces, as PDF files give them."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place

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
