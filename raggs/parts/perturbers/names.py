"""Impostors that are all but the right name: one, two or three of its letters are others.

A code instead of each name: the link between question and passage stays, the name's letters go.

One mask for every name: what is left of a name margin then is no name's.

The words that announce a name go: what is left is the name's own.

Given names as initials, as bibliographies write them.

The family name first, as catalogues write it.

The author first: whether a score hangs on where a name stands.

Names as databases spoil them: another case, straight apostrophes, blanks for hyphens.

Letters without their marks, as many search engines fold them.

The same text in other code points: decomposed letters and narrow spaces, as PDF files give them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from raggs.base.hashing import derive_seed, generator
from raggs.base.languages import fold_accents
from raggs.parts.perturbers import (
    AUTHOR,
    Bundle,
    BundleText,
    Perturber,
    PerturberConfig,
    TextContext,
    initials,
    name_parts,
)

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
MAX_NAME_DRAWS = 50  # for a name of a corpus that no other one has yet


class EditDistanceNearMiss(Perturber):
    """Other authors become the right name with one, two and three letters substituted (C2a, C2b, C4)."""

    FAMILY = "identity"

    class Config(PerturberConfig):
        type: Literal["edit_distance_near_miss"] = "edit_distance_near_miss"
        distances: tuple[int, int, int] = Field((1, 2, 3), description="letters substituted in C2a, C2b and C4")

    config: Config

    def bundle(self, bundle: Bundle, seed: int) -> Bundle:
        """C1 and C3 stay; the others bear the question's name with letters substituted."""
        true = bundle.question.author
        wrong = (substitute_letters(true, count, seed, self.config.type, bundle.key) for count in self.config.distances)
        second, third, fifth = wrong
        first, *_, fourth, _ = bundle.candidates
        return bundle.with_authors(first.author, second, third, fourth.author, fifth)

    def renamed(self, names: Iterable[str], place: TextContext) -> dict[str, str]:
        """All names of a corpus become near misses of the first of them in the alphabet, no two the same."""
        ordered = sorted(set(names))
        taken, found = set(ordered[:1]), {}
        for number, name in enumerate(ordered[1:]):
            count = self.config.distances[number % len(self.config.distances)]
            for again in range(MAX_NAME_DRAWS):
                new = substitute_letters(ordered[0], count, place.seed, self.config.type, name, again)
                if new not in taken:
                    break
            taken.add(new)
            found[name] = new
        return found


def substitute_letters(name: str, count: int, seed: int, *names: object) -> str:
    """`name` with `count` of its letters, or all where there are fewer, replaced by others of the same case.

    Levenshtein distance `count`, or less by chance.
    """
    rng = generator(seed, *names, name, count)
    letters = [at for at, letter in enumerate(name) if letter.isalpha()]
    chosen = rng.permutation(np.array(letters, dtype=np.int64))[:count]
    found = list(name)
    for at in chosen.tolist():
        others = ALPHABET.replace(name[at].lower(), "")
        new = others[int(rng.integers(len(others)))]
        found[at] = new.upper() if name[at].isupper() else new
    return "".join(found)


DIGITS = 6


class GibberishName(Perturber):
    """Each name becomes a code of its own, ID-AB12F3, the same in question and candidates."""

    FAMILY = "identity"

    class Config(PerturberConfig):
        type: Literal["gibberish_name"] = "gibberish_name"

    def author(self, name: str, place: TextContext) -> str:
        return f"ID-{derive_seed(place.seed, self.config.type, name) % 16**DIGITS:0{DIGITS}X}"


MASKS = {"fr": "AUTEUR"}  # what a mask says, where it is not AUTHOR
MASK_NUMBERS = 1000


class HardNameMask(Perturber):
    """Every name of a bundle becomes one mask, AUTHOR_007, in the question too: no margin may stay."""

    FAMILY = "identity"

    class Config(PerturberConfig):
        type: Literal["hard_name_mask"] = "hard_name_mask"

    def author(self, name: str, place: TextContext) -> str:
        number = derive_seed(place.seed, self.config.type, place.key) % MASK_NUMBERS
        return f"{MASKS.get(place.language, 'AUTHOR')}_{number:03d}"


