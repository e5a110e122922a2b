"""Comparison of the judges of two runs: agreement, cost, and which judge is closer to the human labels.

Queries and passages are matched by their text, so the runs may have different ids, pools or retrievers. Unmatched
passages and human grades in a run are counted and excluded. The runs do not change.
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
TITLE_CHARS = 80  # characters of a passage without a title
HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class GradeCosts:
    """Cost of a judge's grades.

    Attributes:
        usd: paid in the judge stage of the run, over all invocations.
        usd_per_1000: cost of 1,000 grades if no answer were cached; None if unknown.
        tokens_per_grade: input and output tokens; None if this run paid no call.
        seconds_per_call: mean latency; None if this run made no call.
        calls, cached: numbers of calls, and of cached answers.
    """

    usd: float
    usd_per_1000: float | None
    tokens_per_grade: float | None
    seconds_per_call: float | None
    calls: int
    cached: int


@dataclass(frozen=True)
class JudgeSide:
    """One of the two judges.

    Attributes:
        run: the run directory.
        judges: number of compared grades by name of the judge.
        graded: number of passages with a grade by the judge, compared or not; grades copied from a near-duplicate
            are not counted.
        bill: cost of the grades.
        lacks: sentence on queries that are missing because the run was stopped; empty if no query is missing.
    """

    run: str
    judges: Mapping[str, int]
    graded: int
    bill: GradeCosts
    lacks: str


@dataclass(frozen=True)
class JudgedItem:
    """A passage of a run's pool with its record of the judge stage, which may have no grade.

    Attributes:
        title: title; if the passage has none, the beginning of its text.
        length: number of characters of title and text.
    """

    query: QueryRecord
    title: str
    length: int
    record: JudgeRecord

    @property
    def judged(self) -> bool:
        """Whether the judge graded it."""
        return self.record.grade is not None and not by_people(self.record)


@dataclass(frozen=True)
class RunGrades:
    """Records of a run's judge stage, with the grades of its judge or of one panel member.

    Attributes:
        items: passages with a record, by text digests; of two passages with the same text, the higher-ranked one.
        member: name of the panel member; empty for the whole judge.
    """

    run: OpenedRun
    items: Mapping[Key, JudgedItem]
    member: str = ""


def members_of(run: OpenedRun) -> tuple[str, ...]:
    """Return the panel members that graded passages, without humans; empty if the judge is not a panel."""
    found = dict.fromkeys(name for record in run.typed(STAGE, JudgeRecord) for name in record.votes)
    return tuple(name for name in found if not is_people(name))


def judged_by(run: OpenedRun, member: str = "") -> RunGrades:
    """Return the grades of a run's judge, or of one panel member."""
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
    """Return the record with only the grade of one panel member."""
    votes = [vote for vote in record.votes.get(member, ()) if vote is not None]
    return record.model_copy(update={"grade": lower_median(votes), "judge": member, "reason": "", "votes": {}})


def side_of(judged: RunGrades, judges: Sequence[str]) -> JudgeSide:
    """Return one side of the comparison.

    Args:
        judges: name of the judge of each compared grade.

    Raises:
        DataError: a line of the ledger is damaged.
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
    """Sum the costs in the ledger. The cost per grade covers the answers of the latest attempt, including cached
    ones.
    """
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
    """Return the cost of the model in a panel member's name. Each grade needs one answer per sample."""
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
    """Return the settings in which the judges differ, by dotted name, with both values."""
    first, second = (run.manifest.stages.get(STAGE) for run in (one, other))
    if first is None or second is None:
        return {}
    found = {
        change.component: (_shorten_value(change.old), _shorten_value(change.new))
        for change in differences(_causes(first), _causes(second))
    }
    # judges of different types have entirely different settings, so only the type is reported
    if JUDGE_TYPE_KEY in found:
        found = {
            name: values for name, values in found.items() if name == JUDGE_TYPE_KEY or not name.startswith("judge.")
        }
    if "prompt" in found:
        found.pop("judge.prompt", None)  # the setting `prompt` already shows the difference; this is only its hash
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
        key: text digests of the query and the passage.
        qid, doc_id: ids in the first run.
        query, title: text of the query; title of the passage, or the beginning of its text.
        length: number of characters of the passage.
        grades, reasons: grades and reasons of the first and of the second judge.
        people: blind human grade; None if there is none.
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
        """Absolute difference of the grades."""
        return abs(self.grades[0] - self.grades[1])


