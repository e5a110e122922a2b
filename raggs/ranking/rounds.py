"""What all engines share: checking the input, handing out rounds, folding answers in their order.

Passages are numbered by the sorted order of their ids. The order in which a pool was listed decides only how passages
that hardly gain anything stand among each other.
Renaming passages without changing their sorted order changes nothing but names; any other renaming changes
which random numbers meet which passage and how exact ties fall. Randomness comes from (seed, round, slot) alone.

The same presentation is never asked twice: a cached or deterministic judge would repeat itself, and a repetition is
no second opinion. Where all presentations of a batch were shown, which happens to small batches, others are shown at
random instead; a pool is done once there are no others.

How sure a ranking is, from scores with independent standard errors.

Engines that know the covariance of their scores should use it instead: independence overstates the spread of
differences between passages that were shown together.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.hashing import generator
from raggs.ranking.base import Ranker, Ranking

LOWEST_GRADE, HIGHEST_GRADE = 1.0, 5.0
ROUNDING = 1e-9
MAX_PRESENTATION_DRAWS = 200  # draws for a new presentation of the chosen batch, before other batches are tried


class RoundRanker(Ranker):
    """The bookkeeping of a `Ranker`. An engine adds `_choose`, `_learn`, `_settled` and `ranking`.

    Attributes:
        ids: the pool, sorted.
        prior: starting scores aligned with `ids`: the grades; ungraded passages start at the mean of the others,
            or in the middle of the scale where nothing is graded.
        size: passages in a batch, at most.
        calls, skipped: answers folded so far, by kind.
        spent: what they cost, in calls.
        informed: orders that were there beforehand.

    Raises:
        ValueError: an argument cannot be right.
    """

    VERSION: ClassVar[int] = 1

    def __init__(
        self,
        ids: Sequence[str],
        grades: Sequence[float | None],
        *,
        top: int,
        batch_size: int,
        seed: int,
        max_calls: int,
    ) -> None:
        _check(ids, grades, top, batch_size, max_calls)
        by_id = sorted(range(len(ids)), key=lambda position: ids[position])
        self.ids: tuple[str, ...] = tuple(ids[position] for position in by_id)
        self._listed = np.array(by_id)  # by passage number: its place among the ids as they were given
        self.prior = start_scores([grades[position] for position in by_id])
        self.top = top
        self.size = min(batch_size, len(self.ids))
        self.max_calls = max_calls
        self.calls = 0
        self.skipped = 0
        self.spent = 0.0
        self.informed = 0
        self._seed = seed
        self._told_for: list[Mapping[int, float]] = []  # by each choice of a length: what lists told for their price
        self._rounds = 0
        self._number = {name: index for index, name in enumerate(self.ids)}
        self._shown: set[tuple[int, ...]] = set()
        self._lists: list[Ints] = []  # by slot of the round: passage numbers in the order of presentation
        self._waiting: list[frozenset[str] | None] = []  # by slot of the round; None once answered
        self._answers: dict[int, Ints | None] = {}  # answered, not folded yet: an earlier slot is still awaited

    @abstractmethod
    def _choose(self, count: int, rng: np.random.Generator) -> list[Ints]:
        """At least one and at most `count` batches of distinct passage numbers, `size` at most, in any order."""

    @abstractmethod
    def _learn(self, order: Ints, shown: Ints) -> None:
        """Fold one answer: passage numbers from best to worst, and as they were shown. `calls` counts it already."""

    @abstractmethod
    def _settled(self) -> str | None:
        """The engine's own reason to stop, if any."""

    @abstractmethod
    def ranking(self) -> Ranking:
        """See `Ranker.ranking`."""

    @property
    def stop_reason(self) -> str | None:
        """Why nothing more would be asked, judged by the answers folded so far."""
        if len(self.ids) == 1:
            return "nothing to judge"
        if (self.calls or self.informed) and (reason := self._settled()):
            return reason
        if not self._unshown():
            return "every presentation was shown"
        return "cap" if self._affordable() < 1 else None

    @property
    def told_by_length(self) -> Mapping[int, float]:
        """See `Ranker.told_by_length`: over the choices among all lengths; near the end some cost too much."""
        most = max(map(len, self._told_for), default=0)
        free = [told for told in self._told_for if len(told) == most]
        return {length: sum(told[length] for told in free) / len(free) for length in (free[0] if free else ())}

    def _price(self, _size: int) -> float:
        """Of a batch, in calls."""
        return 1.0

    def price(self, batches: Sequence[Sequence[str]]) -> float:
        """See `Ranker.price`."""
        return sum(self._price(len(batch)) for batch in batches)

    def _affordable(self) -> int:
        """How many more batches may be asked, at most."""
        return int((self.max_calls - self.spent + ROUNDING) / self._price(2))

    @property
    def done(self) -> bool:
        """See `Ranker.done`."""
        return not self._waiting and self.stop_reason is not None

    def next_batches(self, count: int) -> tuple[tuple[str, ...], ...]:
        """See `Ranker.next_batches`."""
        if count < 1:
            raise ValueError(f"a round needs at least one batch, not {count}")
        if self._waiting:
            open_slots = sum(batch is not None for batch in self._waiting)
            raise ValueError(f"{open_slots} batches of the last round are neither observed nor skipped")
        if self.done:
            return ()
        count = min(count, self._affordable(), self._unshown())
        return self._open(self._choose(count, generator(self._seed, "choice", self._rounds)))

    def _open(self, chosen: Sequence[Ints]) -> tuple[tuple[str, ...], ...]:
        """A round of these batches, shuffled."""
        self._lists = [self._present(members, slot) for slot, members in enumerate(chosen)]
        batches = [tuple(self.ids[index] for index in shown) for shown in self._lists]
        self._rounds += 1
        self._waiting = [frozenset(batch) for batch in batches]
        return tuple(batches)

    def observe(self, order: Sequence[str]) -> None:
        """See `Ranker.observe`."""
        self._answer(order, np.array([self._number.get(name, -1) for name in order], dtype=np.int64))

    def skip(self, batch: Sequence[str]) -> None:
        """See `Ranker.skip`."""
        self._answer(batch, None)

    def _numbered(self, groups: Sequence[Sequence[str]]) -> list[list[int]]:
        """An order given beforehand in passage numbers, checked."""
        names = [name for group in groups for name in group]
        if self._rounds:
            raise ValueError("an order given beforehand comes before the first round")
        if unknown := sorted(set(names) - self._number.keys()):
            raise ValueError(f"not in the pool: {', '.join(unknown)}")
        if len(set(names)) < len(names) or len(groups) < 2 or not all(groups):
            raise ValueError("an order has two groups or more, and names nobody twice")
        return [[self._number[name] for name in group] for group in groups]

    def _answer(self, names: Sequence[str], answer: Ints | None) -> None:
        members = frozenset(names)
        if len(members) != len(names) or members not in self._waiting:
            raise ValueError(f"not a permutation of an outstanding batch: {', '.join(map(str, names)) or 'nothing'}")
        slot = self._waiting.index(members)
        self._waiting[slot] = None
        self._answers[slot] = answer
        self._fold()

    def _fold(self) -> None:
        """Fold the answers that no earlier slot holds up; close the round after the last."""
        awaited = next((slot for slot, batch in enumerate(self._waiting) if batch is not None), len(self._waiting))
        for slot in sorted(slot for slot in self._answers if slot < awaited):
            answer = self._answers.pop(slot)
            self.spent += self._price(self._lists[slot].size)
            if answer is None:
                self.skipped += 1
            else:
                self.calls += 1
                self._learn(answer, self._lists[slot])
        if awaited == len(self._waiting):
            self._waiting = []

    def _present(self, members: Ints, slot: int) -> Ints:
        rng = generator(self._seed, "presentation", self._rounds, slot)
        shown, tries = rng.permutation(members), 1
        while tuple(shown.tolist()) in self._shown:  # ends: a round asks for no more presentations than are left
            among = members if tries < MAX_PRESENTATION_DRAWS else np.arange(len(self.ids))
            shown, tries = rng.permutation(among)[: members.size], tries + 1
        self._shown.add(tuple(shown.tolist()))
        return shown

    def _unshown(self) -> int:
        """How many presentations are left: few in small pools, more than anyone asks for in others."""
        return math.perm(len(self.ids), self.size) - len(self._shown)


