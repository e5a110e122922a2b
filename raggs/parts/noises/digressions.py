"""Sentences and afterthoughts that lead away from a question."""

from __future__ import annotations

from typing import Literal

import numpy as np

from raggs.parts.noises.base import Asked, Noise, NoiseConfig, Phrases, one_of

ASIDES: Phrases = {
    "en": (
        "Sorry for the kind of a random question.", "We got onto this over dinner and nobody would let it go.",
        "I know there are a million pages about it already.", "I read something about it ages ago and forgot where.",
        "It popped into my head in the shower, as these things do.", "Anyway, enough rambling.",
        "My neighbour and I have a bet running about it.", "I should probably be asleep by now.",
        "The last answer I found made no sense at all.", "Speaking of which, the coffee here is terrible.",
        "I've been looking everywhere.", "It came up in a podcast, and then my phone died.",
    ),
    "fr": (
        "Désolé pour la question un peu au hasard.", "On en a parlé à table et personne ne voulait lâcher l'affaire.",
        "Je sais qu'il existe déjà un million de pages là-dessus.", "J'ai lu un truc là-dessus il y a longtemps.",
        "Ça m'est venu sous la douche, comme toujours.", "Bref, assez bavardé.",
        "Mon voisin et moi avons fait un pari à ce sujet.", "Je devrais sans doute dormir à cette heure-ci.",
        "La dernière réponse que j'ai trouvée n'avait aucun sens.", "Au passage, le café d'ici est infect.",
        "Je cherche partout depuis des heures.", "C'était dans un podcast, et puis mon téléphone s'est éteint.",
    ),
}  # fmt: skip
TAGS: Phrases = {
    "en": ("or is that a myth?", "or is that just marketing?", "or am I dreaming?", "if that makes any sense?"),
    "fr": ("ou est-ce un mythe ?", "ou c'est du marketing ?", "ou je rêve ?", "si ça veut dire quelque chose ?"),
}
TAGGED = 0.4  # of the questions end in an afterthought


class Digressions(Noise):
    """A sentence that leads away, and behind some questions an afterthought: "or is that a myth?"."""

    FROM, ORDER = 3, 50

    class Config(NoiseConfig):
        type: Literal["digressions"] = "digressions"

    def _add(self, text: str, asked: Asked, draw: np.random.Generator) -> str:
        aside, tag = one_of(ASIDES[asked.language], draw), one_of(TAGS[asked.language], draw)
        if draw.random() < TAGGED and text.endswith("?"):
            text = f"{text.rstrip(' ?!')}, {tag}"
        return f"{aside} {text}"
