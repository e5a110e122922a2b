import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.hashing import generator
from raggs.ranking import rounds as confidence
from raggs.ranking.bayes import Planner
from raggs.ranking.posterior import JudgeModel, Posterior, Prior, stage_chances


def planner(size, seed=0, top=5, worth=1.0) -> Planner:
    rng = generator(seed, "planner")
    mean = rng.normal(3, 1, size)
    root = rng.normal(0, 0.3, (size, size))
    covariance = root @ root.T / size + 0.2 * np.eye(size)
    return Planner(
        Posterior(mean, covariance, 2.0, 0.0, Prior(mean, np.full(size, 2.0))),
        np.full((size, size), worth) - np.diag([worth] * size),
        top,
        JudgeModel(np.zeros(5)),
    )


def expected_information(plan, batch) -> np.ndarray:
    """Stage by stage, in the order of the scores."""
    line = sorted(batch.tolist(), key=lambda item: -plan.mean[item])
    stages = stage_chances(plan.sharpness * plan.mean[line])
    whole = np.zeros((plan.mean.size, plan.mean.size))
    for p in stages:
        whole[np.ix_(line, line)] += plan.sharpness**2 * (np.diag(p) - np.outer(p, p))
    return whole


@given(seed=st.integers(0, 100))
def test_expecting_a_batch_adds_its_information(seed):
    plan = planner(9, seed)
    batch = generator(seed, "batch").choice(9, 4, replace=False)
    after = np.linalg.inv(np.linalg.inv(plan.covariance) + expected_information(plan, batch))
    plan.expect(batch)
    np.testing.assert_allclose(plan.covariance, after, atol=1e-10)


@given(seed=st.integers(0, 100))
def test_the_gain_is_the_drop_of_the_weighted_variances(seed):
    plan = planner(8, seed, top=3)
    batch = generator(seed, "batch").choice(8, 4, replace=False)
    spread = plan.covariance.diagonal()
    variances = spread[:, None] + spread - 2 * plan.covariance
    np.fill_diagonal(variances, 1)
    inside = confidence.membership(plan.mean, np.sqrt(spread), 3, confidence.near_threshold)
    either = 1 - np.outer(1 - inside, 1 - inside)
    losses = confidence.pair_losses(plan.mean, plan.covariance)
    weights = either * np.minimum(losses, losses.T) / variances  # of the better order
    stakes, _ = plan._stakes()
    gain = plan._gains(batch[None], stakes)[0]
    plan.expect(batch)
    spread = plan.covariance.diagonal()
    drops = variances - (spread[:, None] + spread - 2 * plan.covariance)
    assert gain == pytest.approx((weights * drops)[np.triu_indices(8, k=1)].sum())


def test_small_pools_get_nearly_the_best_batch():
    shares = []
    for seed in range(20):
        plan = planner(9, seed, top=4)
        stakes, _ = plan._stakes()
        everything = np.array(list(itertools.combinations(range(9), 4)))
        best = plan._gains(everything, stakes).max()
        shares.append(plan._gains(plan.pick(4)[None], stakes)[0] / best)
    assert min(shares) > 0.95 and np.mean(shares) > 0.99


def test_worthless_pairs_teach_nothing():
    plan = planner(6, worth=0.0)
    before = plan.covariance.copy()
    plan.expect(np.array([0, 1, 2]))
    np.testing.assert_array_equal(plan.covariance, before)


def test_pairs_without_use_or_outside_the_top_do_not_matter():
    mean, sure = np.array([5.0, 5.0, 4.0, 4.0, 1.0, 1.0]), np.full(6, 1e-4)
    prior = Prior(mean, 1 / sure)
    wide = Planner(Posterior(mean, np.diag(sure), 2.0, 0.0, prior), np.ones((6, 6)), 5, JudgeModel(np.zeros(5)))
    assert wide._interest()[0, 1] == pytest.approx(1) and wide._interest()[4, 5] == pytest.approx(0)
    narrow = Planner(Posterior(mean, np.diag(sure), 2.0, 0.0, prior), np.ones((6, 6)), 2, JudgeModel(np.zeros(5)))
    assert narrow._interest()[1, 2] == pytest.approx(1) and narrow._interest()[2, 3] == pytest.approx(0, abs=1e-6)


@given(seed=st.integers(0, 50))
def test_of_given_batches_the_one_that_teaches_most_is_picked(seed):
    plan, other = planner(9, seed), planner(9, seed)
    draw = generator(seed, "batches")
    batches = np.array([draw.choice(9, 4, replace=False) for _ in range(6)])
    stakes, _ = plan._stakes()
    best = int(np.argmax(plan._gains(batches, stakes)))
    assert plan.pick_among(batches) == best
    other.expect(batches[best])
    np.testing.assert_array_equal(plan.covariance, other.covariance)


@given(seed=st.integers(0, 30))
def test_lengths_share_what_they_begin_with_and_choose_as_if_each_was_planned_alone(seed):
    plans, told = [(3, 4), (6, 2), (12, 1)], {}
    together, rounds = planner(16, seed), {}
    picked = together.pick_round(plans, 1.0)
    for size, count in plans:
        alone, before = planner(16, seed), planner(16, seed)
        rounds[size] = [alone.pick(size).tolist() for _ in range(count)]
        told[size] = before._righted([alone.covariance])[0] / (count * (size + 1.0))
    assert together.told == [told]
    assert [batch.tolist() for batch in picked] == rounds[max(told, key=told.__getitem__)]
