"""What deciding a passage on which grades differ would do to the verdicts on systems: as a plan of reading weighs it.

For each such passage every grade that somebody gave is as likely to be decided; for all that nobody has read, what a
plan believes. Runs and reviews are only read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.app.reviewplan import MEASURES, hits_of_pool
from raggs.app.reviewpool import GRADES, Pool, open_review_pool
from raggs.arrays import Floats, Ints
from raggs.artifacts import MIN_GRADE
from raggs.decision.beliefs import believe
from raggs.decision.impact import Impact
from raggs.errors import RaggsError
from raggs.golden.systems import System, open_systems
from raggs.manifests.opened import OpenedRun
from raggs.metrics.flips import flip_effects
from raggs.metrics.names import Named, parse_measures
from raggs.reviewing.disputes import Dispute, Pull, Weights
from raggs.reviews.models import Key


def weigher(
    runs: Sequence[OpenedRun], folder: Path | None, systems: Sequence[str] = (), measures: Sequence[str] = ()
) -> Callable[[tuple[Dispute, ...]], Weights]:
    """Weighs disputes in the first run's pools, when it is asked to.

    Args:
        systems: ``[NAME=]PATH`` each, as of `raggs review plan`; the run's own retrievers and their fusion where empty.
        measures: by which they are compared; the usual ones of a plan where empty.

    Raises:
        UsageError: an unknown measure, or two systems of one name.
        NotFoundError, DataError: a system that is named cannot be read.
    """
    named, specs = parse_measures(tuple(measures) or MEASURES), list(systems)
    for _ in open_systems(specs):
        pass  # told now, and not when somebody decides

    def weigh(found: tuple[Dispute, ...]) -> Weights:
        try:
            return _weighed(runs[0], folder, found, list(open_systems(specs or [str(runs[0].folder)])), named)
        except RaggsError as error:
            return Weights(error.message)

    return weigh


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


def _weighed(
    run: OpenedRun, folder: Path | None, found: Sequence[Dispute], systems: Sequence[System], measures: Sequence[Named]
) -> Weights:
    pool, grades = open_review_pool(run, folder), {each.key: each.grades for each in found}
    compared = _compared(pool, grades, systems, measures)
    impact, rows = compared.impact, compared.rows
    worth = impact.worth(impact.variance(), impact.differences)[rows]
    pulled = [_pull(compared, row, pull) for row, pull in zip(rows.tolist(), impact.pulls(rows).tolist(), strict=True)]
    keys = [pool.entries[entry].key for entry in compared.entries.tolist()]
    told = f"{', '.join(compared.systems)} · {', '.join(compared.measures)}"
    return Weights(
        told=told,
        impact=True,
        worth=dict(zip(keys, worth.tolist(), strict=True)),
        why={key: pull for key, pull in zip(keys, pulled, strict=True) if pull.moves},
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


def _pull(compared: _Compared, row: int, pull: Sequence[int]) -> Pull:
    """The verdict that `pull` names, and how far this item's label moves it."""
    measure, one, other = pull
    impact = compared.impact
    effects = impact.effects[row, :, one, measure] - impact.effects[row, :, other, measure]
    moves = np.abs(effects[impact.beliefs[row] > 0]).max(initial=0.0) / impact.queries
    return Pull(
        one=compared.systems[one],
        other=compared.systems[other],
        measure=compared.measures[measure],
        apart=abs(float(impact.differences[measure, one, other])),
        moves=float(moves),
    )
