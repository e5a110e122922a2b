"""Which passages of a run a person should read next, so that verdicts between systems become sure soonest.

The run and the reviews are only read. What was read already is left out; a passage whose text changed since is another
one, and comes back in. A part is drawn at random, with chances that are known: it alone says how far the judge errs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.app.review import reviews_of
from raggs.app.reviewpool import Entry, Pool, open_review_pool
from raggs.arrays import Floats, Ints
from raggs.decision.beliefs import believe
from raggs.decision.drawing import draw
from raggs.decision.impact import Impact, Outlook, choose
from raggs.errors import DataError, UsageError
from raggs.golden.systems import System, open_systems
from raggs.manifests.opened import OpenedRun
from raggs.metrics.flips import flip_effects
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.names import Named, parse_measures
from raggs.reviews.plans import PlanItem, write_plan

MEASURES = ("ra_nwg@10", "ndcg@10", "recall@10")
SHARE = 0.1  # of the time, for what is drawn at random
OPENING, PER_CHARACTER = 8.0, 1 / 24  # seconds: to see what is asked and to answer; 240 words a minute
FEWEST_TIMED, LONGEST = 10, 600.0  # words that tell a pace; seconds, above which somebody went for coffee


@dataclass(frozen=True)
class PlanRequest:
    """What is asked.

    Attributes:
        systems: ``[NAME=]PATH`` each, as of `raggs eval`; the run's own retrievers and their fusion where empty.
        measures: by which they are compared.
        minutes: of reading, above 0.
        share: of the time, for passages drawn at random, in 0..1.
        seed: of the draw.
    """

    systems: tuple[str, ...] = ()
    measures: tuple[str, ...] = MEASURES
    minutes: float = 60.0
    share: float = SHARE
    seed: int = 1


@dataclass(frozen=True)
class Verdict:
    """Which of two systems is better by a measure, and how likely people's labels would say otherwise.

    Attributes:
        measure, better, worse: which; by the labels as they stand.
        difference: of their means.
        turned, after: the probability that all labels by people would turn it: now, and once the plan is read.
    """

    measure: str
    better: str
    worse: str
    difference: float
    turned: float
    after: float


@dataclass(frozen=True)
class ReadingPlan:
    """What to read, and what is expected of it.

    Attributes:
        run, reviews: the folders.
        items: in the order of reading.
        systems, measures: what is compared.
        sure, after: by measure, how many verdicts are sure now, and are expected to be once all is read.
        pairs: verdicts of each measure.
        verdicts: all of them, the most doubtful first.
        seconds: that reading is expected to take.
        pace: how long people take, as a multiple of what is usual; 1 where it is not known.
        drawn: how many items are drawn at random.
        learned: passages read at random so far, which say how far the judge errs.
        read, open: passages of the pools that people have read, and have not.
        notes: what a reader must know.
    """

    run: str
    reviews: str
    items: tuple[PlanItem, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    sure: tuple[float, ...]
    after: tuple[float, ...]
    pairs: int
    verdicts: tuple[Verdict, ...]
    seconds: float
    pace: float
    drawn: int
    learned: int
    read: int
    open: int
    notes: tuple[str, ...]


def plan_reading(run: OpenedRun, request: PlanRequest, folder: Path | None = None) -> ReadingPlan:
    """Choose what to read.

    Args:
        folder: of the reviews; `reviews` beside the folder of runs if left out.

    Raises:
        UsageError: no time, a share outside 0..1, one system alone, or an unknown measure.
        NotFoundError: the judge has not worked yet, or a system's file is not there.
        DataError: no grades, a system that shares nothing with the run, or everything is read.
    """
    _check(request)
    measures = parse_measures(request.measures)
    pool = open_review_pool(run, folder)
    found = list(open_systems(list(request.systems) or [str(run.folder)]))
    hits = hits_of_pool(found, pool)
    open_ = np.flatnonzero([entry.open for entry in pool.entries])
    if not len(open_):
        remedy = "raggs review status RUN says what they said"
        raise DataError("people have read every passage of its pools", where=run.folder, remedy=remedy)
    impact = _impact(pool, hits, measures, open_)
    seconds, pace = _seconds(pool, [pool.entries[item] for item in open_.tolist()])
    chosen = _choose(pool, impact, open_, seconds, request)
    names = tuple(system.name for system in found)
    now, after = impact.outlook(), impact.outlook(chosen.items)
    items = tuple(_items(pool, impact, open_, seconds, chosen, _Names(names, tuple(each.name for each in measures))))
    return ReadingPlan(
        run=str(run.folder),
        reviews=str(reviews_of(run.folder, folder)),
        items=items,
        systems=names,
        measures=tuple(named.name for named in measures),
        sure=tuple(now.sure.tolist()),
        after=tuple(after.sure.tolist()),
        pairs=now.verdicts,
        verdicts=_verdicts(impact, names, measures, now, after),
        seconds=float(seconds[chosen.items].sum()),
        pace=pace,
        drawn=sum(item.chance is not None for item in items),
        learned=len(pool.learned[0]),
        read=len(pool.entries) - len(open_),
        open=len(open_),
        notes=tuple(_notes(found, hits, seconds, chosen, request)),
    )


def keep_plan(plan: ReadingPlan, file: Path) -> None:
    """Write the items to a file of JSON lines, whole or not at all.

    Raises:
        ProviderError: the disk refuses.
    """
    write_plan(file, plan.items)


def _check(request: PlanRequest) -> None:
    if not 0 < request.minutes < float("inf"):
        raise UsageError(f"--minutes {request.minutes:g} is no time to read", remedy="e.g. --minutes 60")
    if not 0 <= request.share <= 1:
        raise UsageError(f"--random {request.share:g} is no share", remedy="give a number from 0 to 1")


def hits_of_pool(systems: Sequence[System], pool: Pool) -> list[Hits]:
    """Where each system put the passages of the pools.

    Raises:
        UsageError: there is one system alone.
        DataError: one has nothing in common with the run.
    """
    if len(systems) < 2:
        remedy = "name others, or all: --systems RUN --systems new.trec"
        raise UsageError(f"{systems[0].name} alone cannot be compared", remedy=remedy)
    found = [find_hits(pool.qrels, system.run) for system in systems]
    for system, hits in zip(systems, found, strict=True):
        if not len(hits.query):
            said = "has none of the run's questions" if not hits.returned.any() else "has no passage of the run's pools"
            raise DataError(f"{system.name} {said}", where=system.source, remedy="check that both use the same ids")
    return found


def _impact(pool: Pool, hits: Sequence[Hits], measures: Sequence[Named], open_: Ints) -> Impact:
    number = np.full(len(pool.entries) + 1, -1)
    number[open_] = np.arange(len(open_))
    values = [[float(np.nan_to_num(named.values(each)).mean()) for named in measures] for each in hits]
    beliefs = believe(pool.heard, *pool.learned)
    effects = flip_effects(hits, measures, number[pool.entry_of])
    return Impact(np.array(values), effects, beliefs[open_], len(pool.qrels.qids))


def _seconds(pool: Pool, entries: Sequence[Entry]) -> tuple[Floats, float]:
    """What reading each takes, and people's pace."""
    told = [(took, length) for took, length in pool.timed if 0 < took <= LONGEST]
    usual = [took / (OPENING + PER_CHARACTER * length) for took, length in told]
    pace = float(np.median(usual)) if len(usual) >= FEWEST_TIMED else 1.0
    lengths = np.array([entry.length for entry in entries], dtype=np.float64)
    return pace * (OPENING + PER_CHARACTER * lengths), pace


