"""Shared parts of the engines: input checks, rounds, order of processing, and uncertainty of a ranking.

Passages are numbered by the sorted order of their ids. The order in which a pool is listed matters only for passages
that are probably irrelevant (see `order_keys`). If passages are renamed without changing their sorted order, only the
names in the result change. Every other renaming also changes the random numbers of the passages and the order of exact
ties. The random numbers of a batch depend only on (seed, round, slot).

No presentation is shown twice: a cached or deterministic judge would repeat its answer, which would not be independent
evidence. If many random orders of a batch give no new presentation, another batch is drawn at random. A ranking ends if
no new presentation of the pool is left.

The uncertainty of a ranking is computed from scores with independent standard errors, or from a joint posterior.
Engines that know the covariance should use it: assuming independence overestimates the variance of differences between
passages that were shown together.
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
from raggs.stats.distributions import normal_cdf

LOWEST_GRADE, HIGHEST_GRADE = 1.0, 5.0
GRADE_LEVELS = np.arange(LOWEST_GRADE, HIGHEST_GRADE + 1)
MAX_SUM_ERROR = 1e-3  # largest deviation of the sum of probabilities from 1
ROUNDING = 1e-9
MAX_PRESENTATION_DRAWS = 200  # number of random presentations of the chosen batch before other batches are drawn


class RoundRanker(Ranker):
    """Base class of the engines, with the bookkeeping of a `Ranker`. An engine implements `_choose`, `_learn`,
    `_settled` and `ranking`.

    Attributes:
        ids: the pool, sorted.
        prior: start scores aligned with `ids`: the means of the distributions, or the grades. Other passages start at
            the mean of these scores, or in the middle of the scale if there is none.
        distributions: shape (size, 5), aligned with `ids`: probabilities of the grades; NaN for a passage without a
            distribution. None if no passage has one.
        size: maximum number of passages in a batch.
        calls, skipped: number of answers processed so far, and of failed batches.
        spent: cost of the answers and the failed batches, in calls.
        informed: number of orders given beforehand.

    Raises:
        ValueError: an argument is out of range.
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
        distributions: Sequence[Sequence[float] | None] | None = None,
    ) -> None:
        _check(ids, grades, top, batch_size, max_calls)
        by_id = sorted(range(len(ids)), key=lambda position: ids[position])
        self.ids: tuple[str, ...] = tuple(ids[position] for position in by_id)
        self._listed = np.array(by_id)  # passage number: position of the passage in the given ids
        self.distributions = checked_distributions(ids, distributions)
        if self.distributions is not None:
            self.distributions = self.distributions[by_id]
        self.prior = start_scores([grades[position] for position in by_id], self.distributions)
        self.top = top
        self.size = min(batch_size, len(self.ids))
        self.max_calls = max_calls
        self.calls = 0
        self.skipped = 0
        self.spent = 0.0
        self.informed = 0
        self._seed = seed
        # one mapping per choice of a length: length to expected benefit per cost
        self._told_for: list[Mapping[int, float]] = []
        self._rounds = 0
        self._number = {name: index for index, name in enumerate(self.ids)}
        self._shown: set[tuple[int, ...]] = set()
        self._lists: list[Ints] = []  # by slot of the round: passage numbers in the order of presentation
        # by slot of the round: passages of the batch, None once answered
        self._waiting: list[frozenset[str] | None] = []
        # by slot: answers not processed yet, because an earlier slot is outstanding
        self._answers: dict[int, tuple[Ints, Floats | None] | None] = {}

    @abstractmethod
    def _choose(self, count: int, rng: np.random.Generator) -> list[Ints]:
        """Return 1 to `count` batches of at most `size` distinct passage numbers, in any order."""

    @abstractmethod
    def _learn(self, order: Ints, shown: Ints, best: Floats | None = None) -> None:
        """Process one answer. `order` has the passage numbers from best to worst, `shown` as presented. `best` is as
        for `Ranker.observe`. `calls` already counts the answer.
        """

    @abstractmethod
    def _settled(self) -> str | None:
        """Return the engine's own reason to stop; None if the engine would continue."""

    @abstractmethod
    def ranking(self) -> Ranking:
        """Return the ranking; see `Ranker.ranking`."""

    @property
    def stop_reason(self) -> str | None:
        """Why no more calls are needed, given the answers processed so far; None if the ranking needs more calls."""
        if len(self.ids) == 1:
            return "nothing to judge"
        if (self.calls or self.informed) and (reason := self._settled()):
            return reason
        if not self._unshown():
            return "every presentation was shown"
        return "cap" if self._affordable() < 1 else None

    @property
    def told_by_length(self) -> Mapping[int, float]:
        """Expected benefit per cost by list length; see `Ranker.told_by_length`.

        Only choices among all lengths count. Near the end of the budget, fewer lengths are affordable.
        """
        most = max(map(len, self._told_for), default=0)
        free = [told for told in self._told_for if len(told) == most]
        return {length: sum(told[length] for told in free) / len(free) for length in (free[0] if free else ())}

    def _price(self, _size: int) -> float:
        """Return the cost of a batch, in calls."""
        return 1.0

    def price(self, batches: Sequence[Sequence[str]]) -> float:
        """Return the cost of the batches in calls; see `Ranker.price`."""
        return sum(self._price(len(batch)) for batch in batches)

    def _affordable(self) -> int:
        """Return the maximum number of further batches within the budget."""
        return int((self.max_calls - self.spent + ROUNDING) / self._price(2))

    @property
    def done(self) -> bool:
        """Whether the ranking is finished; see `Ranker.done`."""
        return not self._waiting and self.stop_reason is not None

    def next_batches(self, count: int) -> tuple[tuple[str, ...], ...]:
        """Return the next round; see `Ranker.next_batches`."""
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
        """Shuffle each batch, open a round of the shuffled batches, and return them."""
        self._lists = [self._present(members, slot) for slot, members in enumerate(chosen)]
        batches = [tuple(self.ids[index] for index in shown) for shown in self._lists]
        self._rounds += 1
        self._waiting = [frozenset(batch) for batch in batches]
        return tuple(batches)

    def observe(self, order: Sequence[str], best: Sequence[float] | None = None) -> None:
        """Record a judged batch; see `Ranker.observe`."""
        if best is not None and len(best) != len(order):
            raise ValueError(f"best needs one probability for each of the {len(order)} passages, not {len(best)}")
        chances = None if best is None else as_distribution(best, "best")
        self._answer(order, (np.array([self._number.get(name, -1) for name in order], dtype=np.int64), chances))

    def skip(self, batch: Sequence[str]) -> None:
        """Discard a batch; see `Ranker.skip`."""
        self._answer(batch, None)

    def _numbered(self, groups: Sequence[Sequence[str]]) -> list[list[int]]:
        """Check an order given beforehand, and return its groups as passage numbers."""
        names = [name for group in groups for name in group]
        if self._rounds:
            raise ValueError("an order can only be given before the first round")
        if unknown := sorted(set(names) - self._number.keys()):
            raise ValueError(f"not in the pool: {', '.join(unknown)}")
        if len(set(names)) < len(names) or len(groups) < 2 or not all(groups):
            raise ValueError("an order needs two or more non-empty groups, and each passage at most once")
        return [[self._number[name] for name in group] for group in groups]

    def _answer(self, names: Sequence[str], answer: tuple[Ints, Floats | None] | None) -> None:
        members = frozenset(names)
        if len(members) != len(names) or members not in self._waiting:
            raise ValueError(f"not a permutation of an outstanding batch: {', '.join(map(str, names)) or 'nothing'}")
        slot = self._waiting.index(members)
        self._waiting[slot] = None
        self._answers[slot] = answer
        self._fold()

    def _fold(self) -> None:
        """Process the answers before the first outstanding slot. Close the round after its last answer."""
        awaited = next((slot for slot, batch in enumerate(self._waiting) if batch is not None), len(self._waiting))
        for slot in sorted(slot for slot in self._answers if slot < awaited):
            answer = self._answers.pop(slot)
            self.spent += self._price(self._lists[slot].size)
            if answer is None:
                self.skipped += 1
            else:
                self.calls += 1
                order, best = answer
                self._learn(order, self._lists[slot], best)
        if awaited == len(self._waiting):
            self._waiting = []

    def _present(self, members: Ints, slot: int) -> Ints:
        rng = generator(self._seed, "presentation", self._rounds, slot)
        shown, tries = rng.permutation(members), 1
        # The loop terminates, because a round never requests more presentations than are left.
        while tuple(shown.tolist()) in self._shown:
            among = members if tries < MAX_PRESENTATION_DRAWS else np.arange(len(self.ids))
            shown, tries = rng.permutation(among)[: members.size], tries + 1
        self._shown.add(tuple(shown.tolist()))
        return shown

    def _unshown(self) -> int:
        """Return the number of presentations that are left: few in a small pool, practically unlimited in a larger
        one.
        """
        return math.perm(len(self.ids), self.size) - len(self._shown)


