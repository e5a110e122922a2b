from __future__ import annotations

import pytest
from support.studies import GOOD, POOR, elsewhere, reported

from raggs.evaluation.analyses.losses import BottleneckAnalysis
from raggs.golden.sources import NamedSystem
from raggs.metrics.bottleneck import PUBLISHED
from raggs.metrics.columns import Run

HALF = {qid: POOR[qid] for qid in ("query-a", "query-b")}
SYSTEMS = (NamedSystem("good", "good.trec", Run.of(GOOD)), NamedSystem("poor", "poor.trec", Run.of(HALF)))


def test_the_pool_decides_whether_retrieval_or_ordering_is_to_blame():
    wide, narrow = (reported(BottleneckAnalysis(pool), systems=SYSTEMS).systems[1].bottleneck[0] for pool in (50, 1))
    assert (wide.measure, wide.pool, narrow.pool) == ("ra_nwg@2", 50, 2)  # never less than the cutoff
    assert wide.by_query["query-a"] == "ordering"
    assert narrow.by_query["query-a"] == "retrieval"
    assert wide.actual == narrow.actual < narrow.ceiling + 1e-12 <= wide.ceiling + 1e-12
    assert wide.retrieval + wide.ordering == pytest.approx(1 - wide.actual)


def test_it_says_what_to_do_by_ra_nwg_and_shows_both_measures():
    section = BottleneckAnalysis(7).section(reported(BottleneckAnalysis(7), systems=SYSTEMS))
    assert section.title == "Retrieval or order (pool of 7)"
    assert len(section.table.rows) == 2
    assert [cell.text for cell in section.table.rows[1]][2:6] == ["0.1111", "0.4444", "0.2500", "0.5000"]
    good, poor = section.sentences
    assert good == (
        "good: ra_nwg@2 1.0000, ceiling 1.0000 with a perfect order of its top 7 (it reaches 100.0% of the "
        "ceiling). Possible gain: retrieval 0.0000, order 0.0000 — neither retrieval nor order loses much"
    )
    assert poor.endswith("fuse dense and BM25 (RRF), use a more exact index (ef, nprobe), rewrite queries")


def test_it_is_told_at_10_and_30_as_far_as_lists_reach_and_else_where_it_was_asked():
    long = {qid: [*found, *(f"x{place}" for place in range(30))] for qid, found in GOOD.items()}
    systems = (NamedSystem("long", "f", Run.of(long)), NamedSystem("poor", "f", Run.of(HALF)))
    report = reported(BottleneckAnalysis(50, PUBLISHED), systems=systems)
    assert [part.measure for part in report.systems[0].bottleneck[:2]] == ["ra_nwg@10", "ra_nwg@30"]
    assert [part.measure for part in report.systems[1].bottleneck] == ["ra_nwg@2", "n_recall4@2", "n_recall5@2"]
    told = BottleneckAnalysis().section(report).sentences
    assert [sentence.partition(" 0")[0].partition(" 1")[0] for sentence in told] == [
        "long: ra_nwg@10", "long: ra_nwg@30", "poor: ra_nwg@2",
    ]  # fmt: skip


def test_it_asks_nothing_of_labels_on_another_scale():
    assert elsewhere(BottleneckAnalysis()).systems[0].bottleneck == ()
