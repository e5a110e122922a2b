"""Greetings in front of a question, and thanks behind it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from raggs.parts.noises.base import Asked, Noise, NoiseConfig, Phrases, before, behind, one_of

HELLOS: Phrases = {
    "en": (
        "Hi!", "Hello!", "Hey there,", "Good evening everyone,", "Hi folks,", "Hello, hope you're all well!",
        "Morning all!", "Hey, happy Friday!", "Hi, nice to meet you!", "Oh hello,", "Hiya,", "Dear helpful people,",
        "Hello hello,", "Hi, long-time reader here!", "Hey you lovely lot,", "Good day to you!",
        "Ahoy there!", "Hey internet,", "Hello from the other side of the world!", "Hi, first coffee of the day here!",
        "Top of the morning!", "Lovely to be back, all!",
    ),
    "fr": (
        "Bonjour !", "Salut !", "Coucou tout le monde,", "Bonsoir à toutes et à tous,", "Hello la compagnie,",
        "Bonjour, j'espère que vous allez bien !", "Salut les gens !", "Bonjour et bonne semaine !",
        "Bonjour, enchanté !", "Ah, bonjour,", "Bien le bonjour !", "Chers tous,", "Rebonjour,",
        "Bonjour, lectrice de longue date ici !",
        "Coucou les loulous,", "Bonsoir bonsoir,", "Ohé du bateau !",
        "Bonjour à la ronde !", "Salutations matinales,", "Coucou depuis l'autre bout du monde !",
        "Un petit bonjour du soir !",
        "Me revoilà parmi vous !",
    ),
}  # fmt: skip
THANKS: Phrases = {
    "en": (
        "Thanks!", "Thank you so much in advance!", "Cheers!", "Thanks a bunch, you're the best!", "Many thanks.",
        "Thanks for reading this far!", "I'd owe you one!", "Much obliged.", "Big thanks to whoever answers!",
        "Have a great day!", "You'd be saving my evening!", "Hugs to all!", "Looking forward to your replies.",
        "Bless you all!",
    ),
    "fr": (
        "Merci !", "Merci beaucoup d'avance !", "Mille mercis.", "Merci, vous êtes au top !", "Bien à vous.",
        "Merci de m'avoir lu jusqu'ici !", "Je vous revaudrai ça !", "Un immense merci.",
        "Gros merci à qui répondra !", "Excellente journée !", "Vous sauveriez ma soirée !",
        "Des câlins à tous !", "Au plaisir de vous lire.", "Soyez bénis !",
    ),
}  # fmt: skip
THANKED = 0.5  # of the questions are thanked for


class Greetings(Noise):
    """A greeting in front, and thanks behind every other question."""

    VERSION = 2
    FROM, ORDER = 1, 70

    class Config(NoiseConfig):
        type: Literal["greetings"] = "greetings"

    def _add(self, text: str, asked: Asked, draw: np.random.Generator) -> str:
        greeted = before(one_of(HELLOS[asked.language], draw), text)
        return behind(greeted, one_of(THANKS[asked.language], draw)) if draw.random() < THANKED else greeted
