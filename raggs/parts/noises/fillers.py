"""Words that fill a pause before a question, or soften it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from raggs.parts.noises.base import Asked, Noise, NoiseConfig, Phrases, before

FILLERS: Phrases = {
    "en": (
        "quick question:", "so, um,", "okay, so,", "just wondering,", "sorry if it's a silly one, but", "I mean,",
        "erm, well,", "how shall I put this,", "right, so,", "no rush, but", "if it isn't too much to ask,",
        "I was kind of wondering:", "basically, you know,", "according to science,", "bear with me here:",
        "let me think how to say it,", "one tiny thing:",
        "this has been bugging me:", "not to sound daft, but", "for the life of me I forget:", "out of the blue,",
        "so there's this thing:", "on a whim,",
    ),
    "fr": (
        "petite question :", "alors, euh,", "bon, ben,", "je me demandais juste,", "désolé si c'est bête, mais",
        "enfin, je veux dire,", "euh, voilà,", "comment dire,", "bon, alors,", "rien ne presse, mais",
        "si ce n'est pas trop demander,", "je me posais un peu la question :", "en gros, tu vois,",
        "d'après la science,", "soyez patients avec moi :", "attendez que je formule ça,", "une toute petite chose :",
        "ça me trotte dans la tête :", "au risque de passer pour une cruche,", "ça m'échappe complètement :",
        "à brûle-pourpoint,", "bon, voilà le truc :", "sur un coup de tête,",
    ),
}  # fmt: skip
SECOND = 3  # the level from which there are two


class Fillers(Noise):
    """Words that fill a pause, in front of the question; two of them from level 3."""

    VERSION = 2
    FROM, ORDER = 2, 40

    class Config(NoiseConfig):
        type: Literal["fillers"] = "fillers"

    def _add(self, text: str, asked: Asked, draw: np.random.Generator) -> str:
        phrases = FILLERS[asked.language]
        order = draw.permutation(len(phrases))
        for at in order[: 2 if asked.level >= SECOND else 1]:
            text = before(phrases[int(at)], text)
        return text[:1].upper() + text[1:]
