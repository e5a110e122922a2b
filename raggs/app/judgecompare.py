"""Two runs' judges on the same passages: how far they agree, what each costs, and which is nearer to people.

Questions and passages are matched by what they say, so that the runs may have other ids, pools or retrievers; what only
one of them has is counted and left out. Grades by people in a run are no judge's. Both runs are only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raggs.app.judgecheck import blind_only
from raggs.app.judgesides import Item, Judged, Side, judged_by, members_of, settings_apart, side_of
from raggs.app.planitems import usual_seconds
from raggs.app.review import reviews_of
from raggs.app.unaided import by_people
from raggs.base.errors import DataError, UsageError
from raggs.base.seeds import generator
from raggs.parts.reviews.folding import Reviewed
from raggs.parts.reviews.models import Key
from raggs.parts.reviews.plans import PlanItem, write_plan
from raggs.parts.reviews.store import ReviewStore
from raggs.runs.manifests.opened import OpenedRun
from raggs.stats.agreement import Checked, check_labels
from raggs.stats.agreement.nearer import Nearer, nearer

SAME = "compare runs over the same questions and passages: raggs run CONFIG --run-id NAME --set judge.prompt=FILE"


@dataclass(frozen=True)
class Compared:
    """A passage that both judges graded.

    Attributes:
        key: what the question and the passage say.
        qid, doc_id: in the first run.
        query, title: texts; the passage's beginning where it has no title.
        length: of the passage, in characters.
        grades, reasons: of the first judge and of the second.
        people: their grade; None where nobody gave one who had not seen a machine's.
    """

    key: Key
    qid: str
    doc_id: str
    query: str
    title: str
    length: int
    grades: tuple[int, int]
    reasons: tuple[str, str]
    people: int | None

    @property
    def apart(self) -> int:
        """By how many grades they differ."""
        return abs(self.grades[0] - self.grades[1])


@dataclass(frozen=True)
class Unmatched:
    """Passages that are not compared.

    Attributes:
        first_only, second_only: of a question, in one run alone.
        ungraded: in both, but a judge gave no grade: it failed, abstained, or had ended its walk.
        by_people: in both, but the grade in a run is people's own.
    """

    first_only: int
    second_only: int
    ungraded: int
    by_people: int


@dataclass(frozen=True)
class JudgeComparison:
    """What came of it.

    Attributes:
        first, second: the runs.
        settings: in which settings and texts the judges differ, with both values; empty where in none that is known.
        agreement: of the two; the first judge in rows, the second in columns, bias the first's mean less the second's.
        cases: all that were compared, the farthest apart first.
        reviews: the folder.
        nearer: which is nearer to people; None where they graded none of these.
        unmatched: what was left out.
    """

    first: Side
    second: Side
    settings: Mapping[str, tuple[str, str]]
    agreement: Checked
    cases: tuple[Compared, ...]
    reviews: str
    nearer: Nearer | None
    unmatched: Unmatched

    @property
    def unread(self) -> tuple[Compared, ...]:
        """Where the judges differ and nobody has spoken: what tells most of which is nearer."""
        return tuple(case for case in self.cases if case.apart and case.people is None)


def compare_judges(
    one: OpenedRun, other: OpenedRun, folder: Path | None = None, *, confidence: float = 0.95, seed: int = 1
) -> JudgeComparison:
    """Compare the grades of two runs.

    Args:
        folder: of the reviews; `reviews` beside the folder of the first run if left out, where there may be none.
        confidence, seed: of the intervals, which resample questions.

    Raises:
        UsageError: it is one run.
        NotFoundError: the judge of one has not worked yet.
        DataError: nothing was graded by both, `folder` is named and holds no word on it, or a line cannot be right.
    """
    if one.folder.resolve() == other.folder.resolve():
        raise UsageError(f"{one.folder} and {other.folder} are one run", remedy="name two; a second has --run-id NAME")
    return _compared(judged_by(one), judged_by(other), folder, confidence, seed)


def compare_members(
    run: OpenedRun,
    members: Sequence[str] = (),
    folder: Path | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 1,
) -> JudgeComparison:
    """Compare the grades of two members of a run's panel.

    Args:
        members: their names, or parts of them; may be left out where there are two.
        folder, confidence, seed: as of `compare_judges`.

    Raises:
        UsageError: the judge is no panel, or `members` does not say which two.
        NotFoundError, DataError: as of `compare_judges`.
    """
    known = members_of(run)
    if len(known) < 2:
        said = f"the judge of {run.folder} is no panel of which two members gave grades"
        raise UsageError(said, remedy="name another run to compare it with")
    meant = [_meant(part, known) for part in members or known]
    if len(meant) != 2 or any(len(each) != 1 for each in meant) or meant[0] == meant[1]:
        raise UsageError("which two members of the panel?", remedy=f"--members A,B by names of: {', '.join(known)}")
    first, second = (judged_by(run, name) for [name] in meant)
    return _compared(first, second, folder, confidence, seed)


def _meant(part: str, known: Sequence[str]) -> list[str]:
    """The names that a part of one may mean."""
    return [part] if part in known else [name for name in known if part in name]


def _compared(one: Judged, other: Judged, folder: Path | None, confidence: float, seed: int) -> JudgeComparison:
    store = ReviewStore(reviews_of(one.run.folder, folder))
    held = blind_only(store.held())
    ours, theirs = one.items, other.items
    cases = tuple(sorted(_cases(ours, theirs, held), key=lambda case: (-case.apart, case.qid, case.doc_id)))
    if not cases:
        raise DataError(f"{_nothing(ours, theirs)}: nothing to compare", where=other.run.folder, remedy=SAME)
    first, second, clusters = _columns(cases)
    judges = [[item[key].record.judge for key in (case.key for case in cases)] for item in (ours, theirs)]
    return JudgeComparison(
        first=side_of(one, judges[0]),
        second=side_of(other, judges[1]),
        settings=settings_apart(one.run, other.run),
        agreement=check_labels(first, second, clusters, confidence=confidence, seed=seed),
        cases=cases,
        reviews=str(store.folder),
        nearer=_nearer(cases, store.path, required=folder is not None, confidence=confidence, seed=seed),
        unmatched=_unmatched(ours, theirs),
    )


def plan_differing(found: JudgeComparison, file: Path, seed: int = 1) -> int:
    """Write what nobody has read and the judges differ on as a plan for `raggs review serve`, in an order drawn by lot.

    The plan says nothing of the grades. Returns how many passages it has; none are written where there are none.

    Raises:
        ProviderError: the disk refuses.
    """
    unread = sorted(found.unread, key=lambda case: case.key)
    if not unread:
        return 0
    order = generator(seed, "judge compare", len(unread)).permutation(len(unread))
    write_plan(file, (_item(unread[place]) for place in order), "--plan")
    return len(unread)


def _item(case: Compared) -> PlanItem:
    return PlanItem(
        qid=case.qid,
        query=case.key[0],
        doc_id=case.doc_id,
        passage=case.key[1],
        worth=1.0,
        seconds=round(usual_seconds(case.length), 1),
        why="two judges differ",
    )


def _own(key: Key, ours: Mapping[Key, Item], theirs: Mapping[Key, Item]) -> bool:
    """Whether a passage counts that both have: near-duplicates that took over another's grade in both do not."""
    return ours[key].record.duplicate_of is None or theirs[key].record.duplicate_of is None


