"""A code instead of each name: the link between question and passage stays, the name's letters go."""

from __future__ import annotations

from typing import Literal

from raggs.base.seeds import derive_seed
from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place

DIGITS = 6


class GibberishName(Perturber):
    """Each name becomes a code of its own, ID-AB12F3, the same in question and candidates."""

    FAMILY = "identity"

    class Config(PerturberConfig):
        type: Literal["gibberish_name"] = "gibberish_name"

    def author(self, name: str, place: Place) -> str:
        return f"ID-{derive_seed(place.seed, self.config.type, name) % 16**DIGITS:0{DIGITS}X}"
