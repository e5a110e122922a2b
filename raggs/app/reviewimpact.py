"""What deciding a passage on which grades differ would do to the verdicts on systems: as a plan of reading weighs it.

For each such passage every grade that somebody gave is as likely to be decided; for all that nobody has read, what a
plan believes. Runs and reviews are only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.app.reviewplan import hits_of_pool
from raggs.app.reviewpool import GRADES, Pool, open_review_pool
from raggs.base.arrays import Floats, Ints
from raggs.base.artifacts import MIN_GRADE
from raggs.base.errors import RaggsError
from raggs.base.frozen import Frozen
from raggs.golden.systems import System, open_systems
from raggs.metrics.flips import flip_effects
from raggs.metrics.names import Named, parse_measures
from raggs.parts.reviews.models import Key
from raggs.runs.manifests.opened import open_run
from raggs.stats.decision.beliefs import believe
from raggs.stats.decision.impact import Impact


class Asked(Frozen):
    """What is to be weighed.

    Attributes:
        run, folder: whose pools, and where its reviews are; beside the folder of runs where that is None.
        systems: ``[NAME=]PATH`` each, as of `raggs review plan`; the run's own retrievers and their fusion where empty.
        measures: by which they are compared.
        grades: of each difference its item and what somebody gave.
    """

    run: Path
    folder: Path | None
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    grades: tuple[tuple[Key, tuple[int, ...]], ...]


class Verdict(Frozen):
    """Two systems, by what they are compared, and how far they are apart as labels stand."""

    one: str
    other: str
    measure: str
    apart: float


class Told(Frozen):
    """What differences are worth.

    Attributes:
        told, impact: as `Weights` has them.
        verdicts: on what they are.
        place: which of the differences that were asked for each row is about; the columns below are as long.
        worth: 0 and up.
        verdict: the number of the verdict for which deciding it does most.
        moves: how far a grade that somebody gave moves that, at most.
    """

    told: str
    impact: bool = False
    verdicts: tuple[Verdict, ...] = ()
    place: tuple[int, ...] = ()
    worth: tuple[float, ...] = ()
    verdict: tuple[int, ...] = ()
    moves: tuple[float, ...] = ()


def weigh(asked: Asked) -> Told:
    """Weigh differences in the run's pools; where they cannot be, why."""
    try:
        systems = list(open_systems(list(asked.systems) or [str(asked.run)]))
        pool, grades = open_review_pool(open_run(asked.run), asked.folder), dict(asked.grades)
        return _told(asked, pool, _compared(pool, grades, systems, parse_measures(asked.measures)))
    except RaggsError as error:
        return Told(told=error.message)


@dataclass(frozen=True)
class _Compared:
    """What verdicts are on, and what the disputed entries of a pool would do to them.

    Attributes:
        entries: numbers of the disputed entries.
        rows: where these are among the items of `impact`.
    """

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    entries: Ints
    rows: Ints
    impact: Impact


def _told(asked: Asked, pool: Pool, compared: _Compared) -> Told:
    impact, rows = compared.impact, compared.rows
    numbers = {key: number for number, (key, _) in enumerate(asked.grades)}
    pulls = [tuple(pull) for pull in impact.pulls(rows).tolist()]
    verdicts = {pull: number for number, pull in enumerate(dict.fromkeys(pulls))}
    return Told(
        told=f"{', '.join(compared.systems)} · {', '.join(compared.measures)}",
        impact=True,
        verdicts=tuple(_verdict(compared, *pull) for pull in verdicts),
        place=tuple(numbers[pool.entries[entry].key] for entry in compared.entries.tolist()),
        worth=tuple(impact.worth(impact.variance(), impact.differences)[rows].tolist()),
        verdict=tuple(verdicts[pull] for pull in pulls),
        moves=tuple(_moves(impact, row, *pull) for row, pull in zip(rows.tolist(), pulls, strict=True)),
    )


def _compared(
    pool: Pool, grades: dict[Key, tuple[int, ...]], systems: Sequence[System], measures: Sequence[Named]
) -> _Compared:
    hits = hits_of_pool(systems, pool)
    items = np.flatnonzero([entry.open or entry.key in grades for entry in pool.entries])
    rows = np.flatnonzero([pool.entries[entry].key in grades for entry in items.tolist()])
    number = np.full(len(pool.entries) + 1, -1)
    number[items] = np.arange(len(items))
    beliefs = believe(pool.heard, *pool.learned)[items]
    for row in rows.tolist():
        beliefs[row] = _shares(grades[pool.entries[int(items[row])].key])
    values = [[float(np.nan_to_num(named.values(each)).mean()) for named in measures] for each in hits]
    effects = flip_effects(hits, measures, number[pool.entry_of])
    return _Compared(
        tuple(system.name for system in systems),
        tuple(named.name for named in measures),
        items[rows],
        rows,
        Impact(np.array(values), effects, beliefs, len(pool.qrels.qids)),
    )


def _shares(grades: Sequence[int]) -> Floats:
    """How often each grade was given."""
    found: Floats = np.bincount(np.array(grades) - MIN_GRADE, minlength=GRADES) / len(grades)
    return found


def _verdict(compared: _Compared, measure: int, one: int, other: int) -> Verdict:
    return Verdict(
        one=compared.systems[one],
        other=compared.systems[other],
        measure=compared.measures[measure],
        apart=abs(float(compared.impact.differences[measure, one, other])),
    )


def _moves(impact: Impact, row: int, measure: int, one: int, other: int) -> float:
    """How far an item's label moves a verdict."""
    effects = impact.effects[row, :, one, measure] - impact.effects[row, :, other, measure]
    return float(np.abs(effects[impact.beliefs[row] > 0]).max(initial=0.0) / impact.queries)
