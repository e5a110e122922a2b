"""A BM25 index (bm25s) on disk, built once per corpus and parameters, and the tokenization of lexical search.

bm25s computes the score of each word in each passage that contains it during indexing. A search adds one sparse column
per query word. The files are numpy arrays and JSON, saved and loaded without pickle. Lists are truncated here and not
in bm25s, because the order of ties in bm25s depends on the machine. If a corpus has several languages, each passage and
each query is analysed in its own language. If the corpus does not have this language, its most frequent language is
used.

Tokenization: words are lower-case stems without accents; stop words are dropped. A word is a run of letters and digits,
so that ``__init__`` becomes "init" and ``C3`` becomes "c3". Elided words (l', qu') and English contractions ('s, n't)
are removed first. Stop words and the Snowball stemmer depend on the language. Accents are removed last, because the
French stemmer needs them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from raggs.base.arrays import Ints, Scores, SmallInts
from raggs.base.cache import Cache
from raggs.base.errors import DataError
from raggs.base.files import disk
from raggs.base.hashing import hash_value
from raggs.base.languages import STEMMERS, detect_language, fold_accents, quiet_bm25s, stop_words
from raggs.base.registry import installed
from raggs.base.text import fold_quotes
from raggs.parts.indexes.passages import PassageStore, Progress

VERSION = 1  # increased whenever the same text yields other words
WORD_PATTERN = re.compile(r"[^\W_]+")
ELISIONS = re.compile(
    r"\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|dell|nell|all|un)['’](?=\w)|(?<=\w)['’](?:s|t|d|m|ll|re|ve)\b"
)
MIN_LANGUAGE_SHARE = 0.1  # minimum share of a corpus language among the texts of the sample whose language is detected


def words_of(text: str, language: str) -> list[str]:
    """Return the search words of `text`, in order."""
    plain = ELISIONS.sub(" ", fold_quotes(unicodedata.normalize("NFKC", text)).lower())
    stops, stemmer = stop_words(language), _stemmer(language)
    kept = [word for word in WORD_PATTERN.findall(plain) if fold_accents(word) not in stops]
    return [fold_accents(word) for word in (stemmer.stemWords(kept) if stemmer else kept)]


@cache
def _stemmer(language: str) -> Any:
    if language not in STEMMERS:
        return None
    from Stemmer import Stemmer  # imported lazily: only searches need it

    return Stemmer(STEMMERS[language])


def languages_of(sample: Iterable[str]) -> tuple[str, ...]:
    """Return the languages of at least a tenth of the texts with a detected language; English if none is detected.

    The most frequent language comes first.
    """
    counts = Counter(detect_language(text, "") for text in sample)
    counts.pop("", None)
    total = counts.total()
    common = [(-count, language) for language, count in counts.items() if count >= MIN_LANGUAGE_SHARE * total]
    return tuple(language for _, language in sorted(common)) or ("en",)


def pick_language(language: str, languages: tuple[str, ...]) -> str:
    """Return `language` if it is one of `languages`, otherwise the first item of `languages`."""
    return language if language in languages else languages[0]


FORMAT = 2
SAMPLE = 500
PASSAGES_PER_BLOCK = 1000  # passages read at a time
LANGUAGES = "languages.json"


@dataclass(frozen=True)
class Parameters:
    """Parameters of an index. `language` is "auto" or an ISO 639-1 code."""

    k1: float
    b: float
    language: str


class LexicalIndex:
    """BM25 over a corpus. Created by `open_lexical`."""

    def __init__(self, bm25: Any, languages: tuple[str, ...], ranks: SmallInts) -> None:
        self._bm25 = bm25
        self.languages = languages
        self._ranks = ranks

    def search(self, text: str, language: str, k: int) -> tuple[Ints, Scores]:
        """Return positions and scores of at most `k` passages that share a word with `text`.

        The passages are ordered by descending score, and ties by doc_id. Words that occur in no passage are ignored.
        """
        words = words_of(text, pick_language(language, self.languages))
        known = self._bm25.get_tokens_ids(words)
        if not known:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        scores: Scores = self._bm25.get_scores_from_ids(known)
        found = np.flatnonzero(scores > 0)
        if len(found) > k:
            # keep all passages that tie with the k-th
            found = found[scores[found] >= np.partition(scores[found], -k)[-k]]
        best = found[np.lexsort((self._ranks[found], -scores[found]))][:k]
        return best, scores[best]


def open_lexical(
    cache: Cache, store: PassageStore, parameters: Parameters, progress: Progress | None = None
) -> LexicalIndex:
    """Return the index of `store` with these parameters; it is built if the cache has no undamaged one.

    Args:
        progress: called with ("bm25", done, total) while passages are read.

    Raises:
        DataError: no passage contains a searchable word.
        ProviderError: a disk operation failed.
    """
    name = _name(store, parameters)
    place = cache.files(
        name, name, lambda folder: _build(folder, store, parameters, progress), "the lexical index"
    ).path
    with disk(place, "check the folder's permissions", "the index cannot be read"):
        bm25 = quiet_bm25s().BM25.load(place, mmap=True, allow_pickle=False, show_progress=False)
        languages = tuple(json.loads((place / LANGUAGES).read_bytes()))
    return LexicalIndex(bm25, languages, store.id_ranks())


def lexical_faults(cache: Cache, store: PassageStore, parameters: Parameters) -> Iterator[tuple[Path, str]]:
    """Yield, for each altered file of the index, the index's folder and a description of the fault."""
    return cache.faults(_name(store, parameters))


def _name(store: PassageStore, parameters: Parameters) -> str:
    versions = {name: installed(name) for name in ("bm25s", "PyStemmer")}
    return f"bm25-{hash_value([FORMAT, store.search_hash, asdict(parameters), versions, VERSION])[:16]}"


def _build(folder: Path, store: PassageStore, parameters: Parameters, progress: Progress | None) -> None:
    languages: tuple[str, ...] = (parameters.language,)
    if parameters.language == "auto":
        languages = languages_of(store.sample(SAMPLE))
    codes, vocabulary = _encode(store, languages, progress)
    if not vocabulary:
        remedy = "remove bm25 from retrieve.retrievers"
        raise DataError("no passage contains a searchable word", where=store.path, remedy=remedy)
    bm25 = quiet_bm25s().BM25(k1=parameters.k1, b=parameters.b, method="lucene", backend="numpy", csc_backend="numpy")
    bm25.index((codes, vocabulary), show_progress=False)
    bm25.save(folder, allow_pickle=False, show_progress=False)
    (folder / LANGUAGES).write_text(json.dumps(languages), encoding="utf-8")


def _encode(
    store: PassageStore, languages: tuple[str, ...], progress: Progress | None
) -> tuple[list[array[int]], dict[str, int]]:
    """Return the words of each passage as codes, and the code of each word; codes are in order of first occurrence."""
    codes: list[array[int]] = []
    vocabulary: dict[str, int] = {}
    for start in range(0, len(store), PASSAGES_PER_BLOCK):
        for text in store.contents(start, start + PASSAGES_PER_BLOCK):
            language = languages[0]
            if len(languages) > 1:
                language = pick_language(detect_language(text, languages[0]), languages)
            words = words_of(text, language)
            codes.append(array("i", [vocabulary.setdefault(word, len(vocabulary)) for word in words]))
        if progress is not None:
            progress("bm25", len(codes), len(store))
    return codes, vocabulary
