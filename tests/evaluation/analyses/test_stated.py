"""Probabilities of grades in label uncertainty and corrected scores."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.evaluation.analyses.corrected import DrawnLabel, SampledGrades, correctable
from raggs.metrics.columns import GradeScale, Qrels, Run, shares_of
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import LabelUncertainty

LABELS = {"q1": {"a": 4, "b": 1, "c": 2}, "q2": {"a": 5, "d": 1}}
STATED = {("q1", "a"): (0, 0, 0.2, 0.5, 0.3), ("q1", "b"): (0.6, 0.4, 0, 0, 0), ("q2", "d"): (0.5, 0, 0, 0, 0.5)}
PAIRS = [(qid, doc) for qid, docs in LABELS.items() for doc in docs]


def qrels() -> Qrels:
    return Qrels.of(LABELS, GradeScale.of(1, 5))


def test_draws_have_the_stated_frequencies_and_near_duplicates_move_together() -> None:
    shares = shares_of(PAIRS, {**STATED, ("q1", "b"): STATED["q1", "a"]})
    doubt = LabelUncertainty(np.zeros(5), ((),) * 5, shares, np.array([0, 0, 2, 3, 4]))
    rng = np.random.default_rng(1)
    drawn = np.array([doubt.draw(qrels(), rng) for _ in range(4000)])
    for row, pair in ((0, ("q1", "a")), (4, ("q2", "d"))):
        found = np.bincount(drawn[:, row], minlength=6)[1:] / 4000
        assert found == pytest.approx(STATED[pair], abs=0.03)
    assert (drawn[:, 0] == drawn[:, 1]).all(), "a near-duplicate has the grade of its representative"
    assert (drawn[:, 2] == 2).all() and (drawn[:, 3] == 5).all(), "no probabilities are stated"


def test_a_ranked_passage_keeps_the_error_of_its_rank() -> None:
    doubt = LabelUncertainty(np.array([0.0, 0, 0, 0, 3.0]), ((),) * 5, shares_of(PAIRS, STATED))
    rng = np.random.default_rng(1)
    drawn = {int(doubt.draw(qrels(), rng)[4]) for _ in range(200)}
    assert drawn == {1, 2, 3, 4, 5}


def test_draws_without_probabilities_are_as_before() -> None:
    old = LabelUncertainty(np.ones(5), ((1, 2),) * 5)
    new = LabelUncertainty(np.ones(5), ((1, 2),) * 5, None, None)
    assert (old.draw(qrels(), np.random.default_rng(3)) == new.draw(qrels(), np.random.default_rng(3))).all()


def test_a_score_is_predicted_by_its_expectation_and_corrected_to_the_same_truth() -> None:
    rng = np.random.default_rng(7)
    queries, depth = 60, 10
    shares = rng.dirichlet([0.4] * 5, (queries, depth))
    truth = np.array([[rng.choice(5, p=row) + 1 for row in rows] for rows in shares])
    grade = (np.cumsum(shares, axis=2) < 0.5).sum(axis=2) + 1
    labels = {f"q{q:02}": {f"d{q}-{d}": int(grade[q, d]) for d in range(depth)} for q in range(queries)}
    judged = Qrels.of(labels, GradeScale.of(1, 5))
    pairs = [(qid, doc) for qid, docs in labels.items() for doc in docs]
    rows = shares_of(pairs, dict(zip(pairs, map(tuple, shares.reshape(-1, 5).tolist()), strict=True)))
    doubt = LabelUncertainty(np.zeros(len(pairs)), ((),) * len(pairs), rows)
    drawn = {pairs[at]: DrawnLabel(int(truth.ravel()[at]), 0.5) for at in rng.permutation(len(pairs))[:300]}
    hits = find_hits(judged, Run.of({qid: list(docs) for qid, docs in labels.items()}), "file")
    named = parse_measure("precision@10")
    measure = correctable(named)
    assert measure is not None
    plain = SampledGrades.of(judged, drawn).sums(hits, measure, expected=False).estimate(0.95)
    found = SampledGrades.of(judged, drawn, doubt).sums(hits, measure, expected=False).estimate(0.95)
    assert found.machine == pytest.approx(plain.machine) == pytest.approx(float(np.mean(named.values(hits))))
    assert (found.people.mean, found.people.low) == (plain.people.mean, plain.people.low)
    assert found.found.high - found.found.low < 0.97 * (plain.found.high - plain.found.low)
    good = (truth >= judged.scale.relevant).mean()
    assert found.found.low <= good <= found.found.high
