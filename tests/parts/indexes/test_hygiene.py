"""Unicode hygiene of passages: in vectors, in lexical indexes and in the hash that says whose these are.

The bundles are questions for works of one author on one topic. Each has a passage that fits and two by others on the
same topic; the margin of the name is how much nearer the question is to the first than to the better of the two.
"""

from __future__ import annotations

import hashlib
import sqlite3
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Passage
from raggs.base.cache import Cache
from raggs.base.hashing import canonical_json
from raggs.base.text import clean_unicode, one_line
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.indexes.lexical import Parameters, open_lexical
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import open_vectors

GIVEN = {
    "en": "Alice Zoë Brandon Harriet Renée Oliver Margaret Dorian Chloë Winston".split(),  # noqa: SIM905
    "fr": "Élodie Jérôme Noémie Théo Hélène Clément Maëlle François Léa Cédric".split(),  # noqa: SIM905
}
FAMILY = {
    "en": "Hughes Brontë Whitfield Ashworth Pemberton Müller".split(),  # noqa: SIM905
    "fr": "Beaulieu Lefèvre Gérard Dupré Bénard Crépin".split(),  # noqa: SIM905
}
TOPICS = {
    "en": ["river ecology", "medieval trade", "speech recognition", "soil chemistry"],
    "fr": ["l'écologie des rivières", "le commerce médiéval", "la reconnaissance vocale", "la chimie des sols"],
}
QUESTION = {"en": "Which works by {name} on {topic}?", "fr": "Quels travaux de {name} sur {topic} ?"}
PASSAGE = {
    "en": "Research paper: '{topic}'. Author: {name}.",
    "fr": "Article de recherche : « {topic} ». Auteur : {name}.",
}


def spaced(text: str, blank: str) -> str:
    """With a blank before each mark, as French has it."""
    for mark in ":;!":
        text = text.replace(f" {mark}", mark).replace(mark, f"{blank}{mark}")
    return text


def stressed(text: str) -> str:
    """Letters in pieces, and a narrow space before each mark."""
    return unicodedata.normalize("NFD", spaced(text, "\u202f"))


def bundles(language: str) -> tuple[list[str], list[str]]:
    """Questions, and for each the passage that fits and two that do not."""
    asked, passages = [], []
    names = [f"{given} {family}" for given in GIVEN[language] for family in FAMILY[language]]
    for number, name in enumerate(names):
        topic = TOPICS[language][number % 4]
        asked.append(QUESTION[language].format(name=name, topic=topic))
        three = (name, names[(number + 7) % len(names)], names[(number + 23) % len(names)])
        passages += [PASSAGE[language].format(name=each, topic=topic) for each in three]
    return asked, passages


def margin(asked: list[str], texts: list[str]) -> float:
    embedder = WordLlamaEmbedder(WordLlamaEmbedder.Config())
    questions = embedder.embed([one_line(clean_unicode(each)) for each in asked])
    near = np.einsum("qd,qpd->qp", questions, embedder.embed(texts).reshape(len(asked), 3, -1))
    return float(np.mean(near[:, 0] - near[:, 1:].max(axis=1)))


@pytest.mark.parametrize(("language", "lost"), [("en", 0.2), ("fr", 0.4)])
def test_the_margin_of_names_survives_letters_in_pieces_and_narrow_spaces(language: str, lost: float) -> None:
    asked, texts = bundles(language)
    base = margin(asked, [spaced(text, " ") for text in texts])
    raw = [stressed(text) for text in texts]
    assert margin(asked, raw) < (1 - lost) * base, "without hygiene the bundles show the loss"
    read = [Passage(doc_id="p", text=text).content for text in raw]
    assert margin(asked, read) == pytest.approx(base, rel=0.01)
    # What is left in English is the blank itself, which is a character like any other.
    assert margin(asked, read) == pytest.approx(margin(asked, texts), rel=0.01 if language == "fr" else 0.02)


@pytest.fixture
def store(tmp_path: Path) -> PassageStore:
    rows = [
        Passage(doc_id="raw", title="Caf\u0065\u0301", text="C'est tre\u0300s bon\u202f!"),
        Passage(doc_id="clean", title="Café", text="C'est très bon !"),
    ]
    return PassageStore.build(tmp_path / "p.sqlite", rows)


