"""Changes of a text whose effect on a vector or a score is measured: a name masked, an order turned, a case changed.

One file each and one line here, as other adapters. A perturber is seeded: the same text, seed and place give
the same change.

What a perturber is: one controlled change of texts that hold names, whose effect on scores is then measured.

A perturber says how it writes a name (`author`) and what it does to all other words (`words`). The base makes of these
a changed bundle of a diagnosis and a changed text of a corpus, so that both are perturbed alike. The same text, seed
and name give the same change, whatever was perturbed before.

The parts of a person's name, as western bibliographies part it: given names, and a family name with its particles.

A rule, not knowledge: where the family name stands first, as in Chinese or Hungarian, it takes the last word for it.

A question and its five candidates, as parts: a perturber changes the name, the label or the layout, never guesses.

A text is made of its parts at the last moment; nothing here knows how a bundle was drawn, nor who scores it.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.registry import Registry
from raggs.base.settings import Causes

PARTICLE_WORDS = (
    "al af ap ben bin bint da dal dalla das de dei del della den der des di do dos du e el ibn la las le los san st "
    "st. ten ter und van vom von y zu zum zur"
)
PARTICLES = frozenset(PARTICLE_WORDS.split())


class NameParts(NamedTuple):
    """`given` is empty where a name is one word."""

    given: str
    family: str


def name_parts(name: str) -> NameParts:
    """``Ludwig van Beethoven``: ("Ludwig", "van Beethoven"); ``Plato``: ("", "Plato")."""
    words = name.split()
    start = len(words) - 1
    while start > 1 and words[start - 1].casefold() in PARTICLES:
        start -= 1
    return NameParts(" ".join(words[: max(start, 0)]), " ".join(words[max(start, 0) :]))


def initials(given: str) -> str:
    """``Jean-Pierre Louis``: ``J.-P. L.``; what is an initial already stays."""
    return " ".join("-".join(_initial(part) for part in word.split("-") if part) for word in given.split())


def _initial(word: str) -> str:
    return word if word.endswith(".") else f"{word[0]}."


BundleSide = Literal["question", "candidate"]
AUTHOR = "{author}"
PLACEHOLDER_PATTERN = re.compile(r"(\{author\}|\{topic\}|\{label\})")  # any other brace is a letter


@dataclass(frozen=True)
class BundleText:
    """One text.

    Attributes:
        author: the name in it.
        topic: what it is about.
        segments: its sentences in order, joined by blanks; ``{author}``, ``{topic}`` and ``{label}`` mark the places.
        label: what announces the author, such as "Author: ", with what parts it from the name.
    """

    author: str
    topic: str
    segments: tuple[str, ...]
    label: str = ""

    @property
    def text(self) -> str:
        """The text itself."""
        parts = {"{author}": self.author, "{topic}": self.topic, "{label}": self.label}
        return " ".join(
            "".join(parts.get(each, each) for each in PLACEHOLDER_PATTERN.split(segment)) for segment in self.segments
        )


@dataclass(frozen=True)
class Bundle:
    """A question "Which works by A on T?" with the candidates C1, C2a, C2b, C3, C4, in this order.

    Attributes:
        key: names the bundle among all of a diagnosis: what is drawn for it hangs on that.
        language: ISO 639-1 code of the texts.
        candidates: right author and topic; two other authors on the topic; the author on another topic; neither.
    """

    key: str
    language: str
    question: BundleText
    candidates: tuple[BundleText, BundleText, BundleText, BundleText, BundleText]

    @property
    def texts(self) -> tuple[str, ...]:
        """The question, then the candidates."""
        return (self.question.text, *(each.text for each in self.candidates))

    def with_authors(self, *authors: str) -> Bundle:
        """The same with other names in the candidates, in their order."""
        first, second, third, fourth, fifth = (
            replace(piece, author=author) for piece, author in zip(self.candidates, authors, strict=True)
        )
        return replace(self, candidates=(first, second, third, fourth, fifth))


ChangeFamily = Literal["identity", "form", "layout"]


@dataclass(frozen=True)
class TextContext:
    """Where a text stands.

    Attributes:
        side: the question's or the candidates'.
        language: ISO 639-1 code.
        seed: of the run.
        key: of the bundle; of a corpus, the empty text.
    """

    side: BundleSide
    language: str
    seed: int
    key: str = ""


class PerturberConfig(AdapterConfig):
    """What every perturber's settings hold."""