@dataclass(frozen=True)
class UnmatchedPassages:
    """Numbers of passages that are not compared.

    Attributes:
        first_only, second_only: passages in the pools of only one run.
        ungraded: passages in both runs that at least one judge did not grade: it failed, abstained, or stopped early.
        by_people: passages in both runs that have a human grade in at least one run.
    """

    first_only: int
    second_only: int
    ungraded: int
    by_people: int


@dataclass(frozen=True)
class JudgeComparison:
    """Result of a comparison.

    Attributes:
        first, second: the judges.
        settings: settings and texts in which the judges differ, with both values; empty if no difference is known.
        agreement: agreement of the two judges, with the first in rows and the second in columns. The bias is the mean
            grade of the first minus that of the second.
        cases: all compared passages, those with the largest difference first.
        reviews: folder of the human labels.
        nearer: comparison with human labels; None if these passages have no labels.
        unmatched: numbers of excluded passages.
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
        """Passages on which the judges differ and that have no blind human label."""
        return tuple(case for case in self.cases if case.apart and case.people is None)


def compare_judges(
    one: OpenedRun, other: OpenedRun, folder: Path | None = None, *, confidence: float = 0.95, seed: int = 1
) -> JudgeComparison:
    """Compare the grades of two runs.

    Args:
        folder: folder of the human labels [default: `reviews` next to the folder that contains the first run].
        confidence: confidence level of the intervals.
        seed: random seed of the bootstrap, which resamples queries.

    Raises:
        UsageError: both are the same run.
        NotFoundError: the judge stage of a run has not run.
        DataError: no passage was graded by both judges, `folder` has no label of the compared passages, or a line of
            the labels is invalid.
    """
    if one.folder.resolve() == other.folder.resolve():
        raise UsageError(
            f"{one.folder} and {other.folder} are the same run",
            remedy="name two runs; --run-id NAME creates a second one",
        )
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
        members: two names, or parts of names; may be omitted if the panel has two members.
        folder, confidence, seed: see `compare_judges`.

    Raises:
        UsageError: the judge is not a panel, or `members` does not identify two members.
        NotFoundError, DataError: see `compare_judges`.
    """
    known = members_of(run)
    if len(known) < 2:
        said = f"the judge of {run.folder} is not a panel of at least two members with grades"
        raise UsageError(said, remedy="to compare two runs: raggs judge compare A B")
    meant = [_matching_members(part, known) for part in members or known]
    if len(meant) != 2 or any(len(each) != 1 for each in meant) or meant[0] == meant[1]:
        raise UsageError("--members must identify two different members", remedy=f"choose from: {', '.join(known)}")
    first, second = (judged_by(run, name) for [name] in meant)
    return _compare_grades(first, second, folder, confidence, seed)


