"""Two runs' judges on the same passages: how far they agree, what each costs, and which is nearer to people.

Questions and passages are matched by what they say, so that the runs may have other ids, pools or retrievers; what only
one of them has is counted and left out. Grades by people in a run are no judge's. Both runs are only read.

What came of comparing two judges, as a document: verdict and costs first, then figures, then where they differ.

One of two runs whose judges are compared: what its judge graded, who it is, and what it costs. Only read.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from raggs.app.judge_check import blind_only, confusion, format_estimate, without_nan
from raggs.app.review import reviews_of
from raggs.app.review_plan import usual_seconds
from raggs.base.artifacts import JudgeRecord, MergeRecord, QueryRecord
from raggs.base.document import Legend, ReportDocument, Section, Table, formatted, markdown
from raggs.base.errors import DataError, UsageError
from raggs.base.files import write_texts
from raggs.base.hashing import generator
from raggs.base.judge_health import is_people
from raggs.base.text import plural, shorten
from raggs.base.types import as_object
from raggs.parts.judges import by_people, lower_median, without_human_grade
from raggs.parts.reviews import CurrentReviews, Key, PlanItem, ReviewStore, key_of, write_plan
from raggs.runs.manifests.costs import LedgerSum, costs
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.reasons import ABSENT, differences
from raggs.runs.manifests.store import dump_json
from raggs.stats.agreement import FEWEST_CASES, FEWEST_CLUSTERS, AgreementEstimate, JudgeHumanAgreement, check_labels
from raggs.stats.judge_agreement import FEWEST_DIFFERING, HumanAgreementGain, JudgesVersusHumans, judges_versus_humans

STAGE = "judge"
JUDGE_TYPE_KEY = "judge.type"
TITLE_CHARS = 80  # characters
HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class GradeCosts:
    """What a judge's grades cost.

    Attributes:
        usd: that were paid in the run's judge stage, over all of its attempts.
        usd_per_1000: for a thousand grades, had no answer been cached; None where that is not known.
        tokens_per_grade: in and out; None where nobody was paid here.
        seconds_per_call: mean; None where nobody was asked here.
        calls, cached: requests, and answers that cost nothing.
    """

    usd: float
    usd_per_1000: float | None
    tokens_per_grade: float | None
    seconds_per_call: float | None
    calls: int
    cached: int


@dataclass(frozen=True)
class JudgeSide:
    """One of the two.

    Attributes:
        run: the folder.
        judges: by name, how many of the compared grades it gave.
        graded: passages with a grade of the judge's own, compared or not.
        bill: what they cost.
        lacks: queries that are left out since the run was stopped, in words; empty where none is.
    """

    run: str
    judges: Mapping[str, int]
    graded: int
    bill: GradeCosts
    lacks: str


@dataclass(frozen=True)
class JudgedItem:
    """A passage of a run's pool, with what its judge said.

    Attributes:
        title: or where the passage begins, if it has none.
        length: of title and text, in characters.
    """

    query: QueryRecord
    title: str
    length: int
    record: JudgeRecord

    @property
    def judged(self) -> bool:
        """Whether the judge gave it a grade."""
        return self.record.grade is not None and not by_people(self.record)


@dataclass(frozen=True)
class RunGrades:
    """A run's grades, or those of one member of its panel.

    Attributes:
        items: by what they say; of two that say the same, the one ranked higher.
        member: its name; empty where the judge is meant as a whole.
    """

    run: OpenedRun
    items: Mapping[Key, JudgedItem]
    member: str = ""


def members_of(run: OpenedRun) -> tuple[str, ...]:
    """The members of the run's panel that gave grades and are no people, in their order; none without a panel."""
    found = dict.fromkeys(name for record in run.typed(STAGE, JudgeRecord) for name in record.votes)
    return tuple(name for name in found if not is_people(name))


