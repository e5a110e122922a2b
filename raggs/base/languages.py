"""Which language a text is in, and what lexical search needs to know about it.

Questions are short, where statistical identifiers guess: "hi" becomes German, "Python list" French. So the words
that carry grammar vote first, a trained identifier is asked only about longer texts on which the vote is split,
and where neither knows, the caller's default stands. See `detect_language`.

Does a question hold a proper name? A rule about capitals, cheap enough to be asked of every question.

A name is a word with a capital and a small letter ("Prandtl", "McCabe", "d'Alembert") that stands where nothing but a
name brings a capital: within a sentence. The first word of a sentence counts where another such word follows at once
("Ludwig Prandtl wrote ..."), and so does, in German, whose nouns all have capitals, any word. Where most words have a
capital, as in titles, or none has a small letter, capitals say nothing and no name is found. Words of all capitals
("NASA") are none; nor is "I", nor a function word of the language.

It must not be taken for a recogniser of entities: it misses names in small letters, and takes "March" for one.
"""

from __future__ import annotations

import logging
import os
import re
import unicodedata
from functools import cache
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

# ISO 639-1 code -> name of the Snowball stemmer.
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip

# Words that make sentences rather than subjects, without accents. A word of several languages votes for each in part.
FUNCTION_WORDS = {
    "en": """the of is are was were be been being what how why when where which who whom whose does do did done can
        could should would will shall may might must with and to from for that this these those there it its not
        between about by my your his her their our you we they he she an a in on at as if or but than then into has
        have had no any some such while because during without within through against after before under over i me""",
    "fr": """le la les un une des du de d l et est sont etait etre ete a au aux ce cet cette ces c ca cela que qu qui
        quoi quel quelle quels quelles comment pourquoi quand ou combien lequel laquelle dans sur sous par pour avec
        sans entre chez vers depuis pendant avant apres je j tu il elle on nous vous ils elles se s ne n pas plus mon
        ma mes ton ta tes son sa ses notre nos votre vos leur leurs y en si mais donc comme peut peuvent faut fait
        faire sert doit ont avoir ai as quelqu lorsqu puisqu jusqu""",
    "de": """der die das den dem des ein eine einen einem einer eines und ist sind war waren sein wird werden wurde was
        wie warum wann wo wer wen wem welche welcher welches woher wohin wozu kann konnen soll muss darf mit von zu zum
        zur im in an am auf aus bei nach vor fur uber unter zwischen durch gegen ohne ich du er sie es wir ihr mein
        dein nicht kein keine auch oder aber wenn als dass hat haben gibt man sich""",
    "es": """el la los las un una unos unas de del y o es son era ser esta estan fue que como por para cuando donde
        quien quienes cual cuales cuanto cuantos con sin sobre entre desde hasta en a al lo le les se me te mi tu su
        sus yo ella nosotros ellos no si pero mas muy hay puede pueden tiene tienen hacer hace este esta estos esas
        ese eso""",
    "it": """il lo la i gli le un uno una di del dello della dei degli delle e o sono era essere che chi cosa come
        perche quando dove quale quali quanto quanti con senza su sul sulla tra fra per da dal dalla dai in nel nella
        nei a al alla ai io tu lui lei noi voi loro mi ti si ci non ma anche piu puo possono ha hanno questo questa
        questi quello c l d dell nell all""",
    "pt": """o a os as um uma uns umas de do da dos das e ou sao era ser esta estao foi que como por para quando onde
        quem qual quais quanto quantos com sem sobre entre desde ate em no na nos nas ao aos pelo pela se me te meu
        seu sua eu ele ela voce eles nao sim mas mais muito ha pode podem tem fazer isso este esta isto""",
    "nl": """de het een en is zijn was waren wordt worden werd wat hoe waarom wanneer waar wie welke welk kan kunnen
        moet mag met van naar te ter ten in op aan uit bij voor na over onder tussen door tegen zonder ik jij je hij
        zij ze wij we jullie mijn jouw niet geen ook of maar als dat die dit deze heeft hebben er zich om""",
}
# Marks that one or two of these languages have.
DISTINCTIVE_LETTERS = {
    "œ": "fr", "û": "fr", "î": "fr", "ë": "fr nl", "ç": "fr pt", "è": "fr it", "ù": "fr it", "ê": "fr pt", "ô": "fr pt",
    "ñ": "es", "¿": "es", "¡": "es", "ã": "pt", "õ": "pt", "ß": "de", "ä": "de", "ì": "it", "ò": "it",
}  # fmt: skip
LANGUAGES = tuple(FUNCTION_WORDS)

LETTER_VOTE = 0.5
MIN_VOTES = 0.9  # one word of one language, or two that each share with another
LEAD = 1.6  # the winner has this many times the votes of the second
MIN_LETTERS = 20
MIN_CONFIDENCE = 0.5
DETECTION_CHARS = 2000  # characters of a long text that are looked at

LETTER_WORD = re.compile(r"[^\W\d_]+")
LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")


