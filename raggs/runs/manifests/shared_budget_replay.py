"""The rankings of all questions that share a budget, replayed from their journals, wave by wave.

Whose turn it was is found again by the same fold as in the run (`raggs.stages.waves`): a question that was asked when
another's round promised more, or once the budget was spent, has entries that no wave asks for. All journals are in
memory, as all rankings are in the run.

What the pilot's answers teach of the judge, learned again: what every ranking believes must follow from them.
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
    """How what is believed of the judge differs from what its pilot teaches, as a sentence; None where it does not.

    Nothing is said where a pilot's answer is missing: whoever replays its question says so.

    Args:
        most: how many questions were asked first, at most.
    """
    pilots = list(_pilots(work, config, most))
    if None in pilots:
        return None
    found = learn_profile([pilot for pilot in pilots if pilot is not None], profile.overhead)
    for (name, told), (_, again) in zip(profile, found, strict=True):
        if repr(told) != repr(again):
            return f"{name} of the judge is {told}, its pilot's answers teach {again}"
    return None


def _pilots(work: StageWork, config: RankConfig, most: int) -> Iterator[Pilot | None]:
    """What each of the pilot's questions said; None for one that lacks an answer."""
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


Problem = Callable[[str], None]  # takes what is wrong with the journal, as a sentence
MIXED_PROFILES = "not all queries are ranked by the same word on the judge"


@dataclass
class _Replayed:
    """A ranking on its way. `left`: entries that nothing has asked for; `lost`: an answer is missing."""

    pool: KeptPool
    course: RankingProcess | None
    answers: JournalAnswers
    left: int
    lost: bool = False


def ranked_together(
    work: StageWork, config: RankConfig, budget: SetBudget, prices: object, problem: Problem
) -> Iterator[Record]:
    """The records of all rankings.

    Args:
        prices: of the judge, as the lock's components have them.
        problem: hears what is wrong with the journal, as sentences.

    Raises:
        ConfigError: the lock does not say what the judge charges.
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
    """What is wrong with a query's entries where they are of several states."""
    return "entries of more than one state" if len({entry.state for entry in entries}) > 1 else None


def _pruned(work: StageWork) -> Iterator[tuple[str, list[PruneRecord]]]:
    return work.by_query("prune", PruneRecord)


def _start_replay(pool: KeptPool, config: RankConfig, entries: list[JournalRecord]) -> _Replayed:
    answers = JournalAnswers(entries)
    return _Replayed(pool, config.course(pool), answers, len(answers))


def _replay_known_entries(qid: str, each: _Replayed, problem: Problem) -> tuple[Batch, ...]:
    """Take in what was there before the first wave; what the pilot asked."""
    course, answers = each.course, each.answers
    if course is None:
        return ()
    try:
        course.inform(answers.known)
    except (ValueError, TypeError) as error:
        problem(f"query {qid}: round 0 holds an order that cannot be taken in: {error}")
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
    """Answer a round from the journal; False where it lacks an answer."""
    entries, wrong = each.answers.to(batches)
    if wrong:
        problem(f"query {qid}: {wrong}")
        each.lost = True
    elif each.course is not None:
        each.course.learn(entries)
        each.left -= len(entries)
    return not each.lost


def _texts(work: StageWork) -> Iterator[tuple[Query, Mapping[str, Passage]]]:
    """Each question with the passages of its pool."""
    queries = {query.qid: query for query in work.read("queries", QueryRecord)}
    merged = dict(work.by_query("merge", MergeRecord))
    for qid, pruned in _pruned(work):
        shown = set(kept_pool(qid, pruned).ids)
        yield queries[qid], {each.doc_id: each.passage for each in merged[qid] if each.doc_id in shown}