def judged_by(run: OpenedRun, member: str = "") -> RunGrades:
    """What the judge of a run graded, or one member of its panel."""
    queries = {record.qid: record for record in run.typed("queries", QueryRecord)}
    own = partial(_voted, member=member) if member else without_human_grade
    records = {(record.qid, record.doc_id): own(record) for record in run.typed(STAGE, JudgeRecord)}
    found: dict[Key, JudgedItem] = {}
    for pooled in run.typed("merge", MergeRecord):
        record, query = records.get((pooled.qid, pooled.doc_id)), queries.get(pooled.qid)
        if record is not None and query is not None:
            passage = pooled.passage
            item = JudgedItem(query, passage.title or passage.text[:TITLE_CHARS], len(passage.content), record)
            found.setdefault(key_of(query, passage), item)
    return RunGrades(run, found, member)


def _voted(record: JudgeRecord, member: str) -> JudgeRecord:
    """The record with the grade that one member gave; the reason may be another's."""
    votes = [vote for vote in record.votes.get(member, ()) if vote is not None]
    return record.model_copy(update={"grade": lower_median(votes), "judge": member, "reason": "", "votes": {}})


def side_of(judged: RunGrades, judges: Sequence[str]) -> JudgeSide:
    """One beside another.

    Args:
        judges: who gave each of the compared grades.

    Raises:
        DataError: a line of its ledger is damaged.
    """
    run = judged.run
    own = [item for item in judged.items.values() if item.judged and item.record.duplicate_of is None]
    return JudgeSide(
        run=str(run.folder),
        judges=dict(sorted(Counter(judges).items())),
        graded=len(own),
        bill=_member_bill(run, judged.member) if judged.member else _bill(run, len(own)),
        lacks=run.lacks if STAGE in {part.stage for part in run.parts} else "",
    )


def _bill(run: OpenedRun, grades: int) -> GradeCosts:
    """Sums of the ledger; what a grade takes is told by the answers of the latest attempt, cached ones too."""
    spent, lock = costs(run.store, STAGE).total, run.manifest.stages.get(STAGE)
    asked = spent.answered + spent.unusable + spent.failed
    whole = None if lock is None else lock.cost.usd + lock.cost.saved_usd
    answers = 0 if lock is None else lock.cost.calls + lock.cost.cached
    tokens = (spent.prompt_tokens + spent.completion_tokens) / spent.calls if spent.calls else None
    return GradeCosts(
        usd=spent.usd,
        usd_per_1000=None if whole is None or not grades else 1000 * whole / grades,
        tokens_per_grade=None if tokens is None or not (grades and answers) else tokens * answers / grades,
        seconds_per_call=spent.mean_s if asked else None,
        calls=spent.calls,
        cached=spent.cached,
    )


def _member_bill(run: OpenedRun, member: str) -> GradeCosts:
    """Of the model that a member is named after, if any; each grade takes as many answers as samples are asked."""
    lock, models = run.manifest.stages.get(STAGE), costs(run.store, STAGE).model
    spent = next((each for model, each in models.items() if member.split(" #")[0].endswith(f" {model}")), LedgerSum())
    samples = as_object({} if lock is None else lock.params).get("samples")
    each_grade = samples if isinstance(samples, int) else 1
    asked, paid = spent.answered + spent.unusable + spent.failed, spent.answered + spent.unusable + spent.cached
    tokens = (spent.prompt_tokens + spent.completion_tokens) / spent.calls if spent.calls else None
    return GradeCosts(
        usd=spent.usd,
        usd_per_1000=1000 * each_grade * (spent.usd + spent.saved_usd) / paid if paid else 0.0,
        tokens_per_grade=None if tokens is None else tokens * each_grade,
        seconds_per_call=spent.mean_s if asked else None,
        calls=spent.calls,
        cached=spent.cached,
    )


def settings_apart(one: OpenedRun, other: OpenedRun) -> dict[str, tuple[str, str]]:
    """Where the judges' causes differ, by dotted name, with both values; a text goes by its name where names differ."""
    first, second = (run.manifest.stages.get(STAGE) for run in (one, other))
    if first is None or second is None:
        return {}
    found = {
        change.component: (_shorten_value(change.old), _shorten_value(change.new))
        for change in differences(_causes(first), _causes(second))
    }
    if JUDGE_TYPE_KEY in found:  # another kind of judge has other settings altogether
        found = {
            name: values for name, values in found.items() if name == JUDGE_TYPE_KEY or not name.startswith("judge.")
        }
    if "prompt" in found:
        found.pop("judge.prompt", None)  # the hash of what the name is of
    return found


