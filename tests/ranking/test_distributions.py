"""Distributions of grades as the prior of the utilities, and probabilities of the best passage as an observation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.orders import fair, log_likelihood
from support.worlds import make_world, play, tau

from raggs.base.hashing import generator
from raggs.ranking import make_ranker
from raggs.ranking.posterior import (
    JudgedLists,
    JudgedOrders,
    JudgeModel,
    Prior,
    by_item,
    by_place,
    fit,
    grade_prior,
    pick_sums,
)
from raggs.ranking.profile import fit_profile

WORLD = make_world(3, 20)
GRADES = list(WORLD.grades.values())
ENGINES = ["bayes", "online"]
SURE = {grade: tuple(float(grade == level) for level in range(1, 6)) for grade in range(1, 6)}
WIDE = (0.2, 0.2, 0.2, 0.2, 0.2)


def ranker(engine: str = "bayes", distributions=None, grades=None, **options):
    given = {"top": 10, "seed": 1, "max_calls": 20, **options}
    return make_ranker(engine, WORLD.ids, GRADES if grades is None else grades, distributions=distributions, **given)


def soft_play(ranking, sharpness, every=1):
    """Answer every `every`-th batch by the probabilities of its best passage, and the others by an order."""
    order, count = WORLD.judge(sharpness, 5), 0
    while not ranking.done:
        for batch in ranking.next_batches(4):
            scores = np.exp([sharpness * WORLD.utility[name] for name in batch])
            ranked = sorted(zip(scores / scores.sum(), batch, strict=True), reverse=True)
            if count % every == 0:
                ranking.observe([name for _, name in ranked], [float(chance) for chance, _ in ranked])
            else:
                ranking.observe(order(batch))
            count += 1
    return ranking.ranking()


@pytest.mark.parametrize("engine", ENGINES)
def test_no_distribution_at_all_changes_nothing(engine):
    plain, empty = ranker(engine), ranker(engine, [None] * 20)
    assert play(plain, WORLD.judge(3.0)) == play(empty, WORLD.judge(3.0))


@pytest.mark.parametrize("engine", ENGINES)
def test_start_scores_are_the_means_in_the_order_of_the_ids(engine):
    rng = generator(1, "means")
    rows = [None if place % 4 == 0 else tuple(rng.dirichlet(np.ones(5)).tolist()) for place in range(20)]
    made = ranker(engine, rows)
    expected = {
        name: grade if row is None else float(np.dot(row, range(1, 6)))
        for name, grade, row in zip(WORLD.ids, GRADES, rows, strict=True)
    }
    assert dict(zip(made.ids, made.prior.tolist(), strict=True)) == pytest.approx(expected)


def test_a_distribution_replaces_a_missing_grade():
    grades = [None, *GRADES[1:]]
    made = ranker("bayes", [(0, 0, 0, 0.5, 0.5), *[None] * 19], grades)
    at = made.ids.index(WORLD.ids[0])
    assert made.prior[at] == 4.5
    assert made.posterior.mean[at] == pytest.approx(4.5, abs=0.02)
    assert made.posterior.covariance[at, at] == pytest.approx(0.5**2 + 0.25, abs=0.02)
    assert made.pilot().graded.all() and np.isnan(made.pilot().distributions[:, 0]).sum() == 19


def test_the_order_without_calls_follows_the_means():
    rows = [(0, 0, 0.1 + place / 100, 0.9 - place / 100, 0) for place in range(20)]
    assert ranker("bayes", rows, max_calls=0).ranking().order == tuple(WORLD.ids)


@given(st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(lambda row: sum(row) > 0.1), st.floats(0.1, 1))
def test_the_prior_has_the_moments_of_the_distribution(row, sigma):
    shares = np.array(row) / sum(row)
    levels = np.arange(1.0, 6.0)
    prior = grade_prior(np.array([3.0]), np.array([True]), sigma, 0.0, shares[None]).normal()
    mean = shares @ levels
    assert prior.mean[0] == pytest.approx(mean)
    assert 1 / prior.precision[0] == pytest.approx(shares @ (levels - mean) ** 2 + sigma**2)


def test_a_tenth_of_a_sure_grade_may_have_slipped():
    shares = grade_prior(np.array([5.0]), np.array([True]), 0.5, 0.4, np.array([SURE[2]])).shares[0]
    np.testing.assert_allclose(shares, [0.02, 0.96, 0.02, 0, 0])


def test_passages_without_a_distribution_keep_their_prior():
    grades, graded = np.array([1.0, 2.0, 4.5, 3.0, 2.2]), np.array([True, True, True, True, False])
    rows = np.full((5, 5), np.nan)
    rows[3] = WIDE
    mixed, plain = (
        grade_prior(grades, graded, 0.5, 0.25, rows),
        grade_prior(grades[[0, 1, 2, 4]], graded[[0, 1, 2, 4]], 0.5, 0.25),
    )
    assert mixed.centres.shape == (5, 5)
    np.testing.assert_allclose(mixed.normal().mean[[0, 1, 2, 4]], plain.normal().mean)
    np.testing.assert_allclose(mixed.normal().precision[[0, 1, 2, 4]], plain.normal().precision)


def test_better_knowledge_of_the_grades_gives_a_better_order():
    def level(grades: np.ndarray) -> float:
        rows = [SURE[int(grade)] for grade in grades]
        return np.mean([tau(play(ranker(distributions=rows), WORLD.judge(3.0)).order, WORLD.truth)])

    true = np.clip(np.round(list(WORLD.utility.values())), 1, 5)
    wrong = true[np.argsort(generator(1, "shuffle").random(20))]
    assert level(true) > level(wrong)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([None] * 19, "20 ids, 19 distributions"),
        ([(0.5, 0.5), *[None] * 19], f"the distribution of {WORLD.ids[0]} needs five probabilities, not 2"),
        ([(0.5, 0.6, -0.1, 0, 0), *[None] * 19], "probabilities of at least 0 with a sum of 1"),
        ([(0.5, 0.4, 0, 0, 0), *[None] * 19], "probabilities of at least 0 with a sum of 1"),
        ([(float("nan"), 0.5, 0.5, 0, 0), *[None] * 19], "probabilities of at least 0 with a sum of 1"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_are_no_distributions(engine, rows, message):
    with pytest.raises(ValueError, match=message):
        ranker(engine, rows)


def test_a_sum_may_be_rounded():
    row = (0.333, 0.333, 0.333, 0, 0)
    assert ranker("bayes", [row] * 20).distributions.sum(axis=1) == pytest.approx(np.ones(20), abs=1e-12)


def soft(orders, best) -> JudgedOrders:
    hard = fair(orders)
    lists = JudgedLists(hard.lists[0].orders, hard.lists[0].places, np.ones(len(orders)), np.asarray(best, dtype=float))
    return JudgedOrders((lists,), JudgeModel(np.array([0.4, 0.1, -0.2, -0.3])))


def test_the_log_likelihood_is_the_mean_over_the_picks():
    utilities, rng = np.array([1.0, 3.0, 2.0, 4.5]), generator(2, "picks")
    best = rng.dirichlet(np.ones(4))
    scores = 2.0 * utilities + [0.4, 0.1, -0.2, -0.3]
    # the log-probability of a whole order minus that of the order of the rest
    rests = [np.delete(scores, at) for at in range(4)]
    firsts = [log_likelihood([scores[at], *rest]) - log_likelihood(rest) for at, rest in enumerate(rests)]
    found = by_item(utilities, soft([[0, 1, 2, 3]], [best]), 2.0)[0]
    assert found == pytest.approx(float(best @ firsts))


def test_the_derivatives_of_soft_picks_are_those_of_the_likelihood():
    utilities, step, rng = np.array([1.0, 3.0, 2.0, 4.5, 2.5]), 1e-5, generator(3, "derivatives")
    lists = [[0, 1, 2, 3], [4, 2, 1, 0]]
    judged = soft(lists, rng.dirichlet(np.ones(4), size=2))
    _, gradient, curvature = by_item(utilities, judged, 1.7)
    for at, nudge in enumerate(np.eye(5) * step):
        above, below = by_item(utilities + nudge, judged, 1.7), by_item(utilities - nudge, judged, 1.7)
        assert gradient[at] == pytest.approx((above[0] - below[0]) / (2 * step), abs=1e-6)
        np.testing.assert_allclose(-curvature[at], (above[1] - below[1]) / (2 * step), atol=1e-6)
    assert by_place(utilities, judged, 1.7)[1].sum() == pytest.approx(0, abs=1e-9)


def test_a_sure_pick_of_two_is_a_duel():
    scores = np.array([[0.3, -0.4], [2.0, 5.0]])
    _, slope, bend = pick_sums(scores, np.array([[1.0, 0.0], [1.0, 0.0]]))
    lost = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
    np.testing.assert_allclose(slope[:, 0], lost)
    np.testing.assert_allclose(bend[:, 0, 0], lost * (1 - lost))


def test_probabilities_that_the_model_predicts_change_no_score():
    utilities = np.array([1.0, 3.0, 2.0, 2.5])
    chances = np.exp(2.0 * utilities) / np.exp(2.0 * utilities).sum()
    judged = JudgedOrders(
        (JudgedLists(np.array([[0, 1, 2, 3]]), np.arange(4)[None], np.ones(1), chances[None]),), JudgeModel(np.zeros(4))
    )
    found = fit(Prior(utilities, np.full(4, 4.0)), judged, 2.0, utilities)
    np.testing.assert_allclose(found.mean, utilities, atol=1e-9)
    assert found.covariance.diagonal().max() < 0.25


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("every", [1, 2])
def test_soft_answers_improve_the_order_and_replay_to_the_last_bit(engine, every):
    found = [soft_play(ranker(engine), 3.0, every) for _ in range(2)]
    assert found[0] == found[1]
    assert tau(found[0].order, WORLD.truth) > tau(ranker(engine).ranking().order, WORLD.truth)
    assert 0 < found[0].calls <= 20


@pytest.mark.parametrize("engine", ENGINES)
def test_an_even_pick_says_that_all_are_equal(engine):
    made = ranker(engine, grades=[3.0] * 20)
    batch = made.next_batches(1)[0]
    before = made.ranking().scores
    made.observe(batch, [0.2] * 5)
    np.testing.assert_allclose(made.ranking().scores, before, atol=1e-9)
    assert made.calls == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("best", "message"),
    [
        ([0.5, 0.5], "one probability for each of the 5 passages, not 2"),
        ([0.5, 0.5, 0.5, 0, 0], "best must have probabilities of at least 0 with a sum of 1"),
        ([1.5, -0.5, 0, 0, 0], "best must have probabilities of at least 0 with a sum of 1"),
        ([float("inf"), 0, 0, 0, 0], "best must have probabilities of at least 0 with a sum of 1"),
    ],
)
def test_probabilities_that_are_none_leave_the_batch_outstanding(engine, best, message):
    made = ranker(engine)
    batch = made.next_batches(1)[0]
    with pytest.raises(ValueError, match=message):
        made.observe(batch, best)
    made.observe(batch)
    assert made.calls == 1


def test_a_profile_is_fitted_to_pilots_with_and_without_distributions():
    pilots = []
    for seed in range(3):
        world = make_world(seed, 30)
        rows = [SURE[int(grade)] if at % 2 else None for at, grade in enumerate(world.grades.values())]
        made = make_ranker(
            "bayes", world.ids, list(world.grades.values()), batch_size=None, seed=seed, distributions=rows
        )
        order = world.judge(3.0, seed)
        for batch in made.pilot_batches():
            made.observe(order(batch))
        pilots.append(made.pilot())
    profile = fit_profile(pilots)
    assert 1.5 <= profile.sharpness <= 6
    made.believe(profile)
    assert play(made, order).calls > len(pilots[-1].judged.lists)
