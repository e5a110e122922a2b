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

TYPICAL_LENGTH = 5  # list length for which sharpness is stated, and whose cost is one call
# half as many lists would give a quarter of the information: attention shows only once utilities are known
PILOT_SIZES = (20, 5, 10, 5, 5, 10, 5) * 2
PILOT_AGAIN = {10: 1, 11: 3, 13: 4}  # by index of a pilot list: the earlier list whose passages it shows again


@dataclass(frozen=True)
class Lock:
    """A settled pair: `winner` ranks above `loser`.

    Attributes:
        z: difference of the scores in standard errors when the lock was made; negative if only confirmations made it.
        evidence: number of judged batches that had ranked the winner above the loser by then.
        call: number of the observed call that made it, from 1.
    """

    winner: str
    loser: str
    z: float
    evidence: int
    call: int


@dataclass(frozen=True)
class Ranking:
    """Result of a ranker. All tuples except the locks are aligned with `order`.

    Attributes:
        order: the complete pool, best first; a topological order of the locks.
        scores: scores on the scale of the grades.
        sigma: standard errors of the scores, > 0.
        exposures: number of observed batches that showed each passage.
        position_confidence: probability that the passage truly ranks above the next one; 1 for the last.
        rank_low, rank_high: 95% interval of the rank, from 1; it always contains the actual rank.
        membership: probability of truly belonging to the top.
        locks: locks in the order in which they were made.
        released: locks released because of contrary evidence.
        expected_inversions: expected number of discordant pairs within the top.
        expected_loss: expected gain-weighted loss of the order, in grades: the gain lost by discordant pairs.
        agreement: expected share of the top that another ranking with as many answers would also have; None if the
            engine does not estimate it.
        calls: number of observed batches.
        skipped: number of batches on which the judge failed.
        stop_reason: why no more calls are needed; None if more calls would be made.
        sharpness: sharpness of the judge, if the engine estimates it.
        echo: correlation of the judge's errors when it judges a pair again, if the engine estimates it. 0: repeats are
            independent, as the model assumes. Above 0.2, the judge deviates from the model.
        favour: position bias: what each position of the list, first to last, adds to the log-odds of being picked, if
            the engine estimates it. The order is corrected for it.
        unordered: number of passages at the end of `order` that were not ranked, because their grades are below a
            floor.
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
        """Gain of a passage with this judge by being shown first instead of last, in grades; None if not estimated."""
        return (self.favour[0] - self.favour[-1]) / self.sharpness if self.favour and self.sharpness else None


@dataclass(frozen=True)
class Pilot:
    """Evidence about the judge from the lists of one query.

    Attributes:
        grades, graded: grades of the pool, and which of them the judge gave.
        judged: all answers.
        biased: whether the judge may have a position bias.
    """

    grades: Floats
    graded: Flags
    judged: JudgedOrders
    biased: bool = True


@dataclass(frozen=True)
class Profile:
    """Parameters of a judge, as in `raggs.ranking.posterior.JudgeModel`, and the price of a call.

    Attributes:
        sharpness, doubt: for lists of five: point estimate, and standard error of its logarithm.
        left: share of the sharpness that remains at each pick of a list, from 1; empty if it does not decrease.
        strain: how the sharpness decreases with the length of a list; 0 without evidence for a decrease.
        overhead: fixed cost of a call, in passages, in addition to the passages shown.
        sigma: standard deviation of the utilities around the deserved grade, in grades.
        slip: probability that a given grade is one off the deserved one.
        favour: position bias: log-odds that positions from first to last add; empty for none.
        favour_doubt: standard error of each of these; None if position bias was not estimated.
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

    `VERSION` is raised whenever the same observations would give another ranking or other batches.
    """

    VERSION: ClassVar[int]
    INFORMED: ClassVar[bool] = False  # whether it accepts orders given before its first round
    # Whether it exchanges judge parameters with other queries. The number is raised like `VERSION` if only rankings
    # with lists of open length would change.
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
        **options: float,
    ) -> None:
        """Take the arguments of `raggs.ranking.make_ranker`; an engine names each of its options, each with a
        default.
        """

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether no more calls are needed and no answer is outstanding."""

    @abstractmethod
    def next_batches(self, count: int) -> tuple[tuple[str, ...], ...]:
        """Return the next round: up to `count` batches in their order of presentation; none if `done`.

        All batches are chosen before any is judged, so they may be judged concurrently.

        Raises:
            ValueError: `count` < 1, or a batch of the last round is neither observed nor skipped.
        """

    @abstractmethod
    def observe(self, order: Sequence[str]) -> None:
        """Record a judged batch, best first.

        Answers may arrive in any order within a round; they are processed in the round's order. Batches of the same
        passages are distinguished only by their order of arrival.

        Raises:
            ValueError: `order` is not a permutation of an outstanding batch.
        """

    @abstractmethod
    def skip(self, batch: Sequence[str]) -> None:
        """Discard an outstanding batch: it counts as a call and changes nothing else.

        Raises:
            ValueError: `batch` is not outstanding.
        """

    def inform(self, groups: Sequence[Sequence[str]], sharpness: float) -> None:
        """Record an order from another source before the first round; only for engines with `INFORMED`.

        Args:
            groups: passages of the pool, best group first; the order within a group is open.
            sharpness: sharpness of the source: 3 orders passages one grade apart correctly 19 times in 20.

        Raises:
            ValueError: a passage is not in the pool or occurs twice, a round has started, or there are fewer than two
                groups.
            TypeError: the engine is not `INFORMED`.
        """
        raise TypeError("the engine does not accept orders from other sources")

    def pilot_batches(self) -> tuple[tuple[str, ...], ...]:
        """Return a first round that shows how the judge orders lists of several lengths; only for engines with
        `LEARNS`.

        It is empty, and no round is opened, if there is nothing to order or the budget does not cover a list.

        Raises:
            ValueError: a round has started.
            TypeError: the engine does not learn.
        """
        raise TypeError("the engine does not use judge parameters from other queries")

    def pilot(self) -> Pilot:
        """Return what all answers so far show about the judge; only for engines with `LEARNS`.

        Raises:
            TypeError: the engine does not learn.
        """
        raise TypeError("the engine does not use judge parameters from other queries")

    def believe(self, profile: Profile) -> None:
        """Use judge parameters estimated from other queries, between two rounds; only for engines with `LEARNS`.

        Raises:
            ValueError: a round is open.
            TypeError: the engine does not learn.
        """
        raise TypeError("the engine does not use judge parameters from other queries")

    @property
    def told_by_length(self) -> Mapping[int, float]:
        """Expected information per price of a list of each length, averaged over all lists whose length was chosen.

        Empty if no length was chosen. Only the ratios are meaningful.
        """
        return {}

    @property
    def doubt(self) -> float:
        """Expected gain-weighted loss of the order, by all answers processed so far."""
        found = self.ranking()
        return found.expected_inversions if found.expected_loss is None else found.expected_loss

    def price(self, batches: Sequence[Sequence[str]]) -> float:
        """Return the cost of some batches in calls, as `max_calls` counts them."""
        return float(len(batches))

    @abstractmethod
    def ranking(self) -> Ranking:
        """Return the ranking by all answers processed so far; may be called at any time."""