def has_grade(ids: Sequence[str], grades: Mapping[str, float | None]) -> Flags:
    """Return for each id whether it has a grade."""
    return np.array([grade is not None and not math.isnan(grade) for grade in map(grades.__getitem__, ids)])


def known_keys(prior: Floats, listed: Ints) -> Floats:
    """Return negative sort keys that sort passages by grade, and equal grades by their position in the listing."""
    line = np.lexsort((listed, -prior))
    keys = np.empty(prior.size)
    keys[line] = -1.0 - np.arange(prior.size)
    return keys


def start_scores(grades: Sequence[float | None], distributions: Floats | None = None) -> Floats:
    """Return the means of the distributions, or the grades, as scores. A missing score becomes the mean of the others,
    or 3 if all are missing.

    Args:
        grades: one grade per passage; NaN or None if there is none.
        distributions: shape (size, 5); a row of NaN if the passage has no distribution.
    """
    scores = np.array([math.nan if grade is None else float(grade) for grade in grades])
    if distributions is not None:
        means = distributions @ GRADE_LEVELS
        scores = np.where(np.isnan(means), scores, means)
    missing = np.isnan(scores)
    scores[missing] = (LOWEST_GRADE + HIGHEST_GRADE) / 2 if missing.all() else scores[~missing].mean()
    return scores


