"""The author first: whether a score hangs on where a name stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place
from raggs.parts.perturbers.bundles import AUTHOR, Piece

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