def _causes(lock: StageLock) -> dict[str, object]:
    config, judge = lock.components.get("config"), lock.components.get("judge")
    settings = {name: value for name, value in (config.items() if isinstance(config, Mapping) else ()) if name != STAGE}
    together = {"group_prompt": Path(str(lock.params.get("group_prompt"))).name} if "group" in settings else {}
    return {**settings, **together, "judge": judge, "prompt": Path(str(lock.params.get("prompt"))).name}


def _shorten_value(value: object) -> str:
    text = "–" if value is ABSENT else str(value)
    return text[:8] if HASH.fullmatch(text) else text


SAME_RUN_REMEDY = (
    "compare runs over the same questions and passages: raggs run CONFIG --run-id NAME --set judge.prompt=FILE"
)


@dataclass(frozen=True)
class ComparedPassage:
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
class UnmatchedPassages:
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

    first: JudgeSide
    second: JudgeSide
    settings: Mapping[str, tuple[str, str]]
    agreement: JudgeHumanAgreement
    cases: tuple[ComparedPassage, ...]
    reviews: str
    nearer: JudgesVersusHumans | None
    unmatched: UnmatchedPassages

    @property
    def unread(self) -> tuple[ComparedPassage, ...]:
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
    return _compare_grades(judged_by(one), judged_by(other), folder, confidence, seed)


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
    meant = [_matching_members(part, known) for part in members or known]
    if len(meant) != 2 or any(len(each) != 1 for each in meant) or meant[0] == meant[1]:
        raise UsageError("which two members of the panel?", remedy=f"--members A,B by names of: {', '.join(known)}")
    first, second = (judged_by(run, name) for [name] in meant)
    return _compare_grades(first, second, folder, confidence, seed)


def _matching_members(part: str, known: Sequence[str]) -> list[str]:
    """The names that a part of one may mean."""
    return [part] if part in known else [name for name in known if part in name]


