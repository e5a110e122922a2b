"""Engine `bayes`: the joint posterior of all utilities, with calls for the passages whose order in the top is
uncertain.

After every answer, a Plackett-Luce posterior is fitted to all orders so far, with the grades as prior. Its covariance
shows which pairs are uncertain, which pairs are settled, and when to stop. Each batch is chosen to reduce the
uncertainty about the order of the top. A small share of the batches are repeated to audit the judge. The judge's
sharpness, position bias and repeat correlation are estimated from the same answers. The order is a topological order of
the locks. Passages that no lock orders are sorted by score, and those that are probably irrelevant come last, sorted by
grade.

Choice of batches (`Planner`): A-optimal weighted contrasts. Only uncertain differences between utilities matter. Each
pair has a weight w_ij such that w_ij v_ij, with v_ij the variance of the pair's difference, is the expected loss of
gain by its order (see `raggs.ranking.rounds.pair_losses`). This loss is multiplied by the probability that at least one
of the two belongs to the top. The worth of a batch is the exact decrease of the weighted sum of the variances of
differences, sum w_ij v_ij, under the model's expected information (A-optimality: Chernoff 1953). A batch starts with
the best pair and is extended greedily. Exchanging members afterwards, or trying several first pairs, had no measurable
benefit. The batches of a round are chosen before any is judged. So each choice updates the covariance by its expected
information, and later choices take it into account. No randomness is used.

Shared budget (`next_wave`): which of many rankings gets the next round, by expected benefit per price. The expected
loss decreases roughly as a power of the information so far. So the expected decrease by the next call is the current
expected loss divided by the information so far. The grades count as some calls (`expected_loss_reduction`). This works
as well as the planned decrease of the variances, and needs no computation (benchmarks/results/setbudget.md). Each
ranking first gets one round. Then come waves: the best offers within the remaining budget, for a tenth of the rankings
at a time, or for 16 if this is more, but for at most a quarter. A wave depends only on the results of earlier waves,
not on the latency of answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import ClassVar, NamedTuple

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.hashing import generator
from raggs.ranking import profile as echoes
from raggs.ranking import rounds
from raggs.ranking.base import PILOT_AGAIN, PILOT_SIZES, TYPICAL_LENGTH, Pilot, Profile, Ranking
from raggs.ranking.locks import LockRule, SettledPairs, standard_gaps
from raggs.ranking.posterior import (
    SETTLE,
    SHARPNESS,
    JudgedLists,
    JudgedOrders,
    JudgeModel,
    KnownPicks,
    Posterior,
    fit_mixture,
    grade_prior,
    one_blas_thread,
    stage_sums,
    upset_chances,
)
from raggs.ranking.profile import HIGHEST_ECHO, estimate_judge_model, prior_judge_model
from raggs.ranking.rounds import (
    MIN_VARIANCE,
    RoundRanker,
    has_grade,
    known_keys,
    membership,
    near_threshold,
    unit_loss,
    useful_chances,
)
from raggs.ranking.rounds import ROUNDING as rounds_ROUNDING
from raggs.stats.distributions import normal_cdf

# from this batch size on, only this number of the most promising candidates is tried
GREEDY_FROM, GREEDY_CANDIDATES = 5, 14
OPENNESS = 4  # exponent of 4 P (1 - P) in the weight of a pair if gains are ignored
# If gains are ignored: weight of a pair outside the top, and of a pair with exactly one item in the top.
OUTSIDE_INTEREST, BOUNDARY = 0.05, 0.4


class Planner:
    """Choose batches one after the other, each as if the earlier batches had already been judged.

    Args:
        posterior: posterior of the utilities.
        worth: shape (size, size): information gained by showing each pair; 1 if the judge's errors are independent of
            earlier showings.
        top: number of leading positions that matter.
        manner: model of the judge; its position bias is irrelevant, since lists are shuffled.
        by_gain: whether pairs are weighted by the expected loss of gain. If not, every uncertain pair counts; this is
            used for pilot lists, which measure the judge's errors.

    Attributes:
        told: for each choice among several list lengths, the expected benefit per cost of a round by list length.
    """

    def __init__(
        self, posterior: Posterior, worth: Floats, top: int, manner: JudgeModel, *, by_gain: bool = True
    ) -> None:
        self.mean, self.sharpness = posterior.mean, posterior.sharpness
        self.covariance = posterior.covariance
        self.top = top
        self.told: list[Mapping[int, float]] = []
        self._worth, self._by_gain = worth, by_gain
        # the judge's errors are independent in every showing
        self._fresh = bool((worth + np.eye(len(worth)) == 1.0).all())
        self._manner = manner
        self._line = np.argsort(-self.mean, kind="stable")
        self._rank = np.argsort(self._line)
        self._gaps = self.mean[:, None] - self.mean[None, :]
        chance = upset_chances(self.sharpness * np.abs(self._gaps))
        self._duel = self.sharpness**2 * chance * (1.0 - chance) * worth

    def pick(self, size: int) -> Ints:
        """Return the next batch, in no particular order, and update the covariance by its expected information."""
        batch = self._best(*self._stakes(), size)
        self.expect(batch)
        return batch

    def pick_round(self, plans: Sequence[tuple[int, int]], overhead: float) -> list[Ints]:
        """Return the best of several planned rounds: the one expected to correct the most pairs per cost.

        Rounds are compared instead of single batches, because later batches of a round have less information. Compared
        by single batches, short lists would look better than they are.

        Args:
            plans: for each round, the size and the number of its batches.
            overhead: fixed cost of a call, in passages.
        """
        # shorter batches start with a part of the same passages
        first = self._best(*self._stakes(), max(size for size, _ in plans))
        rounds = [self._round_from(first[:size], count) for size, count in plans]
        prices = [count * (size + overhead) for size, count in plans]
        righted = self._righted([after for _, after in rounds])
        worths = [found / price for found, price in zip(righted, prices, strict=True)]
        if len(plans) > 1:
            self.told.append({size: worth for (size, _), worth in zip(plans, worths, strict=True)})
        return rounds[int(np.argmax(worths))][0]

    def _inside(self) -> Floats:
        """Return the probability that each passage belongs to the top."""
        return membership(self.mean, np.sqrt(self.covariance.diagonal()), self.top, near_threshold)

    def _round_from(self, first: Ints, count: int) -> tuple[list[Ints], Floats]:
        """Return a round of `count` batches that starts with `first`, and the covariance expected after the round."""
        ahead = copy(self)
        ahead.covariance = self.covariance.copy()
        ahead.expect(first)
        return [first, *(ahead.pick(first.size) for _ in range(count - 1))], ahead.covariance

    def _righted(self, afters: Sequence[Floats]) -> list[float]:
        """Return for each future covariance how many discordant pairs are expected to be corrected, weighted by
        interest.

        The future mean difference is normal around the current one, and its variance is what the answers remove from
        the variance of the difference.
        """
        upper = np.triu_indices(self.mean.size, k=1)
        interest, gaps, now = self._interest()[upper], np.abs(self._gaps[upper]), _spread(self.covariance)[upper]
        found = []
        for after in afters:
            moves = np.sqrt(np.maximum(now - _spread(after)[upper], MIN_VARIANCE))
            found.append(float(interest @ (moves * unit_loss(gaps / moves))))
        return found

    def _interest(self) -> Floats:
        """Return how much the order of each pair matters: the probability that at least one of the two is in the top,
        times the probability that the pair affects the gain.
        """
        outside = 1.0 - self._inside()
        return np.asarray((1.0 - outside[:, None] * outside) * useful_chances(self.mean, self.covariance))

    def pick_among(self, batches: Ints) -> int:
        """Return the index of the best of the given batches, shape (c, m), and update the covariance by its expected
        information.
        """
        stakes, _ = self._stakes()
        place = int(np.argmax(self._gains(batches, stakes)))
        self.expect(batches[place])
        return place

    def expect(self, batch: Ints) -> None:
        """Update the covariance by the expected information F of a batch: C becomes (C^-1 + F)^-1 (Woodbury)."""
        batch = self._by_score(batch[None])[0]
        information = self._information(batch[None])[0]
        columns = self.covariance[:, batch]
        inner = np.eye(batch.size) + columns[batch] @ information
        self.covariance -= columns @ information @ np.linalg.solve(inner, columns.T)
        self.covariance = (self.covariance + self.covariance.T) / 2

    def _stakes(self) -> tuple[Floats, Floats]:
        """Return M = C L C, where L is the Laplacian of the pair weights, and the variances of all pairs'
        differences.
        """
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
        """Return the batch that starts with the best pair and is extended by the best further item at each step."""
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
        """Return the candidates for the next item of a batch. For a short batch, or if few items are left, all items
        are candidates. Otherwise, they are the items whose pairs with its members are worth most.
        """
        free = np.ones(self.mean.size, dtype=np.bool_)
        free[batch] = False
        others = np.flatnonzero(free)
        if batch.size < GREEDY_FROM or others.size <= GREEDY_CANDIDATES:
            return others
        likely = np.argsort(-values[others[:, None], batch].sum(axis=1), kind="stable")[:GREEDY_CANDIDATES]
        return np.asarray(others[np.sort(likely)])

    def _pair_values(self, stakes: Floats, variances: Floats) -> Floats:
        diagonal = stakes.diagonal()
        drops = diagonal[:, None] + diagonal[None, :] - 2 * stakes
        return self._duel * drops / (1.0 + self._duel * variances)

    def _gains(self, batches: Ints, stakes: Floats) -> Floats:
        """Return tr(F (I + C F)^-1 M) over each batch: the exact decrease of sum w_ij v_ij with fixed weights."""
        batches = self._by_score(batches)
        information = self._information(batches)
        cells = self._cells(batches)
        inner = np.eye(batches.shape[1]) + self.covariance.ravel()[cells] @ information
        return np.asarray(np.einsum("cij,cji->c", information, np.linalg.solve(inner, stakes.ravel()[cells])))

    def _cells(self, batches: Ints) -> Ints:
        """Return the indices of each batch's pairs in the flattened matrix of all pairs."""
        return np.asarray(batches[:, :, None] * self.mean.size + batches[:, None, :])

    def _by_score(self, batches: Ints) -> Ints:
        """Return the batches with their members sorted by score."""
        return np.asarray(self._line[np.sort(self._rank[batches], axis=1)])

    def _information(self, batches: Ints) -> Floats:
        """Return the expected information of each batch: b^2 sum (diag p - p p^T) over its stages, in the given order.

        The members must be sorted by score.
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
    """Return the variance of the difference of each pair."""
    own = covariance.diagonal()
    return np.asarray(np.maximum(own[:, None] + own[None, :] - 2 * covariance, MIN_VARIANCE))


def pair_interest(inside: Floats) -> Floats:
    """Return the weight of each pair's order if gains are ignored: outside + (1 - outside) T - (1 - boundary) B.

    T is the probability that at least one of the two is in the top. B is the probability that exactly one of them is.
    """
    either = 1.0 - (1.0 - inside)[:, None] * (1.0 - inside)[None, :]
    one = inside[:, None] * (1.0 - inside)[None, :]
    one = one + one.T
    return np.asarray(OUTSIDE_INTEREST + (1 - OUTSIDE_INTEREST) * either - (1 - BOUNDARY) * one)


WAVE_SHARE = 0.1  # share of all rankings that get a round in a wave
# minimum number of rankings per wave, so that many calls run concurrently; but at most a quarter of all rankings
MIN_WAVE_RANKINGS = 16
QUARTER = 0.25
GRADED = 0.25  # information of one passage's grade, in calls with five passages
TOP_SIZE_POWER = 1.5  # discordant pairs are divided by the size of the top to this power
ROUNDING = 1e-9


class NextRound(NamedTuple):
    """Offer of a ranking for its next round in a shared budget.

    Attributes:
        name: name of the ranking.
        gain: expected benefit of the round, >= 0 (see `expected_loss_reduction`).
        price: cost, > 0, in any unit.
        asked: whether the ranking has already had a round.
    """

    name: str
    gain: float
    price: float
    asked: bool


def expected_loss_reduction(loss: float, calls: float, size: int, top: int) -> float:
    """Return the expected decrease of the loss by the next call with five passages, on a scale that is comparable
    between pools.

    A discordant pair counts more in a small top. The divisor is half-way between the number of passages and the number
    of pairs of the top, on a logarithmic scale.

    Args:
        loss: expected gain-weighted loss now.
        calls: cost of the calls so far, in calls with five passages.
        size: number of passages in the pool.
        top: number of leading positions that matter.
    """
    weight = float(min(size, top) ** TOP_SIZE_POWER)
    return loss / weight / (calls + GRADED * size)


def next_wave(offers: Iterable[NextRound], left: float, rankings: int) -> tuple[NextRound, ...]:
    """Return the offers of the next wave, best first; an empty tuple if no offer is affordable.

    Args:
        offers: the next rounds of the unfinished rankings, in any order; names are distinct.
        left: remaining budget, in the unit of the prices.
        rankings: number of rankings, including finished ones.
    """
    line = sorted(offers, key=lambda offer: (offer.asked, -offer.gain / offer.price, offer.name))
    first = sum(not offer.asked for offer in line)
    room, taken = first or wave_size(rankings), list[NextRound]()
    for offer in line:
        if len(taken) == room:
            break
        if offer.price <= left + ROUNDING:
            taken.append(offer)
            left -= offer.price
    return tuple(taken)


def wave_size(rankings: int) -> int:
    """Return the number of rankings that get a round in each wave."""
    return math.ceil(max(WAVE_SHARE * rankings, min(MIN_WAVE_RANKINGS, QUARTER * rankings)))


HIGHEST_SLIP = 0.9
# outside this range, either the answers have hardly any influence, or the grades have no information and fits diverge
SIGMAS = 0.01, 2.0


def check_options(
    sigma: float,
    slip: float,
    saving: float,
    stability: int,
    repeats: float,
    z: float,
    echo: float,
    overhead: float,
) -> None:
    """Check the options of `BayesRanker`.

    Raises:
        ValueError: a value is out of its range; the message names the option and the range.
    """
    if not (z > 0 and math.isfinite(z)):
        raise ValueError(f"z must be a finite number above 0, not {z}")
    if not (saving >= 0 and math.isfinite(saving)):
        raise ValueError(f"saving must be a finite number of at least 0, not {saving}")
    if not (overhead >= 0 and math.isfinite(overhead)):
        raise ValueError(f"overhead must be a finite number of at least 0, not {overhead}")
    if not stability >= 0:
        raise ValueError(f"stability must be at least 0, not {stability}")
    ranges = (
        ("sigma", sigma, *SIGMAS),
        ("slip", slip, 0.0, HIGHEST_SLIP),
        ("repeats", repeats, 0.0, 0.5),
        ("echo", echo, 0.0, HIGHEST_ECHO),
    )
    for what, value, least, most in ranges:
        if not least <= value <= most:
            raise ValueError(f"{what} must be in {least:g} to {most:g}, not {value}")


SIZES = (5, 10, 20)  # batch sizes to choose from
PILOT_SHARE = 0.5  # maximum share of a ranking's budget for pilot lists
STUDY_EVERY = 4  # calls between two estimates of the judge's position bias, sharpness and repeat correlation
FIRST_SHARPNESS = 3.0
POSTERIOR_DRAWS = 2000  # number of draws from the posterior, for ranks and membership
# Calls for each passage that no earlier order contains, and the start score from which a passage gets them.
FRESH_CALLS, FRESH_FROM = 2, 2.0
SAVES_LITTLE = "a further call saves little"


class BayesRanker(RoundRanker):
    """Rank by a joint Plackett-Luce posterior, with calls for passages whose order in the top is uncertain. Default
    engine.

    Common arguments as for `raggs.ranking.make_ranker`.

    Args:
        sigma: standard deviation of the utilities around the grade that a passage deserves, in grades, 0.01 to 2.
        slip: probability that a grade differs by one from the grade that the passage deserves, 0 to 0.9.
        saving: minimum decrease of the gain-weighted loss that is expected from the next call, in grades, >= 0. Below
            it, the ranking ends (see `raggs.ranking.rounds.gain_loss`). 0 disables the rule.
        stability: number of consecutive calls without a change in the order of the top after which the ranking ends. 0
            disables the rule.
        repeats: share of the calls, 0 to 0.5, that show a judged batch again in another order, to audit the judge.
        z: half-width of the confidence bounds, in standard errors, > 0. A pair can be locked if the bounds
            exclude 0 (see `raggs.ranking.locks`).
        echo: correlation of the judge's errors on two showings of a pair, 0 to 0.9. If None, it is estimated.
        favour: whether the judge's position bias is estimated and corrected; otherwise it is assumed to be 0.
        overhead: fixed cost of a call, in passages, >= 0. It is used only if `batch_size` is None.

    Raises:
        ValueError: an argument is out of range.
    """

    VERSION: ClassVar[int] = 7
    INFORMED: ClassVar[bool] = True
    LEARNS: ClassVar[int] = 6

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
        sigma: float = 0.5,
        slip: float = 0.25,
        saving: float = 0.015,
        stability: int = 0,
        repeats: float = 0.05,
        z: float = 3.0,
        echo: float | None = None,
        favour: bool = True,
        overhead: float = 0.0,
    ) -> None:
        longest = SIZES[-1] if batch_size is None else batch_size
        super().__init__(
            ids,
            grades,
            top=top,
            batch_size=longest,
            seed=seed,
            max_calls=max_calls,
            distributions=distributions,
        )
        check_options(sigma, slip, saving, stability, repeats, z, 0.0 if echo is None else echo, overhead)
        self.stability, self.repeats = stability, repeats
        self._biased = favour
        self.echo = 0.0 if echo is None else echo
        self._echo_known, self._echo_believed = echo, 0.0
        self.saving = saving
        self._given = has_grade(self.ids, dict(zip(ids, grades, strict=True)))
        if self.distributions is not None:
            self._given |= ~np.isnan(self.distributions[:, 0])
        self._mixture = grade_prior(self.prior, self._given, sigma, slip, self.distributions)
        self._posterior = self._mixture.posterior(FIRST_SHARPNESS)
        self.overhead = overhead
        self._open_size = batch_size is None
        self._sizes = tuple(sorted({min(each, self.size) for each in SIZES})) if self._open_size else (self.size,)
        self._manner = JudgeModel(np.zeros(min(self.size, TYPICAL_LENGTH) if self._open_size else self.size))
        self._known: KnownPicks | None = None
        self._paid = 0.0  # cost of the judge's answers in an earlier ranking, in calls
        # by passage: number of orders given beforehand that contain the passage
        self._told = np.zeros(len(self.ids), dtype=np.int64)
        self._orders: list[Ints] = []
        self._places: list[Ints] = []
        self._best: list[Floats | None] = []
        self._repeated: set[int] = set()
        self._pairs = SettledPairs(self.ids, LockRule(z=z))
        self._known_keys = known_keys(self.prior, self._listed)
        self._stable = 0
        self._order, self._by_utility = self._sorted(), self._sorted_by_utility()

    def pilot_batches(self) -> tuple[tuple[str, ...], ...]:
        """Return a first round that measures the judge; see `Ranker.pilot_batches`."""
        if self._rounds:
            raise ValueError("a pilot comes before the first round")
        if self.done:
            return ()
        planner = self._planner(by_gain=False)
        left, chosen = self.max_calls * PILOT_SHARE, dict[int, Ints]()
        for at, size in enumerate(PILOT_SIZES):
            if (price := self._price(min(size, self.size))) <= left and len(chosen) < self._unshown():
                before = chosen.get(PILOT_AGAIN.get(at, -1))
                chosen[at] = planner.pick(min(size, self.size)) if before is None else before
                left -= price
        return self._open(list(chosen.values())) if chosen else ()

    def pilot(self) -> Pilot:
        """Return the evidence about the judge; see `Ranker.pilot`."""
        return Pilot(self.prior, self._given, self._judged(), self._biased, self.distributions)

    @one_blas_thread
    def believe(self, profile: Profile) -> None:
        """Use judge parameters from other queries; see `Ranker.believe`."""
        if self._waiting:
            raise ValueError("a round is open")
        self._manner = prior_judge_model(profile, self._manner)
        if self._echo_known is None:
            self._echo_believed = self.echo = max(self.echo, profile.echo)
        self.overhead = profile.overhead
        self._mixture = grade_prior(self.prior, self._given, profile.sigma, profile.slip, self.distributions)
        nearest = min(SHARPNESS, key=lambda each: abs(math.log(each / profile.sharpness)))
        self._posterior = self._mixture.posterior(nearest)
        if self.calls or self.informed:
            for _ in range(SETTLE):
                self._posterior = fit_mixture(self._mixture, self._judged(), nearest, self._posterior)
            self._settle()

    @property
    def posterior(self) -> Posterior:
        """Posterior of the utilities, given all answers processed so far."""
        return self._posterior

    def _price(self, size: int) -> float:
        """Return the cost of a batch in calls. If the engine chooses the size, a batch of five costs one call, and
        shorter batches cost no less.
        """
        return max(1.0, (size + self.overhead) / (TYPICAL_LENGTH + self.overhead)) if self._open_size else 1.0

    def _affordable(self) -> int:
        return int((self.max_calls - self.spent + rounds_ROUNDING) / self._price(self._sizes[0]))

    def _planner(self, *, by_gain: bool = True) -> Planner:
        worth = echoes.showing_worth(self._pairs.shown, self.echo)
        return Planner(self._posterior, worth, self.top, self._manner, by_gain=by_gain)

    @one_blas_thread
    def _choose(self, count: int, _rng: np.random.Generator) -> list[Ints]:
        planner, batches = self._planner(), list[Ints]()
        if self._open_size:
            return self._open_round(planner, count)
        for slot in range(count):
            audit = self._audits(self.calls + self.skipped + slot)
            batches.append(self._again(planner) if audit else planner.pick(self.size))
        return batches

    def _open_round(self, planner: Planner, count: int) -> list[Ints]:
        """Return batches of the best size that show about as many passages as `count` batches of five. If an audit
        is due, it is the first batch.
        """
        left = self.max_calls - self.spent + rounds_ROUNDING
        fresh = [self._price(order.size) for call, order in enumerate(self._orders) if call not in self._repeated]
        due = len(self._repeated) < math.floor((self.calls + self.skipped + 1) * self.repeats)
        batches = [self._again(planner)] if due and min(fresh, default=math.inf) <= left else []
        left -= sum(self._price(batch.size) for batch in batches)
        room, slots = TYPICAL_LENGTH * count - sum(batch.size for batch in batches), count - len(batches)
        most = {size: min(slots, max(not batches, room // size), int(left / self._price(size))) for size in self._sizes}
        if plans := [(size, number) for size, number in most.items() if number > 0]:
            batches += planner.pick_round(plans, self.overhead)
        self._told_for += planner.told
        return batches

    def _audits(self, asked: int) -> bool:
        """Return whether the batch after the first `asked` batches is an audit. Audits are spread evenly over the
        calls.
        """
        due = math.floor((asked + 1) * self.repeats)
        return due > math.floor(asked * self.repeats) and len(self._repeated) < len(self._orders)

    def _again(self, planner: Planner) -> Ints:
        """Return a judged batch to repeat: the one with the most expected information among the shortest batches not
        audited yet.
        """
        fresh = [call for call in range(len(self._orders)) if call not in self._repeated]
        shortest = min(self._orders[call].size for call in fresh)
        fresh = [call for call in fresh if self._orders[call].size == shortest]
        call = fresh[planner.pick_among(np.array([self._orders[call] for call in fresh]))]
        self._repeated.add(call)
        return self._orders[call]

    @one_blas_thread
    def inform(self, groups: Sequence[Sequence[str]], sharpness: float, *, paid: bool = False) -> None:
        """Record an order given beforehand; see `Ranker.inform`. The order has full weight and does not affect the
        judge's parameters.

        Earlier answers of the judge count towards `max_calls`. They leave `FRESH_CALLS` calls for each passage with a
        start score of at least `FRESH_FROM` that no order given beforehand contains.
        """
        numbered = self._numbered(groups)
        self.informed += 1
        if paid:
            self._paid += self._price(sum(map(len, numbered)))
        self._known = (self._known or KnownPicks()).and_groups(numbered, sharpness)
        self._told[[item for group in numbered for item in group]] += 1
        fresh = int(((self._told == 0) & (self.prior >= FRESH_FROM)).sum())
        self.spent = min(self._paid, max(0.0, self.max_calls - FRESH_CALLS * fresh))
        self._pairs.count_told(numbered)
        self._refit()
        self._settle()

    @one_blas_thread
    def _learn(self, order: Ints, shown: Ints, best: Floats | None = None) -> None:
        self._orders.append(order)
        self._best.append(best)
        self._places.append(np.argmax(shown == order[:, None], axis=1))
        self._pairs.count(order)
        self._refit()
        before = self._by_utility[: self.top]
        self._settle()
        self._stable = self._stable + 1 if self._by_utility[: self.top] == before else 0

    def _settle(self) -> None:
        """Update the locks and the order from the current posterior."""
        self._pairs.update(self._posterior.mean, self._posterior.covariance, self.calls)
        self._order, self._by_utility = self._sorted(), self._sorted_by_utility()

    def _sorted_by_utility(self) -> list[int]:
        """Return a topological order of the locks that ignores the listing of the pool. This order decides when the
        ranking ends.
        """
        return self._pairs.graph.order(self._posterior.mean.tolist())

    def _sorted(self) -> list[int]:
        """Return a topological order of the locks."""
        mean, deviation = self._posterior.mean, np.sqrt(self._posterior.covariance.diagonal())
        # passages of orders given beforehand; these orders also determine the prior keys
        named = np.flatnonzero(self._told)
        keys = self._known_keys.copy()
        keys[named[np.argsort(-mean[named], kind="stable")]] = -np.sort(-keys[named])
        self._beforehand = rounds.PassageKeys(keys, self._exposures() > 0)
        self._order_keys = rounds.order_keys(mean, deviation, self._beforehand).tolist()
        return self._pairs.graph.order(self._order_keys)

    def _refit(self) -> None:
        judged = self._judged()
        self._posterior = fit_mixture(self._mixture, judged, self._posterior.sharpness, self._posterior)
        if self.calls and self.calls % STUDY_EVERY == 0:
            told = estimate_judge_model(self._mixture, judged, self._posterior, self._echo_known, biased=self._biased)
            self._manner, self._posterior, self.echo = told
            self.echo = max(self.echo, self._echo_believed)

    def _judged(self) -> JudgedOrders:
        kinds = sorted({(order.size, best is not None) for order, best in zip(self._orders, self._best, strict=True)})
        return JudgedOrders(tuple(self._lists_of(*kind) for kind in kinds), self._manner, self._known)

    def _lists_of(self, length: int, soft: bool) -> JudgedLists:
        kinds = [(order.size, best is not None) for order, best in zip(self._orders, self._best, strict=True)]
        calls = [call for call, kind in enumerate(kinds) if kind == (length, soft)]
        orders, places = (np.array([each[call] for call in calls]) for each in (self._orders, self._places))
        weights = echoes.weights(self._pairs.shown, orders, self.echo)
        if not soft:
            return JudgedLists(orders, places, weights)
        # probabilities of the best passage count as many picks as an order has: m - 1
        return JudgedLists(orders, places, (length - 1) * weights, np.array([self._best[call] for call in calls]))

    def _settled(self) -> str | None:
        # The loss decreases roughly as 1 / calls.
        if self._expected_loss(self._by_utility) / max(self.spent, 1.0) < self.saving:
            return SAVES_LITTLE
        if self.stability and self._stable >= self.stability:
            return "stable"
        return "everything is settled" if self._pairs.graph.chains(self._by_utility, self.top) else None

    @property
    def doubt(self) -> float:
        """Expected gain-weighted loss; see `Ranker.doubt`."""
        return self._expected_loss(self._order)

    def _expected_loss(self, line: Sequence[int]) -> float:
        order = np.array(line)
        mean, covariance = self._posterior.mean[order], self._posterior.covariance[np.ix_(order, order)]
        return rounds.expected_loss(rounds.pair_losses(mean, covariance), self.top)

    def _agreement(self) -> float:
        """Return the expected agreement with another ranking; see `agreement` in `raggs.ranking.rounds`."""
        found = self._posterior
        return rounds.agreement(
            np.array(self._order[: self.top]),
            (found.mean, found.covariance),
            (found.prior.mean, found.prior.precision),
            self._beforehand,
            generator(self._seed, "agreement"),
        )

    def _above(self, order: Ints) -> Floats:
        """Return P[k, l], the joint probability that the k-th of `order` ranks above the l-th."""
        mean, covariance = self._posterior.mean[order], self._posterior.covariance[np.ix_(order, order)]
        return normal_cdf(standard_gaps(mean, covariance))

    @one_blas_thread
    def ranking(self) -> Ranking:
        """Return the ranking; see `Ranker.ranking`. Membership and rank intervals come from draws of the joint
        posterior.
        """
        order = np.array(self._pairs.graph.final_order(self._order_keys))
        mean, covariance = self._posterior.mean[order], self._posterior.covariance[np.ix_(order, order)]
        above = self._above(order)
        ranks = rounds.drawn_ranks(mean, covariance, POSTERIOR_DRAWS, generator(self._seed, "ranks"))
        low, high = rounds.rank_bounds(ranks)
        return Ranking(
            order=tuple(self.ids[item] for item in order.tolist()),
            scores=tuple(mean.tolist()),
            sigma=tuple(np.sqrt(covariance.diagonal()).tolist()),
            exposures=tuple(self._exposures()[order].tolist()),
            position_confidence=(*np.diagonal(above, offset=1).tolist(), 1.0),
            rank_low=tuple(low.tolist()),
            rank_high=tuple(high.tolist()),
            membership=tuple((ranks <= self.top).mean(axis=0).tolist()),
            locks=self._pairs.locks,
            released=self._pairs.released,
            expected_inversions=rounds.expected_inversions(above, self.top),
            expected_loss=self.doubt,
            agreement=self._agreement(),
            calls=self.calls,
            skipped=self.skipped,
            stop_reason=self.stop_reason,
            sharpness=self._posterior.sharpness,
            echo=self.echo,
            favour=tuple(self._manner.favour.tolist()),
        )

    def _exposures(self) -> Ints:
        shown = np.concatenate([np.zeros(0, dtype=np.int64), *self._orders])
        return np.bincount(shown, minlength=len(self.ids)) + self._told
