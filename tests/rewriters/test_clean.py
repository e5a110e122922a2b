"""What politeness is taken off, what must stay, and what holds for any text."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.artifacts import Query
from raggs.rewriters.clean import CleanRewriter, strip_politeness

STRIPPED = {
    "Hi! Quick question: according to science, can forests regulate the climate?": (
        "according to science, can forests regulate the climate?"
    ),
    "hi how do decorators work": "how do decorators work",
    "hey there, what's a tuple? thanks!": "what's a tuple?",
    "Hello everyone 👋 I have a question: how do I sort a list? Thanks in advance 🙏": "how do I sort a list?",
    "Hello! I’ve got a question: what’s up?": "what’s up?",
    "How do 🌳 forests regulate 😀 the climate?": "How do forests regulate the climate?",
    "Could you please tell me why the sky is blue?": "why the sky is blue?",
    "can you tell me how to boil an egg, please?": "how to boil an egg?",
    "So, what is, um, a decorator?": "what is a decorator?",
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


def test_the_rewriter_cleans():
    rewriter = CleanRewriter(CleanRewriter.Config())
    text = "Hello, how are you?"
    assert asyncio.run(rewriter.rewrite(Query(qid="q", text=text), text, "en")) == "how are you?"
