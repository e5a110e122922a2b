"""Vectors that are kept by text."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from raggs.base.cache import Cache
from raggs.base.errors import ProviderError
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.embedders.vector_cache import MAX_UNWRITTEN_VECTORS, KeptEmbedder


class Config(EmbedderConfig):
    type: Literal["counting"] = "counting"


class Counting(Embedder):
    """Remembers what it was asked."""

    def __init__(self, dims: int = 2) -> None:
        self.config = Config()
        self.asked: list[str] = []
        self._dims = dims

    @property
    def identity(self) -> str:
        return "counting"

    @property
    def dims(self) -> int:
        return self._dims

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[len(text), 1.5] for text in texts], dtype=np.float32)


def kept(embedder: Embedder, folder: Path) -> KeptEmbedder:
    return KeptEmbedder(embedder, Cache(folder))


def test_each_text_is_embedded_once_whoever_asks(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    assert kept(first, tmp_path).embed(["a", "bb", "a"]).tolist() == [[1, 1.5], [2, 1.5], [1, 1.5]]
    assert kept(second, tmp_path).embed(["ccc", "bb"]).tolist() == [[3, 1.5], [2, 1.5]]
    assert (first.asked, second.asked) == (["a", "bb"], ["ccc"])


def test_texts_that_embedders_read_alike_share_a_vector(tmp_path: Path) -> None:
    found = Counting()
    kept(found, tmp_path).embed(["l'eau"])
    assert kept(found, tmp_path).embed(["l’eau"]).tolist() == [[5, 1.5]]
    assert found.asked == ["l'eau"]


def test_a_row_that_is_no_vector_of_this_length_is_made_again(tmp_path: Path) -> None:
    kept(Counting(), tmp_path).embed(["a"])
    [file] = tmp_path.iterdir()
    with sqlite3.connect(file) as database:
        database.execute("UPDATE rows SET value = 'x'")
    again = Counting()
    assert kept(again, tmp_path).embed(["a"]).tolist() == [[1, 1.5]]
    assert again.asked == ["a"]


def test_vectors_that_were_exchanged_are_made_again(tmp_path: Path) -> None:
    kept(Counting(), tmp_path).embed(["a", "bb", "ccc"])
    [file] = tmp_path.iterdir()
    with sqlite3.connect(file) as database:
        one, two = database.execute("SELECT key, value, sum FROM rows ORDER BY length(value), key").fetchall()[:2]
        for key, (_, *row) in ((one[0], two), (two[0], one)):
            database.execute("UPDATE rows SET value = ?, sum = ? WHERE key = ?", (*row, key))
    again, said = Counting(), list[str]()
    found = KeptEmbedder(again, Cache(tmp_path, said.append)).embed(["a", "bb", "ccc"])
    assert found.tolist() == [[1, 1.5], [2, 1.5], [3, 1.5]]
    assert len(again.asked) == 2
    assert len(said) == 1 and "2 rows changed since raggs stored them" in said[0]


def test_no_text_is_no_vector(tmp_path: Path) -> None:
    assert kept(Counting(), tmp_path).embed([]).shape == (0, 2)


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    kept(Counting(), tmp_path).embed(["a"])
    [file] = tmp_path.iterdir()
    file.write_bytes(b"not a database, but long enough to be looked at" * 10)
    with pytest.raises(ProviderError, match="delete it"):
        kept(Counting(), tmp_path).embed(["a"])


# --- as chunkers are lent one -----------------------------------------------------------------------------------


def lend(embedder: Embedder, folder: Path) -> KeptEmbedder:
    return KeptEmbedder(embedder, Cache(folder), held=MAX_UNWRITTEN_VECTORS)


class Slow(Counting):
    """Takes so long for a call that its vectors are worth a file."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        time.sleep(0.3)
        return super().embed(texts)


def test_what_is_quickly_made_is_not_written(tmp_path: Path) -> None:
    lent = lend(Counting(), tmp_path)
    lent.embed(["a", "bb"])
    lent.close()
    assert list(tmp_path.iterdir()) == []


def test_what_takes_its_time_is_written_at_the_end_and_found(tmp_path: Path) -> None:
    first, second = lend(Slow(), tmp_path), Slow()
    assert first.embed(["a", "bb"]).tolist() == [[1, 1.5], [2, 1.5]]
    assert first.embed(["a"]).tolist() == [[1, 1.5]] and first.found == 1
    first.close()
    again = lend(second, tmp_path)
    assert again.embed(["bb", "a", "ccc"]).tolist() == [[2, 1.5], [1, 1.5], [3, 1.5]]
    assert (second.asked, again.found) == (["ccc"], 2)


def test_many_are_written_before_the_end(tmp_path: Path) -> None:
    lend(Counting(), tmp_path).embed([str(number) for number in range(MAX_UNWRITTEN_VECTORS)])
    assert list(tmp_path.glob("texts-*.sqlite"))


def test_a_disk_that_takes_nothing_more_costs_the_vectors_alone(tmp_path: Path) -> None:
    lent = lend(Slow(), tmp_path / "file" / "below")
    (tmp_path / "file").write_text("")
    lent.embed(["a"])
    lent.close()


def test_it_is_the_embedder_itself_to_whoever_asks(tmp_path: Path) -> None:
    inner = Counting()
    lent = lend(inner, tmp_path)
    assert (lent.identity, lent.dims, lent.models, lent.causes()) == ("counting", 2, (), inner.causes())
    assert lent.embed_queries(["a"]).tolist() == [[1, 1.5]]
