"""What a perturber is: one controlled change of texts that hold names, whose effect on scores is then measured.

A perturber says how it writes a name (`author`) and what it does to all other words (`words`). The base makes of these
a changed bundle of a diagnosis and a changed text of a corpus, so that both are perturbed alike. The same text, seed
and name give the same change, whatever was perturbed before.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.settings import Causes
from raggs.parts.perturbers.bundles import Bundle, Piece, Side

Family = Literal["identity", "form", "layout"]


@dataclass(frozen=True)
class Place:
    """Where a text stands.

    Attributes:
        side: the question's or the candidates'.
        language: ISO 639-1 code.
        seed: of the run.
        key: of the bundle; of a corpus, the empty text.
    """

    side: Side
    language: str
    seed: int
    key: str = ""


class PerturberConfig(AdapterConfig):
    """What every perturber's settings hold."""


class Perturber(Adapter, ABC):
    """Changes texts that hold names. Built as ``cls(config)``."""

    Config: ClassVar[type[PerturberConfig]] = PerturberConfig
    FAMILY: ClassVar[Family]  # whether it takes the identity away, only the form, or only the layout

    config: PerturberConfig

    def __init__(self, config: PerturberConfig | None = None) -> None:
        self.config = config or self.Config.model_validate({})

    @classmethod
    def fault(cls, adapter: type[Adapter], name: str) -> str | None:
        """As of every adapter; a perturber says its family, too."""
        if problem := super().fault(adapter, name):
            return problem
        return None if getattr(adapter, "FAMILY", None) else f"{adapter.__qualname__} has no FAMILY"

    def causes(self) -> Causes:
        """All that can change what it does."""
        return self.own_causes()

    def author(self, name: str, place: Place) -> str:
        """How it writes a name at a place."""
        return name

    def words(self, text: str, place: Place) -> str:
        """What it makes of any text, names in it included; ``{author}``, ``{topic}`` and ``{label}`` stay."""
        return text

    def layout(self, piece: Piece) -> Piece:
        """How it lays a text out."""
        return piece

    def bundle(self, bundle: Bundle, seed: int) -> Bundle:
        """The bundle with all texts changed."""
        asked, shown = (Place(side, bundle.language, seed, bundle.key) for side in ("question", "candidate"))
        first, second, third, fourth, fifth = (self._piece(each, shown) for each in bundle.candidates)
        question = self._piece(bundle.question, asked)
        return replace(bundle, question=question, candidates=(first, second, third, fourth, fifth))

    def renamed(self, names: Iterable[str], place: Place) -> dict[str, str]:
        """What each name of a corpus becomes at a place; names that stay are left out."""
        return {name: new for name in names if (new := self.author(name, place)) != name}

    def text(self, text: str, renamed: Mapping[str, str], names: Iterable[str], place: Place) -> str:
        """A text of a corpus, or a question about it, changed.

        Args:
            text: as it stands.
            renamed: of `renamed`, at the same place.
            names: that stand in the text.
        """
        held = {name: renamed[name] for name in names if name in renamed}
        return self.words(replaced(text, held), place)

    def _piece(self, piece: Piece, place: Place) -> Piece:
        laid = self.layout(piece)
        return Piece(
            self.words(self.author(laid.author, place), place),
            self.words(laid.topic, place),
            tuple(self.words(segment, place) for segment in laid.segments),
            self.words(laid.label, place),
        )


def replaced(text: str, names: Mapping[str, str]) -> str:
    """`text` with whole names replaced, longer ones first, all at once: what comes in is not replaced again."""
    if not names:
        return text
    longest = sorted(names, key=lambda name: (-len(name), name))
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)"
    return re.sub(pattern, lambda match: names[match[0]], text)