def has_grade(ids: Sequence[str], grades: Mapping[str, float | None]) -> Flags:
    """Which of the ids have a grade."""
    return np.array([grade is not None and not math.isnan(grade) for grade in map(grades.__getitem__, ids)])


def known_keys(prior: Floats, listed: Ints) -> Floats:
    """Below 0, highest for the passage that stands first by what is known: by grade, then as the pool was listed."""
    line = np.lexsort((listed, -prior))
    keys = np.empty(prior.size)
    keys[line] = -1.0 - np.arange(prior.size)
    return keys


def start_scores(grades: Sequence[float | None]) -> Floats:
    """Grades as scores; missing ones at the mean of the others, or at 3 where there are none."""
    scores = np.array([math.nan if grade is None else float(grade) for grade in grades])
    missing = np.isnan(scores)
    scores[missing] = (LOWEST_GRADE + HIGHEST_GRADE) / 2 if missing.all() else scores[~missing].mean()
    return scores


def _check(ids: Sequence[str], grades: Sequence[float | None], top: int, batch_size: int, max_calls: int) -> None:
    if not ids:
        raise ValueError("there is nothing to rank: the pool is empty")
    if len(set(ids)) != len(ids):
        twice = sorted(name for name in set(ids) if list(ids).count(name) > 1)
        raise ValueError(f"ids must be distinct; given more than once: {', '.join(twice[:5])}")
    if len(grades) != len(ids):
        raise ValueError(f"each id needs a grade or None: {len(ids)} ids, {len(grades)} grades")
    for name, grade in zip(ids, grades, strict=True):
        if grade is not None and not math.isnan(grade) and not LOWEST_GRADE <= grade <= HIGHEST_GRADE:
            raise ValueError(
                f"the grade of {name} must lie in {LOWEST_GRADE:g} to {HIGHEST_GRADE:g} or be NaN, not {grade}"
            )
    for what, value, least in (("top", top, 1), ("batch_size", batch_size, 2), ("max_calls", max_calls, 0)):
        if value < least:
            raise ValueError(f"{what} must be at least {least}, not {value}")


