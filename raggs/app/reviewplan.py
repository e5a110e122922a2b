"""Which passages of a run a person should read next, so that verdicts between systems become sure soonest.

The run and the reviews are only read. What was read already is left out; a passage whose text changed since is another
one, and comes back in. A part is drawn at random, with chances that are known: it alone says how far the judge errs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.app.planitems import Chosen, Names, items_before, mixed, planned_items, reading_seconds
from raggs.app.randomparts import RandomPart, draw_part
from raggs.app.review import reviews_of
from raggs.app.reviewpool import Pool, open_review_pool
from raggs.base.arrays import Floats, Ints
from raggs.base.errors import DataError, UsageError
from raggs.base.text import plural
from raggs.golden.systems import System, open_systems
from raggs.metrics.flips import flip_effects
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.names import Named, parse_measures
from raggs.parts.reviews.draws import Draw, read_draws
from raggs.parts.reviews.plans import PlanItem, write_plan
from raggs.runs.manifests.opened import OpenedRun
from raggs.stats.correction import FEWEST_WHOLE
from raggs.stats.decision.beliefs import believe
from raggs.stats.decision.impact import Impact, Outlook, choose

MEASURES = ("ra_nwg@10", "ndcg@10", "recall@10")
SHARE = 0.1  # of the time, for what is drawn at random


@dataclass(frozen=True)
class PlanRequest:
    """What is asked.

    Attributes:
        systems: ``[NAME=]PATH`` each, as of `raggs eval`; the run's own retrievers and their fusion where empty.
        measures: by which they are compared.
        minutes: of reading, above 0.
        share: of the time, for passages drawn at random, in 0..1.
        whole: whether whole questions are drawn.
        seed: of the draw.
    """

    systems: tuple[str, ...] = ()
    measures: tuple[str, ...] = MEASURES
    minutes: float = 60.0
    share: float = SHARE
    whole: bool = False
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
        before: what chance hit too, and somebody had read.
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
    before: tuple[PlanItem, ...]
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
    seconds, pace = reading_seconds(pool, [pool.entries[item] for item in open_.tolist()])
    reviewed = reviews_of(run.folder, folder)
    part = _part(pool, read_draws(reviewed), seconds, request)
    chosen = _choose(part, impact, open_, seconds, request)
    names = tuple(system.name for system in found)
    now, after = impact.outlook(), impact.outlook(chosen.items)
    told = Names(names, tuple(each.name for each in measures))
    items = tuple(planned_items(pool, impact, open_, seconds, chosen, told))
    return ReadingPlan(
        run=str(run.folder),
        reviews=str(reviewed),
        items=items,
        before=tuple(items_before(pool, part)),
        systems=names,
        measures=told.measures,
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
        notes=(*_notes(found, hits, seconds, chosen, request), *_of_questions(part, pool, seconds, request)),
    )


def keep_plan(plan: ReadingPlan, file: Path) -> None:
    """Write the items to a file of JSON lines, whole or not at all.

    Raises:
        ProviderError: the disk refuses.
    """
    write_plan(file, [*plan.items, *plan.before])


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


def _part(pool: Pool, before: Sequence[Draw], seconds: Floats, request: PlanRequest) -> RandomPart:
    """What is drawn in the time that is meant for it."""
    budget = request.share * request.minutes * 60
    usual = _whole(pool, seconds) if request.whole else float(seconds.mean())
    return draw_part(
        pool, before if request.share else (), round(budget / usual), whole=request.whole, seed=request.seed
    )


def _choose(part: RandomPart, impact: Impact, open_: Ints, seconds: Floats, request: PlanRequest) -> Chosen:
    place = {entry: number for number, entry in enumerate(open_.tolist())}
    chance = {place[entry]: odds for entry, odds in part.chance.items() if entry in place}
    some = np.array(list(chance), dtype=np.int64)
    picks = list(choose(impact, seconds, request.minutes * 60 - float(seconds[some].sum()), some))
    worth = dict.fromkeys(some.tolist(), 0.0) | {pick.item: pick.worth for pick in picks}
    return Chosen(part, mixed(some, np.array([pick.item for pick in picks], dtype=np.int64)), worth, chance)


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
    systems: Sequence[System], hits: Sequence[Hits], seconds: Floats, chosen: Chosen, request: PlanRequest
) -> Sequence[str]:
    notes: list[str] = []
    for system, each in zip(systems, hits, strict=True):
        known = int(each.length.sum())
        if (outside := known - len(each.query)) > 0:
            notes.append(f"{outside:,} of {known:,} passages of {system.name} are in no pool: not relevant")
    spent = float(seconds[chosen.items].sum()) / 60
    if spent < 0.9 * request.minutes and len(chosen.items) < len(seconds):
        notes.append(f"nothing else that fits into {request.minutes:g} minutes could change a verdict")
    return notes


def _of_questions(part: RandomPart, pool: Pool, seconds: Floats, request: PlanRequest) -> Iterator[str]:
    """How far whole questions reach."""
    if not (request.whole and request.share):
        return
    drawn, there = (
        len({entry.key[0] for entry in entries})
        for entries in ([pool.entries[number] for number in part.chance], pool.entries)
    )
    said, lacking = f"{drawn} of {plural(there, 'question')} drawn whole", FEWEST_WHOLE - drawn
    if there < FEWEST_WHOLE:
        said += f"; to correct scores by them, {FEWEST_WHOLE} are needed"
    elif lacking > 0:
        minutes = round(lacking * _whole(pool, seconds) / 60)
        said += f"; to correct scores by them, {FEWEST_WHOLE} are needed: about {plural(minutes, 'minute')} more"
    yield said


def _whole(pool: Pool, seconds: Floats) -> float:
    """How long reading a question takes on average, as far as nobody has."""
    return float(seconds.sum()) / len({entry.key[0] for entry in pool.entries if entry.open})
