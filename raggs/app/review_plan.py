"""Plan for human annotation: which passages to label next, so that verdicts between systems become certain soonest.

The run and its labels do not change. Labelled passages are omitted; a passage whose text has changed since counts as
not labelled. Part of the plan is a random sample with known probabilities, from which the judge's errors are estimated.
The plan can also be rendered as a document, with the expected effect by measure and the uncertain verdicts.

The module also computes how much adjudicating a disagreement would change the verdicts, with the same weights as a
plan. For a disputed passage, the probability of a grade is its relative frequency among the disputed grades. For
passages without a human label, the plan estimates the probability of each grade.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from raggs.app.review import reviews_of
from raggs.app.review_pool import GRADES, PoolEntry, RandomDraw, RunPools, draw_part, open_review_pool
from raggs.base.arrays import Floats, Ints
from raggs.base.artifacts import MIN_GRADE, Frozen
from raggs.base.document import Column, Legend, ReportDocument, Section, Table, table_of
from raggs.base.errors import DataError, RaggsError, UsageError
from raggs.base.text import plural
from raggs.golden.sources import NamedSystem, open_systems
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.names import MeasureSpec, parse_measures
from raggs.metrics.unjudged import flip_effects
from raggs.parts.reviews import Draw, Key, PlanItem, read_draws, write_plan
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import dump_json
from raggs.stats.annotation_value import LabelImpact, VerdictCertainty, believe, choose
from raggs.stats.correction import FEWEST_WHOLE

# seconds to read the query and answer; seconds per character at 240 words per minute
OPENING_SECONDS, PER_CHARACTER = 8.0, 1 / 24
# labels needed to estimate an annotator's pace; seconds above which a label counts as interrupted
FEWEST_TIMED, MAX_TIMED_SECONDS = 10, 600.0


@dataclass(frozen=True)
class ChosenItems:
    """Selected pool entries in reading order, with their expected effect and the probabilities of drawn entries."""

    part: RandomDraw
    items: Ints
    worth: Mapping[int, float]
    chance: Mapping[int, float]


def interleave_draws(drawn: Ints, others: Ints) -> Ints:
    """Merge drawn and other entries into one order. Both are spread evenly, so that stopping early covers the same
    share.
    """
    place = np.concatenate([(np.arange(len(side)) + 0.5) / max(len(side), 1) for side in (drawn, others)])
    found: Ints = np.concatenate([drawn, others])[np.argsort(place, kind="stable")]
    return found


@dataclass(frozen=True)
class ComparedNames:
    """Names of the compared systems and measures."""

    systems: tuple[str, ...]
    measures: tuple[str, ...]


def planned_items(
    pool: RunPools, impact: LabelImpact, open_: Ints, seconds: Floats, chosen: ChosenItems, names: ComparedNames
) -> Sequence[PlanItem]:
    """Return the passages of a plan, in reading order."""
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
            why=_selection_reason(entry, number in chosen.chance, pull, names),
        )
        for number, pull in zip(chosen.items.tolist(), pulls.tolist(), strict=True)
        for entry in [pool.entries[int(open_[number])]]
    ]


def items_before(pool: RunPools, part: RandomDraw) -> Iterator[PlanItem]:
    """Yield the drawn passages that already have labels."""
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
                seconds=OPENING_SECONDS,
                why="drawn at random; already labelled",
            )


def _selection_reason(entry: PoolEntry, drawn: bool, pull: list[int], names: ComparedNames) -> str:
    if drawn:
        return "drawn at random"
    measure, one, other = pull
    doubt = "unjudged" if entry.grade is None else "the judge's answers differ" if entry.disputed else "near"
    doubt = "the judge is uncertain" if doubt == "near" and entry.uncertain else doubt
    what = f"{names.systems[one]} against {names.systems[other]} by {names.measures[measure]}"
    return what if doubt == "near" else f"{what}; {doubt}"


def usual_seconds(length: float) -> float:
    """Return the usual labelling time of a passage in seconds, given its length in characters."""
    return OPENING_SECONDS + PER_CHARACTER * length


def reading_seconds(pool: RunPools, entries: Sequence[PoolEntry]) -> tuple[Floats, float]:
    """Return the expected labelling time of each entry in seconds, and the pace of the annotators as a factor of the
    usual time, above 1 if they are slower; 1 if few times are known.
    """
    told = [(took, length) for took, length in pool.timed if 0 < took <= MAX_TIMED_SECONDS]
    usual = [took / usual_seconds(length) for took, length in told]
    pace = float(np.median(usual)) if len(usual) >= FEWEST_TIMED else 1.0
    return pace * np.array([usual_seconds(entry.length) for entry in entries], dtype=np.float64), pace


MEASURES = ("ra_nwg@10", "ndcg@10", "recall@10")
DEFAULT_RANDOM_SHARE = 0.1  # share of the time for the random sample


@dataclass(frozen=True)
class PlanRequest:
    """Options of a plan.

    Attributes:
        systems: entries ``[NAME=]PATH``, as in `raggs eval` [default: the run's retrievers and their fusion].
        measures: measures of the comparison.
        minutes: annotation time, above 0.
        share: share of the time for randomly drawn passages, in 0..1.
        whole: whether to draw whole queries.
        seed: random seed of the draw.
    """

    systems: tuple[str, ...] = ()
    measures: tuple[str, ...] = MEASURES
    minutes: float = 60.0
    share: float = DEFAULT_RANDOM_SHARE
    whole: bool = False
    seed: int = 1


@dataclass(frozen=True)
class PlannedVerdict:
    """A verdict between two systems on a measure, and the probability that human labels reverse it.

    Attributes:
        measure, better, worse: the measure, and the systems in the order of the current labels.
        difference: absolute difference of the systems' means.
        turned, after: probability that complete human labels would reverse the verdict, now and after labelling the
            plan.
    """

    measure: Annotated[str, Column("measure")]
    better: Annotated[str, Column("better")]
    worse: Annotated[str, Column("worse")]
    difference: Annotated[float, Column("difference", "score")]
    turned: Annotated[float, Column("turn", text="{:.0%}")]
    after: Annotated[float, Column("after", text="{:.0%}")]


@dataclass(frozen=True)
class ReadingPlan:
    """A plan and its expected effect.

    Attributes:
        run, reviews: run directory, and folder of the labels.
        items: passages in reading order.
        before: drawn passages that already have labels.
        systems, measures: the compared systems and measures.
        sure, after: by measure, number of certain verdicts, now and as expected after labelling the plan.
        pairs: number of verdicts per measure.
        verdicts: all verdicts, the least certain first.
        seconds: expected reading time.
        pace: time of the annotators as a factor of the usual time (above 1: slower); 1 if unknown.
        drawn: number of randomly drawn items.
        learned: number of randomly drawn passages labelled so far, from which the judge's errors are estimated.
        read, open: number of pooled passages with and without a human label.
        notes: remarks for the reader.
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
    verdicts: tuple[PlannedVerdict, ...]
    seconds: float
    pace: float
    drawn: int
    learned: int
    read: int
    open: int
    notes: tuple[str, ...]


def plan_reading(run: OpenedRun, request: PlanRequest, folder: Path | None = None) -> ReadingPlan:
    """Choose the passages to grade.

    Args:
        folder: folder of the reviews [default: `reviews` next to the folder of runs].

    Raises:
        UsageError: no time, a share outside 0..1, only one system, or an unknown measure.
        NotFoundError: the judge stage has not run yet, or a system's file is missing.
        DataError: there are no grades, a system has nothing in common with the run, or all passages have human labels.
    """
    _check(request)
    measures = parse_measures(request.measures)
    pool = open_review_pool(run, folder)
    found = list(open_systems(list(request.systems) or [str(run.folder)]))
    hits = hits_of_pool(found, pool)
    open_ = np.flatnonzero([entry.open for entry in pool.entries])
    if not len(open_):
        remedy = "to see the labels: raggs review status RUN"
        raise DataError("every passage of the pools has a human label", where=run.folder, remedy=remedy)
    impact = _impact(pool, hits, measures, open_)
    seconds, pace = reading_seconds(pool, [pool.entries[item] for item in open_.tolist()])
    reviewed = reviews_of(run.folder, folder)
    part = _part(pool, read_draws(reviewed), seconds, request)
    chosen = _choose(part, impact, open_, seconds, request)
    names = tuple(system.name for system in found)
    now, after = impact.outlook(), impact.outlook(chosen.items)
    told = ComparedNames(names, tuple(each.name for each in measures))
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
    """Write all passages of a plan to a file of JSON lines, atomically, including drawn passages that have labels.

    Raises:
        ProviderError: the file cannot be written.
    """
    write_plan(file, [*plan.items, *plan.before])


def _check(request: PlanRequest) -> None:
    if not 0 < request.minutes < float("inf"):
        raise UsageError(f"--minutes {request.minutes:g} is not a positive number", remedy="e.g. --minutes 60")
    if not 0 <= request.share <= 1:
        raise UsageError(f"--random {request.share:g} is not between 0 and 1", remedy="pass, for example, --random 0.1")


def hits_of_pool(systems: Sequence[NamedSystem], pool: RunPools) -> list[Hits]:
    """Return, for each system, the positions of pooled passages in its lists.

    Raises:
        UsageError: there is only one system.
        DataError: a system has no query or no pooled passage in common with the run.
    """
    if len(systems) < 2:
        remedy = "pass at least two, e.g. --systems RUN --systems new.trec"
        raise UsageError(f"only one system is named: {systems[0].name}", remedy=remedy)
    found = [find_hits(pool.qrels, system.run) for system in systems]
    for system, hits in zip(systems, found, strict=True):
        if not len(hits.query):
            said = (
                "contains no query of the run"
                if not hits.returned.any()
                else "contains no passage from the run's pools"
            )
            raise DataError(f"{system.name} {said}", where=system.source, remedy="check that both use the same ids")
    return found


def _impact(pool: RunPools, hits: Sequence[Hits], measures: Sequence[MeasureSpec], open_: Ints) -> LabelImpact:
    number = np.full(len(pool.entries) + 1, -1)
    number[open_] = np.arange(len(open_))
    values = [[float(np.nan_to_num(named.values(each)).mean()) for named in measures] for each in hits]
    beliefs = believe(pool.heard, *pool.learned)
    effects = flip_effects(hits, measures, number[pool.entry_of])
    return LabelImpact(np.array(values), effects, beliefs[open_], len(pool.qrels.qids))


def _part(pool: RunPools, before: Sequence[Draw], seconds: Floats, request: PlanRequest) -> RandomDraw:
    """Return the random sample that fits into its share of the time."""
    budget = request.share * request.minutes * 60
    usual = _mean_question_seconds(pool, seconds) if request.whole else float(seconds.mean())
    return draw_part(
        pool, before if request.share else (), round(budget / usual), whole=request.whole, seed=request.seed
    )


def _choose(part: RandomDraw, impact: LabelImpact, open_: Ints, seconds: Floats, request: PlanRequest) -> ChosenItems:
    place = {entry: number for number, entry in enumerate(open_.tolist())}
    chance = {place[entry]: odds for entry, odds in part.chance.items() if entry in place}
    some = np.array(list(chance), dtype=np.int64)
    picks = list(choose(impact, seconds, request.minutes * 60 - float(seconds[some].sum()), some))
    worth = dict.fromkeys(some.tolist(), 0.0) | {pick.item: pick.worth for pick in picks}
    return ChosenItems(
        part, interleave_draws(some, np.array([pick.item for pick in picks], dtype=np.int64)), worth, chance
    )


def _verdicts(
    impact: LabelImpact,
    names: tuple[str, ...],
    measures: Sequence[MeasureSpec],
    now: VerdictCertainty,
    after: VerdictCertainty,
) -> tuple[PlannedVerdict, ...]:
    found = []
    for place, named in enumerate(measures):
        for one in range(len(names)):
            for other in range(one + 1, len(names)):
                difference = float(impact.differences[place, one, other])
                first, second = (one, other) if (difference >= 0) == named.higher else (other, one)
                turned = (float(each.turned[place, one, other]) for each in (now, after))
                found.append(PlannedVerdict(named.name, names[first], names[second], abs(difference), *turned))
    return tuple(sorted(found, key=lambda verdict: (-verdict.turned, -verdict.after, verdict.measure)))


def _notes(
    systems: Sequence[NamedSystem], hits: Sequence[Hits], seconds: Floats, chosen: ChosenItems, request: PlanRequest
) -> Sequence[str]:
    notes: list[str] = []
    for system, each in zip(systems, hits, strict=True):
        known = int(each.length.sum())
        if (outside := known - len(each.query)) > 0:
            notes.append(f"{outside:,} of {known:,} passages of {system.name} are in no pool and count as not relevant")
    spent = float(seconds[chosen.items].sum()) / 60
    if spent < 0.9 * request.minutes and len(chosen.items) < len(seconds):
        notes.append(f"no other passage that fits into {request.minutes:g} minutes could change a verdict")
    return notes


def _of_questions(part: RandomDraw, pool: RunPools, seconds: Floats, request: PlanRequest) -> Iterator[str]:
    """Yield a sentence on the number of whole queries drawn."""
    if not (request.whole and request.share):
        return
    drawn, there = (
        len({entry.key[0] for entry in entries})
        for entries in ([pool.entries[number] for number in part.chance], pool.entries)
    )
    said, lacking = f"{drawn} of {plural(there, 'question')} drawn with all passages", FEWEST_WHOLE - drawn
    if there < FEWEST_WHOLE:
        said += f"; correcting scores with them needs at least {FEWEST_WHOLE}"
    elif lacking > 0:
        minutes = round(lacking * _mean_question_seconds(pool, seconds) / 60)
        said += f"; correcting scores with them needs at least {FEWEST_WHOLE}: about {plural(minutes, 'minute')} more"
    yield said


def _mean_question_seconds(pool: RunPools, seconds: Floats) -> float:
    """Return the mean time to read the unlabelled passages of a query, in seconds."""
    return float(seconds.sum()) / len({entry.key[0] for entry in pool.entries if entry.open})


MAX_SHOWN_VERDICTS, MIN_SHOWN_CHANCE = 10, 0.05
TERMS = (
    Legend("sure", "verdicts that complete human labels would reverse with a probability of at most 5%"),
    Legend("turn", "probability that complete human labels would reverse the verdict, given the judge's error rates"),
)


def lay_out_plan(plan: ReadingPlan) -> ReportDocument:
    """Return the document of a plan, without computing anything."""
    return ReportDocument(
        "Passages to label next", _verdict_section(plan), tuple(_sections(plan)), tuple(_assumption_sentences(plan))
    )


def plan_json(plan: ReadingPlan) -> str:
    """Return the plan as JSON, with the number of passages; the passages themselves are in the plan's file."""
    told = asdict(plan)
    return dump_json({**told, "items": len(plan.items), "before": len(plan.before)})


def _verdict_section(plan: ReadingPlan) -> Section:
    pairs, unsure = plan.pairs * len(plan.measures), plan.pairs * len(plan.measures) - sum(plan.sure)
    minutes = f"{plan.seconds / 60:.0f} minutes"
    verdicts = f"{plural(pairs, 'verdict')} between {plural(len(plan.systems), 'system')}"
    return Section(
        "Passages to label next",
        (
            f"uncertain now: {round(unsure)} of {verdicts}",
            f"{plural(len(plan.items), 'passage')} to label in about {minutes}, {plan.drawn} of them drawn at random",
            f"expected after labelling the plan: {pairs - sum(plan.after):.1f} uncertain verdicts",
        ),
        Table.of(
            ("measure", "verdicts", "sure now", "sure afterwards"),
            (
                (name, plan.pairs, round(now), f"{after:.1f}")
                for name, now, after in zip(plan.measures, plan.sure, plan.after, strict=True)
            ),
        ),
        terms=TERMS,
    )


def _sections(plan: ReadingPlan) -> Iterator[Section]:
    doubtful = [verdict for verdict in plan.verdicts if verdict.turned > MIN_SHOWN_CHANCE]
    if not doubtful:
        return
    said = (f"and {len(doubtful) - MAX_SHOWN_VERDICTS} more",) if len(doubtful) > MAX_SHOWN_VERDICTS else ()
    columns = ("better", "worse", "measure", "difference", "turned", "after")
    yield Section("Uncertain verdicts", said, table_of(doubtful[:MAX_SHOWN_VERDICTS], *columns))


def _assumption_sentences(plan: ReadingPlan) -> Iterator[str]:
    if plan.learned:
        read = plural(plan.learned, "randomly drawn passage")
        yield f"the judge's error rates are estimated from a prior and {read} with labels"
    else:
        yield "no randomly drawn passages are labelled yet, so the judge's error rates come from a prior"
        yield "by the prior, an error of one more grade is 5 times less likely"
    if plan.pace != 1:
        yield f"annotators take {plan.pace:.2g} times as long as usual (8 seconds plus 1 second per 24 characters)"
    yield "sure refers to these queries only; for other queries, use the intervals of raggs eval"
    yield from plan.notes


class PlanInputs(Frozen):
    """Input for weighing disagreements.

    Attributes:
        run: the run directory.
        folder: folder of the labels; None for `reviews` next to the folder of runs.
        systems: entries ``[NAME=]PATH``, as in `raggs review plan` [default: the run's retrievers and their fusion].
        measures: measures of the comparison.
        grades: review key and differing grades of each disputed passage.
    """

    run: Path
    folder: Path | None
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    grades: tuple[tuple[Key, tuple[int, ...]], ...]


class DecidedVerdict(Frozen):
    """Two systems, the measure that compares them, and their difference by the current labels."""

    one: str
    other: str
    measure: str
    apart: float


class DifferenceWorth(Frozen):
    """Weights of disagreements.

    Attributes:
        told, impact: as in `DisputeWeights`.
        verdicts: for each disagreement, the verdict that adjudication helps most to make certain; each verdict once.
        place: index of the disagreement of each row; `worth`, `verdict` and `moves` have the same rows.
        worth: weight, at least 0.
        verdict: index in `verdicts`.
        moves: largest change of that verdict by one of the given grades.
    """

    told: str
    impact: bool = False
    verdicts: tuple[DecidedVerdict, ...] = ()
    place: tuple[int, ...] = ()
    worth: tuple[float, ...] = ()
    verdict: tuple[int, ...] = ()
    moves: tuple[float, ...] = ()


def weigh(asked: PlanInputs) -> DifferenceWorth:
    """Weigh disagreements in the run's pools. If that is impossible, the result contains the reason."""
    try:
        systems = list(open_systems(list(asked.systems) or [str(asked.run)]))
        pool, grades = open_review_pool(open_run(asked.run), asked.folder), dict(asked.grades)
        return _reviewimpact_told(
            asked, pool, _compared_verdicts(pool, grades, systems, parse_measures(asked.measures))
        )
    except RaggsError as error:
        return DifferenceWorth(told=error.message)


@dataclass(frozen=True)
class _ComparedVerdicts:
    """The compared verdicts, and the effect of disputed pool entries on them.

    Attributes:
        entries: indices of the disputed pool entries.
        rows: index of each disputed entry in `impact`.
    """

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    entries: Ints
    rows: Ints
    impact: LabelImpact


def _reviewimpact_told(asked: PlanInputs, pool: RunPools, compared: _ComparedVerdicts) -> DifferenceWorth:
    impact, rows = compared.impact, compared.rows
    numbers = {key: number for number, (key, _) in enumerate(asked.grades)}
    pulls = [tuple(pull) for pull in impact.pulls(rows).tolist()]
    verdicts = {pull: number for number, pull in enumerate(dict.fromkeys(pulls))}
    return DifferenceWorth(
        told=f"{', '.join(compared.systems)} · {', '.join(compared.measures)}",
        impact=True,
        verdicts=tuple(_verdict(compared, *pull) for pull in verdicts),
        place=tuple(numbers[pool.entries[entry].key] for entry in compared.entries.tolist()),
        worth=tuple(impact.worth(impact.variance(), impact.differences)[rows].tolist()),
        verdict=tuple(verdicts[pull] for pull in pulls),
        moves=tuple(_verdict_change(impact, row, *pull) for row, pull in zip(rows.tolist(), pulls, strict=True)),
    )


def _compared_verdicts(
    pool: RunPools, grades: dict[Key, tuple[int, ...]], systems: Sequence[NamedSystem], measures: Sequence[MeasureSpec]
) -> _ComparedVerdicts:
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
    return _ComparedVerdicts(
        tuple(system.name for system in systems),
        tuple(named.name for named in measures),
        items[rows],
        rows,
        LabelImpact(np.array(values), effects, beliefs, len(pool.qrels.qids)),
    )


def _shares(grades: Sequence[int]) -> Floats:
    """Return the relative frequency of each grade."""
    found: Floats = np.bincount(np.array(grades) - MIN_GRADE, minlength=GRADES) / len(grades)
    return found


def _verdict(compared: _ComparedVerdicts, measure: int, one: int, other: int) -> DecidedVerdict:
    return DecidedVerdict(
        one=compared.systems[one],
        other=compared.systems[other],
        measure=compared.measures[measure],
        apart=abs(float(compared.impact.differences[measure, one, other])),
    )


def _verdict_change(impact: LabelImpact, row: int, measure: int, one: int, other: int) -> float:
    """Return how much an item's label can change a verdict."""
    effects = impact.effects[row, :, one, measure] - impact.effects[row, :, other, measure]
    return float(np.abs(effects[impact.beliefs[row] > 0]).max(initial=0.0) / impact.queries)
