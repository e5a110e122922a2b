"""The family name first, as catalogues write it."""

from __future__ import annotations

from typing import Literal

from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place
from raggs.parts.perturbers.parts import name_parts


class NameOrderInversion(Perturber):
    """Candidates have the family name first: Dupont, Alice; the question stays."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["name_order_inversion"] = "name_order_inversion"

    def author(self, name: str, place: Place) -> str:
        parts = name_parts(name)
        return f"{parts.family}, {parts.given}" if parts.given and place.side == "candidate" else name
