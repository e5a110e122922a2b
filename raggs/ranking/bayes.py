"""Engine `bayes`: the joint posterior of all utilities, asked where the top is still open.

Every answer refits a Plackett-Luce posterior over all stored orders, with the grades as prior; its covariance says
which pairs are open, which are settled and when to stop. Batches are those that most reduce the uncertainty
of the order of the top. How sharp the judge is, which places of a list it favours, and how much its repeats echo
its earlier errors, is estimated on the way. The order is a topological order of the locks, ties by score.

What the options of the engine `bayes` may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.seeds import generator
from raggs.ranking import confidence
from raggs.ranking import profile as echoes
from raggs.ranking.acquisition import Planner
from raggs.ranking.base import PILOT_AGAIN, PILOT_SIZES, TYPICAL_LENGTH, Pilot, Profile, Ranking
from raggs.ranking.locks import LockRule, SettledPairs, standard_gaps
from raggs.ranking.posterior import (
    SETTLE,
    SHARPNESS,
    Judged,
    JudgedLists,
    KnownPicks,
    Manner,
    Posterior,
    fit_mixture,
    grade_prior,
    one_blas_thread,
)
from raggs.ranking.profile import HIGHEST_ECHO, believed, study
from raggs.ranking.rounds import ROUNDING, RoundRanker, given, known_keys

HIGHEST_SLIP = 0.9
SIGMAS = 0.01, 2.0  # beyond, the grades leave nothing to the answers, or say nothing and fits run away


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
    """See `raggs.ranking.bayes.BayesRanker`.

    Raises:
        ValueError: a value is out of its range; the message says which and what may be.
    """
    if not (z > 0 and math.isfinite(z)):
        raise ValueError(f"z must be a finite number above 0, not {z}")
    if not (saving >= 0 and math.isfinite(saving)):
        raise ValueError(f"saving must be a finite number from 0, not {saving}")
    if not (overhead >= 0 and math.isfinite(overhead)):
        raise ValueError(f"overhead must be a finite number from 0, not {overhead}")
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
            raise ValueError(f"{what} must lie in {least:g} to {most:g}, not {value}")


SIZES = (5, 10, 20)  # of batches, where the best is looked for
PILOT_SHARE = 0.5  # of what a ranking may cost
STUDY_EVERY = 4  # calls between two looks at the judge: its favour of places, its sharpness, its echo
FIRST_SHARPNESS = 3.0
DRAWS = 2000  # of the posterior, for ranks and membership
SAVES_LITTLE = "a further call saves little"


class BayesRanker(RoundRanker):
    """Joint Plackett-Luce posterior, asked where the top is still open; the default.

    Common arguments as `raggs.ranking.make_ranker`.

    Args:
        sigma: spread of the utilities around the grade that a passage deserves, in grades, 0.01 to 2.
        slip: chance that a given grade is one off the deserved one, 0 to 0.9.
        saving: ends the ranking when the next call is expected to remove less gain-weighted loss than this, >= 0, in
            grades (see `raggs.ranking.confidence.gain_loss`). 0 never ends it.
        stability: calls without a change of the ordered top that end the ranking; 0 never does.
        repeats: share of the calls that ask a judged batch again in another presentation, to audit the judge, 0 to 0.5.
        z: half-width of the bounds that lock a pair, in standard errors, > 0.
        echo: correlation of the judge's errors on two showings of a pair, 0 to 0.9; None (left out)
            estimates it.
        favour: whether the favour of places of the list is estimated and taken out; else the judge is taken for fair.
        overhead: of a call, in passages: what it costs beside the passages that it shows, >= 0. Counts where the size
            of a batch is chosen.

    Raises:
        ValueError: an argument cannot be right.
    """

    VERSION: ClassVar[int] = 6
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
        super().__init__(ids, grades, top=top, batch_size=longest, seed=seed, max_calls=max_calls)
        check_options(sigma, slip, saving, stability, repeats, z, 0.0 if echo is None else echo, overhead)
        self.stability, self.repeats = stability, repeats
        self._biased = favour
        self.echo = 0.0 if echo is None else echo
        self._echo_known, self._echo_believed = echo, 0.0
        self.saving = saving
        self._given = given(self.ids, dict(zip(ids, grades, strict=True)))
        self._mixture = grade_prior(self.prior, self._given, sigma, slip)
        self._posterior = self._mixture.posterior(FIRST_SHARPNESS)
        self.overhead = overhead
        self._open_size = batch_size is None
        self._sizes = tuple(sorted({min(each, self.size) for each in SIZES})) if self._open_size else (self.size,)
        self._manner = Manner(np.zeros(min(self.size, TYPICAL_LENGTH) if self._open_size else self.size))
        self._known: KnownPicks | None = None
        self._told = np.zeros(len(self.ids), dtype=np.int64)  # in how many orders given beforehand each stands
        self._orders: list[Ints] = []
        self._places: list[Ints] = []
        self._repeated: set[int] = set()
        self._pairs = SettledPairs(self.ids, LockRule(z=z))
        self._known_keys = known_keys(self.prior, self._listed)
        self._stable = 0
        self._order, self._by_utility = self._sorted(), self._sorted_by_utility()

    def pilot_batches(self) -> tuple[tuple[str, ...], ...]:
        """See `Ranker.pilot_batches`."""
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
        """See `Ranker.pilot`."""
        return Pilot(self.prior, self._given, self._judged(), self._biased)

    @one_blas_thread
    def believe(self, profile: Profile) -> None:
        """See `Ranker.believe`."""
        if self._waiting:
            raise ValueError("a round is open")
        self._manner = believed(profile, self._manner)
        if self._echo_known is None:
            self._echo_believed = self.echo = max(self.echo, profile.echo)
        self.overhead = profile.overhead
        self._mixture = grade_prior(self.prior, self._given, profile.sigma, profile.slip)
        nearest = min(SHARPNESS, key=lambda each: abs(math.log(each / profile.sharpness)))
        self._posterior = self._mixture.posterior(nearest)
        if self.calls or self.informed:
            for _ in range(SETTLE):
                self._posterior = fit_mixture(self._mixture, self._judged(), nearest, self._posterior)
            self._settle()

    @property
    def posterior(self) -> Posterior:
        """Of the utilities, by all answers folded so far."""
        return self._posterior

    def _price(self, size: int) -> float:
        """Of a batch, in calls; where its size is open, a batch of five is a call, and a shorter one is no less."""
        return max(1.0, (size + self.overhead) / (TYPICAL_LENGTH + self.overhead)) if self._open_size else 1.0

    def _affordable(self) -> int:
        return int((self.max_calls - self.spent + ROUNDING) / self._price(self._sizes[0]))

    def _planner(self, *, by_gain: bool = True) -> Planner:
        worth = echoes.worth(self._pairs.shown, self.echo)
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
        """Batches of the size that pays, as many passages as so many of five show; first an audit, if one is due."""
        left = self.max_calls - self.spent + ROUNDING
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
        """Whether the batch after `asked` others is an audit: spread evenly over the calls."""
        due = math.floor((asked + 1) * self.repeats)
        return due > math.floor(asked * self.repeats) and len(self._repeated) < len(self._orders)

    def _again(self, planner: Planner) -> Ints:
        """The judged batch that another look teaches most about, of the shortest not audited yet."""
        fresh = [call for call in range(len(self._orders)) if call not in self._repeated]
        shortest = min(self._orders[call].size for call in fresh)
        fresh = [call for call in fresh if self._orders[call].size == shortest]
        call = fresh[planner.pick_among(np.array([self._orders[call] for call in fresh]))]
        self._repeated.add(call)
        return self._orders[call]

    @one_blas_thread
    def inform(self, groups: Sequence[Sequence[str]], sharpness: float) -> None:
        """See `Ranker.inform`. It counts in full, and says nothing of the judge."""
        numbered = self._numbered(groups)
        self.informed += 1
        self._known = (self._known or KnownPicks()).and_groups(numbered, sharpness)
        self._told[[item for group in numbered for item in group]] += 1
        self._pairs.count_told(numbered)
        self._refit()
        self._settle()

    @one_blas_thread
    def _learn(self, order: Ints, shown: Ints) -> None:
        self._orders.append(order)
        self._places.append(np.argmax(shown == order[:, None], axis=1))
        self._pairs.count(order)
        self._refit()
        before = self._by_utility[: self.top]
        self._settle()
        self._stable = self._stable + 1 if self._by_utility[: self.top] == before else 0

    def _settle(self) -> None:
        """Locks and order by the posterior of now."""
        self._pairs.update(self._posterior.mean, self._posterior.covariance, self.calls)
        self._order, self._by_utility = self._sorted(), self._sorted_by_utility()

    def _sorted_by_utility(self) -> list[int]:
        """Return a topological order of the locks without regard to the listing of the pool. It decides when to end."""
        return self._pairs.graph.order(self._posterior.mean.tolist())

    def _sorted(self) -> list[int]:
        """A topological order of the locks."""
        mean, deviation = self._posterior.mean, np.sqrt(self._posterior.covariance.diagonal())
        named = np.flatnonzero(self._told)  # in orders given beforehand, which count among them
        keys = self._known_keys.copy()
        keys[named[np.argsort(-mean[named], kind="stable")]] = -np.sort(-keys[named])
        self._beforehand = confidence.Known(keys, self._exposures() > 0)
        return self._pairs.graph.order(confidence.order_keys(mean, deviation, self._beforehand).tolist())

    def _refit(self) -> None:
        judged = self._judged()
        self._posterior = fit_mixture(self._mixture, judged, self._posterior.sharpness, self._posterior)
        if self.calls and self.calls % STUDY_EVERY == 0:
            told = study(self._mixture, judged, self._posterior, self._echo_known, biased=self._biased)
            self._manner, self._posterior, self.echo = told
            self.echo = max(self.echo, self._echo_believed)

    def _judged(self) -> Judged:
        lengths = sorted({order.size for order in self._orders})
        return Judged(tuple(map(self._lists_of, lengths)), self._manner, self._known)

    def _lists_of(self, length: int) -> JudgedLists:
        calls = [call for call, order in enumerate(self._orders) if order.size == length]
        orders, places = (np.array([each[call] for call in calls]) for each in (self._orders, self._places))
        return JudgedLists(orders, places, echoes.weights(self._pairs.shown, orders, self.echo))

    def _settled(self) -> str | None:
        # The loss falls about as one over the calls.
        if self._expected_loss(self._by_utility) / max(self.spent, 1.0) < self.saving:
            return SAVES_LITTLE
        if self.stability and self._stable >= self.stability:
            return "stable"
        return "everything is settled" if self._pairs.graph.chains(self._by_utility, self.top) else None

    @property
    def doubt(self) -> float:
        """See `Ranker.doubt`."""
        return self._expected_loss(self._order)

    def _expected_loss(self, line: Sequence[int]) -> float:
        order = np.array(line)
        mean, covariance = self._posterior.mean[order], self._posterior.covariance[np.ix_(order, order)]
        return confidence.expected_loss(confidence.pair_losses(mean, covariance), self.top)

    def _agreement(self) -> float:
        """See `raggs.ranking.confidence.agreement`."""
        found = self._posterior
        return confidence.agreement(
            np.array(self._order[: self.top]),
            (found.mean, found.covariance),
            (found.prior.mean, found.prior.precision),
            self._beforehand,
            generator(self._seed, "agreement"),
        )

    def _above(self, order: Ints) -> Floats:
        """P[k, l]: the joint probability that the k-th of `order` stands above the l-th."""
        mean, covariance = self._posterior.mean[order], self._posterior.covariance[np.ix_(order, order)]
        return confidence.normal_cdf(standard_gaps(mean, covariance))

    @one_blas_thread
    def ranking(self) -> Ranking:
        """See `Ranker.ranking`. Membership and rank intervals come from draws of the joint posterior."""
        order = np.array(self._order)
        mean, covariance = self._posterior.mean[order], self._posterior.covariance[np.ix_(order, order)]
        above = self._above(order)
        ranks = confidence.drawn_ranks(mean, covariance, DRAWS, generator(self._seed, "ranks"))
        low, high = confidence.rank_bounds(ranks)
        return Ranking(
            order=tuple(self.ids[item] for item in self._order),
            scores=tuple(mean.tolist()),
            sigma=tuple(np.sqrt(covariance.diagonal()).tolist()),
            exposures=tuple(self._exposures()[order].tolist()),
            position_confidence=(*np.diagonal(above, offset=1).tolist(), 1.0),
            rank_low=tuple(low.tolist()),
            rank_high=tuple(high.tolist()),
            membership=tuple((ranks <= self.top).mean(axis=0).tolist()),
            locks=self._pairs.locks,
            released=self._pairs.released,
            expected_inversions=confidence.expected_inversions(above, self.top),
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
