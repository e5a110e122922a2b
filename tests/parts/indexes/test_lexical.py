"""BM25 against its formula, in two languages, kept on disk without pickle."""

from __future__ import annotations

import logging
import math
from collections import Counter

import pytest

from raggs.base.artifacts import Passage
from raggs.base.cache import Cache
from raggs.base.errors import DataError, ProviderError
from raggs.parts.indexes.lexical import Parameters, open_lexical, words_of
from raggs.parts.indexes.passages import PassageStore

DEFAULT = Parameters(k1=1.2, b=0.75, language="auto")
ENGLISH = [
    "The cat sat on the mat and slept for the whole of the day.",
    "Dogs chase cats, and cats chase the mice that live in the barn.",
    "A boundary layer is the thin region of a flow that is next to the wall.",
    "The wall of the barn was painted red by the farmer.",
]
FRENCH = [
    "Le chat dort sur le tapis pendant toute la journée.",
    "Les étoiles brillent dans le ciel au-dessus de la grange.",
]


def make_store(folder, texts):
    rows = [Passage(doc_id=f"d{number}", text=text) for number, text in enumerate(texts)]
    return PassageStore.build(folder / "p.sqlite", rows)


def found(index, store, text, language="en", k=10):
    positions, scores = index.search(text, language, k)
    return list(zip(store.ids_at(positions.tolist()), scores.tolist(), strict=True))


def by_formula(texts, query, k1=1.2, b=0.75):
    """Lucene's BM25: ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 (1 - b + b length / mean length))."""
    bags = [Counter(words_of(text, "en")) for text in texts]
    mean = sum(bag.total() for bag in bags) / len(bags)
    scores = {}
    for number, bag in enumerate(bags):
        score = 0.0
        for word in words_of(query, "en"):
            df = sum(word in other for other in bags)
            idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
            score += idf * bag[word] / (bag[word] + k1 * (1 - b + b * bag.total() / mean))
        if score > 0:
            scores[f"d{number}"] = score
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


@pytest.mark.parametrize("query", ["cats and mice", "wall of the barn barn", "flow"])
def test_it_is_the_formula(tmp_path, query):
    store = make_store(tmp_path, ENGLISH)
    hits = found(open_lexical(Cache(tmp_path), store, DEFAULT), store, query)
    expected = by_formula(ENGLISH, query)
    assert [doc_id for doc_id, _ in hits] == [doc_id for doc_id, _ in expected]
    assert [score for _, score in hits] == pytest.approx([score for _, score in expected], rel=1e-5)


def test_ties_go_by_doc_id_even_at_the_cut(tmp_path):
    rows = [Passage(doc_id=doc_id, text="same words") for doc_id in ("c", "a", "d", "b")]
    with PassageStore.build(tmp_path / "p.sqlite", rows) as store:
        index = open_lexical(Cache(tmp_path), store, DEFAULT)
        assert [doc_id for doc_id, _ in found(index, store, "words", k=3)] == ["a", "b", "c"]


@pytest.mark.parametrize("query", ["", "the of", "zebra", "?!"])
def test_no_word_in_common_means_no_hit(tmp_path, query):
    store = make_store(tmp_path, ENGLISH)
    assert found(open_lexical(Cache(tmp_path), store, DEFAULT), store, query) == []


def test_a_corpus_in_two_languages(tmp_path):
    store = make_store(tmp_path, ENGLISH + FRENCH)
    index = open_lexical(Cache(tmp_path), store, DEFAULT)
    assert index.languages == ("en", "fr")
    assert found(index, store, "une étoile brillante", "fr")[0][0] == "d5"
    assert found(index, store, "l'etoile", "fr")[0][0] == "d5", "accents are not needed"
    assert found(index, store, "painting", "en")[0][0] == "d3"
    assert found(index, store, "painting", "pt")[0][0] == "d3", "an unknown language is searched in the main one"