def checked_distributions(ids: Sequence[str], distributions: Sequence[Sequence[float] | None] | None) -> Floats | None:
    """Return the distributions as an array of shape (size, 5), with a row of NaN for each None. If there is no
    distribution, return None.

    Raises:
        ValueError: the numbers of ids and distributions differ, or a distribution is not five probabilities.
    """
    if distributions is None:
        return None
    if len(distributions) != len(ids):
        raise ValueError(f"each id needs a distribution or None: {len(ids)} ids, {len(distributions)} distributions")
    rows = np.full((len(ids), GRADE_LEVELS.size), math.nan)
    for place, (name, each) in enumerate(zip(ids, distributions, strict=True)):
        if each is None:
            continue
        if len(each) != GRADE_LEVELS.size:
            raise ValueError(f"the distribution of {name} needs five probabilities, not {len(each)}")
        rows[place] = as_distribution(each, f"the distribution of {name}")
    return None if np.isnan(rows).all() else rows


def as_distribution(chances: Sequence[float], what: str) -> Floats:
    """Return the probabilities, divided by their sum.

    Raises:
        ValueError: a probability is negative or not finite, or the sum is not 1 within 0.001. The message starts with
            `what`.
    """
    found = np.array(chances, dtype=np.float64)
    total = float(found.sum())
    if not (np.isfinite(found).all() and found.min(initial=0.0) >= 0 and abs(total - 1.0) <= MAX_SUM_ERROR):
        raise ValueError(f"{what} must have probabilities of at least 0 with a sum of 1, not {found.tolist()}")
    return np.asarray(found / total)


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
                f"the grade of {name} must be in {LOWEST_GRADE:g} to {HIGHEST_GRADE:g} or be NaN, not {grade}"
            )
    for what, value, least in (("top", top, 1), ("batch_size", batch_size, 2), ("max_calls", max_calls, 0)):
        if value < least:
            raise ValueError(f"{what} must be at least {least}, not {value}")


Threshold = Callable[[Floats, Floats, int], float]
Gaussian = tuple[Floats, Floats]

Z95 = 1.959964
USELESS = 1.5  # utility below which a passage has no gain
HARDLY_USEFUL_QUANTILE = -0.5244  # standard normal quantile of 0.3
MIN_VARIANCE = 1e-12  # minimum variance of a difference
REPLICATES = 500  # draws of a repeated ranking's result
THRESHOLD_STEPS = 80  # limit that bisection would need; Newton's method usually takes about six
THRESHOLD_TOLERANCE = 1e-13  # last change of a threshold, in units of the scores
SQRT_TWO_PI = float(np.sqrt(2 * np.pi))
GRID = 96  # number of grid points of the threshold; between them, the threshold is interpolated
GRID_STRIDE = 8  # stride of the coarse search on that grid