def _compare_grades(
    one: RunGrades, other: RunGrades, folder: Path | None, confidence: float, seed: int
) -> JudgeComparison:
    store = ReviewStore(reviews_of(one.run.folder, folder))
    held = blind_only(store.held())
    ours, theirs = one.items, other.items
    cases = tuple(sorted(_cases(ours, theirs, held), key=lambda case: (-case.apart, case.qid, case.doc_id)))
    if not cases:
        raise DataError(
            f"{_nothing_common_reason(ours, theirs)}: nothing to compare",
            where=other.run.folder,
            remedy=SAME_RUN_REMEDY,
        )
    first, second, clusters = _columns(cases)
    judges = [[item[key].record.judge for key in (case.key for case in cases)] for item in (ours, theirs)]
    return JudgeComparison(
        first=side_of(one, judges[0]),
        second=side_of(other, judges[1]),
        settings=settings_apart(one.run, other.run),
        agreement=check_labels(first, second, clusters, confidence=confidence, seed=seed),
        cases=cases,
        reviews=str(store.folder),
        nearer=_compare_with_humans(cases, store.path, required=folder is not None, confidence=confidence, seed=seed),
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


def _item(case: ComparedPassage) -> PlanItem:
    return PlanItem(
        qid=case.qid,
        query=case.key[0],
        doc_id=case.doc_id,
        passage=case.key[1],
        worth=1.0,
        seconds=round(usual_seconds(case.length), 1),
        why="two judges differ",
    )


def _is_compared(key: Key, ours: Mapping[Key, JudgedItem], theirs: Mapping[Key, JudgedItem]) -> bool:
    """Whether a passage counts that both have: near-duplicates that took over another's grade in both do not."""
    return ours[key].record.duplicate_of is None or theirs[key].record.duplicate_of is None


def _cases(
    ours: Mapping[Key, JudgedItem], theirs: Mapping[Key, JudgedItem], held: CurrentReviews
) -> Iterator[ComparedPassage]:
    for key, mine in ours.items():
        other = theirs.get(key)
        if other is None or not (mine.judged and other.judged and _is_compared(key, ours, theirs)):
            continue
        settled = held.settled(key)
        yield ComparedPassage(
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


def _columns(cases: Sequence[ComparedPassage]) -> tuple[list[int], list[int], list[str]]:
    return [case.grades[0] for case in cases], [case.grades[1] for case in cases], [case.key[0] for case in cases]


def _compare_with_humans(
    cases: Sequence[ComparedPassage], file: Path, *, required: bool, confidence: float, seed: int
) -> JudgesVersusHumans | None:
    read = [case for case in cases if case.people is not None]
    if read:
        people = [case.people or 0 for case in read]
        first, second, clusters = _columns(read)
        return judges_versus_humans(first, second, people, clusters, confidence=confidence, seed=seed)
    if required:
        remedy = (
            "raggs review serve RUN is where people read; words given after a machine's grade was seen do not count"
        )
        raise DataError("nobody graded blind what both judges graded", where=file, remedy=remedy)
    return None


def _unmatched(ours: Mapping[Key, JudgedItem], theirs: Mapping[Key, JudgedItem]) -> UnmatchedPassages:
    both = [(ours[key], theirs[key]) for key in ours if key in theirs and _is_compared(key, ours, theirs)]
    people = sum(by_people(mine.record) or by_people(other.record) for mine, other in both)
    judged = sum(mine.judged and other.judged for mine, other in both)
    shared = len(ours.keys() & theirs.keys())
    return UnmatchedPassages(len(ours) - shared, len(theirs) - shared, len(both) - judged - people, people)


def _nothing_common_reason(ours: Mapping[Key, JudgedItem], theirs: Mapping[Key, JudgedItem]) -> str:
    if not {question for question, _ in ours} & {question for question, _ in theirs}:
        return "the runs share no question"
    return (
        "no judge's grade is of a passage that both graded" if ours.keys() & theirs.keys() else "no passage is in both"
    )


SIDE_NAMES = ("A", "B")
TITLE = 30  # characters of a passage's title on the screen
MAX_SHOWN_SETTINGS = 4  # named on the screen; all are in the JSON
TERMS = (
    Legend("kappa", "agreement beyond chance, Cohen's, quadratic weights: 1 perfect, 0 chance"),
    Legend("alpha", "the same, Krippendorff's, for ordered grades"),
    Legend("exact", "share of equal grades; within one: at most one grade apart"),
    Legend("bias", "mean of A's grade less B's, in grades"),
)
HUMAN_COMPARISON_LEGENDS = (
    Legend("off by", "mean distance from people's grade, in grades; it decides"),
    Legend("A's gain", "by how much A is better, paired; below 0: B is"),
)


def lay_out_comparison(found: JudgeComparison, shown: int = 10) -> ReportDocument:
    """The document of a comparison; nothing is computed here.

    Args:
        shown: of the passages on which the judges differ, how many are listed, the farthest apart first.
    """
    return ReportDocument("Two judges", _verdict_section(found), tuple(_sections(found, shown)), tuple(_notes(found)))


def _verdict_section(found: JudgeComparison) -> Section:
    whole = found.agreement
    told = f"{plural(whole.cases, 'passage')} of {plural(whole.clusters, 'question')} graded by both"
    same = f"the same grade on {whole.exact.value:.0%}, kappa {format_estimate(whole.kappa)}"
    named = (f"{name}: {', '.join(side.judges)} ({side.run})" for name, side in _sides(found).items())
    return Section("Verdict", (*named, *_settings_sentences(found.settings), f"{told}: {same}", verdict(found)))


def _settings_sentences(settings: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    told = [f"{name} ({shorten(one, 30)} / {shorten(other, 30)})" for name, (one, other) in settings.items()]
    more = [f"{len(told) - MAX_SHOWN_SETTINGS} more"] if len(told) > MAX_SHOWN_SETTINGS else []
    if told:
        yield f"they differ in {', '.join([*told[:MAX_SHOWN_SETTINGS], *more])}"


def verdict(found: JudgeComparison) -> str:
    """Return which judge to use, as a sentence."""
    near = found.nearer
    if not _differ(found):
        return "both judges give every passage the same grade: use the cheaper one"
    if near is None:
        unread = len(found.unread)
        more = f": label the {plural(unread, 'passage')} on which they differ (--plan FILE)" if unread else ""
        return f"no human labels for these passages, so it is unknown which judge is closer to them{more}"
    gain = near.off.gain
    if near.winner is not None:
        name = SIDE_NAMES[0] if near.winner == "first" else SIDE_NAMES[1]
        by = f"{abs(gain.value):.2f} ± {gain.half:.2f} grades"
        return f"{name} is closer to the human labels by {by} ({_label_counts(near)}): use {name}"
    return (
        f"inconclusive which judge is closer ({_label_counts(near)}): {_more_reviews_sentence(near, len(found.unread))}"
    )


def _label_counts(near: JudgesVersusHumans) -> str:
    return f"{plural(near.cases, 'labelled passage')}, the judges differ on {near.differing:,}"


def _more_reviews_sentence(near: JudgesVersusHumans, unread: int) -> str:
    least = (
        f"at least {FEWEST_CASES} passages of {FEWEST_CLUSTERS} queries and {FEWEST_DIFFERING} differences are needed"
    )
    if near.few:
        return f"{least}; {unread:,} passages on which they differ have no label (--plan FILE)" if unread else least
    gain = near.off.gain
    within = f"A's gain is within {gain.low:+z.2f} and {gain.high:+z.2f} grades"
    if near.more is None or not unread:
        return f"{within}; use the cheaper one"
    return f"{within}; about {plural(near.more, 'more label')} would decide, best where the judges differ"


def _sections(found: JudgeComparison, shown: int) -> Iterator[Section]:
    yield _cost(found)
    if found.nearer is not None:
        yield _human_comparison_section(found.nearer)
    whole = found.agreement
    figures = {
        "kappa": whole.kappa,
        "alpha": whole.alpha,
        "exact": whole.exact,
        "within one": whole.within_one,
        "bias": whole.bias,
    }
    rows = ((name, format_estimate(each, signed=name == "bias")) for name, each in figures.items())
    yield Section("Agreement of the two", table=Table.of(("figure", "A and B"), rows), terms=TERMS)
    yield Section("Grades: A's in rows, B's in columns", table=confusion(whole.table, "A", "B"))
    differing = [case for case in found.cases if case.apart]
    if differing and shown:
        more = len(differing) - shown
        said = (f"they differ on {plural(len(differing), 'passage')}" + (f"; the first {shown}" if more > 0 else ""),)
        head = ("A", "B", "people", "query", "id", "passage")
        rows_of = (
            (*case.grades, case.people, case.qid, case.doc_id, shorten(case.title, TITLE)) for case in differing[:shown]
        )
        yield Section("Where they differ most", said, Table.of(head, rows_of))


def _cost(found: JudgeComparison) -> Section:
    bills = {name: side.bill for name, side in _sides(found).items()}
    if not any(bill.calls or bill.cached for bill in bills.values()):
        return Section("What they cost", ("neither asks a language model: nothing is paid",))
    lines = {
        "grades": [f"{side.graded:,}" for side in _sides(found).values()],
        "USD paid": [formatted(bill.usd, ".4f") for bill in bills.values()],
        "USD for 1,000 grades": [formatted(bill.usd_per_1000, ".3f") for bill in bills.values()],
        "tokens a grade": [formatted(bill.tokens_per_grade, ",.0f") for bill in bills.values()],
        "seconds a call": [formatted(bill.seconds_per_call, ".2f") for bill in bills.values()],
        "calls": [f"{bill.calls:,}" for bill in bills.values()],
        "cached": [f"{bill.cached:,}" for bill in bills.values()],
    }
    said = tuple(_cheaper(bills))
    return Section("What they cost", said, Table.of(("", *bills), ((name, *values) for name, values in lines.items())))


def _cheaper(bills: Mapping[str, GradeCosts]) -> Iterator[str]:
    one, other = (bill.usd_per_1000 for bill in bills.values())
    if one is None or other is None or one == other:
        return
    low, high = sorted((one, other))
    times = f", {high / low:.1f} times as much" if low else ""
    yield f"{SIDE_NAMES[0] if one > other else SIDE_NAMES[1]} costs {high - low:.3f} USD more for 1,000 grades{times}"


def _human_comparison_section(near: JudgesVersusHumans) -> Section:
    figures = {"off by": near.off, "kappa": near.kappa, "exact": near.exact}
    equal = near.differing - near.first - near.second
    neither = f", on {equal:,} neither" if equal else ""
    said = f"where they differ, A is nearer on {near.first:,}, B on {near.second:,}{neither}"
    rows = (_row(name, each) for name, each in figures.items())
    return Section(
        "Against people", (said,), Table.of(("figure", "A", "B", "A's gain"), rows), terms=HUMAN_COMPARISON_LEGENDS
    )


def _row(name: str, against: HumanAgreementGain) -> tuple[str, ...]:
    alone = (AgreementEstimate(each.value, math.nan, math.nan) for each in (against.first, against.second))
    return (name, *map(format_estimate, alone), format_estimate(against.gain, signed=True))


def _sides(found: JudgeComparison) -> dict[str, JudgeSide]:
    return dict(zip(SIDE_NAMES, (found.first, found.second), strict=True))


def _notes(found: JudgeComparison) -> Iterator[str]:
    left, near = found.unmatched, found.nearer
    yield f"{100 * found.agreement.confidence:g}% intervals over questions (bootstrap)"
    if near is not None and near.differing * found.agreement.cases > 1.5 * near.cases * len(_differ(found)):
        whole = len(_differ(found)) / found.agreement.cases
        yield (
            f"people read more often where the judges differ ({near.differing / near.cases:.0%} of what they read, "
            f"{whole:.0%} of all): over all passages the gain is that much smaller, its sign the same"
        )
    for name, count in zip(SIDE_NAMES, (left.first_only, left.second_only), strict=True):
        if count:
            yield f"left out: {plural(count, 'passage')} in the pools of {name} alone"
    if left.ungraded:
        yield f"left out: {plural(left.ungraded, 'passage')} that a judge gave no grade"
    if left.by_people:
        yield f"left out: {plural(left.by_people, 'passage')} whose grade in a run is people's own"
    for name, side in _sides(found).items():
        if side.lacks:
            yield f"{name} is not finished: {side.lacks}"
    alike = not found.settings and found.first.judges.keys() == found.second.judges.keys()
    if alike and not (found.first.lacks or found.second.lacks):
        yield "both judges have the same settings: where they differ, the judge does not repeat itself"


def _differ(found: JudgeComparison) -> list[ComparedPassage]:
    return [case for case in found.cases if case.apart]


def comparison_json(found: JudgeComparison) -> str:
    """All that is known, as JSON; what is not defined is null. Of the passages those on which the judges differ."""
    told = asdict(found)
    near = (
        None if found.nearer is None else {**told["nearer"], "winner": _winner(found.nearer), "more": found.nearer.more}
    )
    listed = [{**asdict(case), "key": list(case.key)} for case in _differ(found)]
    del told["cases"]
    return dump_json(without_nan({**told, "nearer": near, "verdict": verdict(found), "differing": listed}))


def _winner(near: JudgesVersusHumans) -> str | None:
    return {"first": SIDE_NAMES[0], "second": SIDE_NAMES[1], None: None}[near.winner]


def write_comparison(found: JudgeComparison, folder: Path, shown: int = 10) -> list[Path]:
    """compare.json and compare.md in `folder`, made if missing.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {
        "compare.json": comparison_json(found) + "\n",
        "compare.md": markdown(lay_out_comparison(found, shown)),
    }
    return write_texts(folder, texts)
