"""What a person would say: the prior as it is told, and what reading makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.stats.annotation_value import HOLE_STEP, PRIOR_GRADE_DECAY, KnownGrades, believe

NONE = np.empty(0, dtype=np.int64)


def heard(*answers: tuple[int, ...], sigma: float = 0.0) -> KnownGrades:
    """Items by the judge's answers, grades from 0; the grade is their lower median."""
    voices = np.array([[given.count(grade) for grade in range(5)] for given in answers])
    grade = np.array([sorted(given)[(len(given) - 1) // 2] if given else -1 for given in answers])
    return KnownGrades(grade, voices, np.full(len(answers), sigma))


def test_before_anybody_read_each_grade_further_off_is_so_much_less_likely() -> None:
    found = believe(heard((2,), (0,), ()), NONE, NONE)
    assert found.sum(axis=1) == pytest.approx(1)
    assert found[0] / found[0, 2] == pytest.approx(
        [PRIOR_GRADE_DECAY**2, PRIOR_GRADE_DECAY, 1, PRIOR_GRADE_DECAY, PRIOR_GRADE_DECAY**2]
    )
    assert found[1] / found[1, 0] == pytest.approx(PRIOR_GRADE_DECAY ** np.arange(5))
    assert found[2] / found[2, 0] == pytest.approx(HOLE_STEP ** np.arange(5)), "nobody judged it"


def test_a_judge_that_does_not_agree_with_itself_is_believed_less() -> None:
    alike, apart = believe(heard((2, 2, 2), (2, 2, 4)), NONE, NONE)
    assert apart[2] < alike[2]
    assert apart[4] > alike[4]


def test_what_was_read_counts_for_its_grade_and_its_kind() -> None:
    items = heard(*[(3,)] * 100, *[(1,)] * 2, (3, 3))
    read, said = np.arange(90), np.full(90, 4)
    before, after = believe(items, NONE, NONE), believe(items, read, said)
    assert after[95, 4] > 0.85
    assert after[100, 1] < before[100, 1], "a judge that errs is trusted less everywhere"
    assert after[102] == pytest.approx(before[102]), "of repeats nothing was learned"


def test_the_rankings_doubt_widens() -> None:
    sure, vague = believe(heard((2,)), NONE, NONE), believe(heard((2,), sigma=1.0), NONE, NONE)
    assert vague[0, 2] < sure[0, 2]
    assert vague.sum() == pytest.approx(1)


def test_the_share_of_errors_is_learned() -> None:
    drawn = np.random.default_rng(1)
    truth = drawn.integers(0, 5, 4000)
    said = np.where(drawn.random(4000) < 0.3, np.clip(truth + drawn.choice([-1, 1], 4000), 0, 4), truth)
    items = heard(*[(grade,) for grade in said.tolist()])
    found = believe(items, np.arange(2000), truth[:2000])[2000:]
    right = found[np.arange(2000), said[2000:]].mean()
    assert right == pytest.approx((said == truth)[2000:].mean(), abs=0.03)


def test_stated_probabilities_decide_and_labels_calibrate_them() -> None:
    drawn = np.random.default_rng(2)
    truth = drawn.dirichlet([0.5] * 5, 1200)
    stated = truth**3 / (truth**3).sum(axis=1, keepdims=True)  # too certain
    said = np.array([drawn.choice(5, p=row) for row in truth])
    grade = (np.cumsum(stated, axis=1) < 0.5).sum(axis=1)
    plain = heard(*[(each,) for each in grade.tolist()])
    items = KnownGrades(plain.grade, plain.voices, plain.sigma, stated)

    def score(found: np.ndarray) -> float:
        return float(-np.log(np.maximum(found[np.arange(1200), said], 1e-4))[400:].mean())

    read = np.arange(400)
    scores = [score(believe(each, *labels)) for each in (plain, items) for labels in ((NONE, NONE), (read, said[read]))]
    assert scores[2] < scores[0] and scores[3] < scores[1] and scores[3] < scores[2]
    part = KnownGrades(plain.grade, plain.voices, plain.sigma, np.where(np.arange(1200)[:, None] < 600, stated, np.nan))
    mixed, alone = believe(part, NONE, NONE), believe(plain, NONE, NONE)
    assert mixed[600:] == pytest.approx(alone[600:]), "others are as without probabilities"
    assert mixed.sum(axis=1) == pytest.approx(1)
