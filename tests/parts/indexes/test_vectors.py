"""Vectors on disk: built in shards, resumed after a kill, never trusted blindly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from raggs.base.artifacts import Passage
from raggs.base.cache import Cache
from raggs.base.errors import DataError, ProviderError
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import SHARD, VectorIndex, open_vectors

ROWS, DIMS = 2 * SHARD + 100, 4


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    rows = (Passage(doc_id=f"d{number}", text=str(number)) for number in range(ROWS))
    with PassageStore.build(tmp_path_factory.mktemp("store") / "p.sqlite", rows) as built:
        yield built


class Embedder:
    """Vectors from the numbers that the texts are; counts its calls and can be made to fail."""

    def __init__(self):
        self.calls = 0
        self.fail_at = None

    def __call__(self, texts):
        self.calls += 1
        if self.calls == self.fail_at:
            raise KeyboardInterrupt
        numbers = np.array([float(text) for text in texts])
        height, turn = 2 * numbers / ROWS - 1, 2.4 * numbers  # a spiral over the sphere: no two are near
        radius = np.sqrt(1 - height**2)
        return np.stack([radius * np.cos(turn), radius * np.sin(turn), height, 0 * turn], axis=1).astype(np.float32)


@pytest.fixture
def embed():
    return Embedder()


def build(tmp_path, store, embed, **changes):
    options = {"embedder": "test/1", "dims": DIMS, "progress": None, **changes}
    return open_vectors(Cache(tmp_path), options["embedder"], options["dims"], store, embed, options["progress"])


def only(folder, name):
    (path,) = folder.glob(f"*/{name}")
    return path


def test_built_once_then_opened(tmp_path, store, embed):
    told = []
    index = build(tmp_path, store, embed, progress=lambda *news: told.append(news))
    assert (len(index), embed.calls) == (ROWS, 3)
    assert told == [("vectors", SHARD, ROWS), ("vectors", 2 * SHARD, ROWS), ("vectors", ROWS, ROWS)]
    again = build(tmp_path, store, embed)
    assert embed.calls == 3
    assert again.vectors.tobytes() == index.vectors.tobytes()
    found = again.search(embed(["4200"]), 1)
    assert store.ids_at(found.positions[0].tolist()) == ["d4200"]


def test_equal_scores_go_by_doc_id(tmp_path, embed):
    rows = [Passage(doc_id=doc_id, text="7") for doc_id in ("b", "c", "a", "d")]
    with PassageStore.build(tmp_path / "p.sqlite", rows) as small:
        found = build(tmp_path, small, embed).search(embed(["7"]), 3)
        assert small.ids_at(found.positions[0].tolist()) == ["a", "b", "c"]


def test_a_kill_costs_one_shard(tmp_path, store, embed):
    embed.fail_at = 3
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, store, embed)
    vectors = only(tmp_path, "vectors.f32")
    with vectors.open("ab") as file:
        file.write(b"torn")
    build(tmp_path, store, embed)
    assert embed.calls == 4
    undisturbed = build(tmp_path / "other", store, Embedder())
    assert vectors.read_bytes() == undisturbed.vectors.tobytes()


DYING = """
import os, signal, sys
from pathlib import Path
import numpy as np
from raggs.base.cache import Cache
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import open_vectors

def embed(texts):
    if "5000" in texts:  # of the second shard
        os.kill(os.getpid(), signal.SIGKILL)
    return np.eye(4, dtype=np.float32)[[0] * len(texts)]