@dataclass(frozen=True)
class _Chosen:
    """Numbers among the open entries, in the order of reading, with their worth, and the chance of those drawn."""

    items: Ints
    worth: Mapping[int, float]
    chance: Mapping[int, float]


def _choose(pool: Pool, impact: Impact, open_: Ints, seconds: Floats, request: PlanRequest) -> _Chosen:
    budget = request.minutes * 60
    heard = pool.heard
    stratum = heard.kind[open_] * (heard.voices.shape[1] + 1) + heard.grade[open_]
    drawn = draw(stratum, round(request.share * budget / float(seconds.mean())), request.seed)
    spent = np.cumsum(seconds[drawn.items])
    some = drawn.items[spent <= budget]
    picks = list(choose(impact, seconds, budget - float(seconds[some].sum()), some))
    chance = dict(zip(drawn.items.tolist(), drawn.chance.tolist(), strict=True))
    worth = dict.fromkeys(some.tolist(), 0.0) | {pick.item: pick.worth for pick in picks}
    return _Chosen(_mixed(some, np.array([pick.item for pick in picks], dtype=np.int64)), worth, chance)


def _mixed(drawn: Ints, others: Ints) -> Ints:
    """Both, the first spread evenly: who stops early has read as large a part of it as of the rest."""
    place = np.concatenate([(np.arange(len(side)) + 0.5) / max(len(side), 1) for side in (drawn, others)])
    found: Ints = np.concatenate([drawn, others])[np.argsort(place, kind="stable")]
    return found


