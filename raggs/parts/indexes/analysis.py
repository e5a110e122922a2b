"""Texts as lexical search compares them: lower-case word stems without stop words and accents.

A word is a run of letters and digits, so that ``__init__`` is found as "init" and "C3" as itself. Elided words
(l', qu') and English contractions ('s, n't) are cut off first. Stop words and Snowball stemmer depend on the
language; accents are folded last, since the French stemmer reads them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from raggs.base.languages import STEMMERS, detect_language, fold_accents, stop_words
from raggs.base.text import fold_quotes

VERSION = 1  # raised when the same text gives other words
WORD = re.compile(r"[^\W_]+")
CLIPPED = re.compile(
    r"\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|dell|nell|all|un)['’](?=\w)|(?<=\w)['’](?:s|t|d|m|ll|re|ve)\b"
)
SHARE = 0.1  # of the sample, from which a language belongs to the corpus


def words_of(text: str, language: str) -> list[str]:
    """The words of `text` that are searched for, in its order."""
    plain = CLIPPED.sub(" ", fold_quotes(unicodedata.normalize("NFKC", text)).lower())
    stops, stemmer = stop_words(language), _stemmer(language)
    kept = [word for word in WORD.findall(plain) if fold_accents(word) not in stops]
    return [fold_accents(word) for word in (stemmer.stemWords(kept) if stemmer else kept)]


@cache
def _stemmer(language: str) -> Any:
    if language not in STEMMERS:
        return None
    from Stemmer import Stemmer  # late: only a search needs it

    return Stemmer(STEMMERS[language])


def languages_of(sample: Iterable[str]) -> tuple[str, ...]:
    """The languages that hold at least a tenth of the sample's texts, most frequent first; English if none is clear."""
    counts = Counter(detect_language(text, "") for text in sample)
    counts.pop("", None)
    total = counts.total()
    common = [(-count, language) for language, count in counts.items() if count >= SHARE * total]
    return tuple(language for _, language in sorted(common)) or ("en",)


def pick_language(language: str, languages: tuple[str, ...]) -> str:
    """`language` if it is one of `languages`, else the first of them."""
    return language if language in languages else languages[0]
