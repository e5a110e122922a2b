"""Sentences in which who asks tells of themselves."""

from __future__ import annotations

from typing import Literal

import numpy as np

from raggs.parts.noises.base import Asked, Noise, NoiseConfig, Phrases, behind, one_of

TOLD: Phrases = {
    "en": (
        "I'm on the train and the signal keeps dropping.", "My daughter asked me and I had no clue.",
        "I have an exam tomorrow and I'm panicking a bit.", "My boss wants a summary by noon.",
        "I'm typing this with one hand because the baby is asleep on me.", "I'm new to all this, be gentle.",
        "I had to skip most of the lectures this term.", "English isn't my first language, so forgive any mistakes.",
        "I'm on my lunch break.", "Just moved house and my books are still in boxes.",
        "I'm a nurse on the night shift with too much time to think.", "My grandfather used to go on about this.",
        "I'm stuck at the airport again.", "I promised my students an answer.",
    ),
    "fr": (
        "Je suis dans le train et ça capte mal.", "Ma fille me l'a demandé et je n'en savais rien.",
        "J'ai un examen demain et je panique un peu.", "Mon chef veut un résumé pour midi.",
        "J'écris d'une main parce que le bébé dort sur moi.", "Je débute, soyez indulgents.",
        "J'ai raté presque tous les cours du semestre.",
        "Le français n'est pas ma langue maternelle, pardon pour les fautes.",
        "Je suis en pause déjeuner.", "Je viens de déménager et mes livres sont encore dans les cartons.",
        "Je suis infirmière de nuit et j'ai trop le temps de réfléchir.", "Mon grand-père en parlait tout le temps.",
        "Je suis encore coincé à l'aéroport.", "J'ai promis une réponse à mes élèves.",
    ),
}  # fmt: skip


class PersonalContext(Noise):
    """A sentence in which who asks tells of themselves; behind the question every fourth time."""

    VERSION = 2
    FROM, ORDER = 3, 60

    class Config(NoiseConfig):
        type: Literal["personal_context"] = "personal_context"

    def _add(self, text: str, asked: Asked, draw: np.random.Generator) -> str:
        told = one_of(TOLD[asked.language], draw)
        return behind(text, told) if draw.random() < 0.25 else f"{told} {text}"