def test_a_language_may_be_given(tmp_path):
    store = make_store(tmp_path, ENGLISH)
    assert open_lexical(Cache(tmp_path), store, Parameters(1.2, 0.75, "fr")).languages == ("fr",)


def test_built_once_for_corpus_and_parameters(tmp_path):
    store = make_store(tmp_path, ENGLISH)
    told = []
    first = open_lexical(Cache(tmp_path / "i"), store, DEFAULT, lambda *news: told.append(news))
    assert told == [("bm25", 4, 4)]
    again = open_lexical(Cache(tmp_path / "i"), store, DEFAULT, lambda *news: told.append(news))
    assert len(told) == 1
    assert found(first, store, "cats") == found(again, store, "cats")
    open_lexical(Cache(tmp_path / "i"), store, Parameters(2.0, 0.75, "auto"))
    open_lexical(Cache(tmp_path / "i"), make_store(tmp_path, ENGLISH[:3]), DEFAULT)
    assert len(list((tmp_path / "i").iterdir())) == 3
    names = {path.suffix for path in (tmp_path / "i").rglob("*.*")}
    assert names == {".npy", ".json"}


def test_a_killed_build_leaves_no_index(tmp_path, monkeypatch):
    import bm25s

    def stop(*_, **__):
        raise KeyboardInterrupt

    store = make_store(tmp_path, ENGLISH)
    with monkeypatch.context() as patch:
        patch.setattr(bm25s.BM25, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            open_lexical(Cache(tmp_path / "i"), store, DEFAULT)
    assert not list((tmp_path / "i").rglob("*.*"))
    assert found(open_lexical(Cache(tmp_path / "i"), store, DEFAULT), store, "cats")


@pytest.mark.parametrize("name", ["params.index.json", "data.csc.index.npy", "vocab.index.json", "languages.json"])
@pytest.mark.parametrize("content", [b"", b"rubbish"])
def test_a_damaged_index_says_so_and_is_built_again(tmp_path, name, content):
    store, said = make_store(tmp_path, ENGLISH), []
    hits = found(open_lexical(Cache(tmp_path / "i", said.append), store, DEFAULT), store, "cats")
    (path,) = (tmp_path / "i").rglob(name)
    path.write_bytes(content)
    assert said == []
    assert found(open_lexical(Cache(tmp_path / "i", said.append), store, DEFAULT), store, "cats") == hits
    assert len(said) == 1 and f"damaged ({name} does not match its recorded checksum), so it is built again" in said[0]
    open_lexical(Cache(tmp_path / "i", said.append), store, DEFAULT)
    assert len(said) == 1


def test_a_corpus_without_words(tmp_path):
    with pytest.raises(DataError, match="no passage contains a searchable word"):
        open_lexical(Cache(tmp_path), make_store(tmp_path, ["...", "the"]), DEFAULT)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderError, match="cannot be stored"):
        open_lexical(Cache(tmp_path / "file"), make_store(tmp_path, ENGLISH), DEFAULT)


def test_it_is_quiet(tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    store = make_store(tmp_path, ENGLISH)
    found(open_lexical(Cache(tmp_path), store, DEFAULT), store, "cats")
    assert capfd.readouterr() == ("", "")
    assert [record for record in caplog.records if record.name.startswith("bm25s")] == []


def test_an_altered_score_is_not_believed(tmp_path):
    store, said = make_store(tmp_path, ENGLISH), []
    open_lexical(Cache(tmp_path / "i"), store, DEFAULT)
    (place,) = (tmp_path / "i").iterdir()
    scores = place / "data.csc.index.npy"
    data = bytearray(scores.read_bytes())
    data[-1] ^= 1
    scores.write_bytes(data)
    open_lexical(Cache(tmp_path / "i", said.append), store, DEFAULT)
    assert len(said) == 1 and "data.csc.index.npy does not match its recorded checksum" in said[0]
    assert scores.read_bytes() != bytes(data)
