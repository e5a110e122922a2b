"""Interface of rankers and their results: the only types that callers need.

This module does not import numpy, so that looking up an engine by name is cheap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from raggs.base.arrays import Flags, Floats
    from raggs.ranking.posterior import JudgedOrders

TYPICAL_LENGTH = 5  # list length to which a stated sharpness refers; the cost of such a list is one call
# Half as many lists would give a quarter of the information, because the judge's attention can be estimated only once
# the utilities are known.
PILOT_SIZES = (20, 5, 10, 5, 5, 10, 5) * 2
PILOT_AGAIN = {10: 1, 11: 3, 13: 4}  # index of a pilot list: index of the earlier list whose passages it shows again


@dataclass(frozen=True)
class Lock:
    """A settled pair: `winner` ranks above `loser`.

    Attributes:
        z: difference of the scores when the lock was made, in standard errors. It can be negative if the engine locks
            pairs by confirmations.
        evidence: number of judged batches and of orders given beforehand that had ranked the winner above the loser by
            then.
        call: number of the observed call after which the lock was made, counted from 1.
    """

    winner: str
    loser: str
    z: float
    evidence: int
    call: int


@dataclass(frozen=True)
class Ranking:
    """Result of a ranker. The tuples with one value per passage are aligned with `order`.

    Attributes:
        order: the complete pool, best first; a topological order of the locks.
        scores: scores on the scale of the grades.
        sigma: standard errors of the scores, > 0.
        exposures: number of observed batches and of orders given beforehand that contain each passage.
        position_confidence: probability that the passage truly ranks above the next one; 1 for the last.
        rank_low, rank_high: 95% interval of the rank, counted from 1. It always contains the passage's rank in `order`.
        membership: probability that the passage truly belongs to the top.
        locks: locks in the order in which they were made.
        released: locks released because of contrary evidence.
        expected_inversions: expected number of discordant pairs within the top.
        expected_loss: expected gain-weighted loss of the order, in grades: the gain lost by discordant pairs.
        agreement: expected share of the top that would also be in the top of another ranking with as many answers; None
            if the engine does not estimate it.
        calls: number of observed batches.
        skipped: number of batches on which the judge failed.
        stop_reason: why the ranking has ended; None if it needs more calls.
        sharpness: sharpness of the judge, if the engine estimates it.
        echo: correlation of the judge's errors when it judges a pair again, if the engine estimates it. At 0, repeated
            judgments are independent, as the model assumes. Above 0.2, the judge deviates clearly from the model.
        favour: position bias, if the engine estimates it: the log-odds of being picked that each position of a list
            adds, from first to last. The order is corrected for it.
        unordered: number of passages at the end of `order` that were not ranked, because their grades are below a
            limit.
    """

    order: tuple[str, ...]
    scores: tuple[float, ...]
    sigma: tuple[float, ...]
    exposures: tuple[int, ...]
    position_confidence: tuple[float, ...]
    rank_low: tuple[int, ...]
    rank_high: tuple[int, ...]
    membership: tuple[float, ...]
    locks: tuple[Lock, ...]
    released: tuple[Lock, ...]
    expected_inversions: float
    calls: int
    skipped: int
    stop_reason: str | None
    sharpness: float | None = None
    echo: float | None = None
    favour: tuple[float, ...] = ()
    unordered: int = 0
    expected_loss: float | None = None
    agreement: float | None = None

    @property
    def position_bias(self) -> float | None:
        """Number of grades that a passage gains by being shown first instead of last; None if not estimated."""
        return (self.favour[0] - self.favour[-1]) / self.sharpness if self.favour and self.sharpness else None


@dataclass(frozen=True)
class Pilot:
    """Evidence about the judge from the lists of one query.

    Attributes:
        grades, graded: start scores of the pool, and for each of them whether it comes from the judge.
        judged: all answers of the judge to this query.
        biased: whether to estimate the position bias of the judge.
        distributions: shape (size, 5): probabilities of the grades; NaN for a passage without a distribution. None if
            no passage has one.
    """

    grades: Floats
    graded: Flags
    judged: JudgedOrders
    biased: bool = True
    distributions: Floats | None = None


@dataclass(frozen=True)
class Profile:
    """Estimated parameters of a judge (see `raggs.ranking.posterior.JudgeModel`), and the fixed cost of a call.

    Attributes:
        sharpness, doubt: sharpness for lists of five, and the standard error of its logarithm.
        left: share of the sharpness that remains at each pick of a list, 1 at the first pick; empty if the sharpness
            does not decrease.
        strain: exponent by which the sharpness decreases with the length of a list; 0 if there is no evidence for a
            decrease.
        overhead: fixed cost of a call, in passages, in addition to the passages shown.
        sigma: standard deviation of the utilities around the deserved grade, in grades.
        slip: probability that a grade differs by one from the grade that the passage deserves.
        favour: position bias: log-odds that each position adds, from first to last; empty if there is no bias.
        favour_doubt: standard error of the position bias, per position; None if it was not estimated.
        echo: correlation of the judge's errors when it judges a pair again, 0 to 0.9.
    """

    sharpness: float
    doubt: float
    left: tuple[float, ...] = ()
    strain: float = 0.0
    overhead: float = 0.0
    sigma: float = 0.5
    slip: float = 0.25
    favour: tuple[float, ...] = ()
    favour_doubt: float | None = None
    echo: float = 0.0


class Ranker(ABC):
    """Requests orders of small batches and combines the answers into a ranking.

    `VERSION` is increased whenever a change of the code would give other batches or another ranking for the same
    observations.
    """

    VERSION: ClassVar[int]
    INFORMED: ClassVar[bool] = False  # whether the engine accepts orders before its first round
    # Above 0 if the engine exchanges judge parameters with other queries. It is increased by changes of the code that
    # affect only rankings in which the engine chooses the list length; `VERSION` by all other changes of results.
    LEARNS: ClassVar[int] = 0

    @abstractmethod
    def __init__(
        self,
        ids: Sequence[str],
        grades: Sequence[float | None],
        *,
        top: int,
        batch_size: int | None,
        seed: int,
        max_calls: int,
        distributions: Sequence[Sequence[float] | None] | None = None,
        **options: float,
    ) -> None:
        """Create a ranker from the arguments of `raggs.ranking.make_ranker`. An engine declares its options as
        keyword arguments with defaults.
        """

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether no more calls are needed and no answer is outstanding."""

    @abstractmethod
    def next_batches(self, count: int) -> tuple[tuple[str, ...], ...]:
        """Return the next round: up to `count` batches in their order of presentation; an empty tuple if `done`.

        All batches are chosen before any is judged, so they may be judged concurrently.

        Raises:
            ValueError: `count` < 1, or a batch of the last round was neither observed nor skipped.
        """

    @abstractmethod
    def observe(self, order: Sequence[str], best: Sequence[float] | None = None) -> None:
        """Record the judge's order of a batch, best first.

        Answers may arrive in any order within a round; they are processed in the order of the round's batches. If two
        batches of a round have the same passages, the first answer counts for the first batch.

        Args:
            order: the passages of an outstanding batch, best first.
            best: probability that the judge picks each passage of `order` as the best of the batch. With it, only these
                probabilities change the scores. The order then only supports locks. The probabilities of a batch of m
                count as m - 1 picks, because an order also has m - 1.

        Raises:
            ValueError: `order` is not a permutation of an outstanding batch, or `best` is not a distribution over it.
        """

    @abstractmethod
    def skip(self, batch: Sequence[str]) -> None:
        """Discard an outstanding batch. The batch counts towards the budget and changes nothing else.

        Raises:
            ValueError: `batch` is not outstanding.
        """

    def inform(self, groups: Sequence[Sequence[str]], sharpness: float, *, paid: bool = False) -> None:
        """Record an order from another source before the first round; only for engines with `INFORMED`.

        Args:
            groups: groups of passages of the pool, best group first; the order within a group is unknown.
            sharpness: sharpness of the source; a source with a sharpness of 3 orders passages one grade apart correctly
                19 times in 20.
            paid: whether the order is an answer of the judge in an earlier ranking, so that it counts towards
                `max_calls`.

        Raises:
            ValueError: a passage is not in the pool or occurs twice, a round has started, a group is empty, or there
                are fewer than two groups.
            TypeError: the engine is not `INFORMED`.
        """
        raise TypeError("the engine does not accept orders from other sources")

    def pilot_batches(self) -> tuple[tuple[str, ...], ...]:
        """Return a first round that shows how the judge orders lists of several lengths; only for engines with
        `LEARNS` > 0.

        The round is empty, and no round is opened, if there is nothing to order or half of the budget does not cover a
        list.

        Raises:
            ValueError: a round has started.
            TypeError: `LEARNS` of the engine is 0.
        """
        raise TypeError("the engine does not use judge parameters from other queries")

    def pilot(self) -> Pilot:
        """Return the evidence about the judge from all answers so far; only for engines with `LEARNS` > 0.

        Raises:
            TypeError: `LEARNS` of the engine is 0.
        """
        raise TypeError("the engine does not use judge parameters from other queries")

    def believe(self, profile: Profile) -> None:
        """Use judge parameters estimated from other queries, between two rounds; only if `LEARNS` > 0.

        Raises:
            ValueError: a round is open.
            TypeError: `LEARNS` of the engine is 0.
        """
        raise TypeError("the engine does not use judge parameters from other queries")

    @property
    def told_by_length(self) -> Mapping[int, float]:
        """Expected benefit per cost of a list of each length, averaged over the choices of a length.

        It is empty if the engine never chose a length. Only the ratios between the values are meaningful.
        """
        return {}

    @property
    def doubt(self) -> float:
        """Expected gain-weighted loss of the order, given all answers processed so far. If the engine does not estimate
        this loss, it is the expected number of inversions within the top.
        """
        found = self.ranking()
        return found.expected_inversions if found.expected_loss is None else found.expected_loss

    def price(self, batches: Sequence[Sequence[str]]) -> float:
        """Return the cost of the batches in calls, the unit of `max_calls`."""
        return float(len(batches))

    @abstractmethod
    def ranking(self) -> Ranking:
        """Return the ranking given all answers processed so far. This method may be called at any time."""
