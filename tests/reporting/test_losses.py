from __future__ import annotations

import pytest
from support.reports import facts
from support.studies import reported

from raggs.evaluation.analyses.losses import Waterfall
from raggs.reporting.sections.results import LossesSection


def test_the_pieces_of_a_bar_fill_it_from_the_score_to_a_perfect_list():
    report = reported(Waterfall())
    (found,) = Waterfall().found(report)
    part = LossesSection().data(facts(report))
    kinds = [piece.kind for piece in part.bars[0].pieces]
    assert kinds == ["kept", "unjudged", "order", "candidates", "found by no system"]
    assert sum(piece.width for piece in part.bars[0].pieces) == pytest.approx(1000, abs=0.5)
    assert part.bars[0].said == Waterfall().sentences([found])[0]  # the words of the screen and of Markdown
    assert part.bars[0].knob == ""  # nothing is lost
    assert {query.qid for query in part.queries} == {"query-a", "query-b", "query-c"}
    assert part.queries[0].losses == (found.part.by_query["query-a"],)


def test_without_the_analysis_there_is_no_section():
    assert LossesSection().data(facts()) is None
