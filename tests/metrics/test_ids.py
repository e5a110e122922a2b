"""Columns of ids: what they hold, and keys that depend on nothing but the id."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.metrics.columns import IdColumn, pair_keys
from raggs.metrics.evaluate import evaluate

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@given(st.lists(NAMES, max_size=12), st.data())
def test_any_rows_come_back(names, data):
    cut = data.draw(st.integers(0, len(names)))
    parts = [part for part in (names[:cut], names[cut:]) if part]
    column = IdColumn([np.array([name.encode() for name in part], dtype=np.bytes_) for part in parts])
    assert len(column) == len(names)
    rows = data.draw(st.lists(st.integers(0, len(names) - 1), max_size=20)) if names else []
    if rows:
        assert [name.decode() for name in column.take(np.array(rows)).tolist()] == [names[row] for row in rows]
        assert column.text(rows[0]) == names[rows[0]]


@given(st.lists(NAMES, min_size=1, max_size=12), st.integers(0, 70))
def test_keys_do_not_depend_on_the_width_of_the_array(names, more):
    alone = np.concatenate([IdColumn.of([name]).keys() for name in names])
    together = IdColumn.of([*names, "w" * more]).keys()[:-1]
    assert (alone == together).all()
    assert len(set(alone.tolist())) == len(set(names))


def test_the_order_of_words_counts():
    first, second = "12345678", "abcdefgh"
    names = [first + second, second + first, first, second, first + first, ""]
    assert len(np.unique(IdColumn.of(names).keys())) == len(names)


@pytest.mark.parametrize("width", range(1, 6))
def test_ids_of_numbers_have_their_own_keys(width):
    names = [f"{number:0{width}}" for number in range(min(10**width, 20_000))]
    assert len(np.unique(IdColumn.of(names).keys())) == len(names)


@pytest.mark.parametrize(
    ("first", "names"), [(0, [str(n) for n in range(100)]), (12_300, [f"{n:02}" for n in range(100)])]
)
def test_pairs_have_their_own_keys(first, names):
    """Short ids are small numbers when read as words, as the numbers of queries are; they must not be mixed up."""
    docs = IdColumn.of(names).keys()
    queries = np.arange(first, first + 600)
    keys = pair_keys(np.repeat(queries, len(docs)), np.tile(docs, len(queries)))
    assert len(np.unique(keys)) == len(keys)


def test_ids_that_were_made_to_share_a_key_do_not():
    made, victim = "njlmb0o-=L2z_J#h", "relevant-doc-001"
    assert len(np.unique(IdColumn.of([made, victim]).lasting_keys())) == 1
    assert len(np.unique(IdColumn.of([made, victim]).keys())) == 2
    assert evaluate({"q": {victim: 1, "other": 0}}, {"q": [made, "other"]}, ["mrr"]).mean["mrr"] == 0.0


def test_ids_whose_keys_are_equal_are_still_told_apart(monkeypatch):
    monkeypatch.setattr(IdColumn, "keys", lambda column: np.zeros(len(column), dtype=np.uint64))
    assert evaluate({"q": {"a": 1}, "r": {"a": 0}}, {"q": ["b"]}, ["mrr"]).mean["mrr"] == 0.0


def test_keys_are_another_process_s_own():
    read = "from raggs.metrics.columns import IdColumn as C; c = C.of(['a']); print(c.keys()[0], c.lasting_keys()[0])"
    outputs = [subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=True) for _ in "12"]
    (one, lasting), (other, again) = (output.stdout.split() for output in outputs)
    assert one != other
    assert lasting == again == str(IdColumn.of(["a"]).lasting_keys()[0])


@pytest.mark.parametrize("name", ["a\0", "\0", "a\0b", "\ud800"])
def test_ids_that_bytes_cannot_hold_are_refused(name):
    with pytest.raises(DataError, match=r"is not valid Unicode|contains a NUL"):
        IdColumn.of(["fine", name])


def test_an_empty_column():
    for column in (IdColumn([]), IdColumn.of([])):
        assert len(column) == 0
        assert len(column.keys()) == 0
