"""Perturbers: base class and registry. A perturber makes one controlled change to texts with names.

Examples of changes are a masked name, another order or another case. A diagnosis measures how the change affects
vectors and scores. Changes are seeded: the same text, name, seed and bundle yield the same change, regardless of
earlier changes.

A perturber defines how it changes a name (`author`) and a text with its names (`words`). The base class applies both
methods to the bundles of a diagnosis and to the texts of a corpus. `layout` changes only bundles.

Names are split by rule into given names and a family name with its particles, as in western bibliographies. For names
that start with the family name (Chinese, Hungarian), the rule wrongly takes the last word as family name.

A bundle is a query with five candidates, stored as parts. Texts are composed only when needed, so that a perturber can
change the name, the label or the layout without parsing. The parts do not depend on how a bundle is drawn or scored.
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
    """Given and family name; `given` is empty if the name is a single word."""

    given: str
    family: str


def name_parts(name: str) -> NameParts:
    """Return the parts of a name: ``Ludwig van Beethoven`` yields ("Ludwig", "van Beethoven"). A single word such as
    ``Plato`` yields ("", "Plato").
    """
    words = name.split()
    start = len(words) - 1
    while start > 1 and words[start - 1].casefold() in PARTICLES:
        start -= 1
    return NameParts(" ".join(words[: max(start, 0)]), " ".join(words[max(start, 0) :]))


def initials(given: str) -> str:
    """Return the initials: ``Jean-Pierre Louis`` yields ``J.-P. L.``; existing initials stay."""
    return " ".join("-".join(_initial(part) for part in word.split("-") if part) for word in given.split())


def _initial(word: str) -> str:
    return word if word.endswith(".") else f"{word[0]}."


BundleSide = Literal["question", "candidate"]
AUTHOR = "{author}"
PLACEHOLDER_PATTERN = re.compile(r"(\{author\}|\{topic\}|\{label\})")  # all other braces are plain text


@dataclass(frozen=True)
class BundleText:
    """A text, stored as parts.

    Attributes:
        author: name in the text.
        topic: topic of the text.
        segments: sentences in order, joined by blanks; ``{author}``, ``{topic}`` and ``{label}`` are placeholders.
        label: text that introduces the author, such as "Author: ", including its separator.
    """

    author: str
    topic: str
    segments: tuple[str, ...]
    label: str = ""

    @property
    def text(self) -> str:
        """The composed text."""
        parts = {"{author}": self.author, "{topic}": self.topic, "{label}": self.label}
        return " ".join(
            "".join(parts.get(each, each) for each in PLACEHOLDER_PATTERN.split(segment)) for segment in self.segments
        )


@dataclass(frozen=True)
class Bundle:
    """A query "Which works by A on T?" with the candidates C1, C2a, C2b, C3, C4, in this order.

    Attributes:
        key: unique id within a diagnosis; seeds all random draws for the bundle.
        language: ISO 639-1 code of the texts.
        candidates: right author and topic (C1), other authors on the topic (C2a, C2b), the author on another topic
            (C3), another author on another topic (C4).
    """

    key: str
    language: str
    question: BundleText
    candidates: tuple[BundleText, BundleText, BundleText, BundleText, BundleText]

    @property
    def texts(self) -> tuple[str, ...]:
        """The query, then the candidates."""
        return (self.question.text, *(each.text for each in self.candidates))

    def with_authors(self, *authors: str) -> Bundle:
        """Return the bundle with other names in the candidates; `authors` are in the order of the candidates."""
        first, second, third, fourth, fifth = (
            replace(piece, author=author) for piece, author in zip(self.candidates, authors, strict=True)
        )
        return replace(self, candidates=(first, second, third, fourth, fifth))


ChangeFamily = Literal["identity", "form", "layout"]


@dataclass(frozen=True)
class TextContext:
    """The place of a text in a diagnosis.

    Attributes:
        side: query or candidate.
        language: ISO 639-1 code.
        seed: seed of the run.
        key: key of the bundle; empty for a corpus.
    """

    side: BundleSide
    language: str
    seed: int
    key: str = ""


class PerturberConfig(AdapterConfig):
    """Settings common to all perturbers."""


class Perturber(Adapter, ABC):
    """Changes texts with names. Created as ``cls(config)``."""

    Config: ClassVar[type[PerturberConfig]] = PerturberConfig
    # whether the change makes the name unrecognisable, or affects only its form or the layout
    FAMILY: ClassVar[ChangeFamily]
    TITLE: ClassVar[str] = ""  # plain name of the change in tables and plots; empty: the type

    config: PerturberConfig

    def __init__(self, config: PerturberConfig | None = None) -> None:
        self.config = config or self.Config.model_validate({})

    @classmethod
    def fault(cls, adapter: type[Adapter], name: str) -> str | None:
        """Return a problem of the adapter class, or None; a perturber must define its family."""
        if problem := super().fault(adapter, name):
            return problem
        return None if getattr(adapter, "FAMILY", None) else f"{adapter.__qualname__} does not define FAMILY"

    def causes(self) -> Causes:
        """Return everything that affects the changes of the perturber."""
        return self.own_causes()

    def author(self, name: str, place: TextContext) -> str:
        """Return the changed name."""
        return name

    def words(self, text: str, place: TextContext) -> str:
        """Return the text with its words and names changed; ``{author}``, ``{topic}`` and ``{label}`` stay
        unchanged."""
        return text

    def layout(self, piece: BundleText) -> BundleText:
        """Return the text with another layout."""
        return piece

    def bundle(self, bundle: Bundle, seed: int) -> Bundle:
        """Return the bundle with all texts changed."""
        asked, shown = (TextContext(side, bundle.language, seed, bundle.key) for side in ("question", "candidate"))
        first, second, third, fourth, fifth = (self._piece(each, shown) for each in bundle.candidates)
        question = self._piece(bundle.question, asked)
        return replace(bundle, question=question, candidates=(first, second, third, fourth, fifth))

    def renamed(self, names: Iterable[str], place: TextContext) -> dict[str, str]:
        """Return the new names for the names of a corpus; names that do not change are omitted."""
        return {name: new for name in names if (new := self.author(name, place)) != name}

    def text(self, text: str, renamed: Mapping[str, str], names: Iterable[str], place: TextContext) -> str:
        """Return the changed version of a text of a corpus, or of a query about the corpus.

        Args:
            text: text before the change.
            renamed: result of `renamed` for the same place.
            names: names in the text.
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
    """Return `text` with whole names replaced, longer names first. All names are replaced in one pass, so that no
    replacement is replaced again."""
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


def label_of(name: str) -> str:
    """Return the plain name of a perturber: ``initials only``; the type itself if it has none or is not installed."""
    return (REGISTRY.load(name).TITLE if name in REGISTRY else "") or name
