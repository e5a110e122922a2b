"""The words that announce a name go: what is left is the name's own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place
from raggs.parts.perturbers.bundles import Piece

LABEL = re.compile(r"(?<!\w)(?:authors?|auteurs?|auteures?|autrices?)\s*:\s*", re.IGNORECASE)


class RemoveLabel(Perturber):
    """ "Author:" and "Auteur :" are left out, in candidates and, where it has one, in the question."""

    FAMILY = "layout"

    class Config(PerturberConfig):
        type: Literal["remove_label"] = "remove_label"

    def layout(self, piece: Piece) -> Piece:
        return replace(piece, label="")

    def words(self, text: str, place: Place) -> str:
        return LABEL.sub("", text)
