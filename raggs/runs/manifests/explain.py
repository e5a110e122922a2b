"""Explain the order of a query's passages: replay the ranking from the journal and count which passage beat which.

No model is called. The ranker's state is computed from the journal, so the replay is identical to the original run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations, product

from raggs.base.artifacts import EmbedRecord, JournalRecord, JudgeProfile, PruneRecord, RankingRecord
from raggs.base.errors import AuditError, NotFoundError
from raggs.base.text import did_you_mean
from raggs.base.types import as_object
from raggs.parts.judges import is_exact
from raggs.ranking import Ranking
from raggs.runs.manifests.models import misfits_as_data_errors, parameters
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.outdated import outdated
from raggs.stages.rank_config import RankConfig
from raggs.stages.replay import JournalAnswers, kept_pool, replay


@dataclass(frozen=True)
class Explanation:
    """A query's ranking with its evidence.

    Attributes:
        config: settings of the rank stage that made the ranking.
        ranking: the replayed ranking (see `raggs.ranking.Ranking`).
        grades: grade of each passage.
        wins: for each pair of passages, the number of judged batches and known orders that put the first passage above
            the second.
        failed: number of batches on which the judge failed.
        told: number of orders that existed before the judge was called, by their source: an annotator, or an earlier
            version of the set.
        lengths: number of judged batches by the number of passages in them.
        profile: judge profile estimated from the pilot queries; None if the query's journal has none, as with a fixed
            batch size.
        told_by_length: expected information per cost of a batch, by the number of passages in it (see `Ranker`).
        shares: number of calls of each query of the run; empty if the queries share no budget.
        exact: whether the judge is rule-based. If so, uncertain pairs are ties.
    """

    qid: str
    config: RankConfig
    ranking: Ranking
    grades: Mapping[str, int]
    wins: Mapping[tuple[str, str], int]
    failed: int
    exact: bool = False
    told: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[int, int] = field(default_factory=dict)
    profile: JudgeProfile | None = None
    told_by_length: Mapping[int, float] = field(default_factory=dict)
    shares: tuple[int, ...] = ()

    def record(self, doc_id: str) -> tuple[int, int]:
        """Return the numbers of pairs that a passage won and lost over all batches and known orders."""
        won = sum(count for (winner, _), count in self.wins.items() if winner == doc_id)
        lost = sum(count for (_, loser), count in self.wins.items() if loser == doc_id)
        return won, lost


def explain(run: OpenedRun, qid: str) -> Explanation:
    """Replay one query's ranking.

    Raises:
        NotFoundError: the rank stage has not finished, another version of raggs made the ranking, the query is unknown
            (the message suggests the most similar id), or the query has nothing to rank.
        UsageError: the run omits ranking.
        AuditError: the entries of the journal are missing or contradictory.
        DataError: the settings or the records of the query are invalid.
    """
    lock, part = run.manifest.stages.get("rank"), next((part for part in run.parts if part.stage == "rank"), None)
    if lock is None and part is None:
        run.pipeline.stage("rank")  # raises a `UsageError` if the configuration omits the stage
        raise NotFoundError("stage rank has not finished", where=run.folder, remedy=run.command)
    if lock is not None and (older := outdated(lock)):
        raise NotFoundError(
            f"the ranking cannot be replayed: {older}",
            where=run.folder,
            remedy="run again, or use that version of raggs",
        )
    pruned = _pruned(run, qid)
    entries = [entry for entry in run.typed("rank.journal", JournalRecord) if entry.qid == qid]
    if lock is None:  # while the stage has not finished, the journal may start with entries of earlier settings
        entries = [entry for entry in entries if entry.state == entries[-1].state]
    params = as_object(run.manifest.config.get("rank")) if lock is None else lock.params
    pool, config = kept_pool(qid, pruned), parameters(RankConfig, "rank", params)
    with misfits_as_data_errors(f"query {qid}"):
        answers, spent = JournalAnswers(entries), part is not None and qid in part.short
        found = replay(course := config.course(pool), answers, shared=config.budget is not None, spent=spent)
    if found.problem:
        raise AuditError(
            f"query {qid} cannot be replayed: {found.problem}", where=run.folder, remedy="run raggs audit for details"
        )
    if found.ranking is None:
        raise NotFoundError(
            f"no passage of query {qid!r} was kept for ranking",
            where=run.folder,
            remedy="see the reasons in prune.jsonl",
        )
    wins, grades = Counter(chain.from_iterable(map(_wins, entries))), dict(zip(pool.ids, pool.grades, strict=True))
    failed, exact = sum(entry.failed for entry in entries), lock is not None and is_exact(lock.components.get("judge"))
    told = Counter(entry.by for entry in entries if entry.groups)
    lengths = Counter(len(entry.shown) for entry in entries if entry.asked)
    by_length = {} if course is None else course.told_by_length
    shares = _shares(run) if config.budget is not None else ()
    judged = (found.ranking, grades, wins, failed, exact, told, lengths)
    return Explanation(qid, config, *judged, answers.profile, by_length, shares)


def _shares(run: OpenedRun) -> tuple[int, ...]:
    return tuple(record.calls + record.skipped for record in run.typed("rank.queries", RankingRecord))


def _wins(entry: JournalRecord) -> Iterator[tuple[str, str]]:
    """Yield each pair of passages in which the first was placed above the second."""
    groups = entry.groups or [(doc_id,) for doc_id in entry.order or ()]
    for above, below in combinations(groups, 2):
        yield from product(above, below)


def _pruned(run: OpenedRun, qid: str) -> list[PruneRecord]:
    """Return the query's records in prune.jsonl. Raise `NotFoundError` if there are none."""
    known: set[str] = set()
    pruned: list[PruneRecord] = []
    for record in run.typed("prune", PruneRecord):
        known.add(record.qid)
        if record.qid == qid:
            pruned.append(record)
    if not pruned and any(qid in part.left for part in run.parts):
        raise NotFoundError(f"query {qid!r} is omitted: {run.lacks}", where=run.folder, remedy=run.command)
    if not pruned:
        if any(record.qid == qid for record in run.typed("embed", EmbedRecord)):
            remedy = "add a retriever, or change the settings under retrieve.retrievers"
            raise NotFoundError(f"no retriever found a passage for query {qid!r}", where=run.folder, remedy=remedy)
        remedy = did_you_mean(qid, sorted(known))
        raise NotFoundError(f"unknown query {qid!r}", where=run.folder, remedy=remedy)
    return pruned
