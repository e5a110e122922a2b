"""The lists of names and topics, those of a corpus, and what is drawn from them."""

from __future__ import annotations

import pytest

from raggs.base.errors import DataError
from raggs.diagnosis.names.models import WORDINGS, corpus_lists, draw, field_text, own_lists
from raggs.parts.perturbers import name_parts


@pytest.mark.parametrize("language", list(WORDINGS))
def test_own_lists_hold_hundreds_of_names_of_many_kinds_and_enough_topics(language):
    lists = own_lists(language)
    names = lists.home + lists.abroad
    assert len(set(names)) == len(names) > 4000 and len(lists.home) > 900
    assert len(set(lists.topics)) == len(lists.topics) >= 100
    for kind in ("-", "'", "’", "é", " van ", " de "):
        assert any(kind in name for name in names), kind
    assert all(name == " ".join(name.split()) for name in names)


def test_questions_stay_from_run_to_run_and_all_else_is_drawn_anew():
    runs = draw(own_lists("en"), "en", questions=30, runs=3, seed=1)
    asked = [[(each.question.author, each.question.topic) for each in run] for run in runs]
    assert asked[0] == asked[1] == asked[2]
    assert len({author for author, _ in asked[0]}) > 28 and len({topic for _, topic in asked[0]}) == 30
    for first, second in zip(runs[0], runs[1], strict=True):
        assert first.candidates[1].author != second.candidates[1].author
    assert len({each.question.segments for run in runs for each in run}) == len(WORDINGS["en"].questions)


def test_a_bundle_is_what_the_margins_are_about():
    for each in draw(own_lists("fr"), "fr", questions=40, runs=2, seed=5)[1]:
        asked, (right, first, second, other, neither) = each.question, each.candidates
        people = [asked.author, first.author, second.author, neither.author]
        assert (right.author, right.topic) == (asked.author, asked.topic)
        assert first.topic == second.topic == asked.topic and other.author == asked.author
        assert other.topic == neither.topic != asked.topic
        parts = [part for person in people for part in name_parts(person)]
        assert len(set(parts)) == len(parts)
        assert len({piece.segments for piece in each.candidates}) == 1


def test_more_runs_and_questions_change_none_of_those_before():
    few, many = (draw(own_lists("en"), "en", questions=n, runs=r, seed=2) for n, r in ((5, 1), (9, 2)))
    assert many[0][:5] == few[0]
    assert draw(own_lists("en"), "en", questions=5, runs=1, seed=3) != few


def test_more_questions_than_topics_begin_again():
    run = draw(own_lists("en"), "en", questions=150, runs=1, seed=2)[0]
    topics = [each.question.topic for each in run]
    assert len(set(topics[:120])) == 120 and len(set(topics)) == 120


def rows(count: int) -> list[tuple[str, str]]:
    return [(f"Person{n} Family{n}; Other{n} Writer{n}", f"Title number {n}") for n in range(count)]


def test_a_corpus_gives_who_wrote_what():
    lists = corpus_lists([*rows(25), ("", "No author"), ("A Long", "x" * 300)], ("author", "title"))
    assert len(lists.home) == 50 and not lists.abroad and len(lists.topics) == 25
    asked = draw(lists, "en", questions=20, runs=1, seed=1)[0]
    assert {(each.question.author, each.question.topic) for each in asked} <= set(lists.pairs)


@pytest.mark.parametrize(("given", "told"), [(rows(9), "'author'.*18 different names"), ([], "0 different names")])
def test_too_few_names_are_a_sentence(given, told):
    with pytest.raises(DataError, match=rf"{told}, at least 20 are needed — .*--name-field"):
        corpus_lists(given, ("author", "title"))


def test_names_without_topics_are_a_sentence():
    with pytest.raises(DataError, match=r"'title' .* 1 different topic, "):
        corpus_lists([(names, "One") for names, _ in rows(25)], ("author", "title"))


def test_a_field_is_a_text_or_a_list_of_texts():
    metadata = {"author": ["A B", "C D"], "year": 1999}
    assert field_text(metadata, "author") == "A B;C D"
    assert field_text(metadata, "year") is None and field_text(metadata, "none") is None
