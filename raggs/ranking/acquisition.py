"""Which batch to ask next: A-optimal weighted contrasts.

What the top needs are the differences between utilities that matter and are still open. Each pair has a weight
w_ij, so that w_ij v_ij is the gain that its order is expected to lose (see `raggs.ranking.confidence.pair_losses`), as
far as one of the two may belong to the top; a batch is worth the exact drop
of the weighted sum of the variances of the differences, sum w_ij v_ij, under the model's expected information
(A-optimality: Chernoff 1953). A batch grows greedily from the most promising pair; swapping members afterwards, or
more pairs to start from, gained nothing that could be measured.

The batches of a round are chosen before any is judged, so each pick updates the covariance as if it had been
judged: later picks see what earlier ones will teach. Pure functions of the posterior; no randomness.

Whose next round is asked where many rankings share one budget: where it promises most for its price.

The expected loss falls about as a power of what was heard, so the next call removes of it what is expected now, divided
by what was heard so far; the grades count as some calls that were heard already (`promise`). That is as good as the
planned drop of the variances, and costs nothing (benchmarks/results/setbudget.md).

Each ranking is asked once before any is asked again. After that comes wave after wave: the best offers that can still
be paid, a tenth of the rankings at a time (of few rankings up to a quarter). A wave is chosen by what all
earlier ones taught, and by nothing else: not by the time that an answer took.

Pure: offers in, offers out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.ranking.confidence import TINY, membership, near_threshold, normal_cdf, unit_loss, useful_chances
from raggs.ranking.posterior import Manner, Posterior, stage_sums, upset_chances

FEW, MANY = 5, 14  # members from which a batch grows by the most promising alone, and how many these are
OPENNESS = 4  # power of 4 P (1 - P) in the weight of a pair, where gains do not count
OUTSIDE, BOUNDARY = 0.05, 0.4  # interest of a pair with no item, or just one, in the top, where gains do not count


class Planner:
    """Picks batches one after the other, each as if the ones before had been judged.

    Args:
        posterior: of the utilities.
        worth: shape (size, size): what a showing of each pair teaches, 1 for an independent opinion.
        top: how many leading positions matter.
        manner: of the judge; its favour does not matter, since lists are shuffled.
        by_gain: whether pairs weigh as much as their order may lose; else the order of every open pair counts, as for
            lists that are to teach how the judge errs.

    Attributes:
        told: at each choice among several sizes, what the round of each was expected to put right for its price.
    """

    def __init__(self, posterior: Posterior, worth: Floats, top: int, manner: Manner, *, by_gain: bool = True) -> None:
        self.mean, self.sharpness = posterior.mean, posterior.sharpness
        self.covariance = posterior.covariance
        self.top = top
        self.told: list[Mapping[int, float]] = []
        self._worth, self._by_gain = worth, by_gain
        self._fresh = bool((worth + np.eye(len(worth)) == 1.0).all())  # every showing is an opinion of its own
        self._manner = manner
        self._line = np.argsort(-self.mean, kind="stable")
        self._rank = np.argsort(self._line)
        self._gaps = self.mean[:, None] - self.mean[None, :]
        chance = upset_chances(self.sharpness * np.abs(self._gaps))
        self._duel = self.sharpness**2 * chance * (1.0 - chance) * worth

    def pick(self, size: int) -> Ints:
        """The next batch, in no particular order; its expected information is taken in."""
        batch = self._best(*self._stakes(), size)
        self.expect(batch)
        return batch

    def pick_round(self, plans: Sequence[tuple[int, int]], overhead: float) -> list[Ints]:
        """Batches of one size: of several plans the round that puts most pairs right for its price.

        Sizes are compared by rounds, since what single batches tell for their price flatters the short ones: the next
        ones of their round tell less.

        Args:
            plans: each a size and a number of batches.
            overhead: of a call, in passages.
        """
        first = self._best(*self._stakes(), max(size for size, _ in plans))  # shorter ones begin with the same
        rounds = [self._round_from(first[:size], count) for size, count in plans]
        prices = [count * (size + overhead) for size, count in plans]
        righted = self._righted([after for _, after in rounds])
        worths = [found / price for found, price in zip(righted, prices, strict=True)]
        if len(plans) > 1:
            self.told.append({size: worth for (size, _), worth in zip(plans, worths, strict=True)})
        return rounds[int(np.argmax(worths))][0]

    def _inside(self) -> Floats:
        """The chance of each to belong to the top."""
        return membership(self.mean, np.sqrt(self.covariance.diagonal()), self.top, near_threshold)

    def _round_from(self, first: Ints, count: int) -> tuple[list[Ints], Floats]:
        """So many batches of the length of the first, and the covariance that they are expected to leave."""
        ahead = copy(self)
        ahead.covariance = self.covariance.copy()
        ahead.expect(first)
        return [first, *(ahead.pick(first.size) for _ in range(count - 1))], ahead.covariance

    def _righted(self, afters: Sequence[Floats]) -> list[float]:
        """How many fewer wrong pairs are expected with each covariance to come, each pair as much as it matters.

        The difference that will be seen then is normal around that of now, with the variance that will be gone.
        """
        upper = np.triu_indices(self.mean.size, k=1)
        interest, gaps, now = self._interest()[upper], np.abs(self._gaps[upper]), _spread(self.covariance)[upper]
        found = []
        for after in afters:
            moves = np.sqrt(np.maximum(now - _spread(after)[upper], TINY))
            found.append(float(interest @ (moves * unit_loss(gaps / moves))))
        return found

    def _interest(self) -> Floats:
        """How far the order of each pair matters: one of the two in the top, and useful."""
        outside = 1.0 - self._inside()
        return np.asarray((1.0 - outside[:, None] * outside) * useful_chances(self.mean, self.covariance))

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
        variances = _spread(self.covariance)
        np.fill_diagonal(variances, 1.0)
        deviations = np.sqrt(variances)
        standing = self._gaps / deviations
        if self._by_gain:
            weights = self._interest() * deviations * unit_loss(np.abs(standing)) / variances
        else:
            wins = normal_cdf(standing)
            weights = pair_interest(self._inside()) * (4 * wins * (1 - wins)) ** OPENNESS / variances
        np.fill_diagonal(weights, 0.0)
        laplacian = -weights
        np.fill_diagonal(laplacian, weights.sum(axis=1))
        return self.covariance @ laplacian @ self.covariance, variances

    def _best(self, stakes: Floats, variances: Floats, length: int) -> Ints:
        """The batch that grows from the best pair by the best item each time."""
        values = self._pair_values(stakes, variances)
        np.fill_diagonal(values, -np.inf)
        batch = np.array(np.unravel_index(np.argmax(values), values.shape))
        while batch.size < length:
            others = self._promising(values, batch)
            longer = np.empty((others.size, batch.size + 1), dtype=np.int64)
            longer[:, :-1], longer[:, -1] = batch, others
            batch = longer[int(np.argmax(self._gains(longer, stakes)))]
        return batch

    def _promising(self, values: Floats, batch: Ints) -> Ints:
        """Those that may join a batch: all for a short one, else those whose pairs with its members tell most."""
        free = np.ones(self.mean.size, dtype=np.bool_)
        free[batch] = False
        others = np.flatnonzero(free)
        if batch.size < FEW or others.size <= MANY:
            return others
        likely = np.argsort(-values[others[:, None], batch].sum(axis=1), kind="stable")[:MANY]
        return np.asarray(others[np.sort(likely)])

    def _pair_values(self, stakes: Floats, variances: Floats) -> Floats:
        diagonal = stakes.diagonal()
        drops = diagonal[:, None] + diagonal[None, :] - 2 * stakes
        return self._duel * drops / (1.0 + self._duel * variances)

    def _gains(self, batches: Ints, stakes: Floats) -> Floats:
        """tr(F (I + C F)^-1 M) over each batch: the exact drop of sum w_ij v_ij, weights held."""
        batches = self._by_score(batches)
        information = self._information(batches)
        cells = self._cells(batches)
        inner = np.eye(batches.shape[1]) + self.covariance.ravel()[cells] @ information
        return np.asarray(np.einsum("cij,cji->c", information, np.linalg.solve(inner, stakes.ravel()[cells])))

    def _cells(self, batches: Ints) -> Ints:
        """Where in a matrix of all pairs, laid flat, those of each batch stand."""
        return np.asarray(batches[:, :, None] * self.mean.size + batches[:, None, :])

    def _by_score(self, batches: Ints) -> Ints:
        """The same batches, each with its members in the order of the scores."""
        return np.asarray(self._line[np.sort(self._rank[batches], axis=1)])

    def _information(self, batches: Ints) -> Floats:
        """Expected information of each batch: b^2 sum (diag p - p p^T) over its stages, were it judged as it stands.

        The members come in the order of the scores.
        """
        length = batches.shape[1]
        sharp = self.sharpness * self._manner.attention(length)
        _, _, blocks = stage_sums(sharp * self.mean[batches], self._manner.care(length))
        return np.asarray(sharp**2 * self._mean_worth(batches)[:, None, None] * blocks)

    def _mean_worth(self, batches: Ints) -> Floats:
        if self._fresh:
            return np.ones(len(batches))
        size = batches.shape[1]
        pairs = self._worth[batches[:, :, None], batches[:, None, :]]
        return np.asarray(pairs.sum(axis=(1, 2)) / (size * (size - 1)))


def _spread(covariance: Floats) -> Floats:
    """Variances of the differences."""
    own = covariance.diagonal()
    return np.asarray(np.maximum(own[:, None] + own[None, :] - 2 * covariance, TINY))


def pair_interest(inside: Floats) -> Floats:
    """om_ij = outside + (1 - outside) T - (1 - boundary) B, T: one or both in the top, B: exactly one."""
    either = 1.0 - (1.0 - inside)[:, None] * (1.0 - inside)[None, :]
    one = inside[:, None] * (1.0 - inside)[None, :]
    one = one + one.T
    return np.asarray(OUTSIDE + (1 - OUTSIDE) * either - (1 - BOUNDARY) * one)


SHARE = 0.1  # of all rankings that are asked in a wave
SLOTS = 16  # rankings in a wave, so that many judgments run side by side; but of few rankings a quarter
QUARTER = 0.25
GRADED = 0.25  # calls of five that the grade of a passage is worth
SMALL = 1.5  # power of the size of a top that its wrong pairs are divided by
ROUNDING = 1e-9


class Offer(NamedTuple):
    """A ranking's next round.

    Attributes:
        name: of the ranking.
        gain: what the round is expected to remove, >= 0 (see `promise`).
        price: what it costs, > 0, in any unit.
        asked: whether the ranking has been asked before.
    """

    name: str
    gain: float
    price: float
    asked: bool


def promise(loss: float, calls: float, size: int, top: int) -> float:
    """What the next call of five removes of the loss that is expected of the order; comparable between pools.

    A wrong pair counts for more in a small top: half-way between counting pairs by the passage and by the pair.

    Args:
        loss: gain-weighted, expected now.
        calls: of five, heard so far.
        size: passages in the pool.
        top: how many leading positions matter.
    """
    weight = float(min(size, top) ** SMALL)
    return loss / weight / (calls + GRADED * size)


def next_wave(offers: Iterable[Offer], left: float, rankings: int) -> tuple[Offer, ...]:
    """The offers that are taken, best first; none where none can be paid.

    Args:
        offers: of the rankings that have a next round, in any order; names are distinct.
        left: of the budget, in the unit of the prices.
        rankings: how many there are, those that have ended included.
    """
    line = sorted(offers, key=lambda offer: (offer.asked, -offer.gain / offer.price, offer.name))
    first = sum(not offer.asked for offer in line)
    room, taken = first or wave_size(rankings), list[Offer]()
    for offer in line:
        if len(taken) == room:
            break
        if offer.price <= left + ROUNDING:
            taken.append(offer)
            left -= offer.price
    return tuple(taken)


def wave_size(rankings: int) -> int:
    """How many are asked in a wave."""
    return math.ceil(max(SHARE * rankings, min(SLOTS, QUARTER * rankings)))
