"""What the pilot's answers teach of the judge, learned again: what every ranking believes must follow from them."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.base.artifacts import JournalRecord, PruneRecord, QueryRecord
from raggs.base.believed import JudgeProfile
from raggs.ranking import Pilot
from raggs.stages.base import Work
from raggs.stages.pilot import QUESTIONS, learned, pilot_questions
from raggs.stages.rankconfig import RankConfig
from raggs.stages.replay import Answers, Course, kept_pool


def untaught(work: Work, config: RankConfig, profile: JudgeProfile, most: int = QUESTIONS) -> str | None:
    """How what is believed of the judge differs from what its pilot teaches, as a sentence; None where it does not.

    Nothing is said where a pilot's answer is missing: whoever replays its question says so.

    Args:
        most: how many questions were asked first, at most.
    """
    pilots = list(_pilots(work, config, most))
    if None in pilots:
        return None
    found = learned([pilot for pilot in pilots if pilot is not None], profile.overhead)
    for (name, told), (_, again) in zip(profile, found, strict=True):
        if repr(told) != repr(again):
            return f"{name} of the judge is {told}, its pilot's answers teach {again}"
    return None


def _pilots(work: Work, config: RankConfig, most: int) -> Iterator[Pilot | None]:
    """What each of the pilot's questions said; None for one that lacks an answer."""
    mine = pilot_questions((query.qid for query in work.read("queries", QueryRecord)), config.seed, most)
    journal = {qid: entries for qid, entries in work.by_query("rank.journal", JournalRecord) if qid in mine}
    for qid, pruned in work.by_query("prune", PruneRecord):
        if qid in mine and (course := config.course(kept_pool(qid, pruned))) and len(course.ids) > 1:
            yield _pilot(course, Answers(journal.get(qid, [])))


def _pilot(course: Course, answers: Answers) -> Pilot | None:
    try:
        course.inform(answers.known)
    except (ValueError, TypeError):
        return None
    entries, wrong = answers.to(course.pilot_round())
    if wrong:
        return None
    course.learn(entries)
    return course.pilot()