@dataclass(frozen=True)
class _Names:
    systems: tuple[str, ...]
    measures: tuple[str, ...]


def _items(
    pool: Pool, impact: Impact, open_: Ints, seconds: Floats, chosen: _Chosen, names: _Names
) -> Sequence[PlanItem]:
    pulls = impact.pulls(chosen.items)
    return [
        PlanItem(
            qid=entry.qid,
            query=entry.key[0],
            doc_id=entry.doc_id,
            passage=entry.key[1],
            worth=chosen.worth[number],
            chance=chosen.chance.get(number),
            seconds=round(float(seconds[number]), 1),
            why=_why(entry, number in chosen.chance, pull, names),
        )
        for number, pull in zip(chosen.items.tolist(), pulls.tolist(), strict=True)
        for entry in [pool.entries[int(open_[number])]]
    ]


def _why(entry: Entry, drawn: bool, pull: list[int], names: _Names) -> str:
    if drawn:
        return "drawn at random"
    measure, one, other = pull
    doubt = "unjudged" if entry.grade is None else "the judge is of two minds" if entry.disputed else "near"
    what = f"{names.systems[one]} against {names.systems[other]} by {names.measures[measure]}"
    return what if doubt == "near" else f"{what}; {doubt}"


def _verdicts(
    impact: Impact, names: tuple[str, ...], measures: Sequence[Named], now: Outlook, after: Outlook
) -> tuple[Verdict, ...]:
    found = []
    for place, named in enumerate(measures):
        for one in range(len(names)):
            for other in range(one + 1, len(names)):
                difference = float(impact.differences[place, one, other])
                first, second = (one, other) if (difference >= 0) == named.higher else (other, one)
                turned = (float(each.turned[place, one, other]) for each in (now, after))
                found.append(Verdict(named.name, names[first], names[second], abs(difference), *turned))
    return tuple(sorted(found, key=lambda verdict: (-verdict.turned, -verdict.after, verdict.measure)))


def _notes(
    systems: Sequence[System], hits: Sequence[Hits], seconds: Floats, chosen: _Chosen, request: PlanRequest
) -> Sequence[str]:
    notes = [edit for system in systems for edit in system.edits]
    for system, each in zip(systems, hits, strict=True):
        known = int(each.length.sum())
        if (outside := known - len(each.query)) > 0:
            notes.append(f"{outside:,} of {known:,} passages of {system.name} are in no pool: not relevant")
    spent = float(seconds[chosen.items].sum()) / 60
    if spent < 0.9 * request.minutes and len(chosen.items) < len(seconds):
        notes.append(f"nothing else that fits into {request.minutes:g} minutes could change a verdict")
    return notes
