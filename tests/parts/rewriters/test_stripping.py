"""What noise is taken off, what must stay, and what holds for any text."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.noisy import Noisy, read

from raggs.base.text import clean_unicode, one_line
from raggs.parts.rewriters import clean
from raggs.parts.rewriters.clean import strip_politeness

SHARED = Path(__file__).parents[4] / "shared" / "data"
TRICKY = Path(__file__).with_name("tricky.txt")

STRIPPED = {
    "Hi! Quick question: according to science, can forests regulate the climate?": (
        "can forests regulate the climate?"
    ),
    "hi how do decorators work": "how do decorators work",
    "hey there, what's a tuple? thanks!": "what's a tuple?",
    "Hello everyone 👋 I have a question: how do I sort a list? Thanks in advance 🙏": "how do I sort a list?",
    "Hello! I’ve got a question: what’s up?": "what’s up?",
    "How do 🌳 forests regulate 😀 the climate?": "How do forests regulate the climate?",
    "Could you please tell me why the sky is blue?": "why the sky is blue?",
    "can you tell me how to boil an egg, please?": "how to boil an egg?",
    "So, what is, um, a decorator?": "what is a decorator?",
    "I like trees! Sorry if it's a silly one, but how do they grow?": "I like trees! how do they grow?",
    "why is it slow? Any ideas? Cheers": "why is it slow?",
    "Hi, .NET memory leak?": ".NET memory leak?",
    "what is X, thanks?": "what is X?",
    "what is X :-)": "what is X",
    "Bonjour, petite question svp : comment ça marche ?": "comment ça marche ?",
    "Bonsoir à tous, je voudrais savoir comment tailler les rosiers, merci": "comment tailler les rosiers",
    "Salut ! Alors, pourquoi le ciel est bleu ? Merci d'avance :)": "pourquoi le ciel est bleu ?",
    "Quelle est la capitale du Canada, s'il vous plaît ?": "Quelle est la capitale du Canada ?",
    "Pourriez-vous me dire quelle est la capitale du Canada svp ?": "quelle est la capitale du Canada ?",
    "Désolé de vous déranger, où est la gare ? Cordialement.": "où est la gare ?",
}
UNTOUCHED = [
    "Hello, Dolly! cast",
    "Hello, world! in Rust",
    "Hello World in C",
    "Hey Jude lyrics",
    "Please Please Me album",
    "Good morning Vietnam director",
    "How do you say thank you?",
    "Thank you in Japanese",
    "what does 🙃 mean?",
    "que signifie 🙃 ?",
    "ok google history",
    "so what",
    "Salut les copains histoire de l'émission",
    "Merci pour le chocolat film",
    "Bonjour tristesse résumé",
    "C♯ minor ™ ©",
    "what is C++ :: operator",
    "if x <3 then y",
    "STP and SVP in networks",
    "hi",
    "Thanks!",
    "Hi! Hello!",
    "👋",
    "",
]


@pytest.mark.parametrize("text", STRIPPED)
def test_politeness_goes(text):
    assert strip_politeness(text) == STRIPPED[text]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_content_stays(text):
    assert strip_politeness(text) == text


PIECES = """Hi|hello|Hey there|Bonjour|Quick question|petite question|svp|please|s'il vous plaît|thanks|thank you|merci
um|so|ok|can you tell me|je voudrais savoir|how|what's|comment|Dolly|world|forêt|climate|x|C++|😀|❤️|:)|<3|Sorry
any ideas|!|,|:|?|.|…|-|–|'|(|)"""
PIECE = st.sampled_from(re.split(r"[|\n]", PIECES))
SENTENCE = st.lists(st.tuples(PIECE, st.sampled_from(["", " ", "  "]))).map(lambda parts: "".join(map("".join, parts)))
MESSY = st.one_of(st.text(max_size=40), SENTENCE)


def words(text):
    return re.findall(r"\w+", text)


@given(MESSY.filter(str.strip))
def test_something_is_always_left(text):
    assert strip_politeness(text).strip()


