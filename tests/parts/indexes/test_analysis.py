"""Words as lexical search compares them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.parts.indexes.lexical import languages_of, pick_language, words_of


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("What are the running dogs of Rome?", "en", ["run", "dog", "rome"]),
        (
            "How does __init__ differ from C3's list-comprehension?",
            "en",
            ["init", "differ", "c3", "list", "comprehens"],
        ),
        ("I can't find vitamin D, don't ask", "en", ["find", "vitamin", "d", "ask"]),
        ("Qu'est-ce que l'énergie des étoiles ?", "fr", ["energ", "etoil"]),
        ("qu'est ce que l’energie des etoiles", "fr", ["energ", "etoil"]),
        ("Die Häuser der Straße", "de", ["haus", "strass"]),
        ("Ｆｕｌｌ ﬁnal", "en", ["full", "final"]),
        ("Données", "xx", ["donnees"]),
        ("the of and", "en", []),
        ("", "en", []),
        ("日本語 text", "xx", ["日本語", "text"]),
    ],
)
def test_words(text, language, words):
    assert words_of(text, language) == words


@given(st.text(max_size=60), st.sampled_from(["en", "fr", "de", "xx"]))
def test_case_and_encoding_do_not_matter(text, language):
    plain = [character for character in text if len(character.upper()) == 1 and character.upper().lower() == character]
    lower = "".join(plain)
    assert words_of(lower.upper(), language) == words_of(lower, language)


def test_the_languages_of_a_corpus():
    english = ["What is the time in London and how do you know it?"] * 80
    french = ["Quelle est la capitale de la France et pourquoi ?"] * 15
    german = ["Was ist der Unterschied zwischen den beiden?"] * 5
    assert languages_of(english + french + german) == ("en", "fr")
    assert languages_of([*french, "x", "y"]) == ("fr",), "texts without a language have no say"
    assert languages_of(["x", "42"]) == ("en",)
    assert languages_of([]) == ("en",)


def test_a_language_that_the_corpus_lacks():
    assert pick_language("fr", ("en", "fr")) == "fr"
    assert pick_language("de", ("en", "fr")) == "en"
