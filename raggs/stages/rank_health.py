"""Checks whether the judge is fit to order passages. The checks use the ordered batches and make no further calls.

- First-position rate: how often the passage shown first is ranked first. Without position bias, the rate is 1/m for
  batches of m passages, because the presentation order is shuffled.
- Flip rate: share of pairs whose order changed when the judge saw the same passages again in another order. The engine
  repeats the least certain batches, so these pairs are close. A sound judge flips a third or more of them, and random
  guessing flips half. In a pool of ties, every judge flips about half of them, so a judge of high sharpness gets no
  warning about flips.
- Cycle rate: share of cyclic triples (A over B over C over A) among the triples whose three pairs all have a majority.
- Invalid rate: share of requested batches to which the judge gave no order.
- Sharpness, error correlation (`echo`) and position bias: estimates of the ranking engine. The error correlation should
  be close to 0. Otherwise, repeated pairs agree with each other more than independent errors allow.

A rate causes a warning only if its whole interval is beyond the limit. Judges that answer by rule get no warnings:
they may break a tie in either direction, which is not an error.

`rank_records` converts a query's ranking into records: one for the query, and one per passage. Near-duplicates are
placed directly after the passage that represents them.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from raggs.base.artifacts import JournalRecord, RankingRecord, RankRecord, Record
from raggs.base.judge_health import (
    COUNT_NEAR_TIES,
    COUNT_NOT_RANKED,
    COUNT_SETTLED,
    ERROR_CORRELATION_WARNING,
    STOP_BUDGET,
    STOP_NO_ORDER,
    STOP_NO_RELEVANT,
    STOP_SHARED_BUDGET,
    RankHealth,
    WilsonRate,
    grade_apart,
    round_rate,
)
from raggs.ranking import Lock, Ranking
from raggs.stages.base import Statistics, rate_of, spread
from raggs.stages.replay import KeptPool

AGREEMENT = 0.95  # minimum share of top passages that a second ranking is expected to have in common
CUT_SHORT = ("cap", STOP_SHARED_BUDGET, STOP_BUDGET, STOP_NO_ORDER)  # reasons to stop that do not come from the engine


def outcome(record: RankingRecord) -> str | None:
    """Return that a ranking is settled, or the reason why it is not. Return None if its engine does not estimate
    agreement.

    A ranking is settled if the engine itself ended it and a second ranking would have nearly the same top positions.
    """
    if record.stop_reason == STOP_NO_RELEVANT:
        return COUNT_NOT_RANKED
    if record.agreement is None or record.stop_reason in CUT_SHORT:
        return None if record.agreement is None else record.stop_reason
    return COUNT_SETTLED if record.agreement >= AGREEMENT else COUNT_NEAR_TIES


def rank_records(pool: KeptPool, ranking: Ranking | None) -> Iterator[Record]:
    """Yield a ranking as records: one for the query, then one per passage, best first; none for an empty pool."""
    if ranking is not None:
        yield RankingRecord(
            qid=pool.qid,
            calls=ranking.calls,
            skipped=ranking.skipped,
            stop_reason=ranking.stop_reason or "",
            expected_inversions=ranking.expected_inversions,
            expected_loss=ranking.expected_loss,
            agreement=ranking.agreement,
            sharpness=ranking.sharpness,
            echo=ranking.echo,
            position_bias=ranking.position_bias,
        )
        yield from _places(pool, ranking)


def _places(pool: KeptPool, ranking: Ranking) -> Iterator[RankRecord]:
    """Yield the records of the passages. Near-duplicates follow their representative and share its numbers."""
    grades = dict(zip(pool.ids, pool.grades, strict=True))
    below, above = _neighbours(ranking.locks)
    rank, ordered = 0, len(ranking.order) - ranking.unordered
    for position, doc_id in enumerate(ranking.order):
        for member in (doc_id, *pool.followers.get(doc_id, ())):
            rank += 1
            yield RankRecord(
                qid=pool.qid,
                rank=rank,
                doc_id=member,
                grade=grades[doc_id],
                score=ranking.scores[position],
                sigma=ranking.sigma[position],
                confidence=ranking.position_confidence[position],
                rank_low=ranking.rank_low[position],
                rank_high=ranking.rank_high[position],
                membership=ranking.membership[position],
                exposures=ranking.exposures[position],
                locks_out=tuple(sorted(below.get(doc_id, ()))),
                locks_in=tuple(sorted(above.get(doc_id, ()))),
                duplicate_of=None if member == doc_id else doc_id,
                unordered=position >= ordered,
            )


def _neighbours(locks: Iterable[Lock]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the passages locked below each passage, and those locked above it."""
    below: dict[str, list[str]] = {}
    above: dict[str, list[str]] = {}
    for lock in locks:
        below.setdefault(lock.winner, []).append(lock.loser)
        above.setdefault(lock.loser, []).append(lock.winner)
    return below, above


