from __future__ import annotations

import pytest
from support.reports import facts
from support.studies import GOOD, reported

from raggs.evaluation.analyses import AnalysisFinding
from raggs.evaluation.analyses.losses import Waterfall, WaterfallPart
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import Run
from raggs.reporting.sections.results import LossesSection, _bar, _losses_headline


def lossy(system: str, *losses: float) -> AnalysisFinding[WaterfallPart]:
    part = WaterfallPart(measure="m@5", pool=50, perfect=1, losses=losses, actual=1 - sum(losses), by_query={})
    return AnalysisFinding(system, part)


def test_a_bar_has_the_score_and_each_loss_that_is_not_zero():
    bar = _bar(lossy("one", 0.0, 0.0004, 0.2, 0.1))
    assert [(piece.kind, piece.text) for piece in bar.pieces] == [
        ("score", "0.700"),
        ("unjudged", "0.100"),
        ("ranked too low", "0.200"),
    ]
    assert bar.said == "one: m@5 0.700; lost: unjudged 0.100, ranked too low 0.200"
    assert sum(piece.width for piece in bar.pieces) == pytest.approx(1000, abs=0.5)


def test_the_headline_names_the_largest_loss_of_the_best_system_first():
    found = [lossy("two", 0.0, 0.05, 0.15, 0.0), lossy("one", 0.0, 0.0, 0.3, 0.0), lossy("three", 0.0, 0.4, 0.0, 0.0)]
    assert _losses_headline(found) == (
        "Largest loss of two, the system with the best score: relevant passages are ranked too low "
        "(0.150 of its 0.200). "
        "This is also the largest loss of one. Largest loss of three: not among the candidates."
    )


def test_the_headline_names_the_others_only_as_far_as_they_lose_alike():
    first = (
        "Largest loss of a, the system with the best score: relevant passages are ranked too low (all of its 0.100)."
    )
    best, alike = lossy("a", 0.0, 0.0, 0.1, 0.0), [lossy(name, 0.0, 0.0, 0.2, 0.0) for name in ("b", "c")]
    other = lossy("d", 0.0, 0.4, 0.0, 0.0)
    assert _losses_headline([best]) == first
    assert _losses_headline([best, *alike]) == f"{first} This is also the largest loss of every other system."
    assert _losses_headline([best, other]) == f"{first} Largest loss of d: not among the candidates."
    rest = [lossy(name, 0.0, 0.4, 0.0, 0.0) for name in "defgh"]
    assert _losses_headline([best, *alike, *rest]) == (
        f"{first} This is also the largest loss of b and c. "
        "Largest loss of d, e, f and 2 more: not among the candidates."
    )


def test_the_table_of_queries_starts_with_the_best_system_not_with_the_baseline():
    worse = {**GOOD, "query-b": ["doc-4", "doc-9"]}
    systems = (NamedSystem("old", "old.trec", Run.of(worse)), NamedSystem("new", "new.trec", Run.of(GOOD)))
    part = LossesSection().data(facts(reported(Waterfall(), systems=systems)))
    assert part.systems == tuple(bar.system for bar in part.bars) == ("new", "old")
    assert part.bars[0].actual > part.bars[1].actual
    assert [sum(map(sum, filter(None, each))) for each in part.losses] == sorted(
        sum(map(sum, filter(None, each))) for each in part.losses
    ), "the losses are in the order of the names"


def test_nothing_is_listed_if_nothing_is_lost():
    report = reported(Waterfall())
    part = LossesSection().data(facts(report))
    assert [piece.kind for piece in part.bars[0].pieces] == ["score"]
    assert "loses nothing" in part.headline
    assert (part.names, part.advice) == ((), ())
    assert part.queries == ("query-a", "query-b", "query-c")
    assert part.losses == (((), (), ()),)


def test_without_the_analysis_there_is_no_section():
    assert LossesSection().data(facts()) is None