def win_probabilities(scores: Floats, sigma: Floats) -> Floats:
    """Return P[i, j], the probability that i truly ranks above j; 0.5 on the diagonal. sigma must be above 0."""
    spread = np.sqrt(sigma[:, None] ** 2 + sigma[None, :] ** 2)
    return normal_cdf((scores[:, None] - scores[None, :]) / spread)


def exact_threshold(scores: Floats, sigma: Floats, top: int) -> float:
    """Return the score above which `top` items are expected. There must be more than `top` items.

    Newton's method within a shrinking bracket, which is halved if a step would leave it.
    """
    low, high = float((scores - 40 * sigma).min()), float((scores + 40 * sigma).max())
    found = (low + high) / 2
    for _ in range(THRESHOLD_STEPS):
        gaps = (scores - found) / sigma
        excess = float(normal_cdf(gaps).sum()) - top
        low, high = (found, high) if excess > 0 else (low, found)
        slope = float((np.exp(-0.5 * gaps * gaps) / sigma).sum()) / SQRT_TWO_PI
        following = found + excess / slope if slope > 0 else high
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - found) <= THRESHOLD_TOLERANCE:
            return following
        found = following
    return found


def near_threshold(scores: Floats, sigma: Floats, top: int) -> float:
    """Return the threshold interpolated on a grid. This is seven times faster than `exact_threshold`, and is used
    before each batch.
    """
    grid = np.linspace(float((scores - 3 * sigma).min()), float((scores + 3 * sigma).max()), GRID)
    coarse = int(np.count_nonzero(_counts(scores, sigma, grid[GRID_STRIDE::GRID_STRIDE]) >= top)) * GRID_STRIDE
    near = grid[coarse : coarse + GRID_STRIDE + 1]  # the other grid points would not change the result
    return float(np.interp(-top, -_counts(scores, sigma, near), near))


def _counts(scores: Floats, sigma: Floats, thresholds: Floats) -> Floats:
    """Return the expected number of items above each threshold."""
    return np.asarray(normal_cdf((scores[None, :] - thresholds[:, None]) / sigma[None, :]).sum(axis=1))


def membership(scores: Floats, sigma: Floats, top: int, threshold: Threshold = exact_threshold) -> Floats:
    """Return q[i] = Phi((s_i - t) / sigma_i), the probability that each item belongs to the top. The threshold t is
    such that q sums to `top`. In pools of at most `top` items, every q is 1.
    """
    if scores.size <= top:
        return np.ones(scores.size)
    return normal_cdf((scores - threshold(scores, sigma, top)) / sigma)