# a batch as shown, and its order, best first; None if the judge failed
OrderedPassages = tuple[Sequence[str], Sequence[str] | None]

MAX_FIRST_TILT = 1.5  # warn if the first-position rate is significantly above this multiple of the fair rate
INVALID = 0.05
FLIPS = 0.45  # maximum share of close pairs that flip; random guessing has 0.5
CYCLES = 0.15  # maximum; with close pairs, random guessing has 1/5, and a judge of sharpness 1.5 has 1/8
SHARP = 1.5  # from this sharpness on, flips of close pairs are due to ties in the pool, not to the judge
# below this sharpness, the judge orders passages one grade apart correctly less than three times in four
BLUNT_BELOW = 1.0


class _Mean:
    """Mean of the values that are not None."""

    def __init__(self) -> None:
        self._total, self._count = 0.0, 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self._total, self._count = self._total + value, self._count + 1

    @property
    def value(self) -> float | None:
        return self._total / self._count if self._count else None


class RankStatistics(Statistics):
    """Statistics of the ordered batches and the engine's estimates. Memory use: eight bytes per query, and the batches
    of one query.

    Args:
        shared: whether the queries share a budget.
    """

    def __init__(self, shared: bool = False) -> None:
        self._shared, self._shares, self._ended = shared, array("q"), 0
        self._outcomes = Counter[str | None]()
        self._qid = ""
        self._batches: list[OrderedPassages] = []
        self._asked = self._ordered = self._first = 0
        self._fair = 0.0
        self._flips = self._pairs = 0
        self._cycles = self._triples = 0
        self._sharpness, self._echo, self._position_bias, self._inversions = _Mean(), _Mean(), _Mean(), _Mean()

    def see(self, record: Record) -> None:
        """Process a query's ranking, or one judged batch."""
        if isinstance(record, RankingRecord):
            self._shares.append(record.calls + record.skipped)
            self._outcomes[outcome(record)] += 1
            self._ended += record.stop_reason not in (STOP_SHARED_BUDGET, STOP_BUDGET)
            self._sharpness.add(record.sharpness)
            self._echo.add(record.echo)
            self._position_bias.add(record.position_bias)
            self._inversions.add(record.expected_inversions)
        elif isinstance(record, JournalRecord):
            if record.qid != self._qid:
                self._end_query()
                self._qid = record.qid
            if record.asked and record.silent is None:
                self._batches.append((record.shown, record.order))

    def counts(self) -> Mapping[str, int]:
        """Return how the shared budget was distributed, how many tops are settled, and why the others are not."""
        spent = spread(self._shares, self._ended) if self._shared else {}
        return {**spent, **{name: count for name, count in sorted(self._outcomes.items(), key=str) if name is not None}}

    def health(self) -> RankHealth:
        """Return the statistics of the queries so far."""
        self._end_query()
        first, flips = rate_of(self._first, self._ordered), rate_of(self._flips, self._pairs)
        cycles, invalid = rate_of(self._cycles, self._triples), rate_of(self._asked - self._ordered, self._asked)
        fair = self._fair / self._ordered if self._ordered else math.nan
        sharpness, echo = self._sharpness.value, self._echo.value
        rated = _of_rates(first, fair, flips, cycles, invalid, sharpness)
        return RankHealth(
            first=first,
            flips=flips,
            cycles=cycles,
            invalid=invalid,
            fair_first=round_rate(fair),
            sharpness=round_rate(sharpness),
            echo=round_rate(echo),
            position_bias=round_rate(self._position_bias.value),
            expected_inversions=round_rate(self._inversions.value),
            warnings=() if self.exact else (*rated, *_of_estimates(sharpness, echo)),
        )

    def _end_query(self) -> None:
        batches, self._batches = self._batches, []
        answered = [(shown, order) for shown, order in batches if order is not None]
        self._asked += len(batches)
        self._ordered += len(answered)
        self._first += sum(order[0] == shown[0] for shown, order in answered)
        self._fair += sum(1 / len(shown) for shown, _ in answered)
        for changed, together in _flips([order for _, order in answered]):
            self._flips, self._pairs = self._flips + changed, self._pairs + together
        for circular in _triples(Counter(pair for _, order in answered for pair in combinations(order, 2))):
            self._cycles, self._triples = self._cycles + circular, self._triples + 1


