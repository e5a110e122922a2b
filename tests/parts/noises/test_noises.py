"""What each noise adds, what it must leave alone, and how levels put them together."""

from __future__ import annotations

import re

import pytest

from raggs.base.errors import UsageError
from raggs.parts.noises import (
    LANGUAGES,
    NOISE_LEVELS,
    REGISTRY,
    NoiseRequest,
    all_noises,
    append_sentence,
    noisy,
    prepend_phrase,
)

QUESTIONS = {
    "en": "Why did [May] and Kofi [not] sell 1,400 shares of 3M in Paris without insurance?",
    "fr": "Pourquoi [May] et Kofi n'ont-ils [pas] vendu 1 400 actions de 3M à Paris sans assurance ?",
}
TOLD = {
    "en": ["May", "Kofi", "not", "1,400", "3M", "Paris", "without"],
    "fr": ["May", "Kofi", "n'ont", "pas", "1 400", "3M", "Paris", "sans"],
}


def asked(language="en", level=4, key="q1", seed=0):
    return NoiseRequest(key, language, level, seed)


def question(language):
    return re.sub(r"[\[\]]", "", QUESTIONS[language])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", list(REGISTRY))
def test_it_leaves_names_numbers_and_negations_and_is_the_same_twice(name, language):
    noise, text = REGISTRY.load(name)(), question(language)
    changed = set()
    for key in map(str, range(200)):
        found = noise.noisy(text, asked(language, key=key))
        assert found == noise.noisy(text, asked(language, key=key))
        lacking = [word for word in TOLD[language] if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", found)]
        assert lacking == [], found
        changed.add(found)
    assert len(changed) > 10


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - {"typing_errors", "code_switching"}))
def test_what_surrounds_a_question_leaves_its_words(name):
    noise, text = REGISTRY.load(name)(), "How do boats float?"
    assert all("ow do boats float" in noise.noisy(text, asked(key=str(key))) for key in range(100))


@pytest.mark.parametrize(("text", "found"), [("why is it so", "why is it so. Ta"), ("Why?", "Why? Ta")])
def test_a_question_ends_before_a_sentence_behind_it(text, found):
    assert append_sentence(text, "Ta") == found


def test_another_seed_or_question_draws_something_else():
    texts = {noisy("How do boats float?", asked(key=key, seed=seed)) for key in "abc" for seed in range(3)}
    assert len(texts) == 9


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_level_holds_more_and_level_0_nothing(language):
    text = question(language)
    lengths = [sum(len(noisy(text, asked(language, level, str(key)))) for key in range(50)) for level in NOISE_LEVELS]
    assert noisy(text, asked(language, 0)) == text
    assert lengths == sorted(lengths) and len(set(lengths)) == len(NOISE_LEVELS)


def test_only_the_noises_that_are_named_are_added():
    (greetings,) = [noise for noise in all_noises() if noise.config.type == "greetings"]
    assert noisy("Why?", asked(), [greetings]) == greetings.noisy("Why?", asked())
    assert noisy("Why?", asked(), []) == "Why?"


@pytest.mark.parametrize("language", ["de", "fra", ""])
def test_a_language_without_phrases_is_told(language):
    with pytest.raises(UsageError, match=f"no noise supports language '{language}'") as told:
        noisy("Warum?", asked(language, 1))
    assert "en, fr" in told.value.remedy


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("Hi!", "How?", "Hi! How?"),
        ("Hi,", "How?", "Hi, how?"),
        ("Hi,", "DNA is what?", "Hi, DNA is what?"),
        ("Hi,", "I ask", "Hi, I ask"),
        ("Hi,", "May won?", "Hi, May won?"),
        ("Hi,", "Kofi won?", "Hi, Kofi won?"),
    ],
)
def test_a_sentence_that_goes_on_goes_on_small(phrase, text, found):
    assert prepend_phrase(phrase, text) == found
