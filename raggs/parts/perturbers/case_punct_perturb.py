"""Names as databases spoil them: another case, straight apostrophes, blanks for hyphens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from raggs.base.seeds import derive_seed
from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place

CASES: tuple[Callable[[str], str], ...] = (str.upper, str.lower, str.title)
PUNCTUATION = str.maketrans({"’": "'", "‘": "'", "-": " ", "‐": " ", "‑": " "})


class CasePunctPerturb(Perturber):
    """Names change their case, with straight apostrophes and blanks for hyphens, on both sides."""

    FAMILY = "form"

    class Config(PerturberConfig):
        type: Literal["case_punct_perturb"] = "case_punct_perturb"
        candidates_only: bool = Field(False, description="whether the question keeps the names as they were")

    config: Config

    def author(self, name: str, place: Place) -> str:
        if self.config.candidates_only and place.side == "question":
            return name
        case = CASES[derive_seed(place.seed, self.config.type, place.key, name) % len(CASES)]
        return case(name.translate(PUNCTUATION))
