"""Noises: greetings, fillers, digressions, personal context, emoji, code switching and typing errors."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
from pydantic import Field

from raggs.base.languages import fold_accents
from raggs.parts.noises import Noise, NoiseConfig, NoiseRequest, Phrases, append_sentence, one_of, prepend_phrase

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
THANKED = 0.5  # share of queries with thanks


class Greetings(Noise):
    """A greeting before the query, and thanks after half of the queries."""

    VERSION = 2
    FROM, ORDER = 1, 70

    class Config(NoiseConfig):
        type: Literal["greetings"] = "greetings"

    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        greeted = prepend_phrase(one_of(HELLOS[asked.language], draw), text)
        return append_sentence(greeted, one_of(THANKS[asked.language], draw)) if draw.random() < THANKED else greeted


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
SECOND = 3  # lowest level at which a second filler is added


class Fillers(Noise):
    """Filler words before the query; two fillers from level 3."""

    VERSION = 2
    FROM, ORDER = 2, 40

    class Config(NoiseConfig):
        type: Literal["fillers"] = "fillers"

    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        phrases = FILLERS[asked.language]
        order = draw.permutation(len(phrases))
        for at in order[: 2 if asked.level >= SECOND else 1]:
            text = prepend_phrase(phrases[int(at)], text)
        return text[:1].upper() + text[1:]


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
TAGGED = 0.4  # share of queries with a final question mark that are followed by an afterthought


class Digressions(Noise):
    """A digression before the query. Some queries also get an afterthought, such as "or is that a myth?"."""

    FROM, ORDER = 3, 50

    class Config(NoiseConfig):
        type: Literal["digressions"] = "digressions"

    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        aside, tag = one_of(ASIDES[asked.language], draw), one_of(TAGS[asked.language], draw)
        if draw.random() < TAGGED and text.endswith("?"):
            text = f"{text.rstrip(' ?!')}, {tag}"
        return f"{aside} {text}"


PERSONAL_SENTENCES: Phrases = {
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
    """A sentence about the user: before the query, or in a quarter of the cases after it."""

    VERSION = 2
    FROM, ORDER = 3, 60

    class Config(NoiseConfig):
        type: Literal["personal_context"] = "personal_context"

    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        told = one_of(PERSONAL_SENTENCES[asked.language], draw)
        return append_sentence(text, told) if draw.random() < 0.25 else f"{told} {text}"


PICTURES = ("🙏", "😊", "🤔", "👋", "😅", "🙈", "❤️", "😂", "✨", "🔥", "😭", "🥺", "👀", "🤷‍♀️", ":-)", ":D", "^^")
IN_FRONT = 0.3  # share of queries that have an emoji before them


class Emoji(Noise):
    """One to three copies of an emoji after the query; in 30% of the cases also an emoji before it."""

    FROM, ORDER = 3, 80

    class Config(NoiseConfig):
        type: Literal["emoji"] = "emoji"

    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        times = int(draw.integers(1, asked.level))
        text = f"{text} {' '.join([one_of(PICTURES, draw)] * times)}"
        return f"{one_of(PICTURES[:-3], draw)} {text}" if draw.random() < IN_FRONT else text


SWITCHED_WORDS = {
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
    """Adds a phrase of another language, and translates some common words, but no negations."""

    FROM, ORDER = 4, 30

    class Config(NoiseConfig):
        type: Literal["code_switching"] = "code_switching"
        rate: float = Field(0.3, ge=0, le=1, description="share of the words in the built-in list that are translated")

    config: Config

    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        words = SWITCHED_WORDS[asked.language]

        def switched(match: re.Match[str]) -> str:
            return words[match[0]] if draw.random() < self.config.rate else match[0]

        known = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        text = re.sub(rf"(?<![\w'’-])(?:{known})(?![\w'’-])", switched, text)
        return prepend_phrase(one_of(OPENERS[asked.language], draw), text)


LONG_WORD = re.compile(r"[^\W\d_]{4,}")
NEGATIONS = (
    *("cannot", "hardly", "neither", "never", "nobody", "none", "nothing", "nowhere", "unless", "without"),
    *("aucun", "aucune", "guère", "jamais", "nulle", "personne", "rien", "sans", "sauf"),
)
KEYBOARD_NEIGHBOURS = {pair[0]: pair[1] for pair in ["as", "er", "io", "op", "uy", "tr", "nb", "mn", "sd", "lk", "rt"]}


class TypingErrors(Noise):
    """Typing errors: letters swapped, omitted, doubled or replaced by neighbours; repeated question marks.

    In words with accents, the accents are omitted instead. Words with a capital or a digit stay unchanged, so that
    names are preserved. Negations stay unchanged, too.
    """

    FROM, ORDER = 4, 10

    class Config(NoiseConfig):
        type: Literal["typing_errors"] = "typing_errors"
        rate: float = Field(0.12, ge=0, le=1, description="share of words of four or more letters to misspell")

    config: Config

    def _add(self, text: str, asked: NoiseRequest, draw: np.random.Generator) -> str:
        def spelled(match: re.Match[str]) -> str:
            # drawn for each word, so that a name that is not misspelled does not change the errors in other words
            hit = draw.random() < self.config.rate
            return _slip(match[0], draw) if hit and _common(match) else match[0]

        text = LONG_WORD.sub(spelled, text)
        return re.sub(r"\s*\?$", one_of(("??", "???", "?!", " ?", "?"), draw), text)


def _common(match: re.Match[str]) -> bool:
    """Return whether a word may be misspelled: lower case, not a negation, and not part of "covid-19" or "iPhone"."""
    if not match[0].islower() or match[0] in NEGATIONS or match.string.startswith(("'", "’"), match.end()):
        return False
    around = match.string[match.start() - 1 : match.start()] + match.string[match.end() : match.end() + 1]
    return not re.search(r"[\w+#/@&.-]", around.removesuffix("."))


def _slip(word: str, draw: np.random.Generator) -> str:
    if (plain := fold_accents(word)) != word:
        return plain
    at = int(draw.integers(1, len(word) - 1))
    match int(draw.integers(4)):
        case 0:
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case 1:
            return word[:at] + word[at + 1 :]
        case 2:
            return word[:at] + word[at] + word[at:]
        case _:
            return word[:at] + KEYBOARD_NEIGHBOURS.get(word[at], word[at]) + word[at + 1 :]