def _matching_members(part: str, known: Sequence[str]) -> list[str]:
    """Return the panel members with this name; if there is none, those whose name contains it."""
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
            f"{_nothing_common_reason(ours, theirs)}, so there is nothing to compare",
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
    """Write a labelling plan of the passages on which the judges differ and that have no blind label, in random order.

    The plan contains no grades. Return the number of passages; if it is 0, no file is written.

    Raises:
        ProviderError: the file cannot be written.
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
    """Return whether a passage of both runs is compared: not if both judges only copied the grade of a
    near-duplicate.
    """
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
        remedy = "label some passages: raggs review serve RUN; labels given after seeing a grade do not count"
        raise DataError("no passage that both judges graded has a blind human label", where=file, remedy=remedy)
    return None


def _unmatched(ours: Mapping[Key, JudgedItem], theirs: Mapping[Key, JudgedItem]) -> UnmatchedPassages:
    both = [(ours[key], theirs[key]) for key in ours if key in theirs and _is_compared(key, ours, theirs)]
    people = sum(by_people(mine.record) or by_people(other.record) for mine, other in both)
    judged = sum(mine.judged and other.judged for mine, other in both)
    shared = len(ours.keys() & theirs.keys())
    return UnmatchedPassages(len(ours) - shared, len(theirs) - shared, len(both) - judged - people, people)


def _nothing_common_reason(ours: Mapping[Key, JudgedItem], theirs: Mapping[Key, JudgedItem]) -> str:
    if not {question for question, _ in ours} & {question for question, _ in theirs}:
        return "the runs have no query in common"
    return "no passage was graded by both judges" if ours.keys() & theirs.keys() else "no common passage"


SIDE_NAMES = ("A", "B")
TITLE = 30  # characters of a passage's title on the screen
MAX_SHOWN_SETTINGS = 4  # settings named on the screen; all are in the JSON
TERMS = (
    Legend("kappa", "agreement beyond chance, Cohen's, quadratic weights: 1 perfect, 0 chance"),
    Legend("alpha", "Krippendorff's alpha for ordinal grades: 1 perfect, 0 chance"),
    Legend("exact", "share of equal grades; within one: at most one grade apart"),
    Legend("bias", "mean of A's grade minus B's, in grades"),
)
HUMAN_COMPARISON_LEGENDS = (
    Legend("off by", "mean distance from the human grade, in grades; the judge with the smaller one is better"),
    Legend("A's gain", "distance of B minus distance of A on the same passages; above 0: A is better"),
)


def lay_out_comparison(found: JudgeComparison, shown: int = 10) -> ReportDocument:
    """Return the report of a comparison; nothing is computed here.

    Args:
        shown: maximum number of listed passages. They are those on which the judges differ most.
    """
    return ReportDocument("Two judges", _verdict_section(found), tuple(_sections(found, shown)), tuple(_notes(found)))


def _verdict_section(found: JudgeComparison) -> Section:
    whole = found.agreement
    told = f"{plural(whole.cases, 'passage')} of {plural(whole.clusters, 'query')} graded by both"
    same = f"the same grade on {whole.exact.value:.0%}, kappa {format_estimate(whole.kappa)}"
    named = (f"{name}: {', '.join(side.judges)} ({side.run})" for name, side in _sides(found).items())
    return Section("Verdict", (*named, *_settings_sentences(found.settings), f"{told}: {same}", verdict(found)))


def _settings_sentences(settings: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    told = [f"{name} ({shorten(one, 30)} / {shorten(other, 30)})" for name, (one, other) in settings.items()]
    more = [f"{len(told) - MAX_SHOWN_SETTINGS} more"] if len(told) > MAX_SHOWN_SETTINGS else []
    if told:
        yield f"different settings: {', '.join([*told[:MAX_SHOWN_SETTINGS], *more])}"


def verdict(found: JudgeComparison) -> str:
    """Return a sentence that recommends one of the judges, or states why it is unknown which one is better."""
    near = found.nearer
    if not _differ(found):
        return "the judges agree on the grade of every passage: use the cheaper one"
    if near is None:
        unread = len(found.unread)
        more = f": label the {plural(unread, 'passage')} on which they differ (--plan FILE)" if unread else ""
        return f"no human labels for these passages, so it is unknown which judge is better{more}"
    gain = near.off.gain
    if near.winner is not None:
        name = SIDE_NAMES[0] if near.winner == "first" else SIDE_NAMES[1]
        by = f"{abs(gain.value):.2f} ± {gain.half:.2f} grades"
        return f"{name} is closer to the human labels by {by} ({_label_counts(near)}): use {name}"
    more = _more_reviews_sentence(near, len(found.unread))
    return f"it is inconclusive which judge is closer to the human labels ({_label_counts(near)}): {more}"


def _label_counts(near: JudgesVersusHumans) -> str:
    return f"{plural(near.cases, 'labelled passage')}, the judges differ on {near.differing:,}"


def _more_reviews_sentence(near: JudgesVersusHumans, unread: int) -> str:
    wanted = f"{FEWEST_CASES} labelled passages of {FEWEST_CLUSTERS} queries and {FEWEST_DIFFERING} differing grades"
    least = f"at least {wanted} are needed"
    if near.few:
        return f"{least}; {unread:,} passages on which they differ have no label (--plan FILE)" if unread else least
    gain = near.off.gain
    within = f"A's gain is between {gain.low:+z.2f} and {gain.high:+z.2f} grades"
    if near.more is None or not unread:
        return f"{within}; use the cheaper one"
    return f"{within}; to decide, label about {near.more:,} more passages on which the judges differ"


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
        yield Section("Largest differences", said, Table.of(head, rows_of))


def _cost(found: JudgeComparison) -> Section:
    bills = {name: side.bill for name, side in _sides(found).items()}
    if not any(bill.calls or bill.cached for bill in bills.values()):
        return Section("Cost", ("neither judge calls a language model",))
    lines = {
        "grades": [f"{side.graded:,}" for side in _sides(found).values()],
        "USD paid": [formatted(bill.usd, ".4f") for bill in bills.values()],
        "USD for 1,000 grades": [formatted(bill.usd_per_1000, ".3f") for bill in bills.values()],
        "tokens per grade": [formatted(bill.tokens_per_grade, ",.0f") for bill in bills.values()],
        "seconds per call": [formatted(bill.seconds_per_call, ".2f") for bill in bills.values()],
        "calls": [f"{bill.calls:,}" for bill in bills.values()],
        "cached": [f"{bill.cached:,}" for bill in bills.values()],
    }
    said = tuple(_cheaper(bills))
    return Section("Cost", said, Table.of(("", *bills), ((name, *values) for name, values in lines.items())))


def _cheaper(bills: Mapping[str, GradeCosts]) -> Iterator[str]:
    one, other = (bill.usd_per_1000 for bill in bills.values())
    if one is None or other is None or one == other:
        return
    low, high = sorted((one, other))
    times = f", which is {high / low:.1f} times as much" if low else ""
    yield f"{SIDE_NAMES[0] if one > other else SIDE_NAMES[1]} costs {high - low:.3f} USD more for 1,000 grades{times}"


def _human_comparison_section(near: JudgesVersusHumans) -> Section:
    figures = {"off by": near.off, "kappa": near.kappa, "exact": near.exact}
    equal = near.differing - near.first - near.second
    neither = f", on {equal:,} neither" if equal else ""
    said = f"passages with different grades: A is closer on {near.first:,}, B on {near.second:,}{neither}"
    rows = (_row(name, each) for name, each in figures.items())
    return Section(
        "Comparison with human labels",
        (said,),
        Table.of(("figure", "A", "B", "A's gain"), rows),
        terms=HUMAN_COMPARISON_LEGENDS,
    )


def _row(name: str, against: HumanAgreementGain) -> tuple[str, ...]:
    alone = (AgreementEstimate(each.value, math.nan, math.nan) for each in (against.first, against.second))
    return (name, *map(format_estimate, alone), format_estimate(against.gain, signed=True))


def _sides(found: JudgeComparison) -> dict[str, JudgeSide]:
    return dict(zip(SIDE_NAMES, (found.first, found.second), strict=True))


def _notes(found: JudgeComparison) -> Iterator[str]:
    left, near = found.unmatched, found.nearer
    yield f"{100 * found.agreement.confidence:g}% intervals from resampled queries (bootstrap)"
    if near is not None and near.differing * found.agreement.cases > 1.5 * near.cases * len(_differ(found)):
        whole = len(_differ(found)) / found.agreement.cases
        yield (
            f"passages on which the judges differ were labelled more often ({near.differing / near.cases:.0%} of the "
            f"labels, {whole:.0%} of all passages); over all passages, expect a smaller gain of the same sign"
        )
    for name, count in zip(SIDE_NAMES, (left.first_only, left.second_only), strict=True):
        if count:
            yield f"excluded: {plural(count, 'passage')} that are only in the pools of {name}"
    if left.ungraded:
        yield f"excluded: {plural(left.ungraded, 'passage')} without a grade by at least one judge"
    if left.by_people:
        yield f"excluded: {plural(left.by_people, 'passage')} with a human grade in at least one run"
    for name, side in _sides(found).items():
        if side.lacks:
            yield f"{name} is not finished: {side.lacks}"
    alike = not found.settings and found.first.judges.keys() == found.second.judges.keys()
    if alike and not (found.first.lacks or found.second.lacks):
        yield "both judges have the same settings, so the differences show how well the judge repeats itself"


def _differ(found: JudgeComparison) -> list[ComparedPassage]:
    return [case for case in found.cases if case.apart]


def comparison_json(found: JudgeComparison) -> str:
    """Return the result as JSON, with only the passages on which the judges differ. Undefined numbers are null."""
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
    """Write compare.json and compare.md to `folder`, which is created if missing.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {
        "compare.json": comparison_json(found) + "\n",
        "compare.md": markdown(lay_out_comparison(found, shown)),
    }
    return write_texts(folder, texts)