def detect_language(text: str, default: str = "en") -> str:
    """The language of `text` as an ISO 639-1 code: one of en, fr, de, es, it, pt, nl, or `default`.

    1. Every function word (article, pronoun, question word, elided "l'", "qu'") and every distinctive letter
       votes for the languages that have it, a shared word in equal parts. A language with enough votes and a
       clear lead wins. Accents do not matter for words.
    2. Otherwise, if the text has at least 20 Latin letters, py3langid (naive Bayes over byte n-grams),
       restricted to these languages, decides if it is at least 50% sure. Its model takes most of a second to
       load, so it is loaded when the first such text comes.
    3. If it is not that sure, the votes' leader, however small its lead.
    4. Otherwise `default`: too little to go on ("hi"), or a language outside the seven.
    """
    head = text[:DETECTION_CHARS]
    votes = _votes(head)
    first = max(votes, key=votes.__getitem__)
    most, second = votes.pop(first), max(votes.values())
    if most >= MIN_VOTES and most >= LEAD * second:
        return first
    if len(LATIN.findall(head)) >= MIN_LETTERS:
        guess, confidence = _identifier().classify(head)
        if confidence >= MIN_CONFIDENCE:
            return str(guess)
    return first if most > second else default


def _votes(text: str) -> dict[str, float]:
    votes = dict.fromkeys(LANGUAGES, 0.0)
    lower = unicodedata.normalize("NFC", text).lower()
    for letter in lower:
        owners = DISTINCTIVE_LETTERS.get(letter, "").split()
        for language in owners:
            votes[language] += LETTER_VOTE / len(owners)
    for word in LETTER_WORD.findall(fold_accents(lower)):
        owners = _owners().get(word, [])
        for language in owners:
            votes[language] += 1 / len(owners)
    return votes


@cache
def _owners() -> dict[str, list[str]]:
    """Each function word's languages."""
    owners: dict[str, list[str]] = {}
    for language, words in FUNCTION_WORDS.items():
        for word in sorted(set(words.split())):
            owners.setdefault(word, []).append(language)
    return owners


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # late: the model takes most of a second

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(LANGUAGES)
    return identifier


def fold_accents(text: str) -> str:
    """`text` with every letter stripped of its accents: "où" becomes "ou"."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(char for char in parts if not unicodedata.combining(char)))


def quiet_bm25s() -> ModuleType:
    """Import the package bm25s without progress bars and debug messages."""
    os.environ.setdefault("DISABLE_TQDM", "1")  # read when it is first imported
    bm25s = import_module("bm25s")

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s


@cache
def stop_words(language: str) -> frozenset[str]:
    """Words that lexical search leaves out, in lower case and without accents; none for a language without a list.

    Single consonants are left in ("vitamin D"): elided articles and contractions are cut off before.
    """
    stopwords = quiet_bm25s().stopwords
    lists = {
        "da": stopwords.STOPWORDS_DANISH,
        "de": stopwords.STOPWORDS_GERMAN,
        "en": stopwords.STOPWORDS_EN_PLUS,
        "es": stopwords.STOPWORDS_SPANISH,
        "fr": stopwords.STOPWORDS_FRENCH,
        "it": stopwords.STOPWORDS_ITALIAN,
        "nl": stopwords.STOPWORDS_DUTCH,
        "no": stopwords.STOPWORDS_NORWEGIAN,
        "pt": stopwords.STOPWORDS_PORTUGUESE,
        "ru": stopwords.STOPWORDS_RUSSIAN,
        "sv": stopwords.STOPWORDS_SWEDISH,
        "tr": stopwords.STOPWORDS_TURKISH,
    }
    words = {fold_accents(word.lower()) for word in lists.get(language, ())}
    return frozenset(word for word in words if len(word) > 1 or word in "aeiouy")


NAME_WORD = re.compile(r"[^\W\d_]+(?:['’\-‐][^\W\d_]+)*")
SENTENCE_END = re.compile(r"[.?!:;«»\"“”\n]")
MAX_CAPITALIZED_SHARE = 0.6  # of the words that are no function words; beyond, capitals are a habit
NOUNS = ("de",)  # languages in which every noun has a capital


def names_in(text: str, language: str = "en") -> tuple[str, ...]:
    """The words of a question that are taken for names, in their order; empty where capitals say nothing.

    Args:
        text: the question, character for character.
        language: ISO 639-1 code.
    """
    words = list(NAME_WORD.finditer(text))
    small = set(FUNCTION_WORDS.get(language, "").split())
    capital = [_capital(word.group(), small) for word in words]
    alone = language not in NOUNS
    telling = sum(word.group().lower() not in small for word in words)
    if alone and sum(capital) > max(2, MAX_CAPITALIZED_SHARE * telling):
        return ()
    if not words:
        return ()
    first = [True, *(bool(SENTENCE_END.search(text, one.end(), two.start())) for one, two in pairwise(words))]
    beside = [False, *(a and b and not new for a, b, new in zip(capital, capital[1:], first[1:], strict=False)), False]
    return tuple(
        word.group()
        for at, word in enumerate(words)
        if capital[at] and ((alone and not first[at]) or beside[at] or beside[at + 1])
    )


def _capital(word: str, small: set[str]) -> bool:
    """Whether a word has a capital where a name has one: at its start, or after d', l', o', and so on."""
    if word.lower() in small or word.isupper():
        return False
    parts = re.split(r"['’]", word)
    return word[0].isupper() or (len(parts) > 1 and len(parts[0]) <= 2 and parts[1][:1].isupper())
