"""What is searched and who asks: vectors of a corpus or of a file, and sets of questions.

Passages that are held out are taken from the vectors before anything is built, so that they are asked for as what an
index has never seen: in-distribution questions. Those of a configuration are out of its distribution, as questions are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Ints, Vectors
from raggs.base.errors import DataError, UsageError
from raggs.base.hashing import hash_bytes, hash_file
from raggs.base.inputs import regular_file
from raggs.base.seeds import generator
from raggs.base.text import clean_unicode, one_line, plural
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.index.models import Origin
from raggs.diagnosis.index.settings import IndexSettings
from raggs.parts.embedders.base import Embedder
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import VectorIndex, open_vectors
from raggs.stages.embed import prepare

QUESTIONS: Origin = "questions"
HELD_OUT: Origin = "held-out passages"
TENTH = 10
LEAST = 4  # times as many vectors as hits are wanted


@dataclass(frozen=True)
class Asked:
    """Questions as vectors, with ids where they have any."""

    origin: Origin
    vectors: Vectors
    qids: tuple[str, ...] = ()

    @cached_property
    def sum(self) -> str:
        """Of what is asked."""
        return hash_bytes(self.vectors.tobytes())


class World:
    """Vectors, and those who ask.

    Args:
        vectors: what is searched.
        asked: by origin.
        source: whose vectors they are, in words.
        store: the passages, where there are any.
    """

    def __init__(
        self, vectors: VectorIndex, asked: Mapping[Origin, Asked], source: str, store: PassageStore | None = None
    ) -> None:
        self.vectors, self.asked, self.source, self.store = vectors, asked, source, store
        self._truth: dict[tuple[str, int], Ints] = {}

    def truth(self, asked: Asked, k: int) -> Ints:
        """The exact k nearest of each question, shape (questions, k)."""
        if (asked.sum, k) not in self._truth:
            self._truth[asked.sum, k] = self.vectors.search(asked.vectors, k).positions
        return self._truth[asked.sum, k]


def open_world(bench: Bench, settings: IndexSettings) -> World:
    """The vectors, all of them, and the questions.

    Raises:
        RaggsError: a part is missing, or a file is not what it should be.
    """
    if settings.vectors is not None:
        return _of_files(bench, settings.vectors, settings.queries)
    store, embedder = store_of(bench), embedder_of(bench)
    vectors = open_vectors(
        bench.workshop.places.vectors,
        embedder.identity,
        embedder.dims,
        store,
        embedder.embed,
        bench.workshop.building,
        bench.workshop.notify,
    )
    asked: dict[Origin, Asked] = {}
    if bench.has("run") or bench.has("golden"):
        texts = texts_of(bench)
        given = embedder.embed_queries(list(texts.values()))
        live = np.flatnonzero(given.any(axis=1))
        if not len(live):
            said = f"the embedder gives no vector to any of {plural(len(texts), 'question')}"
            raise DataError(said, remedy="name another --embedder, or questions in a language that it knows")
        qids = [list(texts)[at] for at in live.tolist()]
        asked[QUESTIONS] = Asked(QUESTIONS, np.ascontiguousarray(given[live], dtype=np.float32), tuple(qids))
    return World(vectors, asked, f"{len(store):,} passages by {embedder.identity.split('/')[0]}", store)


def texts_of(bench: Bench) -> Mapping[str, str]:
    """The questions as they are searched for: by the run's rewriter, unless that is paid."""
    if bench.run is None or (rewriter := bench.workshop.rewriter(bench.run.embed.rewrite)).models:
        return {qid: one_line(clean_unicode(query.text)) for qid, query in bench.queries.items()}
    usual, loop = bench.run.embed.language, bench.workshop.loop
    return {qid: loop.run(prepare(query, rewriter, usual)).rewrite for qid, query in bench.queries.items()}


def hold_out(world: World, count: int, seed: int) -> World:
    """The same without some vectors, which are asked for too; at most a tenth, none twice, none of zeros."""
    matrix = world.vectors.vectors
    drawn = np.sort(generator(seed, "held out").permutation(len(matrix))[: min(count, len(matrix) // TENTH)])
    chosen = drawn[matrix[drawn].any(axis=1)]
    if not len(chosen):
        return world
    stays = np.ones(len(matrix), dtype=np.bool_)
    stays[chosen] = False
    asked = Asked(HELD_OUT, np.ascontiguousarray(matrix[chosen], dtype=np.float32))
    rest = VectorIndex.of(np.ascontiguousarray(matrix[stays]), world.vectors.place / f"without-{asked.sum[:16]}")
    return World(rest, {**world.asked, HELD_OUT: asked}, world.source)


def embedder_of(bench: Bench) -> Embedder:
    """The one embedder.

    Raises:
        UsageError: several are named.
    """
    if len(bench.embedders) > 1:
        raise UsageError("indexes are compared over the vectors of one embedder", remedy="name one --embedder")
    return next(iter(bench.embedders.values()))


def store_of(bench: Bench) -> PassageStore:
    """The passages on this disk.

    Raises:
        UsageError: they are read on a server.
    """
    passages = bench.passages
    if not isinstance(passages, PassageStore):
        raise UsageError("the corpus is an index on a server", remedy="name a corpus of files, or --vectors FILE.npy")
    return passages


def _of_files(bench: Bench, vectors: Path, queries: Path | None) -> World:
    matrix = read_matrix(vectors)
    whole = VectorIndex.of(matrix, bench.workshop.places.vectors / f"given-{hash_file(vectors)[:16]}")
    asked: dict[Origin, Asked] = {}
    if queries is not None:
        given = read_matrix(queries)
        if given.shape[1] != matrix.shape[1]:
            said = f"its vectors have {given.shape[1]} dimensions, those to be searched {matrix.shape[1]}"
            raise DataError(said, where=queries, remedy="embed both with the same embedder")
        if not given.any():
            raise DataError("all its vectors are zeros", where=queries, remedy="check how it was made")
        asked[QUESTIONS] = Asked(QUESTIONS, np.ascontiguousarray(given[given.any(axis=1)]))
    return World(whole, asked, f"{len(matrix):,} vectors of {vectors.name}")


def open_matrix(path: Path) -> npt.NDArray[np.number]:
    """A matrix of numpy's own format, not read yet.

    Raises:
        DataError: it is none.
    """
    try:
        found: npt.NDArray[np.number] = np.load(regular_file(path), mmap_mode="r", allow_pickle=False)
        if found.ndim != 2 or not found.size or found.dtype.kind not in "fiu":
            raise ValueError("no table of numbers")
    except FileNotFoundError as error:
        raise DataError("there is no such file", where=path, remedy="check the path") from error
    except (OSError, ValueError, EOFError) as error:
        raise DataError("not a matrix of numpy, one vector a row", where=path, remedy="numpy.save(...)") from error
    return found


def read_matrix(path: Path) -> Vectors:
    """Its rows at unit length; rows of zeros stay.

    Raises:
        DataError: it is none, or holds NaN or infinity.
    """
    rows = np.array(open_matrix(path), dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise DataError("it holds NaN or infinity", where=path, remedy="check how it was made")
    rows /= np.where(lengths == 0, 1, lengths)
    return rows
