"""Traits of questions: each is read off what shows it, unknown where nothing does, and what they share is found."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.stats.comparison import contrasts
from raggs.stats.question_filters import WordWeights
from raggs.stats.retrieval_traits import MIN_SIDE_QUESTIONS, AnsweredQuery, RelevantPassage, Trait, traits_of

NOTHING = WordWeights(0, {})
WORDS = ("lift", "drag", "wing", "flow", "heat", "shock", "plate", "cone")


def named(traits: tuple[Trait, ...]) -> dict[str, list[float]]:
    return {trait.kind: trait.values.tolist() for trait in traits}


def test_each_trait_is_read_off_what_shows_it() -> None:
    weights = WordWeights(100, {"wing": 50, "mach": 1})
    asked = [
        AnsweredQuery("What did Prandtl say of Mach 2 and NASA?", "en", frozenset({"wing", "mach"}), 1, True, 3,
              (RelevantPassage("fr", "A", 900, frozenset({"wing"}), True),)),
        AnsweredQuery("what is a wing", "en", frozenset({"wing", "wong"}), 0, False, 1,
              (RelevantPassage("en", "B", 100, frozenset({"wing"})),)),
        AnsweredQuery("", relevant=1),
    ]  # fmt: skip
    found = named(traits_of(asked, weights))
    for kind in ("names", "numbers", "identifiers", "rewritten", "near-duplicates", "other language"):
        assert found[kind][:2] == [1, 0], kind
    assert found["unknown words"][:2] == [0, 1]
    assert found["length"][:2] == [1, 0] and found["relevant passages"] == [1, 0, 0]
    assert found["rare words"][:2] == [1, 0] and found["long passages"][:2] == [1, 0]
    assert found["other words"][:2] == [0, 1]
    for kind in set(found) - {"relevant passages"}:
        assert np.isnan(found[kind][2]), f"{kind}: nothing is known of a question without a text"


def test_levels_are_held_against_all_others_and_two_of_them_once() -> None:
    asked = [AnsweredQuery("Qui a volé ?", "fr")] * 6 + [AnsweredQuery("Who flew?", "en")] * 9
    traits = [trait for trait in traits_of(asked, NOTHING) if trait.kind == "language"]
    assert [(trait.name, trait.having, trait.lacking) for trait in traits] == [("are in fr", 6, 9)]
    three = traits_of([*asked, *[AnsweredQuery("Wer flog?", "de")] * MIN_SIDE_QUESTIONS], NOTHING)
    assert [trait.name for trait in three if trait.kind == "language"] == ["are in en", "are in fr", "are in de"]


def test_what_all_or_too_few_have_is_not_told() -> None:
    few = [AnsweredQuery("of 2", "en")] * (MIN_SIDE_QUESTIONS - 1) + [AnsweredQuery("of two", "en")] * 20
    (trait,) = traits_of(few, NOTHING)
    assert (trait.kind, trait.told) == ("numbers", False)
    assert traits_of([AnsweredQuery("of 2", "en")] * 9, NOTHING) == ()


@pytest.mark.parametrize("seed", range(3))
def test_a_set_whose_questions_with_numbers_fail_is_found_to_be_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = [
        " ".join(rng.choice(WORDS, rng.integers(4, 9))) + (" at mach 2" if rng.random() < 0.4 else "")
        for _ in range(80)
    ]
    asked = [AnsweredQuery(text, "en", frozenset(text.split()), relevant=int(rng.integers(1, 5))) for text in texts]
    values = np.clip(rng.normal(0.65, 0.2, 80) - [0.35 * ("2" in text) for text in texts], 0, 1)
    traits = [trait for trait in traits_of(asked, NOTHING) if trait.told]
    found = contrasts(values, np.array([trait.values for trait in traits]), seed=seed)
    clear = {trait.kind: each for trait, each in zip(traits, found, strict=True) if each.clear}
    assert clear["numbers"].low <= -0.35 <= clear["numbers"].high
    assert max(clear, key=lambda kind: abs(clear[kind].difference)) == "numbers"
