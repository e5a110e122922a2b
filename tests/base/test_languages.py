"""Language detection on questions as people type them, and the tables of lexical search."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.languages import FUNCTION_WORDS, LANGUAGES, STEMMERS, detect_language, fold_accents, stop_words

ENGLISH = [
    "hi",
    "Python list",
    "What is a list comprehension?",
    "how do decorators work",
    "When was Paris founded?",
    "Can forests regulate the climate?",
    "yield vs return",
    'What does the expression "raison d\'être" mean?',
    "for x in range(10): print(x)",
    "def add(a, b): return a + b",
    "Who wrote Les Misérables?",
    "boundary layer transition on a flat plate",
    "supersonic heat transfer measurements",
    "why is my code slow",
    "Is coffee bad for you?",
    "difference between tuple and list",
    "TypeError: 'int' object is not iterable",
    "best way to sort a dictionary by value",
    "symptoms of vitamin D deficiency",
    "Where did Napoleon die?",
    "SELECT name FROM users WHERE id = 3",
    "global warming causes",
]
FRENCH = [
    "Comment ça marche ?",
    "comment ca marche",
    "Qu'est-ce qu'une liste en compréhension ?",
    "c'est quoi un décorateur",
    "Quelle est la capitale du Canada ?",
    "pourquoi le ciel est bleu",
    "quels sont les effets du cafe sur le coeur",
    "Les forêts peuvent-elles réguler le climat ?",
    "Où est mort Napoléon ?",
    "a quoi sert le mot cle yield",
    "Qui a écrit The Great Gatsby ?",
    "symptômes de la grippe",
    "difference entre tuple et liste",
    "J'ai une erreur TypeError, que faire ?",
    "combien coute un billet de train",
    "peut-on manger des champignons crus ?",
    "horaires d'ouverture de la mairie",
    "comment trier un dictionnaire Python par valeur",
    "photosynthèse et respiration des plantes",
    "quand faut il tailler les rosiers",
    "Y a-t-il de l'eau sur Mars ?",
]
OTHERS = {
    "de": ["Wie funktioniert eine Wärmepumpe?", "Was ist der Unterschied zwischen Liste und Tupel?"],
    "es": ["¿Cómo funciona la bomba de calor?", "cuando se fundo la ciudad de Madrid"],
    "it": ["Come funziona la pompa di calore?", "quali sono le cause della prima guerra mondiale"],
    "pt": ["Como funciona uma bomba de calor?", "quais são as causas da primeira guerra mundial"],
    "nl": ["Hoe werkt een warmtepomp?", "wat is het verschil tussen een lijst en een tupel"],
}


def test_short_questions_are_told_apart():
    cases = [(text, "en") for text in ENGLISH] + [(text, "fr") for text in FRENCH]
    wrong = [(text, detect_language(text)) for text, language in cases if detect_language(text) != language]
    assert len(wrong) <= 0.05 * len(cases), wrong


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages_are_known(language):
    assert [detect_language(text) for text in OTHERS[language]] == [language] * len(OTHERS[language])


@pytest.mark.parametrize("text", ["", "hi", "42", "Python list", "日本語のテキストです", "🙂"])
def test_the_default_stands_where_nothing_can_be_told(text):
    assert detect_language(text, "fr") == "fr"


def test_accents_and_their_encoding_do_not_matter():
    assert detect_language("De\u0301crire la methode utilisee".upper()) == "fr"
    assert fold_accents("Où çà, naïve Ångström") == "Ou ca, naive Angstrom"


@given(st.text(max_size=200))
def test_any_text_gets_a_language(text):
    assert detect_language(text, "xx") in (*LANGUAGES, "xx")


def test_the_identifier_is_not_loaded_for_a_clear_question():
    code = (
        "import sys; from raggs.base.languages import detect_language; detect_language('What is the time?');"
        "print('py3langid' in sys.modules, 'numpy' in sys.modules, 'bm25s' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    answer = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "False", "False"]


def test_every_detected_language_has_stemmer_and_stop_words():
    from Stemmer import algorithms

    assert set(STEMMERS.values()) <= set(algorithms())
    for language in LANGUAGES:
        assert language in STEMMERS
        assert len(stop_words(language)) > 20
    assert {"the", "of"} <= stop_words("en")
    assert {"etre", "des"} & stop_words("fr")
    assert stop_words("fi") == frozenset()


def test_a_single_letter_can_be_searched_for():
    assert not {"c", "d"} & (stop_words("en") | stop_words("fr"))
    assert "a" in stop_words("en") & stop_words("fr")


def test_function_words_are_written_as_they_are_compared():
    for words in FUNCTION_WORDS.values():
        assert words == fold_accents(words.lower())