Threshold = Callable[[Floats, Floats, int], float]
Gaussian = tuple[Floats, Floats]

Z95 = 1.959964
USELESS = 1.5  # grades: a passage of a lower utility deserves a 1
HARDLY_USEFUL_QUANTILE = -0.5244  # standard normal quantile of 0.3
MIN_VARIANCE = 1e-12  # least variance of a difference
REPLICATES = 500  # draws of what another ranking comes to
BISECTION_STEPS = 80  # bisections: the bracket shrinks below any float's resolution
GRID = 96  # points of the threshold's grid; between them the count is interpolated
GRID_STRIDE = 8  # of them that are passed over at once on the way to the two that matter


def normal_cdf(values: Floats) -> Floats:
    """Return the standard normal distribution function, elementwise."""
    from scipy.special import ndtr  # late: naming an engine needs no scipy

    return np.asarray(ndtr(values))


def win_probabilities(scores: Floats, sigma: Floats) -> Floats:
    """P[i, j]: the probability that i truly stands above j; 0.5 on the diagonal. Needs sigma > 0."""
    spread = np.sqrt(sigma[:, None] ** 2 + sigma[None, :] ** 2)
    return normal_cdf((scores[:, None] - scores[None, :]) / spread)


def exact_threshold(scores: Floats, sigma: Floats, top: int) -> float:
    """The score t above which `top` of more items are expected to stand, by bisection."""
    low, high = float((scores - 40 * sigma).min()), float((scores + 40 * sigma).max())
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        if normal_cdf((scores - middle) / sigma).sum() > top:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def near_threshold(scores: Floats, sigma: Floats, top: int) -> float:
    """The same but for the grid, at a seventh of the time: for what is asked before each batch."""
    grid = np.linspace(float((scores - 3 * sigma).min()), float((scores + 3 * sigma).max()), GRID)
    coarse = int(np.count_nonzero(_counts(scores, sigma, grid[GRID_STRIDE::GRID_STRIDE]) >= top)) * GRID_STRIDE
    near = grid[coarse : coarse + GRID_STRIDE + 1]  # the rest of the grid would change nothing
    return float(np.interp(-top, -_counts(scores, sigma, near), near))