def test_what_is_indexed_is_clean_and_what_is_kept_is_not(store: PassageStore, tmp_path: Path) -> None:
    raw, clean = store.get(["raw", "clean"]).values()
    assert raw.text == "C'est tre\u0300s bon\u202f!"
    assert raw.raw == f"{raw.title}\n{raw.text}"
    assert raw.content == clean.content == clean.raw
    assert store.contents(0, 2) == store.sample(2) == [clean.content] * 2
    embedder = WordLlamaEmbedder(WordLlamaEmbedder.Config())
    vectors = open_vectors(Cache(tmp_path), embedder.identity, embedder.dims, store, embedder.embed).vectors
    assert vectors[0].tobytes() == vectors[1].tobytes()
    _, scores = open_lexical(Cache(tmp_path), store, Parameters(1.2, 0.75, "fr")).search("très bon café", "fr", 5)
    assert scores[0] == scores[1]


def test_typographic_quotes_are_searched_as_plain_ones_and_kept_as_they_are(tmp_path: Path) -> None:
    texts = {"plain": "Qu'est-ce que l'eau ? \"Rien\".", "typed": "Qu’est-ce que l’eau ? “Rien”."}
    rows = [Passage(doc_id=name, text=text) for name, text in texts.items()]
    with PassageStore.build(tmp_path / "p.sqlite", rows) as store:
        assert [passage.content for passage in store] == list(texts.values())
        embedder = WordLlamaEmbedder(WordLlamaEmbedder.Config())
        vectors = open_vectors(Cache(tmp_path), embedder.identity, embedder.dims, store, embedder.embed).vectors
        assert vectors[0].tobytes() == vectors[1].tobytes()
        index = open_lexical(Cache(tmp_path), store, Parameters(1.2, 0.75, "fr"))
        for text in ("l'eau", "l’eau", "lʼeau", "l´eau"):
            found, scores = index.search(clean_unicode(text), "fr", 5)
            assert (len(found), len(set(scores.tolist()))) == (2, 1), text


def test_only_a_corpus_with_typographic_quotes_is_indexed_anew(tmp_path: Path) -> None:
    def built(text: str) -> PassageStore:
        return PassageStore.build(tmp_path / f"{len(text)}.sqlite", [Passage(doc_id="d", text=text)])

    with built("déjà vu — 10⁶") as plain, built("déjà ’vu’") as typed:
        assert plain.search_hash == plain.content_hash
        assert typed.search_hash != typed.content_hash
        for store, wanted in ((plain, False), (typed, True)):
            with sqlite3.connect(store.path) as database:  # as a store from before has it
                database.execute("DELETE FROM meta WHERE key = 'folded'")
            with PassageStore.open(store.path) as old:
                assert old.folded is wanted
                assert old.search_hash == store.search_hash


def content_hash(folder: Path, rows: list[Passage]) -> str:
    with PassageStore.build(folder / "hash.sqlite", rows) as built:
        assert (built.cleaned == 0) == all(row.content == row.raw for row in rows)
        return built.content_hash


def test_a_corpus_of_clean_texts_has_the_hash_that_it_had(tmp_path: Path) -> None:
    rows = [Passage(doc_id=f"d{number}", text=text) for number, text in enumerate(("plain\n\ttext", "déjà “vu” — 10⁶"))]
    lines = [canonical_json((row.doc_id, row.title, row.text, "{}")).encode() + b"\n" for row in rows]
    assert content_hash(tmp_path, rows) == hashlib.sha256(b"".join(lines)).hexdigest()


def test_a_corpus_that_hygiene_changes_has_another(tmp_path: Path, store: PassageStore) -> None:
    row = Passage(doc_id="d", text="so\u202f!")
    line = canonical_json((row.doc_id, row.title, row.text, "{}")).encode() + b"\n"
    assert content_hash(tmp_path, [row]) != hashlib.sha256(line).hexdigest()
    assert store.cleaned == 1


@given(st.text(min_size=1, max_size=40))
def test_content_is_never_empty_where_the_text_is_not(text: str) -> None:
    passage = Passage.model_construct(doc_id="p", text=text, title="")
    assert passage.raw == text
    assert bool(passage.content.strip()) or not clean_unicode(text).strip()
    assert passage.content
