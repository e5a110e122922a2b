"""What a report says of grades that were carried over, from its parts alone; and gates that must not mix them."""

from __future__ import annotations

from typing import Any

import pytest
from support.gating import regressions
from support.studies import SYSTEMS, reported

from raggs.base.errors import DataError
from raggs.evaluation.layout import lay_out
from raggs.evaluation.models import EvalReport, ProjectionPart
from raggs.evaluation.report import finer_note, rule_words


def part(**changes: Any) -> ProjectionPart:
    found = {
        "corpus": "ab" * 32,
        "judged_corpus": "cd" * 32,
        "by": "cover",
        "least": 0.5,
        "known": 0.5,
        "proof": 4,
        "overlap": "lowest",
        "passages": 12,
        "holes": 1,
        "judged_length": 800.0,
        "length": 790.0,
        "lost": 0.01,
        "cutoff": 2,
        "judged": 0.75,
    }
    return ProjectionPart(**{**found, **changes})


def carried(*parts: ProjectionPart) -> EvalReport:
    report = reported(systems=SYSTEMS[: len(parts)])
    named = zip(report.systems, parts, strict=True)
    return report.with_systems({system.name: {"projection": each} for system, each in named})


def test_one_sentence_for_the_rule_and_one_for_each_corpus() -> None:
    said = lay_out(carried(part(), part(judged=None))).scores.sentences
    assert len(said) == 3
    assert said[1].startswith("projected: a passage gets the highest grade of 50% of its judged characters")
    assert said[2].startswith("12 passages with a grade and 1 hole onto the corpus abababababab; judged share of the")
    assert said[2].endswith("characters in the top 2: good 75%, poor –")


def test_systems_of_two_corpora_have_a_sentence_each_and_lost_text_is_told() -> None:
    said = lay_out(carried(part(), part(corpus="ef" * 32, lost=0.2))).scores.sentences
    assert len(said) == 4
    assert "20% of the judged text in no passage" in said[3]
    assert "in no passage" not in said[2]


def test_without_a_projection_nothing_is_said_of_one() -> None:
    assert len(lay_out(reported()).scores.sentences) == 1


@pytest.mark.parametrize(("by", "said"), [("share", "50%"), ("mean", "the mean grade"), ("max", "of its characters")])
def test_each_rule_has_its_words(by: str, said: str) -> None:
    assert said in rule_words(part(by=by))


def test_a_system_of_much_shorter_passages_is_told_of() -> None:
    finer, alike = carried(part(length=400.0), part(length=600.0)).systems
    assert "uses smaller chunks than the judged ones (400 against 800 characters)" in finer_note(finer)
    assert not finer_note(alike)
    assert not finer_note(reported().systems[0])


def test_results_by_other_rules_are_not_compared() -> None:
    one, other = carried(part()), carried(part(by="mean"))
    assert not regressions(one, one, drop=0.01, where=None)
    with pytest.raises(DataError, match=r"by another rule of --project \(a passage gets the mean grade"):
        regressions(one, other, drop=0.01, where=None)
    with pytest.raises(DataError, match="measured with --project"):
        regressions(reported(systems=SYSTEMS[:1]), one, drop=0.01, where=None)
