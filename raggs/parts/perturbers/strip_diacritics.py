"""Letters without their marks, as many search engines fold them."""

from __future__ import annotations

from typing import Literal

from raggs.base.languages import fold_accents
from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place


class StripDiacritics(Perturber):
    """All texts lose their diacritical marks: é becomes e, in names, topics and all other words."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["strip_diacritics"] = "strip_diacritics"

    def words(self, text: str, place: Place) -> str:
        return fold_accents(text)
