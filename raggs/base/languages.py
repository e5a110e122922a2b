"""Language detection, data for lexical search, and detection of proper names.

Statistical language identifiers fail on short queries: they take "hi" for German and "Python list" for French.
Therefore, function words vote first. A trained identifier is used only if the vote is unclear and the text is longer.
If it is not confident either, the language with the most votes wins. If there is a tie, the caller's default applies.
See `detect_language`.

`names_in` detects proper names in a query by a rule on capital letters, cheap enough for every query. A name is a word
with a capital and a small letter ("Prandtl", "McCabe", "d'Alembert") within a sentence. The first word of a sentence
counts only if another such word follows directly ("Ludwig Prandtl wrote ..."). In German, all nouns have capitals, so
a word counts only directly before or after another such word. In other languages, no name is found if most words have a
capital, as in titles. Words in capitals ("NASA"), "I" and function words of the language do not count.

The rule is not a named-entity recogniser: it misses names in small letters, and treats "March" as a name.
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

# Grammatical words without accents. The vote of a word is split among all languages that have the word.
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
# Letters that occur in only one or two of these languages.
DISTINCTIVE_LETTERS = {
    "œ": "fr", "û": "fr", "î": "fr", "ë": "fr nl", "ç": "fr pt", "è": "fr it", "ù": "fr it", "ê": "fr pt", "ô": "fr pt",
    "ñ": "es", "¿": "es", "¡": "es", "ã": "pt", "õ": "pt", "ß": "de", "ä": "de", "ì": "it", "ò": "it",
}  # fmt: skip
LANGUAGES = tuple(FUNCTION_WORDS)

LETTER_VOTE = 0.5
MIN_VOTES = 0.9  # reached by one word of one language, or by two words that two languages share
LEAD = 1.6  # minimum ratio of the winner's votes to the second's
MIN_LETTERS = 20
MIN_CONFIDENCE = 0.5
DETECTION_CHARS = 2000  # inspected characters of a long text

LETTER_WORD = re.compile(r"[^\W\d_]+")
LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")


def detect_language(text: str, default: str = "en") -> str:
    """Return the language of `text` as an ISO 639-1 code: en, fr, de, es, it, pt, nl, or `default`.

    1. Every function word (article, pronoun, question word, elided "l'", "qu'") and every distinctive letter votes for
       its languages, with split votes for shared words. A language with enough votes and a clear lead wins. Accents of
       words are ignored.
    2. Otherwise, if the text has at least 20 Latin letters, py3langid (naive Bayes over byte n-grams), restricted to
       these languages, decides if its confidence is at least 50%. Its model takes most of a second to load, so it is
       loaded on first use.
    3. Otherwise, the language with the most votes wins, even with a small lead.
    4. If the vote is a tie, the result is `default`: the text is too short ("hi"), or in another language.
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
    """Return the languages of each function word."""
    owners: dict[str, list[str]] = {}
    for language, words in FUNCTION_WORDS.items():
        for word in sorted(set(words.split())):
            owners.setdefault(word, []).append(language)
    return owners


@cache
def _identifier() -> Any:
    # imported lazily: loading the model takes most of a second
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(LANGUAGES)
    return identifier


def fold_accents(text: str) -> str:
    """Return `text` without accents: "où" becomes "ou"."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(char for char in parts if not unicodedata.combining(char)))


def quiet_bm25s() -> ModuleType:
    """Import and return the package bm25s, without progress bars and debug messages."""
    os.environ.setdefault("DISABLE_TQDM", "1")  # read when it is first imported
    bm25s = import_module("bm25s")

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the words that lexical search ignores, in lower case without accents; empty for a language without a list.

    Single consonants are not ignored ("vitamin D"): single letters of elided articles and contractions are removed
    earlier.
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
MAX_CAPITALIZED_SHARE = 0.6  # of the words that are not function words; above it, capitals do not mark names
NOUNS = ("de",)  # languages in which every noun has a capital


def names_in(text: str, language: str = "en") -> tuple[str, ...]:
    """Return the words of a query that look like names, in order; empty if capitals do not mark names in this text.

    Args:
        text: the unmodified query.
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
    """Return whether a word has a capital where names have one: at its start, or after d', l', o' and the like."""
    if word.lower() in small or word.isupper():
        return False
    parts = re.split(r"['’]", word)
    return word[0].isupper() or (len(parts) > 1 and len(parts[0]) <= 2 and parts[1][:1].isupper())
