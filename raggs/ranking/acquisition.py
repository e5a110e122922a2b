"""Which batch to ask next: A-optimal weighted contrasts.

What the top needs are the differences between utilities that matter and are still open. Each pair has a weight
w_ij, high where one of the two may belong to the top and the order is uncertain; a batch is worth the exact drop
of the weighted sum of the variances of the differences, sum w_ij v_ij, under the model's expected information
(A-optimality: Chernoff 1953). Batches grow greedily from the most promising pairs; swapping members afterwards, or
more pairs to start from, gained nothing that could be measured.

The batches of a round are chosen before any is judged, so each pick updates the covariance as if it had been
judged: later picks see what earlier ones will teach. Pure functions of the posterior; no randomness.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raggs.ranking.answers import Floats, Ints, stages, upset_chances
from raggs.ranking.confidence import normal_cdf
from raggs.ranking.posterior import Posterior

STARTS = 2  # pairs that batches grow from
STARTS_EACH = 2  # start pairs that may share an item
OPENNESS = 4  # power of 4 P (1 - P) in the weight of a pair
THRESHOLDS = 96  # grid of the membership threshold; between its points the count is interpolated


OUTSIDE, BOUNDARY = 0.05, 0.4  # interest of a pair with no item, or just one, in the top; with both: 1


class Planner:
    """Picks batches one after the other, each as if the ones before had been judged.

    Args:
        posterior: of the utilities.
        worth: shape (size, size): what a showing of each pair teaches, 1 for an independent opinion.
        top: how many leading positions matter.
    """

    def __init__(self, posterior: Posterior, worth: Floats, top: int) -> None:
        self.mean, self.sharpness = posterior.mean, posterior.sharpness
        self.covariance = posterior.covariance
        self.top = top
        self._worth = worth
        self._line = np.argsort(-self.mean, kind="stable")
        self._rank = np.argsort(self._line)
        self._gaps = self.mean[:, None] - self.mean[None, :]
        chance = upset_chances(self.sharpness * np.abs(self._gaps))
        self._duel = self.sharpness**2 * chance * (1.0 - chance) * worth

    def pick(self, size: int) -> Ints:
        """The next batch of `size` passages, in no particular order; its expected information is taken in."""
        stakes, variances = self._stakes()
        batch = self._best(stakes, variances, size)
        self.expect(batch)
        return batch

    def pick_among(self, batches: Ints) -> int:
        """The place of the best of some batches, shape (c, m); its expected information is taken in."""
        stakes, _ = self._stakes()
        place = int(np.argmax(self._gains(batches, stakes)))
        self.expect(batches[place])
        return place

    def expect(self, batch: Ints) -> None:
        """Take in the expected information of a batch: C becomes (C^-1 + F)^-1 (Woodbury)."""
        batch = self._by_score(batch[None])[0]
        information = self._information(batch[None])[0]
        columns = self.covariance[:, batch]
        inner = np.eye(batch.size) + columns[batch] @ information
        self.covariance -= columns @ information @ np.linalg.solve(inner, columns.T)
        self.covariance = (self.covariance + self.covariance.T) / 2

    def _stakes(self) -> tuple[Floats, Floats]:
        """M = C L C, with L the Laplacian of the pair weights, and the variances of the differences."""
        spread = self.covariance.diagonal()
        variances = np.maximum(spread[:, None] + spread[None, :] - 2 * self.covariance, 1e-12)
        np.fill_diagonal(variances, 1.0)
        wins = normal_cdf(self._gaps / np.sqrt(variances))
        inside = inside_chances(self.mean, np.sqrt(spread), self.top)
        weights = pair_interest(inside) * (4 * wins * (1 - wins)) ** OPENNESS / variances
        np.fill_diagonal(weights, 0.0)
        laplacian = -weights
        np.fill_diagonal(laplacian, weights.sum(axis=1))
        return self.covariance @ laplacian @ self.covariance, variances

    def _best(self, stakes: Floats, variances: Floats, size: int) -> Ints:
        """The best of the batches that grow from the best pairs."""
        values = self._pair_values(stakes, variances)
        batches = np.array(list(_starts(values)))
        gains = values[batches[:, 0], batches[:, 1]]
        for _ in range(size - 2):
            batches, gains = self._grow(batches, stakes)
        return np.asarray(batches[np.argmax(gains)])

    def _pair_values(self, stakes: Floats, variances: Floats) -> Floats:
        diagonal = stakes.diagonal()
        drops = diagonal[:, None] + diagonal[None, :] - 2 * stakes
        return self._duel * drops / (1.0 + self._duel * variances)

    def _grow(self, batches: Ints, stakes: Floats) -> tuple[Ints, Floats]:
        """Each batch with the item of the highest gain added, and the gains."""
        count, size = batches.shape[0], self.mean.size
        items = np.broadcast_to(np.arange(size), (count, size))
        grown = np.concatenate([np.repeat(batches[:, None, :], size, axis=1), items[:, :, None]], axis=2)
        gains = self._gains(grown.reshape(count * size, -1), stakes).reshape(count, size)
        np.put_along_axis(gains, batches, -np.inf, axis=1)
        best = np.argmax(gains, axis=1)
        return np.asarray(grown[np.arange(count), best]), np.asarray(gains.max(axis=1))

    def _gains(self, batches: Ints, stakes: Floats) -> Floats:
        """tr(F (I + C F)^-1 M) over each batch: the exact drop of sum w_ij v_ij, weights held."""
        batches = self._by_score(batches)
        information = self._information(batches)
        rows, columns = batches[:, :, None], batches[:, None, :]
        inner = np.eye(batches.shape[1]) + self.covariance[rows, columns] @ information
        return np.asarray(np.einsum("cij,cji->c", information, np.linalg.solve(inner, stakes[rows, columns])))

    def _by_score(self, batches: Ints) -> Ints:
        """The same batches, each with its members in the order of the scores."""
        return np.asarray(self._line[np.sort(self._rank[batches], axis=1)])

    def _information(self, batches: Ints) -> Floats:
        """Expected information of each batch: b^2 sum (diag p - p p^T) over its stages, were it judged as it stands.

        The members come in the order of the scores.
        """
        _, _, blocks = stages(self.sharpness * self.mean[batches])
        return np.asarray(self.sharpness**2 * self._mean_worth(batches)[:, None, None] * blocks)

    def _mean_worth(self, batches: Ints) -> Floats:
        size = batches.shape[1]
        pairs = self._worth[batches[:, :, None], batches[:, None, :]]
        return np.asarray(pairs.sum(axis=(1, 2)) / (size * (size - 1)))


def _starts(values: Floats) -> Iterator[tuple[int, int]]:
    """The best pairs, no item in too many of them."""
    rows, columns = np.triu_indices(values.shape[0], k=1)
    used: dict[int, int] = {}
    found = 0
    line = values[rows, columns]
    short = min(line.size, 64 * STARTS)
    candidates = np.sort(np.argpartition(-line, short - 1)[:short])
    for place in candidates[np.argsort(-line[candidates], kind="stable")].tolist():
        pair = int(rows[place]), int(columns[place])
        if all(used.get(item, 0) < STARTS_EACH for item in pair):
            for item in pair:
                used[item] = used.get(item, 0) + 1
            yield pair
            found += 1
            if found == STARTS:
                return


def inside_chances(mean: Floats, sigma: Floats, top: int) -> Floats:
    """q_i = Phi((x_i - t) / sigma_i) with the threshold t at which the q sum to `top`; all 1 in small pools."""
    if mean.size <= top:
        return np.ones(mean.size)
    grid = np.linspace(float((mean - 3 * sigma).min()), float((mean + 3 * sigma).max()), THRESHOLDS)
    counts = normal_cdf((mean[None, :] - grid[:, None]) / sigma[None, :]).sum(axis=1)
    threshold = np.interp(-top, -counts, grid)
    return normal_cdf((mean - threshold) / sigma)


def pair_interest(inside: Floats) -> Floats:
    """om_ij = outside + (1 - outside) T - (1 - boundary) B, T: one or both in the top, B: exactly one."""
    either = 1.0 - (1.0 - inside)[:, None] * (1.0 - inside)[None, :]
    one = inside[:, None] * (1.0 - inside)[None, :]
    one = one + one.T
    return np.asarray(OUTSIDE + (1 - OUTSIDE) * either - (1 - BOUNDARY) * one)
