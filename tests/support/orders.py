"""Orders by simulated judges, as answers."""

from __future__ import annotations

import numpy as np

from raggs.ranking.answers import Answers


def fair(orders, weights=None) -> Answers:
    """Answers of a judge that favours no place; each list was shown as it was ordered."""
    orders = np.array(orders)
    places = np.tile(np.arange(orders.shape[1]), (len(orders), 1))
    return Answers(orders, places, np.ones(len(orders)) if weights is None else weights, np.zeros(orders.shape[1]))


def judged_orders(utilities, count, sharpness, rng, size=5) -> np.ndarray:
    """Random batches in the order of a Plackett-Luce judge, shape (count, size)."""
    batches = [rng.choice(utilities.size, size, replace=False) for _ in range(count)]
    keys = [sharpness * utilities[batch] + rng.gumbel(size=size) for batch in batches]
    return np.array([batch[np.argsort(-key)] for batch, key in zip(batches, keys, strict=True)])