def _cases(ours: Mapping[Key, Item], theirs: Mapping[Key, Item], held: Reviewed) -> Iterator[Compared]:
    for key, mine in ours.items():
        other = theirs.get(key)
        if other is None or not (mine.judged and other.judged and _own(key, ours, theirs)):
            continue
        settled = held.settled(key)
        yield Compared(
            key=key,
            qid=mine.query.qid,
            doc_id=mine.record.doc_id,
            query=mine.query.text,
            title=mine.title,
            length=mine.length,
            grades=(mine.record.grade or 0, other.record.grade or 0),
            reasons=(mine.record.reason, other.record.reason),
            people=None if settled is None else settled.grade,
        )


def _columns(cases: Sequence[Compared]) -> tuple[list[int], list[int], list[str]]:
    return [case.grades[0] for case in cases], [case.grades[1] for case in cases], [case.key[0] for case in cases]


def _nearer(cases: Sequence[Compared], file: Path, *, required: bool, confidence: float, seed: int) -> Nearer | None:
    read = [case for case in cases if case.people is not None]
    if read:
        people = [case.people or 0 for case in read]
        first, second, clusters = _columns(read)
        return nearer(first, second, people, clusters, confidence=confidence, seed=seed)
    if required:
        remedy = (
            "raggs review serve RUN is where people read; words given after a machine's grade was seen do not count"
        )
        raise DataError("nobody graded blind what both judges graded", where=file, remedy=remedy)
    return None


def _unmatched(ours: Mapping[Key, Item], theirs: Mapping[Key, Item]) -> Unmatched:
    both = [(ours[key], theirs[key]) for key in ours if key in theirs and _own(key, ours, theirs)]
    people = sum(by_people(mine.record) or by_people(other.record) for mine, other in both)
    judged = sum(mine.judged and other.judged for mine, other in both)
    shared = len(ours.keys() & theirs.keys())
    return Unmatched(len(ours) - shared, len(theirs) - shared, len(both) - judged - people, people)


def _nothing(ours: Mapping[Key, Item], theirs: Mapping[Key, Item]) -> str:
    if not {question for question, _ in ours} & {question for question, _ in theirs}:
        return "the runs share no question"
    return (
        "no judge's grade is of a passage that both graded" if ours.keys() & theirs.keys() else "no passage is in both"
    )
