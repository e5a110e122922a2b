"""Given names as initials, as bibliographies write them."""

from __future__ import annotations

from typing import Literal

from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place
from raggs.parts.perturbers.parts import initials, name_parts


class InitialsForm(Perturber):
    """Given names become initials on both sides: Alice Dupont is A. Dupont."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["initials_form"] = "initials_form"

    def author(self, name: str, place: Place) -> str:
        parts = name_parts(name)
        return f"{initials(parts.given)} {parts.family}" if parts.given else name