LABEL = re.compile(r"(?<!\w)(?:authors?|auteurs?|auteures?|autrices?)\s*:\s*", re.IGNORECASE)


class RemoveLabel(Perturber):
    """ "Author:" and "Auteur :" are left out, in candidates and, where it has one, in the question."""

    FAMILY = "layout"

    class Config(PerturberConfig):
        type: Literal["remove_label"] = "remove_label"

    def layout(self, piece: BundleText) -> BundleText:
        return replace(piece, label="")

    def words(self, text: str, place: TextContext) -> str:
        return LABEL.sub("", text)


class InitialsForm(Perturber):
    """Given names become initials on both sides: Alice Dupont is A. Dupont."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["initials_form"] = "initials_form"

    def author(self, name: str, place: TextContext) -> str:
        parts = name_parts(name)
        return f"{initials(parts.given)} {parts.family}" if parts.given else name


class NameOrderInversion(Perturber):
    """Candidates have the family name first: Dupont, Alice; the question stays."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["name_order_inversion"] = "name_order_inversion"

    def author(self, name: str, place: TextContext) -> str:
        parts = name_parts(name)
        return f"{parts.family}, {parts.given}" if parts.given and place.side == "candidate" else name


SENTENCE = re.compile(r"(?<=[^\s.][^\s.][.!?])\s+")  # no end: the point of an initial


class AuthorPositionShift(Perturber):
    """The sentence with the author comes first in each candidate: Author: X. Research paper: 'Y'."""

    FAMILY = "layout"

    class Config(PerturberConfig):
        type: Literal["author_position_shift"] = "author_position_shift"

    def layout(self, piece: BundleText) -> BundleText:
        return replace(piece, segments=tuple(sorted(piece.segments, key=lambda segment: AUTHOR not in segment)))

    def text(self, text: str, renamed: Mapping[str, str], names: Iterable[str], place: TextContext) -> str:
        """Sentences with a name come first; a question stays."""
        held = list(names)
        if place.side == "question" or not held:
            return text
        return " ".join(sorted(SENTENCE.split(text), key=lambda sentence: not any(name in sentence for name in held)))


CASES: tuple[Callable[[str], str], ...] = (str.upper, str.lower, str.title)
PUNCTUATION = str.maketrans({"’": "'", "‘": "'", "-": " ", "‐": " ", "‑": " "})


class CasePunctPerturb(Perturber):
    """Names change their case, with straight apostrophes and blanks for hyphens, on both sides."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["case_punct_perturb"] = "case_punct_perturb"
        candidates_only: bool = Field(False, description="whether the question keeps the names as they were")

    config: Config

    def author(self, name: str, place: TextContext) -> str:
        if self.config.candidates_only and place.side == "question":
            return name
        case = CASES[derive_seed(place.seed, self.config.type, place.key, name) % len(CASES)]
        return case(name.translate(PUNCTUATION))


class StripDiacritics(Perturber):
    """All texts lose their diacritical marks: é becomes e, in names, topics and all other words."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["strip_diacritics"] = "strip_diacritics"

    def words(self, text: str, place: TextContext) -> str:
        return fold_accents(text)


NARROW_SPACE = "\u202f"
SPACED_MARKS = re.compile(r"\s*([:;!])")


class UnicodeNormalizationStress(Perturber):
    """Questions in NFC; candidates in NFD with a narrow no-break space before colons, semicolons and !."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["unicode_normalization_stress"] = "unicode_normalization_stress"

    def words(self, text: str, place: TextContext) -> str:
        if place.side == "question":
            return unicodedata.normalize("NFC", text)
        return unicodedata.normalize("NFD", SPACED_MARKS.sub(NARROW_SPACE + r"\1", text))
