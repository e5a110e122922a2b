"""Orders by simulated judges, and the plain likelihood of one."""

from __future__ import annotations

import numpy as np

from raggs.ranking.posterior import JudgedLists, JudgedOrders, JudgeModel


def fair(orders, weights=None, **manner) -> JudgedOrders:
    """Orders of a judge that favours no place; each list was shown as it was ordered."""
    orders = np.array(orders)
    places = np.tile(np.arange(orders.shape[1]), (len(orders), 1))
    lists = JudgedLists(orders, places, np.ones(len(orders)) if weights is None else weights)
    return JudgedOrders((lists,), JudgeModel(np.zeros(orders.shape[1]), **manner))


def judged_orders(utilities, count, sharpness, rng, size=5) -> np.ndarray:
    """Random batches in the order of a Plackett-Luce judge, shape (count, size)."""
    batches = [rng.choice(utilities.size, size, replace=False) for _ in range(count)]
    keys = [sharpness * utilities[batch] + rng.gumbel(size=size) for batch in batches]
    return np.array([batch[np.argsort(-key)] for batch, key in zip(batches, keys, strict=True)])


def log_likelihood(scores) -> float:
    """Log-probability of one order, scores best first: stage by stage the log of a softmax over those that are left."""
    scores = np.asarray(scores, dtype=np.float64)
    stages = [scores[stage:] for stage in range(scores.size)]
    return float(sum(left[0] - left.max() - np.log(np.exp(left - left.max()).sum()) for left in stages))