open_vectors(Cache(Path(sys.argv[1])), "test/1", 4, PassageStore.open(Path(sys.argv[2])), embed)
"""


def test_after_kill_9_only_the_missing_shards_are_embedded(tmp_path, store, embed):
    done = subprocess.run([sys.executable, "-c", DYING, tmp_path, store.path], check=False)
    assert done.returncode == -signal.SIGKILL
    build(tmp_path, store, embed)
    assert embed.calls == 2, "of three shards, one was done before the kill"


@pytest.mark.parametrize("remaining", [0, 10, SHARD * DIMS * 4, SHARD * DIMS * 4 + 1])
def test_shards_that_did_not_reach_the_disk_are_computed_again(tmp_path, store, embed, remaining):
    embed.fail_at = 3
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, store, embed)
    vectors = only(tmp_path, "vectors.f32")
    vectors.write_bytes(vectors.read_bytes()[:remaining])
    index = build(tmp_path, store, embed)
    assert index.vectors.tobytes() == build(tmp_path / "other", store, Embedder()).vectors.tobytes()


def test_each_embedder_and_corpus_has_its_own_folder(tmp_path, store, embed):
    build(tmp_path, store, embed)
    build(tmp_path, store, embed, embedder="test 1")
    with PassageStore.build(tmp_path / "p.sqlite", [Passage(doc_id="x", text="1")]) as other:
        build(tmp_path, other, embed)
    assert len(list(tmp_path.glob("*/header.json"))) == 3


def damaged(tmp_path, store, embed, change):
    """Build, change the file, open again; returns the bytes before and after, and what was said."""
    said = []
    build(tmp_path, store, embed)
    file = only(tmp_path, "vectors.f32")
    before = file.read_bytes()
    stamp = file.stat()
    change(file)
    if file.exists():
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # a copy that keeps the time
    index = open_vectors(Cache(tmp_path, said.append), "test/1", DIMS, store, embed)
    assert index.vectors.tobytes() == before == file.read_bytes()
    open_vectors(Cache(tmp_path, said.append), "test/1", DIMS, store, embed)
    assert len(said) == 1, said
    return said[0]


def reverse(file):
    rows = np.frombuffer(file.read_bytes(), np.float32).reshape(ROWS, DIMS)
    file.write_bytes(rows[::-1].tobytes())


def exchange_two_rows(file):
    rows = np.frombuffer(file.read_bytes(), np.float32).reshape(ROWS, DIMS).copy()
    rows[[SHARD + 1, SHARD + 2]] = rows[[SHARD + 2, SHARD + 1]]
    file.write_bytes(rows.tobytes())


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (reverse, f"vectors 1 to {ROWS:,} of {ROWS:,}"),
        (exchange_two_rows, f"vectors {SHARD + 1:,} to {ROWS:,} of {ROWS:,}"),
        (lambda file: file.write_bytes(file.read_bytes()[:-4]), f"vectors {2 * SHARD + 1:,} to {ROWS:,} of {ROWS:,}"),
        (lambda file: file.unlink(), f"vectors 1 to {ROWS:,} of {ROWS:,}"),
    ],
)
@pytest.mark.parametrize("settled", [True, False])
def test_vectors_that_are_not_what_was_computed_are_computed_again(
    tmp_path, store, embed, monkeypatch, change, lost, settled
):
    monkeypatch.setattr("raggs.base.cache.TICK_NS", 0 if settled else 10**12)
    build(tmp_path, store, embed)
    build(tmp_path, store, embed)
    assert len(list(tmp_path.glob("*/verified.json"))) == settled
    said = damaged(tmp_path, store, embed, change)
    assert said.endswith(f"vectors.f32: altered, so {lost} are computed again")


def test_files_of_two_folders_that_were_exchanged_are_not_searched(tmp_path, store, embed):
    said = []
    turned = lambda texts: embed(texts)[:, ::-1]  # noqa: E731
    for name, embedder in (("test/1", embed), ("test/2", turned)):
        open_vectors(Cache(tmp_path), name, DIMS, store, embedder)
    one, two = sorted(tmp_path.glob("*/vectors.f32"))
    before = one.read_bytes()
    one.rename(tmp_path / "aside")
    two.rename(one)
    (tmp_path / "aside").rename(two)
    assert open_vectors(Cache(tmp_path, said.append), "test/1", DIMS, store, embed).vectors.tobytes() == before
    assert len(said) == 1 and "altered, so" in said[0]


def test_a_repair_leaves_the_file_whole_that_another_process_has_mapped(tmp_path, store, embed):
    index = build(tmp_path, store, embed)
    before = index.vectors.tobytes()
    with only(tmp_path, "vectors.f32").open("r+b") as file:
        file.write(b"damage")
    assert build(tmp_path, store, embed).vectors.tobytes() == before
    assert index.vectors.tobytes()[6:] == before[6:]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sums": 3}', "\xff"])
def test_a_header_that_is_none(tmp_path, store, embed, text):
    said = []
    build(tmp_path, store, embed)
    only(tmp_path, "header.json").write_bytes(text.encode("latin-1"))
    open_vectors(Cache(tmp_path, said.append), "test/1", DIMS, store, embed)
    assert embed.calls == 6
    assert len(said) == 1 and said[0].endswith("not the header of these vectors; raggs computes them again")


def test_a_header_about_something_else_is_not_believed(tmp_path, store, embed):
    build(tmp_path, store, embed)
    header = only(tmp_path, "header.json")
    header.write_text(json.dumps({**json.loads(header.read_text()), "embedder": "other"}))
    build(tmp_path, store, embed)
    assert embed.calls == 6


def broken(values):
    return lambda texts: np.full((len(texts), DIMS), values, dtype=np.float32)


@pytest.mark.parametrize(
    ("embed_texts", "error", "message"),
    [
        (broken(np.nan), DataError, "NaN or infinity for passage 'd0'"),
        (broken(3.0), ProviderError, "unit length"),
        (lambda texts: np.zeros((len(texts), DIMS + 1)), ProviderError, r"shape \(4096, 5\)"),
        (lambda texts: np.zeros((1, DIMS)), ProviderError, "shape"),
    ],
)
def test_an_embedder_that_errs(tmp_path, store, embed_texts, error, message):
    with pytest.raises(error, match=message):
        build(tmp_path, store, embed_texts)


def test_a_query_of_another_length(tmp_path, store, embed):
    index = build(tmp_path, store, embed)
    with pytest.raises(DataError, match="7 dimensions, the index has 4"):
        index.search(np.zeros((1, 7), np.float32), 3)


def test_a_place_that_cannot_be_written(tmp_path, store, embed):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderError, match="cannot be stored"):
        build(tmp_path / "file", store, embed)


def test_a_matrix_of_ones_own_is_searched_like_a_corpus(tmp_path):
    matrix = np.repeat(np.eye(3, 4, dtype=np.float32), 2, axis=0)
    cache = Cache(tmp_path)
    mine = VectorIndex.of(matrix, cache)
    assert mine.search(matrix[2:3], 3).positions.tolist() == [[2, 3, 0]]  # ties go to the earlier row
    assert mine.sum == VectorIndex.of(matrix.copy(), cache).sum != VectorIndex.of(matrix[:5], cache).sum
    assert mine.sum != VectorIndex.of(matrix.reshape(12, 2), cache).sum
