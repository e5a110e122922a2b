"""A run's judge, held against people: how far its grades agree with theirs, where it errs, and what it may be used for.

Only what people said without having seen a machine's grade counts, and only grades. What is left out is counted. The
run is only read, and no grade of it is changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from shlex import quote
from statistics import fmean

import numpy as np

from raggs.app.judgeplaces import PLACE, ordered_pairs
from raggs.app.review import items_of, reviews_of
from raggs.app.unaided import answers_of, by_people, unaided
from raggs.base.artifacts import EmbedRecord, JudgeRecord, MergeRecord
from raggs.base.errors import DataError
from raggs.base.text import plural
from raggs.parts.reviews.draws import ever_drawn, read_draws
from raggs.parts.reviews.folding import Reviewed
from raggs.parts.reviews.models import Key
from raggs.parts.reviews.store import ReviewStore
from raggs.runs.manifests.opened import OpenedRun
from raggs.stats.agreement import Checked, Trust, check_labels, trust
from raggs.stats.correction import Calibration, calibrate

RANKS = (("1 to 10", 10), ("11 to 20", 20), ("21 to 50", 50), ("51 and below", None))
REMEDY = "raggs review serve {run} shows its passages without grades, and what you grade there counts"


@dataclass(frozen=True)
class Case:
    """A passage with both grades.

    Attributes:
        judge, people: the grades, 1 to 5.
        qid: the question.
        answers: all that the judge said of it.
        facts: by kind, the group that the case belongs to.
        drawn: whether it was drawn at random.
    """

    judge: int
    people: int
    qid: str
    answers: tuple[int, ...]
    facts: Mapping[str, str]
    drawn: bool


@dataclass(frozen=True)
class Group:
    """The cases of one kind: `kind` says by what they were divided, `name` which of them these are."""

    kind: str
    name: str
    checked: Checked


@dataclass(frozen=True)
class LeftOut:
    """Passages and words that do not count.

    Attributes:
        seen: passages whose reviewers had seen a machine's grade.
        unsure: passages on which nobody who did not could tell.
        ungraded: passages that people graded and the judge did not.
        by_people: passages whose grade in the run is people's own.
    """

    seen: int
    unsure: int
    ungraded: int
    by_people: int


@dataclass(frozen=True)
class JudgeCheck:
    """What came of it.

    Attributes:
        run, reviews: the folders.
        judges: by name, how many of the compared grades it gave.
        whole: all cases.
        groups: by grade of the judge, language, length, rank in the pool and near-duplicates.
        places: orders, by the place in the prompt at which passages stood; empty where none were asked for.
        people: pairs of people who graded the same passage, first against second by name; None without any.
        drawn: how many of the cases were drawn at random; the others were chosen, most often since they are hard.
        left_out: what does not count.
        trust: what the judge may be used for.
        calibration: what its grades are worth in people's. Nobody applies it unasked.
    """

    run: str
    reviews: str
    judges: Mapping[str, int]
    whole: Checked
    groups: tuple[Group, ...]
    places: tuple[Group, ...]
    people: Checked | None
    drawn: int
    left_out: LeftOut
    trust: tuple[Trust, ...]
    calibration: Calibration


def check_judge(run: OpenedRun, folder: Path | None = None, *, confidence: float = 0.95, seed: int = 1) -> JudgeCheck:
    """Compare the grades of a run with people's.

    Args:
        folder: of the reviews; `reviews` beside the folder of runs if left out.
        confidence, seed: of the intervals, which resample questions.

    Raises:
        NotFoundError: the judge has not worked yet.
        DataError: people said nothing of this run that can be compared, or a line of the reviews cannot be right.
    """
    store = ReviewStore(reviews_of(run.folder, folder))
    present, said = items_of(run), store.held()
    held = blind_only(said)
    settled = held.items()
    graded = {(record.qid, record.doc_id): unaided(record) for record in run.typed("judge", JudgeRecord)}
    both = [(item, graded[item]) for item, key in present.items() if key in settled and item in graded]
    machine = [(item, record) for item, record in both if not by_people(record)]
    facts = _facts(run, {item for item, _ in machine}, graded)
    drawn = ever_drawn(read_draws(store.folder), set(present.values()), said.grades)
    drawn |= {key for key in held.grades if _drawn(held, key)}
    by_item = {item: settled[key].grade for item, key in present.items() if key in settled}
    cases = [
        Case(record.grade, by_item[item], item[0], answers_of(record), facts[item], present[item] in drawn)
        for item, record in machine
        if record.grade is not None
    ]
    left_out = _left_out(said, held, set(present.values()), len(both) - len(machine), len(machine) - len(cases))
    if not cases:
        raise DataError(
            f"nobody graded a passage of {run.folder} blind", where=store.path, remedy=_remedy(left_out, run.folder)
        )
    whole = _checked(cases, confidence, seed)
    return JudgeCheck(
        run=str(run.folder),
        reviews=str(store.folder),
        judges=dict(Counter(record.judge for _, record in machine if record.grade is not None)),
        whole=whole,
        groups=tuple(_groups(cases, confidence, seed)),
        places=tuple(_places(run, by_item, confidence, seed)),
        people=_among_people(held, present, confidence, seed),
        drawn=sum(case.drawn for case in cases),
        left_out=left_out,
        trust=trust(whole),
        calibration=_calibrated(cases, seed),
    )


def blind_only(said: Reviewed) -> Reviewed:
    """What people said before they had seen what a machine said, also where they changed it afterwards."""
    return said.unseen


def _remedy(left_out: LeftOut, run: Path) -> str:
    blind = REMEDY.format(run=quote(str(run)))
    if left_out.by_people:
        own = f"the run keeps no grade by its model of {plural(left_out.by_people, 'passage')} that people graded"
        return f"{own}: judge.human_first keeps it; {blind}"
    if not left_out.seen:
        return blind
    return f"words given after a machine's grade was seen do not count, nor imported ones without `blind`; {blind}"


def _left_out(said: Reviewed, held: Reviewed, keys: set[Key], by_people: int, ungraded: int) -> LeftOut:
    spoken = [key for key in keys if said.grades.get(key) or key in said.settling]
    blind = [key for key in spoken if held.grades.get(key) or key in held.settling]
    unsure = sum(held.settled(key) is None for key in blind)
    return LeftOut(len(spoken) - len(blind), unsure, ungraded, by_people)


def _drawn(held: Reviewed, key: Key) -> bool:
    return any(word.chance is not None for word in held.grades.get(key, {}).values())


def _facts(
    run: OpenedRun, wanted: set[tuple[str, str]], graded: Mapping[tuple[str, str], JudgeRecord]
) -> dict[tuple[str, str], dict[str, str]]:
    """By item, the group of each kind that it belongs to."""
    languages = {record.qid: record.language for record in run.typed("embed", EmbedRecord)}
    pool = [record for record in run.typed("merge", MergeRecord) if (record.qid, record.doc_id) in wanted]
    lengths = [len(record.passage.content) for record in pool]
    cuts = sorted({int(cut) for cut in np.quantile(lengths, [1 / 3, 2 / 3])}) if lengths else []
    return {
        (record.qid, record.doc_id): {
            "grade of the judge": str(graded[record.qid, record.doc_id].grade),
            "language": languages.get(record.qid, "unknown"),
            "characters": _length(length, cuts),
            "rank in the pool": next(name for name, last in RANKS if last is None or record.rank <= last),
            "near-duplicates": "near-duplicates" if _twin(graded[record.qid, record.doc_id]) else "all others",
        }
        for record, length in zip(pool, lengths, strict=True)
    }


def _twin(record: JudgeRecord) -> bool:
    return record.duplicate_of not in {None, record.doc_id}


def _length(length: int, cuts: Sequence[int]) -> str:
    place = bisect_right(cuts, length - 1)
    if place == len(cuts):
        return f"more than {cuts[-1]:,}"
    return f"up to {cuts[0]:,}" if place == 0 else f"{cuts[place - 1] + 1:,} to {cuts[place]:,}"


def _calibrated(cases: Sequence[Case], seed: int) -> Calibration:
    judge, people = [case.judge for case in cases], [case.people for case in cases]
    several = any(len(case.answers) > 1 for case in cases)
    means = [fmean(case.answers) if case.answers else case.judge for case in cases] if several else None
    return calibrate(judge, people, [case.qid for case in cases], seed=seed, means=means)


def _checked(cases: Sequence[Case], confidence: float, seed: int) -> Checked:
    judge, people = [case.judge for case in cases], [case.people for case in cases]
    return check_labels(judge, people, [case.qid for case in cases], confidence=confidence, seed=seed)


def _groups(cases: Sequence[Case], confidence: float, seed: int) -> Iterable[Group]:
    """Every group of each kind, in a fixed order; a kind with one group says nothing."""
    for kind in cases[0].facts:
        names = sorted({case.facts[kind] for case in cases}, key=_order)
        for name in names if len(names) > 1 else ():
            yield Group(kind, name, _checked([case for case in cases if case.facts[kind] == name], confidence, seed))


def _places(run: OpenedRun, grades: Mapping[tuple[str, str], int], confidence: float, seed: int) -> Iterable[Group]:
    """How far orders agree with people's grades, by place in the prompt."""
    found = ordered_pairs(run, grades)
    for place in sorted({each.place for each in found}):
        mine = [each for each in found if each.place == place]
        labels = [2 if each.judge else 1 for each in mine], [2 if each.people else 1 for each in mine]
        checked = check_labels(*labels, [each.qid for each in mine], confidence=confidence, seed=seed)
        yield Group(PLACE, str(place), checked)


def _order(name: str) -> tuple[int, int, str]:
    """Numbers by their size, "more than" last, words by the alphabet."""
    number = next((int(word.replace(",", "")) for word in name.split() if word[0].isdigit()), 0)
    return name.startswith("more than"), number if not name.startswith("up to") else 0, name


def _among_people(
    held: Reviewed, present: Mapping[tuple[str, str], Key], confidence: float, seed: int
) -> Checked | None:
    """Every two people who graded the same passage."""
    qids = {key: qid for (qid, _), key in present.items()}
    pairs = [
        (one, other, qids[key])
        for key, words in held.grades.items()
        if key in qids
        for one, other in combinations([words[who].grade for who in sorted(words)], 2)
        if one is not None and other is not None
    ]
    if not pairs:
        return None
    first, second, clusters = zip(*pairs, strict=True)
    return check_labels(first, second, clusters, confidence=confidence, seed=seed)
