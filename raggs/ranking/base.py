"""What a ranker is and what it answers: the only types that callers need.

Kept free of numpy so that naming an engine costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from raggs.base.arrays import Flags, Floats
    from raggs.ranking.posterior import JudgedOrders

TYPICAL_LENGTH = 5  # of a list, for which sharpness is stated, and which costs a call
PILOT_SIZES = (20, 5, 10, 5, 5, 10, 5) * 2  # half of them would tell a quarter: care shows where utilities are known
PILOT_AGAIN = {10: 1, 11: 3, 13: 4}  # of these: the list that shows the passages of an earlier one again


@dataclass(frozen=True)
class Lock:
    """A settled pair: `winner` stands above `loser`.

    Attributes:
        z: gap of the scores in standard errors when the lock was made; negative where confirmations alone made it.
        evidence: judged batches that had placed the winner above the loser by then.
        call: the observed call, from 1, that made it.
    """

    winner: str
    loser: str
    z: float
    evidence: int
    call: int


@dataclass(frozen=True)
class Ranking:
    """A ranker's answer. All tuples but the locks are aligned with `order`.

    Attributes:
        order: the whole pool, best first; a topological order of the locks.
        scores: on the scale of the grades.
        sigma: standard errors of the scores, > 0.
        exposures: in how many observed batches each was shown.
        position_confidence: probability that the passage truly stands above the next one; 1 for the last.
        rank_low, rank_high: best and worst plausible rank (95%), from 1, always around the actual one.
        membership: probability of truly belonging to the top.
        locks: in the order in which they were made.
        released: locks taken back on contrary evidence.
        expected_inversions: expected number of wrongly ordered pairs inside the top.
        expected_loss: gain-weighted loss that is expected of the order, in grades: how much gain inverted pairs lose.
        agreement: share of the top that another ranking with as many answers is expected to have as well; None where
            the engine does not know.
        calls: batches observed.
        skipped: batches that the judge failed on.
        stop_reason: why nothing more is asked; None while more would be.
        sharpness: of the judge, where the engine estimates it.
        echo: correlation of the judge's errors when it meets a pair again, where the engine estimates it: 0 when
            repeats are independent opinions, as the model has it; above 0.2 the judge departs from the model.
        favour: what each place of the list, first to last, adds to the log-odds of being picked by this judge, where
            the engine estimates it; the order is free of it.
        unordered: how many of the last in `order` nobody was asked about, since their grades lie below a floor.
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
        """What a passage gains with this judge by being shown first rather than last, in grades."""
        return (self.favour[0] - self.favour[-1]) / self.sharpness if self.favour and self.sharpness else None


@dataclass(frozen=True)
class Pilot:
    """What one question's lists said of the judge.

    Attributes:
        grades, graded: of the pool, and which of them were given.
        judged: all answers.
        biased: whether the judge may favour places of a list.
    """

    grades: Floats
    graded: Flags
    judged: JudgedOrders
    biased: bool = True


@dataclass(frozen=True)
class Profile:
    """A judge's manner, as `raggs.ranking.posterior.JudgeModel` has it, and the price of asking it.

    Attributes:
        sharpness, doubt: for lists of five: the best guess, and the standard error of its logarithm.
        left: what is left of its care at each pick of a list, from 1; empty where it never tires.
        strain: what a long list costs it; 0 where nothing speaks for that.
        overhead: of a call, in passages: what it costs beside those that it shows.
        sigma: spread of the utilities around the grade that a passage deserves, in grades.
        slip: chance that a given grade is one off the deserved one.
        favour: what places from the first of a list to the last add to the log-odds of being picked; empty for none.
        favour_doubt: standard error of each of these; None where nothing was learned of favour.
        echo: correlation of its errors when it meets a pair again, 0 to 0.9.
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
    """Asks for small batches to be ordered and folds the answers into a ranking.

    `VERSION` is raised whenever the same observations would give another ranking or other batches.
    """

    VERSION: ClassVar[int]
    INFORMED: ClassVar[bool] = False  # whether it can take in orders that were there before it asks
    # Whether it takes in what other questions teach of the judge, and teaches them; raised as `VERSION` is, where only
    # rankings with lists of open length would be others.
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
        """As `raggs.ranking.make_ranker`; an engine names its options one by one, each with a default."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether nothing is left to ask and no answer is awaited."""

    @abstractmethod
    def next_batches(self, count: int) -> tuple[tuple[str, ...], ...]:
        """The next round: up to `count` batches in their order of presentation; none when `done`.

        All are chosen before any is judged, so they may be judged side by side.

        Raises:
            ValueError: `count` < 1, or batches of the last round are neither observed nor skipped.
        """

    @abstractmethod
    def observe(self, order: Sequence[str]) -> None:
        """Take in a judged batch, best first.

        Answers may arrive in any order within a round: they are folded in the round's order. Batches of the
        same passages are told apart by their order of arrival only.

        Raises:
            ValueError: `order` is not a permutation of an outstanding batch.
        """

    @abstractmethod
    def skip(self, batch: Sequence[str]) -> None:
        """Give up an outstanding batch: it counts as asked and teaches nothing.

        Raises:
            ValueError: `batch` is not outstanding.
        """

    def inform(self, groups: Sequence[Sequence[str]], sharpness: float) -> None:
        """Take in an order that somebody else gave, before the first round; of an engine that is `INFORMED`.

        Args:
            groups: passages of the pool, best first; between those of one group nothing was said.
            sharpness: of whoever gave it: 3 tells a grade apart 19 times in 20.

        Raises:
            ValueError: a passage is not in the pool or named twice, batches were asked for, or nothing is said.
            TypeError: the engine is not `INFORMED`.
        """
        raise TypeError("the engine takes in no orders but its own")

    def pilot_batches(self) -> tuple[tuple[str, ...], ...]:
        """A first round that teaches how the judge orders lists of several lengths; of an engine that `LEARNS`.

        None, and no round is open, where nothing is to be ordered, or the calls would not pay for a list.

        Raises:
            ValueError: batches were asked for before.
            TypeError: the engine does not learn.
        """
        raise TypeError("the engine has no use for what other questions teach")

    def pilot(self) -> Pilot:
        """What all answers so far say of the judge; of an engine that `LEARNS`.

        Raises:
            TypeError: the engine does not learn.
        """
        raise TypeError("the engine has no use for what other questions teach")

    def believe(self, profile: Profile) -> None:
        """Take in what other questions taught of the judge, between two rounds; of an engine that `LEARNS`.

        Raises:
            ValueError: a round is open.
            TypeError: the engine does not learn.
        """
        raise TypeError("the engine has no use for what other questions teach")

    @property
    def told_by_length(self) -> Mapping[int, float]:
        """What a list of each length was expected to tell for its price, on average over all lists so far whose length
        was chosen; empty where none was. Only their ratios say something."""
        return {}

    @property
    def doubt(self) -> float:
        """The gain-weighted loss that is expected of the order, by all answers folded so far."""
        found = self.ranking()
        return found.expected_inversions if found.expected_loss is None else found.expected_loss

    def price(self, batches: Sequence[Sequence[str]]) -> float:
        """Of some batches, in calls, as `max_calls` counts them."""
        return float(len(batches))

    @abstractmethod
    def ranking(self) -> Ranking:
        """The ranking by all answers folded so far; may be asked at any time."""
