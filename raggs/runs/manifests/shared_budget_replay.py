"""Replay the rankings of queries that share a budget, from the journal. As in the run, a wave is a set of rounds of
different queries.

The order of rounds is recomputed by the same code as in the run (`raggs.stages.waves`). An edited journal may contain
rounds that this code does not choose, for example after the budget was used up. No wave requests the entries of such a
round, so they are reported as a problem. As in the run, all rankings and journals are kept in memory.

`profile_mismatch` estimates the judge profile again from the answers to the pilot queries. All rankings must have used
this profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from raggs.base.artifacts import (
    JournalRecord,
    JudgeProfile,
    MergeRecord,
    Passage,
    PruneRecord,
    Query,
    QueryRecord,
    Record,
)
from raggs.ranking import Pilot
from raggs.stages.base import StageWork
from raggs.stages.rank_config import RankConfig
from raggs.stages.rank_health import rank_records
from raggs.stages.replay import (
    QUESTIONS,
    Batch,
    JournalAnswers,
    KeptPool,
    RankingProcess,
    affordable,
    kept_pool,
    learn_profile,
    leftover_problem,
    pilot_questions,
)
from raggs.stages.waves import SetBudget, SharedBudget, Waves


def profile_mismatch(work: StageWork, config: RankConfig, profile: JudgeProfile, most: int = QUESTIONS) -> str | None:
    """Return how the judge profile differs from the one that the pilot's answers imply, or None if it does not differ.

    Return None also if an answer of the pilot is missing, because the replay of that query reports the missing answer.

    Args:
        work: all artifacts of the run.
        config: settings of the rank stage.
        profile: the judge profile in the journals.
        most: maximum number of pilot queries.
    """
    pilots = list(_pilots(work, config, most))
    if None in pilots:
        return None
    found = learn_profile([pilot for pilot in pilots if pilot is not None], profile.overhead)
    for (name, told), (_, again) in zip(profile, found, strict=True):
        if repr(told) != repr(again):
            return f"{name} of the judge is {told}, but {again} according to the answers of the pilot"
    return None


def _pilots(work: StageWork, config: RankConfig, most: int) -> Iterator[Pilot | None]:
    """Yield the data of each pilot query, or None for a query with a missing answer."""
    mine = pilot_questions((query.qid for query in work.read("queries", QueryRecord)), config.seed, most)
    journal = {qid: entries for qid, entries in work.by_query("rank.journal", JournalRecord) if qid in mine}
    for qid, pruned in work.by_query("prune", PruneRecord):
        if qid in mine and (course := config.course(kept_pool(qid, pruned))) and len(course.ids) > 1:
            yield _pilot(course, JournalAnswers(journal.get(qid, [])))


def _pilot(course: RankingProcess, answers: JournalAnswers) -> Pilot | None:
    try:
        course.inform(answers.known)
    except (ValueError, TypeError):
        return None
    entries, wrong = answers.to(course.pilot_round())
    if wrong:
        return None
    course.learn(entries)
    return course.pilot()


Problem = Callable[[str], None]  # receives a sentence about a problem with the journal
MIXED_PROFILES = "not all queries were ranked with the same judge profile"


@dataclass
class _Replayed:
    """A ranking during its replay. `left` is the number of journal entries that were not requested yet. `lost` means
    that an answer is missing, so the replay has ended.
    """

    pool: KeptPool
    course: RankingProcess | None
    answers: JournalAnswers
    left: int
    lost: bool = False


def ranked_together(
    work: StageWork, config: RankConfig, budget: SetBudget, prices: object, problem: Problem
) -> Iterator[Record]:
    """Replay all rankings that share a budget, and yield their records.

    Args:
        work: all artifacts of the run.
        config: settings of the rank stage.
        budget: the shared budget.
        prices: the judge's prices, which the lock contains as a component.
        problem: receives sentences about problems with the journal.

    Raises:
        ConfigError: the budget is in USD, and the lock does not contain the judge's prices.
    """
    journal = dict(work.by_query("rank.journal", JournalRecord))
    for qid, entries in journal.items():
        if wrong := mixed_state_problem(entries):
            problem(f"query {qid}: {wrong}")
    believed = {JournalAnswers(entries).profile for entries in journal.values()}
    if len(believed) > 1:
        problem(MIXED_PROFILES)
    found = {qid: _start_replay(kept_pool(qid, pruned), config, journal.pop(qid, [])) for qid, pruned in _pruned(work)}
    for qid in journal:
        problem(f"query {qid} is not in prune.jsonl")
    paid = {qid: batches for qid, each in found.items() if (batches := _replay_known_entries(qid, each, problem))}
    courses = {qid: each.course for qid, each in found.items() if each.course is not None and not each.lost}
    purse = SharedBudget(budget, config.list_length, prices, _texts(work) if budget.usd else ())
    profile = believed.pop() if len(believed) == 1 else None
    if profile and (wrong := profile_mismatch(work, config, profile, affordable(purse.calls))):
        problem(wrong)
    waves = Waves(courses, purse, paid)
    while wave := waves.next():
        for qid, batches in wave.items():
            if not _replay_round(qid, found[qid], batches, problem):
                waves.leave(qid)
    for qid, each in found.items():
        if not each.lost and (extra := leftover_problem(each.left)):
            problem(f"query {qid}: {extra}")
        yield from rank_records(each.pool, None if each.course is None or each.lost else each.course.ranking())


def mixed_state_problem(entries: Iterable[JournalRecord]) -> str | None:
    """Return a problem if a query's entries have several states (settings and inputs), else None."""
    return "entries of more than one state" if len({entry.state for entry in entries}) > 1 else None


def _pruned(work: StageWork) -> Iterator[tuple[str, list[PruneRecord]]]:
    return work.by_query("prune", PruneRecord)


def _start_replay(pool: KeptPool, config: RankConfig, entries: list[JournalRecord]) -> _Replayed:
    answers = JournalAnswers(entries)
    return _Replayed(pool, config.course(pool), answers, len(answers))


def _replay_known_entries(qid: str, each: _Replayed, problem: Problem) -> tuple[Batch, ...]:
    """Process the entries from before the first wave: known orders and the pilot. Return the batches of the pilot."""
    course, answers = each.course, each.answers
    if course is None:
        return ()
    try:
        course.inform(answers.known)
    except (ValueError, TypeError) as error:
        problem(f"query {qid}: round 0 contains an invalid order: {error}")
        each.lost = True
        return ()
    each.left -= len(answers.known)
    if (told := answers.believed) is None:
        return ()
    batches = course.pilot_round() if course.upcoming < told.round else ()
    if _replay_round(qid, each, batches, problem):
        course.believe(told)
        each.left -= 1
    return batches


def _replay_round(qid: str, each: _Replayed, batches: tuple[Batch, ...], problem: Problem) -> bool:
    """Take the answers to a round from the journal. Return False if an answer is missing."""
    entries, wrong = each.answers.to(batches)
    if wrong:
        problem(f"query {qid}: {wrong}")
        each.lost = True
    elif each.course is not None:
        each.course.learn(entries)
        each.left -= len(entries)
    return not each.lost


def _texts(work: StageWork) -> Iterator[tuple[Query, Mapping[str, Passage]]]:
    """Yield each query with the passages of its pool."""
    queries = {query.qid: query for query in work.read("queries", QueryRecord)}
    merged = dict(work.by_query("merge", MergeRecord))
    for qid, pruned in _pruned(work):
        shown = set(kept_pool(qid, pruned).ids)
        yield queries[qid], {each.doc_id: each.passage for each in merged[qid] if each.doc_id in shown}
