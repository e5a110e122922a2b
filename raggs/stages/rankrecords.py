"""A query's ranking as records: one of the query, and one of each passage, near-duplicates beside whom they follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from raggs.base.artifacts import RankingRecord, RankRecord, Record
from raggs.ranking import Lock, Ranking
from raggs.stages.floor import NO_RELEVANT
from raggs.stages.replay import MUTE, SHARED, SPENT, KeptPool

AGREEMENT = 0.95  # share of the top of another ranking, as expected, from which on a top is settled
CUT_SHORT = ("cap", SHARED, SPENT, MUTE)  # reasons to stop that are not the engine's own
SETTLED, NOT_RANKED, NEAR_TIES = "settled", "not ranked", "near-ties at the edge"


def outcome(record: RankingRecord) -> str | None:
    """Whether a ranking is settled, or why not; None if its engine does not estimate agreement.

    A ranking is settled if the engine ended it by itself and another ranking would have nearly the same top.
    """
    if record.stop_reason == NO_RELEVANT:
        return NOT_RANKED
    if record.agreement is None or record.stop_reason in CUT_SHORT:
        return None if record.agreement is None else record.stop_reason
    return SETTLED if record.agreement >= AGREEMENT else NEAR_TIES


def rank_records(pool: KeptPool, ranking: Ranking | None) -> Iterator[Record]:
    """A ranking as records: one of the query, and one of each passage, best first; none for an empty pool."""
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
    """Near-duplicates follow their representative and share its numbers."""
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
    """Who is locked below each passage, and who above it."""
    below: dict[str, list[str]] = {}
    above: dict[str, list[str]] = {}
    for lock in locks:
        below.setdefault(lock.winner, []).append(lock.loser)
        above.setdefault(lock.loser, []).append(lock.winner)
    return below, above
