"""What each perturber does to a bundle and to a text of a corpus, and what holds for all of them."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

import pytest
from rapidfuzz.distance import Levenshtein

from raggs.base.text import clean_passage
from raggs.parts.perturbers import (
    REGISTRY,
    Bundle,
    BundleText,
    Perturber,
    PerturberConfig,
    TextContext,
    initials,
    name_parts,
    replace_names,
)
from raggs.parts.perturbers.names import CasePunctPerturb

SHOWN = ("Article : '{topic}'.", "{label}{author}.")


def piece(author: str, topic: str) -> BundleText:
    return BundleText(author, topic, SHOWN, "Auteur : ")


def bundle(key: str = "fr/0/0") -> Bundle:
    candidates = [
        piece("Anne-Laure L’Écuyer", "la forêt"),
        piece("Kofi Asante", "la forêt"),
        piece("Ludwig van der Meer", "la forêt"),
        piece("Anne-Laure L’Écuyer", "l'océan ; la mer"),
        piece("Yōko Satō", "l'océan ; la mer"),
    ]
    first, second, third, fourth, fifth = candidates
    asked = BundleText("Anne-Laure L’Écuyer", "la forêt", ("Quels travaux de {author} sur {topic} ?",))
    return Bundle(key, "fr", asked, (first, second, third, fourth, fifth))


def changed(name: str, key: str = "fr/0/0", seed: int = 3) -> tuple[str, ...]:
    return REGISTRY.load(name)().bundle(bundle(key), seed).texts


def test_a_text_is_made_of_its_parts_and_braces_in_a_topic_are_letters():
    assert bundle().texts[1] == "Article : 'la forêt'. Auteur : Anne-Laure L’Écuyer."
    odd = BundleText("A {topic}", "{author} {0}", ("{topic} {x} {author}",))
    assert odd.text == "{author} {0} {x} A {topic}"


@pytest.mark.parametrize("name", list(REGISTRY))
def test_equal_arguments_give_equal_changes_and_nothing_is_lost(name):
    assert changed(name) == changed(name)
    assert len(changed(name)) == 6 and all(text.strip() for text in changed(name))
    place = TextContext("candidate", "fr", 3)
    perturber, names = REGISTRY.load(name)(), ["Kofi Asante", "Yōko Satō", "Plato"]
    told = perturber.renamed(names, place)
    assert told.keys() <= set(names)
    assert perturber.renamed(reversed(names), place) == told
    assert perturber.text("", told, (), place) == ""


@pytest.mark.parametrize("name", ["gibberish_name", "edit_distance_near_miss"])
def test_another_seed_draws_something_else(name):
    assert changed(name) != changed(name, seed=4)


def test_one_mask_stands_for_all_names():
    texts = changed("hard_name_mask")
    assert set(re.findall(r"AUTEUR_\d{3}", " ".join(texts))) == {re.search(r"AUTEUR_\d{3}", texts[0])[0]}
    assert texts[1] == texts[2] == texts[3] and texts[4] == texts[5]


def test_a_code_is_of_its_name_whatever_the_bundle():
    texts, others = changed("gibberish_name"), changed("gibberish_name", key="fr/7/9")
    codes = [re.search(r"ID-[0-9A-F]{6}", text)[0] for text in texts]
    assert codes[0] == codes[1] == codes[4] and len(set(codes)) == 4
    assert texts == others


def test_impostors_are_one_two_and_three_letters_away():
    texts = changed("edit_distance_near_miss")
    assert texts[0] == bundle().texts[0] and texts[1] == bundle().texts[1] and texts[4] == bundle().texts[4]
    assert [Levenshtein.distance(texts[1], texts[at]) for at in (2, 3)] == [1, 2]
    assert Levenshtein.distance(texts[4], texts[5]) == 3


def test_names_of_a_corpus_become_near_misses_of_one_and_stay_apart():
    names = ["Ann Lee", *(f"Name{letter} Other" for letter in "abcdefghijklmnop")]
    found = REGISTRY.load("edit_distance_near_miss")().renamed(names, TextContext("candidate", "en", 1))
    assert "Ann Lee" not in found and len(set(found.values())) == len(names) - 1
    assert all(1 <= Levenshtein.distance("Ann Lee", near) <= 3 for near in found.values())


def test_labels_go():
    assert changed("remove_label")[1] == "Article : 'la forêt'. Anne-Laure L’Écuyer."
    perturber = REGISTRY.load("remove_label")()
    found = perturber.text("Title. Authors: A. B. The coauthor: none", {}, (), TextContext("candidate", "en", 1))
    assert found == "Title. A. B. The coauthor: none"


def test_diacritics_go_everywhere():
    assert changed("strip_diacritics")[0] == "Quels travaux de Anne-Laure L’Ecuyer sur la foret ?"


def test_given_names_become_initials_on_both_sides():
    texts = changed("initials_form")
    assert "A.-L. L’Écuyer" in texts[0] and "A.-L. L’Écuyer." in texts[1]
    assert texts[3].endswith("L. van der Meer.")


def test_the_family_name_comes_first_in_candidates_alone():
    texts = changed("name_order_inversion")
    assert texts[0] == bundle().texts[0]
    assert texts[3].endswith("Auteur : van der Meer, Ludwig.")


def test_case_and_punctuation_change_on_both_sides_or_one():
    texts = changed("case_punct_perturb")
    assert "l'écuyer" in texts[0].lower() and "anne laure" in texts[0].lower()
    name = re.search(r"de (.*) sur", texts[0])[1]
    assert name in texts[1] and name in (name.upper(), name.lower(), name.title())
    alone = CasePunctPerturb(CasePunctPerturb.Config(candidates_only=True)).bundle(bundle(), 3).texts
    assert alone[0] == bundle().texts[0] and alone[1:] == texts[1:]


def test_the_author_comes_first():
    assert changed("author_position_shift")[1] == "Auteur : Anne-Laure L’Écuyer. Article : 'la forêt'."
    perturber = REGISTRY.load("author_position_shift")()
    told = perturber.text("On trees. By A. Dupont. The end.", {}, ["A. Dupont"], TextContext("candidate", "en", 1))
    assert told == "By A. Dupont. On trees. The end."


def test_code_points_change_and_hygiene_takes_that_back():
    texts = changed("unicode_normalization_stress")
    assert unicodedata.is_normalized("NFC", texts[0]) and not unicodedata.is_normalized("NFC", texts[1])
    assert "Auteur\u202f: " in texts[1] and "\u202f;" in texts[4]
    assert [clean_passage(text) for text in texts[1:]] == list(bundle().texts[1:])


def test_whole_names_are_replaced_at_once_longer_ones_first():
    names = {"Ann Lee": "Bob", "Ann": "Ann Lee", "C. (Jr.)": "X"}
    assert replace_names("Ann Lee, Ann and Anna, C. (Jr.)", names) == "Bob, Ann Lee and Anna, X"


@pytest.mark.parametrize(
    ("name", "given", "family"),
    [
        ("Plato", "", "Plato"),
        ("Ludwig van Beethoven", "Ludwig", "van Beethoven"),
        ("Ana de la Cruz", "Ana", "de la Cruz"),
        ("Van Morrison", "Van", "Morrison"),
        ("J. R. R. Tolkien", "J. R. R.", "Tolkien"),
        ("", "", ""),
    ],
)
def test_the_parts_of_a_name(name, given, family):
    assert name_parts(name) == (given, family)


def test_initials_of_hyphens_and_of_initials():
    assert initials("Jean-Pierre J. Louis") == "J.-P. J. L."


def test_a_plugin_says_its_family():
    class Mine(Perturber):
        class Config(PerturberConfig):
            type: Literal["mine"] = "mine"

    assert Perturber.fault(Mine, "mine") == f"{Mine.__qualname__} does not define FAMILY"
    Mine.FAMILY = "form"
    assert Perturber.fault(Mine, "mine") is None
    assert Mine().bundle(bundle(), 1) == bundle()
