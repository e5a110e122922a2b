"""Perturbers of names: near misses, codes, masks, labels, initials, order, position, case, diacritics and Unicode
forms.
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
MAX_NAME_DRAWS = 50  # attempts to find an unused name in a corpus


class EditDistanceNearMiss(Perturber):
    """Replaces each wrong author by the right name with some letters substituted (default: 1 to 3)."""

    FAMILY = "identity"
    TITLE = "similar names"

    class Config(PerturberConfig):
        type: Literal["edit_distance_near_miss"] = "edit_distance_near_miss"
        distances: tuple[int, int, int] = Field(
            (1, 2, 3), description="number of substituted letters in C2a, C2b and C4"
        )

    config: Config

    def bundle(self, bundle: Bundle, seed: int) -> Bundle:
        """Return the bundle with near misses of the query's name as wrong authors; C1 and C3 stay unchanged."""
        true = bundle.question.author
        wrong = (substitute_letters(true, count, seed, self.config.type, bundle.key) for count in self.config.distances)
        second, third, fifth = wrong
        first, *_, fourth, _ = bundle.candidates
        return bundle.with_authors(first.author, second, third, fourth.author, fifth)

    def renamed(self, names: Iterable[str], place: TextContext) -> dict[str, str]:
        """Return a near miss of the alphabetically first name for each other name of a corpus.

        The near misses are distinct, except if `MAX_NAME_DRAWS` attempts find no unused one.
        """
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
    """Return `name` with `count` letters (at most all) replaced by others of the same case.

    The Levenshtein distance to `name` is `count`, or by chance less.
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
    """Replaces each name by a code such as ID-AB12F3, the same in the query and the candidates."""

    FAMILY = "identity"
    TITLE = "names as random codes"

    class Config(PerturberConfig):
        type: Literal["gibberish_name"] = "gibberish_name"

    def author(self, name: str, place: TextContext) -> str:
        return f"ID-{derive_seed(place.seed, self.config.type, name) % 16**DIGITS:0{DIGITS}X}"


MASKS = {"fr": "AUTEUR"}  # text of the mask by language; AUTHOR in all others
MASK_NUMBERS = 1000


class HardNameMask(Perturber):
    """Replaces all names of a case, also in the query, by one mask: all authors should then score alike."""

    FAMILY = "identity"
    TITLE = "all names masked"

    class Config(PerturberConfig):
        type: Literal["hard_name_mask"] = "hard_name_mask"

    def author(self, name: str, place: TextContext) -> str:
        number = derive_seed(place.seed, self.config.type, place.key) % MASK_NUMBERS
        return f"{MASKS.get(place.language, 'AUTHOR')}_{number:03d}"


LABEL = re.compile(r"(?<!\w)(?:authors?|auteurs?|auteures?|autrices?)\s*:\s*", re.IGNORECASE)


class RemoveLabel(Perturber):
    """Removes "Author:" and "Auteur :" from candidates and, if present, from the query."""

    FAMILY = "layout"
    TITLE = "no author label"

    class Config(PerturberConfig):
        type: Literal["remove_label"] = "remove_label"

    def layout(self, piece: BundleText) -> BundleText:
        return replace(piece, label="")

    def words(self, text: str, place: TextContext) -> str:
        return LABEL.sub("", text)


class InitialsForm(Perturber):
    """Replaces given names by initials, in query and candidates: Alice Dupont becomes A. Dupont."""

    FAMILY = "form"
    TITLE = "initials only"

    class Config(PerturberConfig):
        type: Literal["initials_form"] = "initials_form"

    def author(self, name: str, place: TextContext) -> str:
        parts = name_parts(name)
        return f"{initials(parts.given)} {parts.family}" if parts.given else name


class NameOrderInversion(Perturber):
    """Puts the family name first in candidates: Dupont, Alice; the query stays unchanged."""

    FAMILY = "form"
    TITLE = "family name first"

    class Config(PerturberConfig):
        type: Literal["name_order_inversion"] = "name_order_inversion"

    def author(self, name: str, place: TextContext) -> str:
        parts = name_parts(name)
        return f"{parts.family}, {parts.given}" if parts.given and place.side == "candidate" else name


SENTENCE = re.compile(r"(?<=[^\s.][^\s.][.!?])\s+")  # the full stop of an initial is not a sentence end


class AuthorPositionShift(Perturber):
    """Puts the sentence with the author first in each candidate: Author: X. Research paper: 'Y'."""

    FAMILY = "layout"
    TITLE = "author elsewhere in the text"

    class Config(PerturberConfig):
        type: Literal["author_position_shift"] = "author_position_shift"

    def layout(self, piece: BundleText) -> BundleText:
        return replace(piece, segments=tuple(sorted(piece.segments, key=lambda segment: AUTHOR not in segment)))

    def text(self, text: str, renamed: Mapping[str, str], names: Iterable[str], place: TextContext) -> str:
        """Return a candidate's text with the sentences that contain a name first; a query stays unchanged."""
        held = list(names)
        if place.side == "question" or not held:
            return text
        return " ".join(sorted(SENTENCE.split(text), key=lambda sentence: not any(name in sentence for name in held)))


CASES: tuple[Callable[[str], str], ...] = (str.upper, str.lower, str.title)
PUNCTUATION = str.maketrans({"’": "'", "‘": "'", "-": " ", "‐": " ", "‑": " "})


class CasePunctPerturb(Perturber):
    """Changes the case, apostrophes and hyphens of names in query and candidates."""

    FAMILY = "form"
    TITLE = "other case and punctuation"

    class Config(PerturberConfig):
        type: Literal["case_punct_perturb"] = "case_punct_perturb"
        candidates_only: bool = Field(False, description="change only the candidates, not the query")

    config: Config

    def author(self, name: str, place: TextContext) -> str:
        if self.config.candidates_only and place.side == "question":
            return name
        case = CASES[derive_seed(place.seed, self.config.type, place.key, name) % len(CASES)]
        return case(name.translate(PUNCTUATION))


class StripDiacritics(Perturber):
    """Removes diacritics from all texts: é becomes e in names, topics and all other words."""

    FAMILY = "form"
    TITLE = "accents removed"

    class Config(PerturberConfig):
        type: Literal["strip_diacritics"] = "strip_diacritics"

    def words(self, text: str, place: TextContext) -> str:
        return fold_accents(text)


NARROW_SPACE = "\u202f"
SPACED_MARKS = re.compile(r"\s*([:;!])")


class UnicodeNormalizationStress(Perturber):
    """Converts queries to NFC, and candidates to NFD with narrow no-break spaces before ":", ";" and "!"."""

    FAMILY = "form"
    TITLE = "other Unicode forms"

    class Config(PerturberConfig):
        type: Literal["unicode_normalization_stress"] = "unicode_normalization_stress"

    def words(self, text: str, place: TextContext) -> str:
        if place.side == "question":
            return unicodedata.normalize("NFC", text)
        return unicodedata.normalize("NFD", SPACED_MARKS.sub(NARROW_SPACE + r"\1", text))
