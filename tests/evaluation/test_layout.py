from __future__ import annotations

from support.studies import SYSTEMS, reported

from raggs.base.document import Cell, ScoreRange, bounded
from raggs.evaluation.analyses.comparisons import Comparisons
from raggs.evaluation.analyses.unjudged import UnjudgedBoundsAnalysis
from raggs.evaluation.layout import lay_out, verdict_sentence
from raggs.evaluation.models import ComparisonPart, EvalReport, ScorePart


def row(report: EvalReport, measure: str) -> tuple[Cell, ...]:
    table = lay_out(report).scores.table
    return next(row for row in table.rows if row[0].text == measure)


def test_scores_stand_by_measure_and_system_with_all_that_is_known_of_them():
    report = reported(Comparisons("poor"), UnjudgedBoundsAnalysis())
    head = lay_out(report).scores.table.head
    assert head == ("measure", "good", "poor")
    _, good, poor = row(report, "recall@2")
    score = report.systems[1].scores["recall@2"]
    assert (good.text, good.best, poor.best) == ("1.0000", True, False)
    assert good.mark == "?"
    assert poor.mark == ""
    assert poor.ranges == (ScoreRange(score.low, score.high, "[]"), ScoreRange(score.lowest, score.highest, "{}"))
    assert [each.sign for each in lay_out(report).scores.legend] == ["[ ]", "", "{ }"]


def test_lower_is_better_where_it_is():
    _, good, poor = row(reported(), "holes@2")
    assert (good.text, good.best, poor.best) == ("0.1667", True, False)


def test_a_single_system_is_the_best_of_nothing():
    assert not row(reported(systems=SYSTEMS[:1]), "mrr")[1].best


def test_valid_queries_are_told_by_system_where_they_differ():
    report = reported()
    parts = [ScorePart(mean=1, low=None, high=None, valid=valid) for valid in (1, 2)]
    systems = [
        system.model_copy(update={"scores": {**system.scores, "mrr": part}})
        for system, part in zip(report.systems, parts, strict=True)
    ]
    changed = report.model_copy(update={"systems": tuple(systems)})
    assert lay_out(changed).scores.table.head[-1] == "valid queries"
    assert row(changed, "mrr")[-1].text == "1/2 of 3"
    assert row(changed, "recall@2")[-1].text == "3 of 3"


def test_sentences_say_what_was_scored_and_what_the_intervals_are():
    scores = lay_out(reported().model_copy(update={"confidence": 0.999})).scores
    assert scores.sentences == ("qrels: 5 labels for 3 queries, grades 1 to 5, relevant from 4",)
    assert scores.legend[0].line == "[ ] 99.9% interval over queries (bootstrap)"


def test_numbers_are_never_negative_zeros():
    assert Cell(-1e-9, "score").text == "0.0000"
    assert Cell(-1e-9, "signed").text == "+0.0000"
    assert Cell(None, "score").text == "–"
    assert ScoreRange(-1e-9, 0.25, "{}").text == "{0.000, 0.250}"


def test_an_interval_is_written_as_the_value_between_its_ends() -> None:
    cell = bounded(-26.51, -28.4, -24.62, "percent", "✗")
    assert (cell.text, cell.mark, cell.ranges[0].text) == ("-26.5", "✗", "[-28.4, -24.6]")
    assert bounded(0.5, 0.4, 0.6, "signed").ranges[0].text == "[0.400, 0.600]"
    assert bounded(0.5, None, 0.6).ranges == ()
    assert bounded(None, None, None, "percent").text == "–"


def test_a_tie_whose_interval_excludes_zero_names_the_p_value() -> None:
    part = ComparisonPart(
        system="new", baseline="old", measure="ndcg@10", difference=0.037, low=0.007, high=0.098, p={},
        corrected={"randomisation": 0.25}, effect=0.5, wins=3, ties=7, losses=0, verdict="inconclusive",
        negligible=False, queries_needed=70,
    )  # fmt: skip
    tied = "new and old are statistically tied on ndcg@10 (difference 0.037"
    assert verdict_sentence(part, 3) == f"{tied} [0.007, 0.098], but p = 0.25)."
    around_zero = part.model_copy(update={"low": -0.007})
    assert verdict_sentence(around_zero, 3) == f"{tied} [-0.007, 0.098])."
