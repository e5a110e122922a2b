from __future__ import annotations

import pytest
from support.studies import SYSTEMS, reported

from raggs.base.errors import UsageError
from raggs.evaluation.analyses.comparisons import Comparisons
from raggs.evaluation.messages import difference_sentence
from raggs.evaluation.models import ComparisonPart


def test_every_measure_of_merit_is_compared():
    report = reported(Comparisons("poor"))
    assert [(part.system, part.measure) for part in report.comparisons] == [
        ("good", "ra_nwg@2"),
        ("good", "recall@2"),
        ("good", "mrr"),
    ]
    mrr = report.comparisons[2]
    assert mrr.difference == pytest.approx((1 - 1 / 3 + 0 + 1) / 3)
    assert (mrr.wins, mrr.ties, mrr.losses) == (2, 1, 0)


def test_no_baseline_and_no_other_system_compare_nothing():
    assert reported(Comparisons()).comparisons == ()
    assert reported(Comparisons("good"), systems=SYSTEMS[:1]).comparisons == ()


def test_an_unknown_baseline_is_refused():
    with pytest.raises(UsageError, match="no system is called bm25 — known: good, poor"):
        reported(Comparisons("bm25"))


def part(measure: str, verdict: str) -> ComparisonPart:
    return ComparisonPart(
        system="new", baseline="old", measure=measure, difference=-0.00001, low=-0.1, high=None, p={},
        corrected={"randomisation": 0.25}, effect=0.5, wins=1, ties=2, losses=3, verdict=verdict, negligible=False,
        queries_needed=70,
    )  # fmt: skip


def test_verdicts_are_put_into_one_sentence_a_system_and_a_row_a_measure():
    parts = (
        part("a", "better"),
        part("b", "inconclusive"),
        part("c", "better"),
        part("d", "equivalent"),
        part("e", "worse"),
    )
    report = reported().model_copy(update={"comparisons": parts})
    section = Comparisons().section(report)
    assert section.title == "Comparison with old"
    assert section.sentences == ("new against old: better in a, c; worse in e; equivalent in d; inconclusive in b",)
    texts = [[cell.text for cell in row] for row in section.table.rows]
    assert texts[0] == ["new", "a", "+0.0000", "[-0.1000, –]", "0.250", "+0.5000", "1/2/3", "▲ better"]
    tiny = parts[0].model_copy(update={"corrected": {"randomisation": 0.0002}})
    (row,) = Comparisons().section(report.model_copy(update={"comparisons": (tiny,)})).table.rows
    assert row[4].text == "< 0.001"
    assert "p < 0.001 after Holm's correction" in difference_sentence(tiny, 3)
    assert texts[1][-1] == "? inconclusive, about 70 queries would resolve it"
    assert Comparisons().legend(report).text == (
        "against old: ▲ better, ▼ worse, = equivalent, ? inconclusive: too few queries"
    )
    some = report.model_copy(update={"comparisons": parts[:1]})
    assert Comparisons().legend(some).text == "against old: ▲ better"


def test_the_first_system_is_the_baseline_where_that_is_asked_for_and_none_is_named():
    assert {part.baseline for part in reported(Comparisons(first=True)).comparisons} == {"good"}
    assert {part.baseline for part in reported(Comparisons("poor", first=True)).comparisons} == {"poor"}
    assert not reported(Comparisons()).comparisons
