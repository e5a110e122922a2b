"""A golden set on a corpus that is cut in another way: grades, lists in characters, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.golden import GivenGolden

from raggs.base.artifacts import Passage, Query, Span
from raggs.base.errors import DataError
from raggs.golden.base import GoldenQuery, LabelRecord
from raggs.golden.places import JudgedPlaces, Projection, judged_places, project_onto
from raggs.metrics import parse_measure
from raggs.metrics.columns import GradeScale, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.spans import ProjectionRule

TEXT = "".join(chr(ord("a") + place % 26) for place in range(100))
CUTS = {"a": (0, 20), "b": (20, 40), "c": (40, 60), "d": (60, 80)}


def passage(doc_id: str, start: int, end: int, *, source: str = "f.md", above: str = "", text: str = TEXT) -> Passage:
    span = Span(source=source, start=start, end=end)
    return Passage(doc_id=doc_id, text=above + text[start:end], span=span)


def golden(grades: dict[str, dict[str, int | None]], pool: dict[str, Passage] | None = None) -> GivenGolden:
    pool = pool or {name: passage(name, *place) for name, place in CUTS.items()}
    given = [
        GoldenQuery(
            qid,
            Query(qid=qid, text="?"),
            tuple(pool[name] for name in labels),
            tuple(LabelRecord(qid=qid, doc_id=name, grade=grade) for name, grade in labels.items()),
        )
        for qid, labels in grades.items()
    ]
    return GivenGolden("set", 3, given)


def places(grades: dict[str, dict[str, int | None]], pool: dict[str, Passage] | None = None) -> JudgedPlaces:
    made = golden(grades, pool)
    return judged_places(made, made.judgments(GradeScale.of(1, 5)))


def onto(judged: JudgedPlaces, *cut: Passage, rule: ProjectionRule = ProjectionRule()) -> Projection:  # noqa: B008 - frozen
    return project_onto(judged, cut, "f" * 64, "there", rule)


def labels(found: Projection) -> dict[str, dict[str, int]]:
    qrels = found.judgments.qrels
    names = [doc.decode() for doc in qrels.docs.take(np.arange(len(qrels.docs))).tolist()]
    made: dict[str, dict[str, int]] = {qid: {} for qid in qrels.qids}
    for query, name, grade in zip(qrels.query.tolist(), names, qrels.grade.tolist(), strict=True):
        made[qrels.qids[query]][name] = grade
    return made


JUDGED = {"q1": {"a": 5, "b": 1, "c": 2}, "q2": {"d": 4, "a": None}}


def test_longer_passages_get_what_they_hold_and_a_hole_is_unjudged() -> None:
    found = onto(places(JUDGED), passage("long", 0, 40), passage("rest", 45, 100), passage("far", 90, 100))
    assert labels(found) == {"q1": {"long": 5, "rest": -1}, "q2": {"rest": 4}}
    assert found.judgments.origin.corpus == "f" * 64
    assert found.projected.holes == 1


def test_every_query_stays_so_that_values_pair_with_other_corpora() -> None:
    found = onto(places(JUDGED), passage("one", 0, 20))
    assert found.judgments.qrels.qids == ("q1", "q2")
    assert labels(found)["q2"] == {}


def test_what_no_passage_holds_is_told_as_a_share() -> None:
    assert onto(places(JUDGED), passage("one", 0, 20)).lost == pytest.approx(60 / 80)
    assert onto(places(JUDGED), passage("one", 0, 50), passage("two", 40, 100)).lost == 0


def test_a_list_is_read_in_characters_each_relevant_one_once() -> None:
    found = onto(places(JUDGED), passage("x", 10, 30), passage("y", 0, 15), passage("z", 60, 90))
    run = Run.of({"q1": {"x": 3.0, "y": 2.0, "z": 1.0}, "q2": {"z": 1.0}, "other": {"x": 1.0}})
    reading = found.reading(run, "trec", "lists")
    rows = sorted(
        zip(reading.query.tolist(), reading.rank.tolist(), reading.length.tolist(), reading.fresh.tolist(), strict=True)
    )
    assert rows == [(0, 1, 20, 10), (0, 2, 15, 10), (0, 3, 30, 0), (1, 1, 30, 20)]
    assert reading.wanted.tolist() == [20, 20]
    assert reading.judged_share(1) == pytest.approx((20 + 20) / (20 + 30))


def test_measures_in_characters_are_quotients_of_what_is_read() -> None:
    found = onto(places(JUDGED), passage("x", 10, 30), passage("y", 0, 15), passage("z", 60, 90))
    run = Run.of({"q1": ["x", "y"]})
    hits = find_hits(found.judgments.qrels, run)
    hits = replace(hits, reading=found.reading(run, "trec", "lists"))
    values = {name: parse_measure(name).values(hits).tolist() for name in ("span_recall4@1", "span_precision4@2")}
    assert values == {"span_recall4@1": [0.5, 0.0], "span_precision4@2": [pytest.approx(20 / 35), 0.0]}
    with pytest.raises(DataError, match="needs character offsets"):
        parse_measure("span_recall4@1").values(hits.condensed())


def test_the_example_of_the_page() -> None:
    text = TEXT * 2
    pool = {name: passage(name, *place, text=text) for name, place in (("five", (0, 100)), ("one", (100, 200)))}
    found = onto(
        places({"q": {"five": 5, "one": 1}}, pool), passage("x", 50, 150, text=text), passage("y", 0, 60, text=text)
    )
    hits = find_hits(found.judgments.qrels, Run.of({"q": ["x", "y"]}))
    hits = replace(hits, reading=found.reading(Run.of({"q": ["x", "y"]}), "trec", "lists"))
    by_k = [
        [parse_measure(f"{name}@{k}").values(hits)[0] for k in (2, 1)] for name in ("span_recall4", "span_precision4")
    ]
    assert by_k == [[1.0, 0.5], [0.625, 0.5]]
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "projection.md").read_text()
    assert "`span_recall4@2` = 100/100 = 1 and `span_precision4@2` = 100/160 = 0.625" in " ".join(page.split())


def test_a_query_without_a_relevant_character_has_no_value() -> None:
    found = onto(places({"q1": {"a": 3}}), passage("x", 0, 20))
    run = Run.of({"q1": ["x"]})
    hits = find_hits(found.judgments.qrels, run)
    hits = replace(hits, reading=found.reading(run, "trec", "lists"))
    assert math.isnan(parse_measure("span_recall4").values(hits)[0])
    assert math.isnan(parse_measure("span_precision4").values(hits)[0])


def test_equal_scores_stand_as_the_measures_have_them() -> None:
    found = onto(places(JUDGED), passage("x", 0, 20), passage("y", 20, 40))
    run = Run.of({"q1": {"x": 1.0, "y": 1.0}})
    ranks = {ties: found.reading(run, ties, "lists").rank.tolist() for ties in ("trec", "file")}
    assert ranks == {"trec": [1, 2], "file": [1, 2]}
    fresh = {ties: found.reading(run, ties, "lists").fresh.tolist() for ties in ("trec", "file")}
    assert fresh == {"trec": [0, 20], "file": [20, 0]}


def test_a_breadcrumb_above_the_text_is_no_part_of_its_place() -> None:
    pool = {"a": passage("a", 0, 20, above="Guide > Install\n\n")}
    found = onto(places({"q": {"a": 5}}, pool), passage("x", 0, 10, above="Guide\n\n"))
    assert labels(found) == {"q": {"x": 5}}


# --- what is refused ----------------------------------------------------------------------------------------------

OTHER = TEXT[:10] + "!" + TEXT[11:]


def test_a_document_that_changed_is_refused_wherever_the_change_can_be_seen() -> None:
    judged = places(JUDGED)
    with pytest.raises(
        DataError, match=r"there: the text of the passage x at f\.md\[5:30\] differs from the text that here"
    ):
        onto(judged, passage("x", 5, 30, text=OTHER))
    assert labels(onto(judged, passage("x", 11, 30, text=OTHER)))  # the change lies outside
    assert labels(onto(judged, passage("x", 0, 20), passage("y", 80, 100, text=TEXT[:85] + "?" * 15)))  # unjudged


def test_judged_passages_that_disagree_among_themselves_are_refused() -> None:
    pool = {"a": passage("a", 0, 20), "b": passage("b", 0, 20, text=OTHER), "c": passage("c", 5, 25, text=OTHER)}
    with pytest.raises(DataError, match="differs from the text that here was judged on"):
        places({"q": {"a": 5, "b": 1}}, pool)
    with pytest.raises(DataError, match="differs from the text that here was judged on"):
        onto(places({"q": {"a": 5, "c": 1}}, pool), passage("x", 40, 50))


def test_documents_of_other_names_are_refused_with_both() -> None:
    with pytest.raises(DataError, match=r"judged documents are f\.md, but it contains g\.md"):
        onto(places(JUDGED), passage("x", 0, 20, source="g.md"))
    with pytest.raises(DataError, match="no passage overlaps a judged passage of"):
        onto(places(JUDGED), passage("x", 90, 95))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Passage(doc_id="x", text="abc"), "passage x has no position in a document"),
        (
            Passage(doc_id="x", text="abc", span=Span(source="f.md", start=0, end=9)),
            r"passage x has 3 characters, but its span f\.md\[0:9\] has 9",
        ),
    ],
)
def test_passages_without_a_true_place_are_refused(wrong: Passage, said: str) -> None:
    with pytest.raises(DataError, match=said):
        onto(places(JUDGED), wrong)
    with pytest.raises(DataError, match=r"no position|has 3 characters"):
        places({"q": {"x": 5}}, {"x": wrong})


def test_a_list_with_passages_of_another_corpus_is_refused() -> None:
    with pytest.raises(DataError, match="query q1: passage w is not in the corpus there"):
        onto(places(JUDGED), passage("x", 0, 20)).reading(Run.of({"q1": ["x", "w"]}), "trec", "lists")
