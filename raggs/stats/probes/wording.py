"""How a question is put: what it asks for, and whether it holds numbers or identifiers, told by rules on its letters.

Rules, not a parser: each looks at a few words, and says nothing where its language has no list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
NUMBER = re.compile(r"\d")
# What is searched for letter by letter: acronyms, camelCase, snake_case, calls, paths, options, versions.
IDENTIFIER = re.compile(
    r"\b[A-Z]{2,}s?\b|\b\w*[a-z]\w*[A-Z]\w*\b|\w+_\w+|\w+\(\)|\b\w+\.[a-z]\w+\b|(?:^|\s)--?[a-z][\w-]+|\bv?\d+\.\d+(?:\.\d+)*\b"
)
OPENING = 4  # words among which the asking word stands ("In which year ...")
KEYWORDS = "by keywords"  # neither a question mark nor an asking word
OTHER = "otherwise"
YES_NO = "yes or no"

# In the order in which they are looked for: "how many" before "how". Each is words that follow one another.
ASKING: Mapping[str, Mapping[str, str]] = {
    "en": {
        "how many": "how many|how much|how long|how often|how far|how old",
        "how": "how",
        "why": "why",
        "which": "which|whose",
        "what": "what",
        "who": "who|whom",
        "when": "when",
        "where": "where",
    },
    "fr": {
        "how many": "combien",
        "how": "comment",
        "why": "pourquoi",
        "which": "quel|quelle|quels|quelles|lequel|laquelle|lesquels|lesquelles",
        "what": r"quoi|que|qu'\S+",
        "who": "qui",
        "when": "quand",
        "where": "où",
    },
    "de": {
        "how many": "wie viele|wie viel|wieviel|wie lange|wie oft",
        "how": "wie",
        "why": "warum|wieso|weshalb",
        "which": "welche|welcher|welches|welchen|welchem",
        "what": "was|wozu|womit",
        "who": "wer|wen|wem|wessen",
        "when": "wann",
        "where": "wo|wohin|woher",
    },
    "es": {
        "how many": "cuánto|cuánta|cuántos|cuántas|cuanto|cuantos|cuantas",
        "how": "cómo|como",
        "why": "por qué|por que",
        "which": "cuál|cuáles|cual|cuales",
        "what": "qué|que",
        "who": "quién|quiénes|quien|quienes",
        "when": "cuándo|cuando",
        "where": "dónde|donde",
    },
    "it": {
        "how many": "quanto|quanta|quanti|quante",
        "how": "come",
        "why": "perché|perche",
        "which": "quale|quali",
        "what": "cosa|che",
        "who": "chi",
        "when": "quando",
        "where": "dove",
    },
    "pt": {
        "how many": "quanto|quanta|quantos|quantas",
        "how": "como",
        "why": "por que|por quê|porque|porquê",
        "which": "qual|quais",
        "what": "o que|que",
        "who": "quem",
        "when": "quando",
        "where": "onde",
    },
    "nl": {
        "how many": "hoeveel|hoe lang|hoe vaak",
        "how": "hoe",
        "why": "waarom",
        "which": "welk|welke",
        "what": "wat",
        "who": "wie|wiens",
        "when": "wanneer",
        "where": "waar",
    },
}
DECIDING: Mapping[str, str] = {
    "en": r"(?:is|are|was|were|do|does|did|can|could|should|would|will|shall|has|have|had|may|must|isn't|aren't)\b",
    "fr": r"est-ce qu|(?:\S+ )?\S+-(?:t-)?(?:il|elle|on|ils|elles)\b",
    "de": r"(?:ist|sind|war|waren|hat|haben|kann|können|darf|soll|muss|wird|werden|gibt)\b",
    "es": r"¿?(?:es|son|está|están|hay|puede|pueden|tiene|se puede|debe)\b",
    "it": r"(?:è|sono|ha|può|possono|si può|deve|esiste)\b",
    "pt": r"(?:é|são|está|há|pode|podem|tem|deve|existe)\b",
    "nl": r"(?:is|zijn|was|heeft|kan|kunnen|mag|moet|wordt)\b",
}


def holds_number(text: str) -> bool:
    """Whether a digit stands in it."""
    return NUMBER.search(text) is not None


def holds_identifier(text: str) -> bool:
    """Whether it holds an acronym, an identifier of a program, a version or an option; never of a text in capitals."""
    return not text.isupper() and IDENTIFIER.search(text) is not None


def length_of(text: str) -> int:
    """Its words."""
    return len(WORD.findall(text))


def asked_by(text: str, language: str) -> str:
    """What kind of question it is: by its asking word, as a yes or no, by keywords, or otherwise.

    Args:
        language: ISO 639-1 code; empty text is given for a language without a list.
    """
    if language not in ASKING:
        return ""
    plain = text.strip().lower().replace("’", "'")
    opening = " ".join(WORD.findall(plain)[:OPENING])
    if first := _word_of(opening, language, at_once=True):
        return first
    if re.match(DECIDING[language], plain):
        return YES_NO
    return _word_of(opening, language, at_once=False) or (OTHER if plain.endswith(tuple("?.!:")) else KEYWORDS)


def _word_of(opening: str, language: str, *, at_once: bool) -> str:
    """The kind by an asking word at the beginning, or anywhere in the opening; empty without one."""
    start = "^" if at_once else r"(?<![\w'-])"
    kinds = ASKING[language].items()
    return next((kind for kind, words in kinds if re.search(rf"{start}(?:{words})(?![\w-])", opening)), "")
