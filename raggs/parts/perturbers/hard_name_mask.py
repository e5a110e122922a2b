"""One mask for every name: what is left of a name margin then is no name's."""

from __future__ import annotations

from typing import Literal

from raggs.base.seeds import derive_seed
from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place

MASKS = {"fr": "AUTEUR"}  # what a mask says, where it is not AUTHOR
NUMBERS = 1000


class HardNameMask(Perturber):
    """Every name of a bundle becomes one mask, AUTHOR_007, in the question too: no margin may stay."""

    FAMILY = "identity"

    class Config(PerturberConfig):
        type: Literal["hard_name_mask"] = "hard_name_mask"

    def author(self, name: str, place: Place) -> str:
        number = derive_seed(place.seed, self.config.type, place.key) % NUMBERS
        return f"{MASKS.get(place.language, 'AUTHOR')}_{number:03d}"