def _of_rates(
    first: WilsonRate, fair: float, flips: WilsonRate, cycles: WilsonRate, invalid: WilsonRate, sharpness: float | None
) -> Iterator[str]:
    """Yield warnings about rates. The interval of a rate without data starts at 0, so it causes no warning."""
    if first.interval[0] > MAX_FIRST_TILT * fair:
        yield (
            f"the passage shown first wins {first.rate:.0%} of the batches (expected without position bias: {fair:.0%})"
        )
    if flips.interval[0] > FLIPS and (sharpness is None or sharpness < SHARP):
        yield f"{flips.rate:.0%} of the pairs change order when shown again (random guessing: 50%)"
    if cycles.interval[0] > CYCLES:
        yield f"{cycles.rate:.0%} of the triples are cyclic"
    if invalid.interval[0] > INVALID:
        yield f"{invalid.rate:.0%} of the batches have no order"


def _of_estimates(sharpness: float | None, echo: float | None) -> Iterator[str]:
    if sharpness is not None and sharpness < BLUNT_BELOW:
        yield (
            f"the judge is imprecise (sharpness {sharpness:.1f}): it ranks the better of two passages one "
            f"grade apart first only {grade_apart(sharpness):.0%} of the time"
        )
    if echo is not None and echo > ERROR_CORRELATION_WARNING:
        yield (
            f"the judge repeats its own errors (test-retest error correlation {echo:.2f}): further calls add little "
            "information, and the true uncertainty of ranks is larger than their intervals show"
        )


def _flips(orders: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Yield, for each repeated batch, how many pairs changed their order since the last time, and how many pairs it
    has.
    """
    last: dict[frozenset[str], Sequence[str]] = {}
    for order in orders:
        before = last.get(frozenset(order))
        last[frozenset(order)] = order
        if before is not None:
            place = {name: position for position, name in enumerate(before)}
            changed = sum(place[better] > place[worse] for better, worse in combinations(order, 2))
            yield changed, math.comb(len(order), 2)


def _triples(wins: Counter[tuple[str, str]]) -> Iterator[bool]:
    """Yield for each triple with three majorities whether it is cyclic."""
    beats: dict[str, set[str]] = {}
    for (winner, loser), count in wins.items():
        if count > wins[loser, winner]:
            beats.setdefault(winner, set()).add(loser)
    for first, below in beats.items():
        for second in below:
            for third in beats.get(second, ()):
                if third in below:
                    yield False
                elif first in beats.get(third, ()) and first == min(first, second, third):
                    yield True