@given(MESSY)
def test_cleaning_twice_changes_nothing(text):
    once = strip_politeness(text)
    assert strip_politeness(once) == once


@given(MESSY)
def test_words_are_only_ever_removed(text):
    rest = iter(words(text))
    assert all(word in rest for word in words(strip_politeness(text)))


# The examples of "Practical RAG Evaluation", section 4.4, and their like in French: the question is what is left.
EXAMPLES = {
    "Can forests really regulate the climate?": "Can forests really regulate the climate?",
    "Hi! Quick question: according to science, can forests regulate the climate?": (
        "can forests regulate the climate?"
    ),
    "Hello! Sorry for the kind of a random question—I'm on the train... could forests actually regulate the climate, "
    "or is that a myth?": "could forests actually regulate the climate?",
    "Bonjour ! Petite question : d'après la science, les forêts peuvent-elles réguler le climat ?": (
        "les forêts peuvent-elles réguler le climat ?"
    ),
    "Bonjour ! Désolé pour la question un peu au hasard, je suis dans le train... les forêts peuvent-elles vraiment "
    "réguler le climat, ou est-ce un mythe ?": "les forêts peuvent-elles vraiment réguler le climat ?",
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_paper_are_recovered(text):
    assert strip_politeness(text) == EXAMPLES[text]


def test_what_only_looks_like_noise_stays():
    lines = TRICKY.read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) > 120
    touched = {line: strip_politeness(line) for line in lines if strip_politeness(line) != line}
    assert touched == {}


QUESTIONS = read()


def prepared(noisy: Noisy) -> str:
    return one_line(clean_unicode(noisy.text))


def test_the_questions_are_what_the_page_says():
    assert Counter((each.kind, each.language) for each in QUESTIONS) == dict.fromkeys(
        [(kind, language) for kind in ("polite", "context", "typing", "mixed") for language in ("en", "fr")], 25
    )


def test_no_word_of_200_questions_is_lost():
    lost = Counter()
    for each in QUESTIONS:
        lost += each.missing(strip_politeness(prepared(each)))
    assert lost["told"] == lost["said"] == 0
    assert sum(each.count("told") for each in QUESTIONS) > 200


@pytest.mark.parametrize(("held_out", "share"), [(False, 0.95), (True, 0.79)])
def test_most_noise_goes(held_out, share):
    asked = [each for each in QUESTIONS if each.held_out is held_out]
    gone = sum(each.missing(strip_politeness(prepared(each)))["noise"] for each in asked)
    assert gone / sum(each.count("noise") for each in asked) > share


def test_what_is_clean_already_stays():
    for each in QUESTIONS:
        assert strip_politeness(each.clean) == each.clean


@pytest.mark.skipif(not SHARED.exists(), reason="needs the data beside the checkout")
def test_real_questions_without_noise_stay():
    with (SHARED / "cranfield" / "queries.jsonl").open(encoding="utf-8") as lines:
        texts = [str(json.loads(line)["text"]) for line in lines]
    with (SHARED / "chunking" / "questions.csv").open(encoding="utf-8", newline="") as rows:
        texts += [row["question"] for row in csv.DictReader(rows)]
    asked = [one_line(clean_unicode(text)) for text in texts]
    assert len(asked) > 600
    assert [text for text in asked if strip_politeness(text) != text] == []


@pytest.mark.parametrize(
    "noise",
    ["hi ", "thank you ", "please ", "so ok ", "hi, ", "hi! ", "merci beaucoup ", "I am sorry ", "🙏 ", "? ", ", "],
)
def test_a_row_of_phrases_is_not_parted_in_every_way(noise, monkeypatch):
    """One pattern for the whole row doubles its work with each phrase; `ends` looks at each word once."""
    asked = []
    search = clean.phrase_ends
    monkeypatch.setattr(clean, "phrase_ends", lambda words, phrases: asked.append(len(words)) or search(words, phrases))
    assert strip_politeness(noise * 500 + "x")
    assert len(asked) < 5_000
    assert len(clean.phrase_ends(["hi"] * 500, clean.POLITE)) <= clean.MAX_COURTESY_WORDS
