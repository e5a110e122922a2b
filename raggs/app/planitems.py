"""The lines of a plan, from what was chosen for its worth and what chance chose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.app.randomparts import RandomPart
from raggs.app.reviewpool import Entry, Pool
from raggs.base.arrays import Floats, Ints
from raggs.parts.reviews.plans import PlanItem
from raggs.stats.decision.impact import Impact

OPENING, PER_CHARACTER = 8.0, 1 / 24  # seconds: to see what is asked and to answer; 240 words a minute
FEWEST_TIMED, LONGEST = 10, 600.0  # words that tell a pace; seconds, above which somebody went for coffee


@dataclass(frozen=True)
class Chosen:
    """Numbers among the open entries, in the order of reading, with their worth, and the chance of those drawn."""

    part: RandomPart
    items: Ints
    worth: Mapping[int, float]
    chance: Mapping[int, float]


def mixed(drawn: Ints, others: Ints) -> Ints:
    """Both, the first spread evenly: who stops early has read as large a part of it as of the rest."""
    place = np.concatenate([(np.arange(len(side)) + 0.5) / max(len(side), 1) for side in (drawn, others)])
    found: Ints = np.concatenate([drawn, others])[np.argsort(place, kind="stable")]
    return found


@dataclass(frozen=True)
class Names:
    """Of what is compared."""

    systems: tuple[str, ...]
    measures: tuple[str, ...]


def planned_items(
    pool: Pool, impact: Impact, open_: Ints, seconds: Floats, chosen: Chosen, names: Names
) -> Sequence[PlanItem]:
    """What is to be read, in its order."""
    pulls, part = impact.pulls(chosen.items), chosen.part
    return [
        PlanItem(
            qid=entry.qid,
            query=entry.key[0],
            doc_id=entry.doc_id,
            passage=entry.key[1],
            worth=chosen.worth[number],
            chance=chosen.chance.get(number),
            unit=part.unit,
            seed=part.seed if number in chosen.chance else None,
            seconds=round(float(seconds[number]), 1),
            why=_why(entry, number in chosen.chance, pull, names),
        )
        for number, pull in zip(chosen.items.tolist(), pulls.tolist(), strict=True)
        for entry in [pool.entries[int(open_[number])]]
    ]


def items_before(pool: Pool, part: RandomPart) -> Iterator[PlanItem]:
    """What chance hit, and somebody had read."""
    for number, odds in part.chance.items():
        entry = pool.entries[number]
        if not entry.open:
            yield PlanItem(
                qid=entry.qid,
                query=entry.key[0],
                doc_id=entry.doc_id,
                passage=entry.key[1],
                worth=0.0,
                chance=odds,
                unit=part.unit,
                seed=part.seed,
                read=True,
                seconds=OPENING,
                why="drawn at random; read before",
            )


def _why(entry: Entry, drawn: bool, pull: list[int], names: Names) -> str:
    if drawn:
        return "drawn at random"
    measure, one, other = pull
    doubt = "unjudged" if entry.grade is None else "the judge is of two minds" if entry.disputed else "near"
    what = f"{names.systems[one]} against {names.systems[other]} by {names.measures[measure]}"
    return what if doubt == "near" else f"{what}; {doubt}"


def usual_seconds(length: float) -> float:
    """What reading so many characters takes at the usual pace, with seeing what is asked and answering."""
    return OPENING + PER_CHARACTER * length


def reading_seconds(pool: Pool, entries: Sequence[Entry]) -> tuple[Floats, float]:
    """What reading each takes, and people's pace."""
    told = [(took, length) for took, length in pool.timed if 0 < took <= LONGEST]
    usual = [took / usual_seconds(length) for took, length in told]
    pace = float(np.median(usual)) if len(usual) >= FEWEST_TIMED else 1.0
    return pace * np.array([usual_seconds(entry.length) for entry in entries], dtype=np.float64), pace
