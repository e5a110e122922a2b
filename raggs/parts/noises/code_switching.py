"""Words of the other language in a question: what opens it, and small words in it."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
from pydantic import Field

from raggs.parts.noises.base import Asked, Noise, NoiseConfig, Phrases, before, one_of

WORDS = {
    "en": {
        "and": "et", "but": "mais", "with": "avec", "between": "entre", "because": "parce que", "for": "pour",
        "very": "très", "people": "les gens", "always": "toujours", "today": "aujourd'hui", "water": "eau",
        "world": "monde", "difference": "différence", "also": "aussi", "really": "vraiment",
        "why": "pourquoi", "how": "comment", "when": "quand", "who": "qui", "which": "quel",
    },
    "fr": {
        "et": "and", "mais": "but", "avec": "with", "entre": "between", "pour": "for", "très": "very", "aussi": "also",
        "toujours": "always", "aujourd'hui": "today", "monde": "world", "gens": "people", "différence": "difference",
        "vraiment": "really", "pourquoi": "why", "comment": "how", "quand": "when", "qui": "who", "eau": "water",
        "grand": "big", "nouveau": "new", "ville": "city", "temps": "time", "travail": "job", "santé": "health",
    },
}  # fmt: skip
OPENERS: Phrases = {
    "en": ("Alors,", "Bref,", "Dis donc,", "Voilà,", "Bon,", "En fait,", "Pardon,", "Bueno,", "Du coup,"),
    "fr": ("So,", "Well,", "By the way,", "Okay so,", "Basically,", "Anyway,", "Actually,", "Guys,", "Just asking:"),
}  # fmt: skip


class CodeSwitching(Noise):
    """A word of the other language in front, and small words of the question in it; no negation."""

    FROM, ORDER = 4, 30

    class Config(NoiseConfig):
        type: Literal["code_switching"] = "code_switching"
        rate: float = Field(0.3, ge=0, le=1, description="of the words in its list that are said in the other language")

    config: Config

    def _add(self, text: str, asked: Asked, draw: np.random.Generator) -> str:
        words = WORDS[asked.language]

        def switched(match: re.Match[str]) -> str:
            return words[match[0]] if draw.random() < self.config.rate else match[0]

        known = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        text = re.sub(rf"(?<![\w'’-])(?:{known})(?![\w'’-])", switched, text)
        return before(one_of(OPENERS[asked.language], draw), text)
