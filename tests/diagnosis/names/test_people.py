"""Which words of a text are names, and which of a question's names stand in the corpus."""

from __future__ import annotations

import pytest

from raggs.diagnosis.names.models import PersonNames, asked_for, by_question, runs_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What did Amina Kouyaté write about lamps?", ["Amina Kouyaté"]),
        ("Which works by Ludwig van der Meer on Kant?", ["Ludwig van der Meer"]),
        ("Jean-Luc O'Brien's notes and J.-P. Sartre, A. B. Née.", ["Jean-Luc O'Brien", "J.-P. Sartre", "A. B. Née"]),
        ("Did Ana de la Cruz meet Þórdís Sæther?", ["Ana de la Cruz", "Þórdís Sæther"]),
        ("Amina Kouyaté. The end. Who was Plato?", ["Amina Kouyaté"]),
        ("the quick brown fox, ISO 9001 and X1 Y2", []),
        ("", []),
    ],
)
def test_the_rule(text, names):
    assert runs_in(text) == names


def test_a_long_line_of_capitals_takes_no_time_to_refuse():
    assert len(runs_in("Aa" * 20_000 + " " + "Bb-" * 20_000)) <= 1


def test_the_longest_end_of_a_run_that_stands_in_a_passage_counts():
    passages = ["Amina Kouyaté, 2001.", "Notes of Leif Sørensens."]
    assert asked_for("Selon Amina Kouyaté, que faire ?", passages) == ["Amina Kouyaté"]
    assert asked_for("What of Leif Sørensen and Nobody Else?", passages) == []


def test_names_stand_as_whole_words():
    people = PersonNames(["Ann Lee", "Lee Ann", "Ann Lee", "3M"])
    assert people.names == ("3M", "Ann Lee", "Lee Ann")
    assert people.within("By Ann Leeds and Joann Lee; then Ann Lee.") == ["Ann Lee"]
    assert people.within("Nobody") == []


def test_by_a_field_only_its_names_count_and_only_where_they_stand_in_a_passage():
    questions = {"a": "Did Plato meet Ann Lee in New York?", "b": "Who met Bo Kim?", "c": "Who?"}
    known = PersonNames(["Plato", "Bo Kim", "Ann Lee"])
    assert by_question(questions, ["Plato, New York.", "Ann Lee"], known) == {"a": ["Ann Lee", "Plato"]}
    assert by_question(questions, ["Plato, New York."], None) == {"a": ["New York"]}
