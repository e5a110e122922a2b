"""Latent semantic analysis: word vectors fitted on the corpus itself, by a truncated SVD of its TF-IDF matrix.

The embedder needs no model and no download, and its algebra uses only numpy. It knows only the words of the corpus.

Texts are split into windows of at most `WORDS_PER_WINDOW` words. Each window is a row of a sparse matrix, with one
column per search word of BM25 (a stem without accents; stop words are omitted). An entry is ``(1 + ln tf) ln((n + 1) /
df)``, and rows have unit length. The right singular vectors, times the idf, are the word vectors. The vector of a text
is the sum of its word vectors, weighted by ``1 + ln tf`` and scaled to unit length. Queries and passages are embedded
by this formula, so that equal texts have equal vectors.

The SVD is a subspace iteration from a fixed random start (Halko, Martinsson and Tropp, 2011). It reads the rows in
small blocks, so that the size of its dense matrices depends only on words and dimensions. A model has at most
`MAX_WINDOWS` windows, evenly spaced in the corpus, and the `MAX_WORDS` words that occur in the most windows.

On one machine, the same corpus gives the same bytes: BLAS has one thread, the largest component of each direction is
positive, and directions without variance are zero. The fit is in float64. Other processors and libraries of linear
algebra change components by about 1e-13. Rounding to multiples of 1 / `GRID` removes such differences, except if a
component is within about 1e-13 of the middle between two multiples.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.base.arrays import Floats, Ints, SmallInts, Vectors
from raggs.base.errors import DataError, PrerequisiteError
from raggs.base.files import disk
from raggs.base.hashing import hash_value
from raggs.base.languages import detect_language
from raggs.base.settings import Causes
from raggs.parts.embedders import Embedder, EmbedderConfig, FittingTexts

if TYPE_CHECKING:
    from pathlib import Path

    from raggs.parts.embedders import EmbedderContext

WORDS_PER_WINDOW = 300
MAX_WINDOWS = 32_768
MAX_WORDS = 32_768
LANGUAGE_SAMPLE = 500  # maximum number of windows from which the languages of the corpus are detected
OVERSAMPLING = 32  # columns of the subspace beyond the dimensions; they make the last dimensions precise
ITERATIONS = 6
ROWS_PER_BLOCK = 64
GRID = 2**16  # components are multiples of 1 / GRID
NOISE = 1e-10  # directions with a smaller share of the largest variance are rounding errors
WORDS_FILE, VECTORS_FILE = "words.json", "vectors.npy"


@dataclass(frozen=True)
class WordVectors:
    """A fitted model.

    Attributes:
        languages: languages of the texts, the most frequent one first.
        rows: row of each word.
        vectors: shape (words, dims), float32.
    """

    languages: tuple[str, ...]
    rows: dict[str, int]
    vectors: Vectors

    def pool(self, text: str) -> Vectors:
        """Return the vector of a text, shape (dims,): unit length, or zeros if it has no known word."""
        import numpy as np

        counts = _count_words(text, self.languages)
        known = sorted((self.rows[word], count) for word, count in counts.items() if word in self.rows)
        rows = [row for row, _ in known]
        weights = 1.0 + np.log([float(count) for _, count in known])
        total: Floats = (weights[:, None] * self.vectors[rows].astype(np.float64)).sum(axis=0)
        norm = float(np.sqrt((total * total).sum()))
        return (total / norm if norm > 0 else total).astype(np.float32)

    def write(self, folder: Path) -> None:
        """Write the model to a folder."""
        import numpy as np

        known = {"languages": self.languages, "words": list(self.rows)}
        (folder / WORDS_FILE).write_text(json.dumps(known), encoding="utf-8")
        np.save(folder / VECTORS_FILE, self.vectors, allow_pickle=False)

    @classmethod
    def read(cls, folder: Path) -> WordVectors:
        """Return the model in a folder.

        Raises:
            DataError: the numbers of words and vectors differ.
            ProviderError: a file is missing or unreadable.
        """
        import numpy as np

        with disk(folder, "check the folder's permissions", "the word vectors cannot be read"):
            known = json.loads((folder / WORDS_FILE).read_text(encoding="utf-8"))
            vectors = np.load(folder / VECTORS_FILE, allow_pickle=False)
        if len(vectors) != len(known["words"]):
            raise DataError("words and vectors differ in number", where=folder, remedy="delete the folder")
        return cls(tuple(known["languages"]), {word: row for row, word in enumerate(known["words"])}, vectors)


class LsaEmbedder(Embedder):
    """Latent semantic analysis, fitted on the corpus: no model, no download, any platform."""

    PACKAGES = ("numpy", "PyStemmer")
    NEEDS_FIT = True

    class Config(EmbedderConfig):
        type: Literal["lsa"] = "lsa"
        dims: int = Field(256, ge=2, le=1024, description="dimensions of a vector")

    config: Config

    def __init__(
        self, config: Config, context: EmbedderContext | None = None, texts: FittingTexts | None = None
    ) -> None:
        self.config = config
        self._context = context
        self._texts = texts

    def fitted(self, texts: FittingTexts) -> Embedder:
        """Return the embedder for a corpus, or this embedder if it already has one; it is fitted at first use."""
        return self if self._texts is not None else LsaEmbedder(self.config, self._context, texts)

    def own_causes(self) -> Causes:
        """Return settings and versions, and the key of the texts that the embedder is fitted on, if there are any."""
        fitted = {} if self._texts is None else {"fitted on": self._texts.key()}
        return {**super().own_causes(), **fitted}

    @property
    def dims(self) -> int:
        """Length of a vector; if the fitted model has fewer dimensions, the last components are zero."""
        return self.config.dims

    def check(self) -> None:
        """Check nothing, because the embedder needs no model, and a fit would read the whole corpus."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, shape (texts, dims). A text without a word of the model has a zero vector.

        Raises:
            PrerequisiteError: the embedder is not fitted.
        """
        import numpy as np

        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for place, text in enumerate(texts):
            vectors[place] = self._model.pool(text)
        return vectors

    @cached_property
    def _model(self) -> WordVectors:
        texts = self._texts
        if texts is None:
            raise PrerequisiteError(
                "the embedder lsa is fitted on a corpus, and none is given",
                remedy="name a corpus, or pass another embedder (raggs list embedders)",
            )
        if texts.cache is None:
            return fit(texts.texts(), self.dims)
        name = hash_value(self.own_causes())[:24]
        made = texts.cache.files(
            name, self.own_causes(), lambda folder: fit(texts.texts(), self.dims).write(folder), "the word vectors"
        )
        return WordVectors.read(made.path)


def fit(texts: Iterable[str], dims: int) -> WordVectors:
    """Return the word vectors of some texts; on one machine, the same texts give the same bytes.

    Args:
        texts: texts of any length, read once.
        dims: length of a vector; if the matrix has a lower rank, the last components are zero.
    """
    import numpy as np

    from raggs.parts.indexes.lexical import languages_of  # imported lazily: it imports the stemmer

    windows = _spaced(_windows(texts), MAX_WINDOWS)
    languages = languages_of(windows[:: max(1, len(windows) // LANGUAGE_SAMPLE)][:LANGUAGE_SAMPLE])
    counts = [_count_words(window, languages) for window in windows]
    frequency = Counter(word for each in counts for word in each)
    kept = sorted(sorted(frequency, key=lambda word: (-frequency[word], word))[:MAX_WORDS])
    rows = {word: row for row, word in enumerate(kept)}
    idf = np.log((len(windows) + 1.0) / np.array([frequency[word] for word in kept], dtype=np.float64))
    matrix = _SparseRows.of(counts, rows, idf)
    vectors = np.zeros((len(kept), dims), dtype=np.float32)
    found = principal_directions(matrix, min(dims, len(kept), len(windows)))
    vectors[:, : found.shape[1]] = np.round(idf[:, None] * found * GRID) / GRID
    return WordVectors(languages, rows, vectors)


def _windows(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text in parts of about equal length, of at most `WORDS_PER_WINDOW` words."""
    for text in texts:
        words = text.split()
        parts = max(1, -(-len(words) // WORDS_PER_WINDOW))
        edges = [len(words) * part // parts for part in range(parts + 1)]
        for start, stop in pairwise(edges):
            yield " ".join(words[start:stop])


def _spaced(windows: Iterator[str], most: int) -> list[str]:
    """Return at most `most` windows: each, or each second, fourth and so on, so that memory is bounded."""
    kept: list[str] = []
    step = 1
    for number, window in enumerate(windows):
        if number % step == 0:
            kept.append(window)
        if len(kept) > most:
            kept, step = kept[::2], step * 2
    return kept


def _count_words(text: str, languages: tuple[str, ...]) -> Counter[str]:
    """Return the number of occurrences of each search word of a text."""
    from raggs.parts.indexes.lexical import pick_language, words_of  # imported lazily: it imports the stemmer

    language = languages[0] if len(languages) == 1 else pick_language(detect_language(text, ""), languages)
    return Counter(words_of(text, language))


@dataclass(frozen=True)
class _SparseRows:
    """A sparse matrix by rows. `starts` has one item more than there are rows; rows have unit length or are empty."""

    starts: Ints
    columns: SmallInts
    values: Floats
    width: int

    @classmethod
    def of(cls, counts: Sequence[Counter[str]], rows: dict[str, int], idf: Floats) -> _SparseRows:
        """Return the TF-IDF matrix of some windows."""
        import numpy as np

        starts, columns, values = np.zeros(len(counts) + 1, dtype=np.int64), [], []
        for place, each in enumerate(counts):
            known = sorted((rows[word], count) for word, count in each.items() if word in rows)
            own = np.array([row for row, _ in known], dtype=np.int32)
            weights = (1.0 + np.log(np.array([count for _, count in known], dtype=np.float64))) * idf[own]
            norm = np.sqrt((weights * weights).sum())
            columns.append(own)
            values.append(weights / norm if norm > 0 else weights)
            starts[place + 1] = starts[place] + len(own)
        joined = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int32)
        return cls(starts, joined, np.concatenate(values) if values else np.zeros(0), len(rows))

    def times_itself(self, basis: Floats) -> Floats:
        """Return transpose(matrix) @ matrix @ basis, shape of `basis`, block by block."""
        import numpy as np

        found = np.zeros_like(basis)
        for first in range(0, len(self.starts) - 1, ROWS_PER_BLOCK):
            edges = self.starts[first : first + ROWS_PER_BLOCK + 1]
            used, place = np.unique(self.columns[edges[0] : edges[-1]], return_inverse=True)
            block = np.zeros((len(edges) - 1, len(used)))
            block[np.repeat(np.arange(len(edges) - 1), np.diff(edges)), place] = self.values[edges[0] : edges[-1]]
            found[used] += block.T @ (block @ basis[used])
        return found


def principal_directions(matrix: _SparseRows, dims: int) -> Floats:
    """Return the first right singular vectors of a matrix as columns, shape (columns, at most dims).

    Directions without variance are omitted. The largest component of each vector is positive.
    """
    import numpy as np
    from threadpoolctl import ThreadpoolController

    size = min(dims + OVERSAMPLING, matrix.width)
    if size == 0:
        return np.zeros((matrix.width, 0))
    with ThreadpoolController().limit(limits=1, user_api="blas"):  # several threads may add in another order
        basis = np.linalg.qr(np.random.default_rng(0).standard_normal((matrix.width, size)))[0]
        for _ in range(ITERATIONS):
            basis = np.linalg.qr(matrix.times_itself(basis))[0]
        variances, rotation = np.linalg.eigh(basis.T @ matrix.times_itself(basis))
        kept = np.flatnonzero(variances > NOISE * max(variances[-1], NOISE))[::-1][:dims]
        found: Floats = basis @ rotation[:, kept]
    largest = np.abs(found).argmax(axis=0)
    signs: Floats = np.sign(found[largest, np.arange(found.shape[1])])
    return found * signs