def _counts(scores: Floats, sigma: Floats, thresholds: Floats) -> Floats:
    """How many items are expected to stand above each threshold."""
    return np.asarray(normal_cdf((scores[None, :] - thresholds[:, None]) / sigma[None, :]).sum(axis=1))


def membership(scores: Floats, sigma: Floats, top: int, threshold: Threshold = exact_threshold) -> Floats:
    """q[i] = Phi((s_i - t) / sigma_i), with the threshold t such that the q sum to `top`; all 1 in small pools."""
    if scores.size <= top:
        return np.ones(scores.size)
    return normal_cdf((scores - threshold(scores, sigma, top)) / sigma)


def rank_interval(scores: Floats, sigma: Floats) -> tuple[Ints, Ints]:
    """Best and worst plausible rank of each item, from 1: its expected rank if its score were 1.96 sigma off.

    The others keep their uncertainty. Scores come in ranked order, and the interval always holds the actual rank.
    """
    positions = np.arange(1, scores.size + 1)
    best = np.floor(_expected_rank(scores + Z95 * sigma, scores, sigma)).astype(np.int64)
    worst = np.ceil(_expected_rank(scores - Z95 * sigma, scores, sigma)).astype(np.int64)
    return np.minimum(best, positions), np.maximum(worst, positions)


def _expected_rank(supposed: Floats, scores: Floats, sigma: Floats) -> Floats:
    beaten_by = normal_cdf((scores[None, :] - supposed[:, None]) / sigma[None, :])
    np.fill_diagonal(beaten_by, 0.0)
    return np.asarray(1.0 + beaten_by.sum(axis=1))


def expected_inversions(probability: Floats, top: int) -> float:
    """Return the expected number of inversions in the first `top`, for P = `win_probabilities` in ranked order."""
    head = probability[:top, :top]
    return float(np.tril(head, k=-1).sum())


def gains(utilities: Floats) -> Floats:
    """G(x) = max(0, x - 1.5): a passage gains nothing while it is nearer to grade 1 than to grade 2."""
    return np.asarray(np.maximum(utilities - USELESS, 0.0))


def gain_loss(utilities: Floats, top: int) -> float:
    """The gain-weighted loss of an order whose utilities are known, given in ranked order.

    L = sum of max(0, G(x_l) - G(x_k)) over all k < l with k inside the first `top`: each inverted pair weighs as much
    as its passages differ in gain.
    """
    gained = gains(utilities)
    inverted = np.triu(np.maximum(gained[None, :] - gained[:, None], 0.0), k=1)
    return float(inverted[:top].sum())


def pair_losses(mean: Floats, covariance: Floats) -> Floats:
    """E[i, j]: the gain that is expected to be lost where i stands above j, for utilities ~ N(mean, covariance).

    E max(0, x_j - x_i) = sqrt(v) psi(z), with z = (x_i - x_j) / sqrt(v), v the variance of the difference and
    psi(z) = phi(z) - z Phi(-z), times the chance that the middle of the two gains anything, since G is flat below.
    """
    own, both = covariance.diagonal(), covariance
    spread = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2 * both, MIN_VARIANCE))
    z = (mean[:, None] - mean[None, :]) / spread
    return np.asarray(spread * unit_loss(z) * useful_chances(mean, covariance))