class Perturber(Adapter, ABC):
    """Changes texts that hold names. Built as ``cls(config)``."""

    Config: ClassVar[type[PerturberConfig]] = PerturberConfig
    FAMILY: ClassVar[ChangeFamily]  # whether it takes the identity away, only the form, or only the layout

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

    def author(self, name: str, place: TextContext) -> str:
        """How it writes a name at a place."""
        return name

    def words(self, text: str, place: TextContext) -> str:
        """What it makes of any text, names in it included; ``{author}``, ``{topic}`` and ``{label}`` stay."""
        return text

    def layout(self, piece: BundleText) -> BundleText:
        """How it lays a text out."""
        return piece

    def bundle(self, bundle: Bundle, seed: int) -> Bundle:
        """The bundle with all texts changed."""
        asked, shown = (TextContext(side, bundle.language, seed, bundle.key) for side in ("question", "candidate"))
        first, second, third, fourth, fifth = (self._piece(each, shown) for each in bundle.candidates)
        question = self._piece(bundle.question, asked)
        return replace(bundle, question=question, candidates=(first, second, third, fourth, fifth))

    def renamed(self, names: Iterable[str], place: TextContext) -> dict[str, str]:
        """What each name of a corpus becomes at a place; names that stay are left out."""
        return {name: new for name in names if (new := self.author(name, place)) != name}

    def text(self, text: str, renamed: Mapping[str, str], names: Iterable[str], place: TextContext) -> str:
        """A text of a corpus, or a question about it, changed.

        Args:
            text: as it stands.
            renamed: of `renamed`, at the same place.
            names: that stand in the text.
        """
        held = {name: renamed[name] for name in names if name in renamed}
        return self.words(replace_names(text, held), place)

    def _piece(self, piece: BundleText, place: TextContext) -> BundleText:
        laid = self.layout(piece)
        return BundleText(
            self.words(self.author(laid.author, place), place),
            self.words(laid.topic, place),
            tuple(self.words(segment, place) for segment in laid.segments),
            self.words(laid.label, place),
        )


def replace_names(text: str, names: Mapping[str, str]) -> str:
    """`text` with whole names replaced, longer ones first, all at once: what comes in is not replaced again."""
    if not names:
        return text
    longest = sorted(names, key=lambda name: (-len(name), name))
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)"
    return re.sub(pattern, lambda match: names[match[0]], text)


REGISTRY: Registry[Perturber] = Registry(
    "perturber",
    "perturbers",
    "raggs.parts.perturbers:Perturber",
    {
        "hard_name_mask": "raggs.parts.perturbers.names:HardNameMask",
        "gibberish_name": "raggs.parts.perturbers.names:GibberishName",
        "edit_distance_near_miss": "raggs.parts.perturbers.names:EditDistanceNearMiss",
        "remove_label": "raggs.parts.perturbers.names:RemoveLabel",
        "strip_diacritics": "raggs.parts.perturbers.names:StripDiacritics",
        "initials_form": "raggs.parts.perturbers.names:InitialsForm",
        "name_order_inversion": "raggs.parts.perturbers.names:NameOrderInversion",
        "case_punct_perturb": "raggs.parts.perturbers.names:CasePunctPerturb",
        "author_position_shift": "raggs.parts.perturbers.names:AuthorPositionShift",
        "unicode_normalization_stress": ("raggs.parts.perturbers.names:UnicodeNormalizationStress"),
    },
)
