"""Scores corrected by people: which measures, which differences, and what is said where there is no number."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from raggs.base.document import ReportDocument
from raggs.base.errors import DataError, UsageError
from raggs.base.hashing import generator
from raggs.evaluation.analyses.corrected import CorrectedPart, DrawnLabel, PeopleCorrection, WholeQuestions, correctable
from raggs.evaluation.layout import lay_out
from raggs.evaluation.models import EvalReport
from raggs.evaluation.report import make_report
from raggs.evaluation.study import ScoringSettings
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.measure import Linear
from raggs.metrics.names import parse_measure, parse_measures
from raggs.stats.correction import correct, totals_of

QUERIES, POOL, CHANCE = 60, 8, 0.5
QIDS = [f"q{number:02}" for number in range(QUERIES)]
RNG = generator(1, "corrected")
TRUTH = {qid: {f"d{place}": int(RNG.integers(1, 6)) for place in range(POOL)} for qid in QIDS}
JUDGED = {qid: {doc: min(5, grade + int(RNG.random() < 0.4)) for doc, grade in TRUTH[qid].items()} for qid in QIDS}
DRAWN = {
    (qid, doc): DrawnLabel(grade, CHANCE) for qid in QIDS for doc, grade in TRUTH[qid].items() if RNG.random() < CHANCE
}
LISTS = {
    "one": {qid: [f"d{place}" for place in range(POOL)] for qid in QIDS},
    "two": {qid: [f"d{place}" for place in reversed(range(POOL))] for qid in QIDS},
}
SYSTEMS = tuple(NamedSystem(name, f"{name}.trec", Run.of(lists)) for name, lists in LISTS.items())
MEASURES = ("precision4@4", "harm@4", "recall@4", "ndcg@4", "holes@4")


def reported(
    labels: dict[tuple[str, str], DrawnLabel] = DRAWN,
    measures: tuple[str, ...] = MEASURES,
    baseline: str | None = None,
    systems: tuple[NamedSystem, ...] = SYSTEMS,
    whole: WholeQuestions | None = None,
) -> EvalReport:
    judgments = Judgments("run", Qrels.of(JUDGED, GradeScale.of(1, 5)))
    scoring = ScoringSettings(parse_measures(measures), (4,))
    return make_report(judgments, systems, scoring, [PeopleCorrection(labels, baseline, whole or WholeQuestions())])


def parts(report: EvalReport) -> dict[tuple[str, str, str | None], CorrectedPart]:
    found = PeopleCorrection().found(report)
    return {(each.system, each.part.measure, each.part.against): each.part for each in found}


def true_mean(measure: str, system: str) -> float:
    hits = find_hits(Qrels.of(TRUTH, GradeScale.of(1, 5)), Run.of(LISTS[system]))
    return float(parse_measure(measure).values(hits).mean())


@pytest.mark.parametrize("measure", ["precision4@4", "harm@4"])
def test_the_correction_leads_to_what_people_would_say(measure: str) -> None:
    found = parts(reported())
    for system in LISTS:
        part = found[system, measure, None]
        truth = true_mean(measure, system)
        assert part.low < truth < part.high
        assert abs(part.corrected - truth) < abs(part.machine - truth)
        assert part.high - part.low < part.people_high - part.people_low
        assert part.queries <= QUERIES < part.drawn
    difference = found["one", measure, "two"]
    one, two = (found[system, measure, None].machine for system in LISTS)
    assert difference.machine == pytest.approx(one - two)
    assert difference.low < true_mean(measure, "one") - true_mean(measure, "two") < difference.high


def test_it_is_the_estimate_of_the_library() -> None:
    part = parts(reported())["one", "precision4@4", None]
    rows = [(number, f"d{place}") for number in range(QUERIES) for place in range(4)]
    judge = [float(JUDGED[QIDS[number]][doc] >= 4) for number, doc in rows]
    said = [DRAWN.get((QIDS[number], doc)) for number, doc in rows]
    people = [math.nan if each is None else float(each.grade >= 4) for each in said]
    totals = totals_of(
        [number for number, _ in rows], [0.25] * len(rows), judge, people, [CHANCE] * len(rows), queries=QUERIES
    )
    expected = correct(totals)
    assert (part.corrected, part.low, part.high) == pytest.approx((expected.mean, expected.low, expected.high))


def test_others_get_no_number_and_are_named() -> None:
    report = reported()
    assert {measure for _, measure, _ in parts(report)} == {"precision4@4", "harm@4", "recall@4, pooled"}
    note = next(note for note in report.notes if "not corrected" in note)
    assert "recall@4, ndcg@4;" in note
    assert "raggs review plan --whole" in note
    assert "holes" not in note


def test_recall_of_all_queries_at_once_is_another_figure_and_is_corrected() -> None:
    """Found over there: a ratio of sums, not the mean of ratios that recall is."""
    found = parts(reported())
    for name, sign in (("one", 0.0), ("two", 0.0), ("one", 1.0)):
        part = found[name, "recall@4, pooled", "two" if sign else None]
        truth = pooled_recall(TRUTH, name) - sign * pooled_recall(TRUTH, "two")
        assert part.machine == pytest.approx(pooled_recall(JUDGED, name) - sign * pooled_recall(JUDGED, "two"))
        assert part.low < truth < part.high
        assert part.high - part.low < part.people_high - part.people_low


def pooled_recall(labels: dict[str, dict[str, int]], system: str) -> float:
    top = sum(labels[qid][doc] >= 4 for qid in QIDS for doc in LISTS[system][qid][:4])
    return top / sum(grade >= 4 for row in labels.values() for grade in row.values())


def test_by_whole_questions_any_measure_is_corrected() -> None:
    """Two in three questions were read whole; the others say what the judge says."""
    read = [qid for number, qid in enumerate(QIDS) if number % 3]
    whole = WholeQuestions(
        dict.fromkeys(read, 2 / 3), {(q, doc): grade for q in read for doc, grade in TRUTH[q].items()}
    )
    judgments, names = (
        Judgments("run", Qrels.of(JUDGED, GradeScale.of(1, 5))),
        ("ndcg@4", "recall@4", "ra_nwg@4", "precision4@4"),
    )
    report = make_report(
        judgments,
        SYSTEMS,
        ScoringSettings(parse_measures((*names, "holes@4")), (4,)),
        [PeopleCorrection({}, None, whole)],
    )
    found = parts(report)
    assert {measure for _, measure, _ in found} == set(names)
    assert not [note for note in report.notes if "not corrected" in note]
    for measure in names:
        part, truth = found["one", measure, None], true_mean(measure, "one")
        assert part.whole
        assert part.low < truth < part.high
        assert part.high - part.low < part.people_high - part.people_low
    both = parts(reported(whole=whole))
    assert not both["one", "precision4@4", None].whole, "where passages were drawn, too, sums are corrected by them"
    assert both["one", "ndcg@4", None].whole


@pytest.mark.parametrize(
    ("measure", "possible"),
    [
        ("precision@5", True), ("precision4@5", True), ("harm@5", True), ("hits@5", True), ("rbp(p=0.5)@5", True),
        ("E[precision@5]", True), ("max[precision@5]", False), ("range[harm@5]", False), ("recall@5", False),
        ("f1@5", False), ("ndcg@5", False), ("ra_nwg@5", False), ("n_recall4@5", False), ("mrr@5", False),
        ("map", False), ("hit@5", False), ("judged@5", False), ("bpref", False),
    ],
)  # fmt: skip
def test_which_measures_are_corrected(measure: str, possible: bool) -> None:
    assert (correctable(parse_measure(measure)) is not None) == possible


@pytest.mark.parametrize("measure", ["precision@5", "precision4@5", "harm@3", "hits@5", "rbp@5", "E[precision@5]"])
def test_what_a_corrected_measure_sums_does_not_hang_on_other_labels(measure: str) -> None:
    """The sum of its shares is its value, under any labels: which is what the correction rests on."""
    named = parse_measure(measure)
    assert isinstance(named.measure, Linear)
    ties = Run.of({qid: {doc: float(int(doc[1:]) // 3) for doc in TRUTH[qid]} for qid in QIDS})
    for labels in (TRUTH, JUDGED):
        hits = find_hits(Qrels.of(labels, GradeScale.of(1, 5)), ties)
        shares = named.measure.shares(hits, expected=named.mode == "E")
        assert hits.total(shares * hits.weigh(named.measure.table(hits.qrels))) == pytest.approx(named.values(hits))
        other = replace(hits, qrels=hits.qrels.relabelled(np.full_like(hits.qrels.grade, 3)))
        assert named.measure.shares(other, expected=named.mode == "E").tolist() == shares.tolist()


def test_differences_are_those_from_the_baseline() -> None:
    third = NamedSystem("three", "three.trec", Run.of(LISTS["one"]))
    found = parts(reported(baseline="two", systems=(*SYSTEMS, third)))
    assert {(name, against) for name, _, against in found if against} == {("one", "two"), ("three", "two")}
    many = tuple(NamedSystem(f"s{number}", "s.trec", Run.of(LISTS["one"])) for number in range(4))
    assert not [each for each in parts(reported(systems=many)) if each[2]]


def test_few_drawn_passages_get_no_number() -> None:
    few = {key: label for key, label in DRAWN.items() if key[0] < "q05"}
    chances = {key: replace(label, chance=0.05) for key, label in few.items()}
    report = reported(chances, measures=("precision4@4",))
    assert {part.corrected for part in parts(report).values()} == {None}
    assert "one: precision4@4 not corrected: drawn passages are in the lists of 5 queries" in _said(report)


def test_a_draw_that_was_not_finished_is_refused() -> None:
    begun = {key: label for key, label in DRAWN.items() if key[0] < "q30"}
    with pytest.raises(DataError, match="does not fit its recorded sampling probabilities"):
        reported(begun)


def test_without_labels_or_on_another_scale_it_is_refused() -> None:
    with pytest.raises(UsageError, match="no human labels to correct scores with"):
        reported({})
    labels = Judgments("qrels", Qrels.of(JUDGED, GradeScale.of(0, 5)))
    with pytest.raises(UsageError, match="use another one"):
        make_report(labels, SYSTEMS, ScoringSettings(parse_measures(["recall@4"]), (4,)), [PeopleCorrection(DRAWN)])


def test_the_page_tells_both() -> None:
    said = _said(reported())
    assert "corrected by human labels; judge only" in said
    section = next(each for each in _page(reported()).sections if each.title == "Corrected by human labels")
    assert section.table is not None
    assert len(section.table.rows) == 9


def _page(report: EvalReport) -> ReportDocument:
    return lay_out(EvalReport.model_validate_json(report.model_dump_json()))


def _said(report: EvalReport) -> str:
    return "\n".join(sentence for section in _page(report).sections for sentence in section.sentences)


def test_two_draws_that_know_nothing_of_each_other_are_refused() -> None:
    rng = generator(2, "second plan")
    open_ = [(qid, doc) for qid in QIDS for doc in TRUTH[qid] if (qid, doc) not in DRAWN]
    second = {(qid, doc): DrawnLabel(TRUTH[qid][doc], CHANCE) for qid, doc in open_ if rng.random() < CHANCE}
    with pytest.raises(DataError, match="does not fit its recorded sampling probabilities"):
        reported({**DRAWN, **second})
