"""The Plackett-Luce model of one judged order, stage by stage.

A judge who ranks a batch picks its best item, then the best of the rest, and so on; each pick from the suffix S_k
follows a softmax of the scores in S_k (Luce 1959, Plackett 1975). Everything here takes scores in the judged
order, best first, and is exact for scores of any finite size.
"""

from __future__ import annotations

import numpy as np

from raggs.arrays import Floats


def stage_probabilities(scores: Floats) -> Floats:
    """p[k, j]: the chance that item j is picked at stage k, for scores s_0..s_{m-1} in the judged order.

    p[k, j] = exp(s_j) / sum over u >= k of exp(s_u) for j >= k, else 0. Shape (m, m); each row sums to 1.
    """
    inside = np.triu(np.ones((scores.size, scores.size), dtype=bool))
    stages = np.where(inside, scores, -np.inf)
    weights = np.exp(stages - stages.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def log_likelihood(scores: Floats) -> float:
    """Log-probability of the judged order: the sum over stages of log p[k, k]; never above 0."""
    tail_max = np.maximum.accumulate(scores[::-1])[::-1]
    tails = [np.log(np.exp(scores[k:] - tail_max[k]).sum()) + tail_max[k] for k in range(scores.size)]
    return float(scores.sum() - np.sum(tails))


def gradient(stages: Floats) -> Floats:
    """d log-likelihood / d score from `stage_probabilities`: 1 - p for each stage's winner, -p for the others."""
    return np.asarray(1.0 - stages.sum(axis=0))


def information(stages: Floats) -> Floats:
    """Fisher information on each score: the sum over stages of p (1 - p)."""
    return np.asarray((stages * (1.0 - stages)).sum(axis=0))
