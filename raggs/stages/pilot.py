"""What a few questions teach of the judge before all are ranked, where the length of lists is open.

The pilot's questions are drawn by their ids, so that the same ones are asked in every run over the same questions.
Their first lists have several lengths; from all answers together it is learned how sharp the judge is, how its care
falls along a list, and what a long list costs it. These lists are paid once: they are the first round of their own
questions' rankings. What was learned goes into every question's journal, and its ranking is a fold over that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from raggs.base.artifacts import JournalRecord, Passage, Query
from raggs.base.believed import JudgeProfile
from raggs.base.seeds import derive_seed
from raggs.llm.prices import estimate_tokens
from raggs.parts.judges.orderprice import TYPICAL, OrderPrice
from raggs.ranking import Pilot
from raggs.ranking.base import PILOT_SIZES, TYPICAL_LENGTH

QUESTIONS = 12
LISTS = sum(PILOT_SIZES) // TYPICAL_LENGTH  # calls of five that the lists of a question cost
ANSWERED = 5  # tokens of an answer for each passage of the list: a label with its marks has three, as sent ones count


def pilot_questions(qids: Iterable[str], seed: int, most: int = QUESTIONS) -> frozenset[str]:
    """Those that are asked first, at most so many."""
    return frozenset(sorted(qids, key=lambda qid: derive_seed(seed, "pilot", qid))[:most])


def affordable(calls: float) -> int:
    """How many questions may be asked first where all share a budget of so many calls: half of it buys their lists."""
    return min(QUESTIONS, int(calls / 2 / LISTS))


def overhead(asked: Sequence[tuple[Query, Mapping[str, Passage]]], price: OrderPrice = TYPICAL) -> float:
    """What a call costs beside its passages, in passages: of these questions with their pools, by their tokens."""
    lengths = [estimate_tokens(passage.text) for _, pool in asked for passage in pool.values()]
    questions = [estimate_tokens(query.text) for query, _ in asked]
    if not lengths:
        return 0.0
    passage = sum(lengths) / len(lengths) + ANSWERED * price.dearer
    return round((price.instructions + sum(questions) / len(questions)) / passage, 2)


def learned(pilots: Sequence[Pilot], price: float) -> JudgeProfile:
    """What they teach; `price`: of a call beside its passages, in passages."""
    from raggs.ranking.profile import learn

    found = learn(pilots, price)
    return JudgeProfile(
        questions=len(pilots),
        sharpness=round(found.sharpness, 3),
        doubt=round(found.doubt, 3),
        left=tuple(round(each, 4) for each in found.left),
        strain=found.strain,
        overhead=found.overhead,
        sigma=found.sigma,
        slip=found.slip,
        favour=tuple(round(each, 3) for each in found.favour),
        favour_doubt=None if found.favour_doubt is None else round(found.favour_doubt, 3),
        echo=round(found.echo, 3),
    )


def profile_entry(blank: JournalRecord, number: int, profile: JudgeProfile) -> JournalRecord:
    """The entry of what was learned, as round `number`."""
    return blank.model_copy(update={"round": number, "profile": profile})
