from __future__ import annotations

import pytest
from support.studies import golden, scoring

from raggs.evaluation.analyses.ties import TieRanges
from raggs.evaluation.report import make_report
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import Run

TIED = Run.of({"query-a": {"doc-1": 1.0, "doc-8": 1.0}, "query-b": {"doc-3": 2.0}, "query-c": {"doc-5": 1.0}})


def tied(*measures: str):
    return make_report(golden(), [NamedSystem("tied", "f", TIED)], scoring(measures), [TieRanges()])


def test_only_measures_that_ties_can_move_are_told():
    (part,) = tied("mrr", "recall@2", "E[mrr]").systems[0].ties
    assert (part.measure, part.least, part.most, part.queries) == ("mrr", pytest.approx(2.5 / 3), 1.0, 1)
    assert part.expected == pytest.approx(2.75 / 3)
    assert part.bias == pytest.approx(2.5 / 3 - 2.75 / 3)  # doc-8 stands before doc-1 by descending id


def test_the_widest_range_is_a_note():
    report = tied("mrr", "recall@1", "ndcg@2")
    assert len(report.systems[0].ties) == 3
    (note,) = [note for note in report.notes if "share" in note]
    assert note == (
        "tied: 2 passages share their score with another one; depending on the order of ties, recall@1 is "
        "0.5000 to 0.8333, expected 0.6667 (1 query)"
    )
    section = TieRanges().section(report)
    assert [cell.text for cell in section.table.rows[1]] == [
        "tied", "recall@1", "0.6667", "0.5000", "0.8333", "0.3333", "0.3333", "-0.1667", "1",
    ]  # fmt: skip


def test_where_ties_reach_the_cutoff_of_more_than_a_few_queries_the_expected_scores_are_a_sentence():
    report = tied("mrr", "recall@1", "ndcg@2")
    (told,) = TieRanges().section(report).sentences
    assert told == (
        "tied: ties begin at or before the cutoff for 33% of the queries; expected scores over all orders of ties: "
        "mrr 0.9167 (range 0.1667), recall@1 0.6667 (range 0.3333), ndcg@2 0.8314 (range 0.1230)"
    )
    parts = [part.model_copy(update={"reached": 0.01}) for part in report.systems[0].ties]
    assert TieRanges().section(report.with_systems({"tied": {"ties": tuple(parts)}})).sentences == ()


def test_a_tie_within_the_cutoff_reaches_it_and_none_lies_across():
    mrr, recall, ndcg = tied("mrr", "recall@1", "ndcg@2").systems[0].ties
    assert [part.across for part in (mrr, recall, ndcg)] == [None, pytest.approx(1 / 3), 0.0]
    assert [part.reached for part in (mrr, recall, ndcg)] == pytest.approx([1 / 3] * 3)


def test_a_run_without_ties_has_nothing_to_say():
    plain = NamedSystem("plain", "f", Run.of({"query-a": {"doc-1": 2.0, "doc-8": 1.0}}))
    report = make_report(golden(), [plain], scoring(("mrr",)), [TieRanges()])
    assert report.systems[0].ties == ()
    assert not any("share" in note for note in report.notes)
