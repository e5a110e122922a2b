"""Engine `online`: the listwise, uncertainty-aware refinement of rag-gs (Algorithm 1, stage S6).

Scores start from the grades. Each judged batch moves them by a small clipped step along the Plackett-Luce gradient of
its stages, and adds to each item's information. Pairs that are statistically clear or were confirmed often enough are
locked. The order is a topological order of the locks. Passages that no lock orders are sorted by score. The ranking
ends when the order of the top has not changed for a given number of calls.

This engine is the baseline for other engines, so it also keeps the weak points of the algorithm. Confirmations can lock
pairs by chance, a lock is never released, and a top may be stable only because it is locked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.ranking import rounds
from raggs.ranking.base import Lock, Ranking
from raggs.ranking.locks import LockGraph
from raggs.ranking.posterior import stage_chances
from raggs.ranking.rounds import RoundRanker

MIN_INFORMATION = 0.01  # eps: an item that was never shown has sigma = 10, wider than the scale of grades
HIGHEST_STEP = 100.0  # far beyond the scale of the grades; larger steps would only lose precision


class OnlineRanker(RoundRanker):
    """Rank by online Plackett-Luce updates, with locks for confirmed pairs (Dallaire 2025, Algorithm 1).

    Common arguments as for `raggs.ranking.make_ranker`.

    Args:
        eta: step size of the score updates, above 0 and at most 100; divided by sqrt(call).
        z: half-width of the confidence bounds in standard errors, >= 0. A pair is locked if s_w - z sigma_w > s_l + z
            sigma_l.
        confirmations: number of net confirmations (wins minus losses) after which a pair is locked, >= 1.
        clip: largest step of a score in one call, above 0 and at most 100. Afterwards, all scores are shifted to keep
            their mean.
        stability: number of consecutive calls without a change in the order of the top after which the ranking ends, >=
            1.

    Raises:
        ValueError: an argument is out of range, or `batch_size` is None.
    """

    VERSION: ClassVar[int] = 3

    def __init__(
        self,
        ids: Sequence[str],
        grades: Sequence[float | None],
        *,
        top: int = 20,
        batch_size: int | None = 5,
        seed: int = 1,
        max_calls: int = 80,
        distributions: Sequence[Sequence[float] | None] | None = None,
        eta: float = 0.3,
        z: float = 1.0,
        confirmations: int = 2,
        clip: float = 0.2,
        stability: int = 15,
    ) -> None:
        if batch_size is None:
            raise ValueError("engine online needs a batch_size")
        super().__init__(
            ids,
            grades,
            top=top,
            batch_size=batch_size,
            seed=seed,
            max_calls=max_calls,
            distributions=distributions,
        )
        _check_options(eta, z, confirmations, clip, stability)
        self.eta, self.z, self.confirmations, self.clip, self.stability = eta, z, confirmations, clip, stability
        size = len(self.ids)
        self.scores: Floats = self.prior.copy()
        self.info: Floats = np.full(size, MIN_INFORMATION)
        self.exposures: Ints = np.zeros(size, dtype=np.int64)
        self.wins: Ints = np.zeros((size, size), dtype=np.int64)
        self.graph = LockGraph(size)
        self.locks: list[Lock] = []
        self._mean = float(self.prior.mean())
        self._order = self.graph.order(self.scores.tolist())
        self._stable = 0

    @property
    def sigma(self) -> Floats:
        """Standard errors of the scores: 1 / sqrt(max(I, eps))."""
        return np.asarray(1.0 / np.sqrt(np.maximum(self.info, MIN_INFORMATION)))

    def _choose(self, count: int, rng: np.random.Generator) -> list[Ints]:
        """Return weighted samples without replacement that prefer low exposure and low information.

        The probability of being picked next is proportional to 1 / ((1 + exposures)^2 (1 + I)), and the passages are
        drawn by comparing exponential random times. Exposures include those planned in the same round.
        """
        planned = self.exposures.astype(np.float64)
        batches = []
        for _ in range(count):
            race = rng.exponential(size=planned.size) * (1.0 + planned) ** 2 * (1.0 + self.info)
            members = np.argsort(race, kind="stable")[: self.size]
            planned[members] += 1.0
            batches.append(members)
        return batches

    def _learn(self, order: Ints, _shown: Ints, best: Floats | None = None) -> None:
        self._step(order, best)
        self.exposures[order] += 1
        rows, columns = np.triu_indices(order.size, k=1)
        self.wins[order[rows], order[columns]] += 1
        sigma = self.sigma.tolist()
        for winner, loser in itertools.combinations(order.tolist(), 2):
            self._consider(winner, loser, sigma)
        before = self._order[: self.top]
        self._order = self.graph.order(self.scores.tolist())
        self._stable = self._stable + 1 if self._order[: self.top] == before else 0

    def _step(self, order: Ints, best: Floats | None) -> None:
        """Update the scores by clipped steps that decrease with the number of calls, and update the information. The
        mean of the scores remains the mean of the start scores. With `best`, the step is the expected step over one
        pick.
        """
        picked = stage_chances(self.scores[order])
        if best is not None:
            picked = picked[:1]
        step = self.eta / math.sqrt(self.calls) * ((1.0 if best is None else best) - picked.sum(axis=0))
        self.scores[order] += np.clip(step, -self.clip, self.clip)
        self.info[order] += (picked * (1.0 - picked)).sum(axis=0)
        self.scores += self._mean - self.scores.mean()

    def _consider(self, winner: int, loser: int, sigma: list[float]) -> None:
        """Lock the pair if it fulfils the rule. A pair that other locks imply needs a clear difference and two separate
        paths of locks. A pair that contradicts the locks is refused.
        """
        if self.graph.reach[loser, winner] or self.graph.edges[winner, loser]:
            return
        gap = float(self.scores[winner] - self.scores[loser])
        deviation = math.hypot(sigma[winner], sigma[loser])
        if self.graph.reach[winner, loser]:
            ripe = gap > self.z * deviation and self.graph.twice_implied(winner, loser)
        else:
            confirmed = int(self.wins[winner, loser] - self.wins[loser, winner])
            ripe = gap > self.z * (sigma[winner] + sigma[loser]) or confirmed >= self.confirmations
        if ripe:
            self.graph.add(winner, loser)
            evidence = int(self.wins[winner, loser])
            self.locks.append(Lock(self.ids[winner], self.ids[loser], gap / deviation, evidence, self.calls))

    def _settled(self) -> str | None:
        return "stable" if self._stable >= self.stability else None

    def ranking(self) -> Ranking:
        """Return the ranking; see `Ranker.ranking`. Errors of different scores are treated as independent."""
        order = np.array(self.graph.final_order(self.scores.tolist()))
        scores, sigma = self.scores[order], self.sigma[order]
        above = rounds.win_probabilities(scores, sigma)
        low, high = rounds.rank_interval(scores, sigma)
        return Ranking(
            order=tuple(self.ids[item] for item in order.tolist()),
            scores=tuple(scores.tolist()),
            sigma=tuple(sigma.tolist()),
            exposures=tuple(self.exposures[order].tolist()),
            position_confidence=(*np.diagonal(above, offset=1).tolist(), 1.0),
            rank_low=tuple(low.tolist()),
            rank_high=tuple(high.tolist()),
            membership=tuple(rounds.membership(scores, sigma, self.top).tolist()),
            locks=tuple(self.locks),
            released=(),
            expected_inversions=rounds.expected_inversions(above, self.top),
            calls=self.calls,
            skipped=self.skipped,
            stop_reason=self.stop_reason,
        )


def _check_options(eta: float, z: float, confirmations: int, clip: float, stability: int) -> None:
    for what, value in (("eta", eta), ("clip", clip)):
        if not 0 < value <= HIGHEST_STEP:
            raise ValueError(f"{what} must be above 0 and at most {HIGHEST_STEP:g}, not {value}")
    if not (z >= 0 and math.isfinite(z)):
        raise ValueError(f"z must be a finite number of at least 0, not {z}")
    for what, count in (("confirmations", confirmations), ("stability", stability)):
        if not count >= 1:
            raise ValueError(f"{what} must be at least 1, not {count}")