def useful_chances(mean: Floats, covariance: Floats) -> Floats:
    """U[i, j]: the chance that the middle of the utilities of i and j lies where gains grow."""
    own = covariance.diagonal()
    spread = np.sqrt(np.maximum(own[:, None] + own[None, :] + 2 * covariance, MIN_VARIANCE)) / 2
    return normal_cdf(((mean[:, None] + mean[None, :]) / 2 - USELESS) / spread)


def unit_loss(z: Floats) -> Floats:
    """psi(z) = phi(z) - z Phi(-z), the unit normal loss."""
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) - z * normal_cdf(-z))


def expected_loss(losses: Floats, top: int) -> float:
    """The gain-weighted loss that is expected of an order, for E = `pair_losses` in ranked order."""
    return float(np.triu(losses, k=1)[:top].sum())


@dataclass(frozen=True)
class PassageKeys:
    """What is known of the passages of a pool besides their utilities.

    Attributes:
        keys: shape (size,), all below 0: highest for the passage that stood first before any answer.
        shown: shape (size,): whether an answer says anything of it.
    """

    keys: Floats
    shown: Flags


def order_keys(mean: Floats, deviation: Floats, known: PassageKeys) -> Floats:
    """What passages are sorted by, highest first: their utility, but what hardly gains anything by what was known.

    A passage hardly gains if it stands above `USELESS` by a chance of less than 0.3; one of which no answer says
    anything, by a chance of less than a half.

    Args:
        mean: shape (..., size), of the utilities.
        deviation: shape (size,), their standard errors.
    """
    least = USELESS + np.where(known.shown, HARDLY_USEFUL_QUANTILE, 0.0) * deviation
    return np.asarray(np.where(mean >= least, mean, known.keys + least.min() - mean.max()))


def agreement(top: Ints, posterior: Gaussian, prior: Gaussian, known: PassageKeys, rng: np.random.Generator) -> float:
    """The share of a top that another ranking of the same pool, with as many answers, is expected to have as well.

    With the prior precision T and the information J = C^-1 - T of the answers, the mean that another ranking comes to
    is normal around C (T m0 + J m), with the covariance C J C J C + C J C: the utilities are not known either.

    Args:
        top: the passages in the top, in any order.
        posterior: mean m and covariance C.
        prior: mean m0 and precision (a diagonal).
        known: as `order_keys` has it.
    """
    (mean, covariance), (start, precision) = posterior, prior
    learned = np.eye(mean.size) - covariance * precision  # C J
    centre = covariance @ (precision * start) + learned @ mean
    spread = learned @ covariance @ learned.T + learned @ covariance
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    moves = rng.standard_normal((REPLICATES, mean.size)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    keys = order_keys(centre + moves, np.sqrt(covariance.diagonal()), known)
    others = np.argsort(-keys, axis=1, kind="stable")[:, : top.size]
    return float(np.isin(others, top).mean())


def drawn_ranks(mean: Floats, covariance: Floats, draws: int, rng: np.random.Generator) -> Ints:
    """Ranks, from 1, of each item in `draws` draws of N(mean, covariance). Shape (draws, size)."""
    factor = np.linalg.cholesky(covariance)
    utilities = mean + rng.standard_normal((draws, mean.size)) @ factor.T
    best_first = np.argsort(-utilities, axis=1, kind="stable")
    ranks = np.empty_like(best_first)
    np.put_along_axis(ranks, best_first, np.arange(1, mean.size + 1)[None, :], axis=1)
    return ranks


def rank_bounds(ranks: Ints) -> tuple[Ints, Ints]:
    """The central 95% of drawn ranks, widened where needed to hold the actual one. Items come in ranked order."""
    positions = np.arange(1, ranks.shape[1] + 1)
    line = np.sort(ranks, axis=0)
    cut = int(ranks.shape[0] * 0.025)
    return np.minimum(line[cut], positions), np.maximum(line[-1 - cut], positions)
