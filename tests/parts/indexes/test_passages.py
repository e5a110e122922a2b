"""The passage store: what goes in comes out, and whatever is wrong is said."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raggs.base.artifacts import Passage, Span
from raggs.base.errors import DataError, NotFoundError, ProviderError
from raggs.base.text import id_problem
from raggs.parts.indexes.passages import PassageStore


def passages(count):
    return [Passage(doc_id=f"d{number}", text=f"text {number}", title="T" * (number % 2)) for number in range(count)]


@pytest.fixture
def store(tmp_path):
    with PassageStore.build(tmp_path / "p.sqlite", passages(12)) as built:
        yield built


IDS = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=5).filter(
    lambda text: id_problem(text) is None
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
META = st.dictionaries(TEXT, st.one_of(st.none(), st.booleans(), st.integers(), TEXT, st.lists(TEXT)), max_size=3)
SPAN = Span(source="s", start=1, end=2)
SPANS = st.none() | st.builds(
    lambda source, start, length: Span(source=source, start=start, end=start + length),
    TEXT.filter(bool),
    st.integers(0, 10**9),
    st.integers(1, 10**9),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(IDS, TEXT.filter(bool), TEXT, META, SPANS), min_size=1, max_size=6, unique_by=lambda row: row[0]
    )
)
def test_what_goes_in_comes_out(tmp_path, rows):
    given_ = [
        Passage(doc_id=doc, text=text, title=title, metadata=meta, span=span) for doc, text, title, meta, span in rows
    ]
    with PassageStore.build(tmp_path / "p.sqlite", given_) as store:
        assert list(store) == given_
        assert len(store) == len(given_)
        ids = [passage.doc_id for passage in given_]
        assert store.ids() == ids
        assert list(store.get(reversed(ids)).items()) == [(item.doc_id, item) for item in reversed(given_)]
        assert store.contents(0, len(store)) == [passage.content for passage in given_]
        ranks = store.id_ranks()
        assert [ids[place] for place in np.argsort(ranks)] == sorted(ids)


def test_parts_of_it(store):
    assert store.contents(2, 4) == ["text 2", "T\ntext 3"]
    assert store.contents(11, 99) == ["T\ntext 11"]
    assert [passage.doc_id for passage in store.slice(2, 4)] == ["d2", "d3"]
    assert store.sample(3) == ["text 0", "text 4", "text 8"]
    assert store.sample(99) == store.contents(0, 12)
    assert store.ids_at([5, 0, 5]) == ["d5", "d0", "d5"]
    assert store.known(["d1", "x", "d1"]) == {"d1"}
    assert store.get([]) == {}


def test_many_ids_at_once(tmp_path):
    with PassageStore.build(tmp_path / "p.sqlite", passages(1500)) as store:
        assert len(store.get(f"d{number}" for number in range(1500))) == 1500


def test_the_content_hash_is_of_passages_in_order(tmp_path):
    def content_hash(rows, name):
        with PassageStore.build(tmp_path / name, rows) as store:
            return store.content_hash

    rows = passages(3)
    assert content_hash(rows, "a") == content_hash(iter(rows), "b")
    changes = ({"metadata": {"a": 1}}, {"span": Span(source="s", start=0, end=1)}, {"span": SPAN})
    others = [rows[::-1], rows[:2], *([*rows[:2], rows[2].model_copy(update=change)] for change in changes)]
    assert len({content_hash(rows, "a"), *(content_hash(other, "c") for other in others)}) == 6


def test_opening_reads_only(tmp_path):
    path = tmp_path / "p.sqlite"
    PassageStore.build(path, passages(50)).close()
    path.chmod(0o444)
    with PassageStore.open(path) as store:
        assert len(store) == 50
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.sqlite"]


def test_two_passages_with_one_id(tmp_path):
    rows = [*passages(3), Passage(doc_id="d1", text="again")]
    with pytest.raises(DataError, match="'d1': passages 2 and 4"):
        PassageStore.build(tmp_path / "p.sqlite", rows)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_an_empty_corpus(tmp_path):
    with pytest.raises(DataError, match=r"the corpus is empty .* at least one passage"):
        PassageStore.build(tmp_path / "p.sqlite", [])


def test_a_failing_source_leaves_the_old_store(tmp_path):
    PassageStore.build(tmp_path / "p.sqlite", passages(3)).close()

    def broken():
        yield from passages(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PassageStore.build(tmp_path / "p.sqlite", broken())
    with PassageStore.open(tmp_path / "p.sqlite") as store:
        assert len(store) == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_an_unknown_id(store):
    with pytest.raises(NotFoundError, match="not contain passage 'nowhere'"):
        store.get(["d1", "nowhere"])
    with pytest.raises(DataError, match="position 99"):
        store.ids_at([99])


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(NotFoundError, match="run the command again to build it"):
        PassageStore.open(tmp_path / "p.sqlite")


def cut(path):
    path.write_bytes(path.read_bytes()[:-4096])


def scribble(path):
    path.write_bytes(b"not a database at all" * 500)


def forget(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM meta")


def forget_the_hash(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM meta WHERE key = 'content_hash'")


def lose_a_row(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM passages WHERE doc_id = 'd199'")


@pytest.mark.parametrize("damage", [cut, scribble, forget, forget_the_hash, lose_a_row])
def test_a_damaged_store_says_so(tmp_path, damage):
    path = tmp_path / "p.sqlite"
    PassageStore.build(path, passages(200)).close()
    damage(path)
    with pytest.raises(DataError, match=r"damaged .* delete the file"):
        PassageStore.open(path)


def test_damage_inside_is_met_when_it_is_read(tmp_path):
    path = tmp_path / "p.sqlite"
    PassageStore.build(path, passages(2000)).close()
    data = bytearray(path.read_bytes())
    for page in range(4, len(data) // 4096 - 1):
        data[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    path.write_bytes(data)
    with pytest.raises(DataError, match="damaged"), PassageStore.open(path) as store:
        list(store)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderError, match="cannot be stored"):
        PassageStore.build(tmp_path / "file" / "p.sqlite", passages(1))


def test_progress_is_told(tmp_path):
    told = []
    PassageStore.build(tmp_path / "p.sqlite", passages(2500), lambda *news: told.append(news)).close()
    assert told == [("passages", 1000, 0), ("passages", 2000, 0), ("passages", 2500, 2500)]