def rank_interval(scores: Floats, sigma: Floats) -> tuple[Ints, Ints]:
    """Return the best and worst plausible rank of each item, counted from 1. They are its expected ranks if its score
    were 1.96 sigma higher or lower.

    The other scores keep their uncertainty. The scores must be in ranked order. The interval always contains the item's
    rank in this order.
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
    """Return the expected number of inversions within the first `top` items, given their `win_probabilities` in
    ranked order.
    """
    head = probability[:top, :top]
    return float(np.tril(head, k=-1).sum())


def gains(utilities: Floats) -> Floats:
    """Return the gains G(x) = max(0, x - 1.5). A passage has no gain if its utility is nearer to grade 1 than to
    grade 2.
    """
    return np.asarray(np.maximum(utilities - USELESS, 0.0))


def gain_loss(utilities: Floats, top: int) -> float:
    """Return the gain-weighted loss of an order, given the true utilities in ranked order.

    L = sum of max(0, G(x_l) - G(x_k)) over all k < l with k in the first `top`: each inverted pair counts as much as
    its two gains differ.
    """
    gained = gains(utilities)
    inverted = np.triu(np.maximum(gained[None, :] - gained[:, None], 0.0), k=1)
    return float(inverted[:top].sum())


def pair_losses(mean: Floats, covariance: Floats) -> Floats:
    """Return E[i, j], the expected loss of gain if i is ranked above j, for utilities ~ N(mean, covariance).

    E max(0, x_j - x_i) = sqrt(v) psi(z), with z = (x_i - x_j) / sqrt(v), v the variance of the difference and psi(z) =
    phi(z) - z Phi(-z). Since G is 0 up to 1.5, this value is multiplied by the probability that the mean of the two
    utilities is above 1.5.
    """
    own, both = covariance.diagonal(), covariance
    spread = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2 * both, MIN_VARIANCE))
    z = (mean[:, None] - mean[None, :]) / spread
    return np.asarray(spread * unit_loss(z) * useful_chances(mean, covariance))


def useful_chances(mean: Floats, covariance: Floats) -> Floats:
    """Return U[i, j], the probability that the mean of the utilities of i and j is above `USELESS`, so that their
    order affects the gain.
    """
    own = covariance.diagonal()
    spread = np.sqrt(np.maximum(own[:, None] + own[None, :] + 2 * covariance, MIN_VARIANCE)) / 2
    return normal_cdf(((mean[:, None] + mean[None, :]) / 2 - USELESS) / spread)


def unit_loss(z: Floats) -> Floats:
    """Return psi(z) = phi(z) - z Phi(-z), the unit normal loss."""
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) - z * normal_cdf(-z))


def expected_loss(losses: Floats, top: int) -> float:
    """Return the expected gain-weighted loss of an order, given its `pair_losses` in ranked order."""
    return float(np.triu(losses, k=1)[:top].sum())


@dataclass(frozen=True)
class PassageKeys:
    """Sort keys of the passages of a pool from grades, listing and orders given beforehand, and which passages were
    shown.

    Attributes:
        keys: shape (size,), all negative: highest for the passage that comes first.
        shown: shape (size,): whether any answer, or any order given beforehand, contains the passage.
    """

    keys: Floats
    shown: Flags


def order_keys(mean: Floats, deviation: Floats, known: PassageKeys) -> Floats:
    """Return the keys by which passages are sorted in descending order. The key is the utility. For passages that are
    probably irrelevant, it is the prior key, below all utilities.

    A passage is probably irrelevant if the probability that its utility is above `USELESS` is below 0.3. If the passage
    was not shown, the limit is 0.5.

    Args:
        mean: shape (..., size), means of the utilities.
        deviation: shape (size,), their standard errors.
        known: prior keys.
    """
    least = USELESS + np.where(known.shown, HARDLY_USEFUL_QUANTILE, 0.0) * deviation
    return np.asarray(np.where(mean >= least, mean, known.keys + least.min() - mean.max()))


def agreement(top: Ints, posterior: Gaussian, prior: Gaussian, known: PassageKeys, rng: np.random.Generator) -> float:
    """Return the expected share of the top that would also be in the top of a repeated ranking with as many answers.

    The utilities x are unknown, so each simulated repetition draws x from the posterior N(m, C). It then draws new
    answers with the information J = C^-1 - T, where T is the prior precision. The mean of the repetition's posterior is
    then normal. Its expectation is C (T m0 + J m). Its covariance is C J C J C (uncertainty of x) plus C J C
    (randomness of the answers).

    Args:
        top: numbers of the passages in the top, in any order.
        posterior: mean m and covariance C.
        prior: mean m0 and the diagonal of the precision.
        known: as for `order_keys`.
        rng: random generator.
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
    """Return the rank of each item, counted from 1, in each of `draws` samples of N(mean, covariance). The shape is
    (draws, size).
    """
    factor = np.linalg.cholesky(covariance)
    utilities = mean + rng.standard_normal((draws, mean.size)) @ factor.T
    best_first = np.argsort(-utilities, axis=1, kind="stable")
    ranks = np.empty_like(best_first)
    np.put_along_axis(ranks, best_first, np.arange(1, mean.size + 1)[None, :], axis=1)
    return ranks


def rank_bounds(ranks: Ints) -> tuple[Ints, Ints]:
    """Return the central 95% interval of the drawn ranks of each item. The items must be in ranked order, and the
    interval is extended to contain each item's rank.
    """
    positions = np.arange(1, ranks.shape[1] + 1)
    line = np.sort(ranks, axis=0)
    cut = int(ranks.shape[0] * 0.025)
    return np.minimum(line[cut], positions), np.maximum(line[-1 - cut], positions)
