"""Validation of a run's judge against human labels: agreement, errors, and suitable uses of its grades.

Only blind labels count, which an annotator gave before seeing a grade by a model. The result states how many labels are
excluded. The run does not change.

The judge's orders are also compared with human grades, by the place of a passage in the prompt. Each pair of passages
in one prompt with different human grades counts once for each of its two passages. For each passage, the judge's
preference between the two is compared with that of the annotators.

For `judge.gate.kappa`, the agreement is stored in the lock of the judge stage. It is recomputed at the end of every
run, because new labels do not make a stage run again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, permutations
from pathlib import Path
from shlex import quote
from statistics import fmean

import numpy as np

from raggs.app.review import fitted_labels, items_of, reviews_of
from raggs.base.artifacts import EmbedRecord, JournalRecord, JudgeRecord, MergeRecord
from raggs.base.document import Legend, ReportDocument, Section, Table, Value, markdown
from raggs.base.errors import DataError
from raggs.base.files import disk, write_atomic, write_texts
from raggs.base.judge_health import HUMAN_SOURCE, HumanAgreement, JudgeHealth, round_rate, source_of
from raggs.base.text import plural
from raggs.config.models import RunConfig
from raggs.parts.judges import answers_of, by_people, reviews_beside, without_human_grade
from raggs.parts.reviews import CurrentReviews, Key, ReviewStore, ever_drawn, read_draws
from raggs.runs.manifests.models import RunManifest
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.store import RunStore, dump_json
from raggs.stats.agreement import FEWEST_CASES, FEWEST_CLUSTERS, AgreementEstimate, JudgeHumanAgreement, check_labels
from raggs.stats.correction import GradeCalibration, calibrate
from raggs.stats.judge_agreement import JudgeValidity, judge_validity

PLACE = "place in the prompt"


@dataclass(frozen=True)
class PromptPair:
    """A passage compared with another passage of the same prompt.

    Attributes:
        place: place of the passage in the prompt, from 1.
        judge, people: whether the judge, and whether the annotators, prefer the passage to the other one.
        qid: the query.
    """

    place: int
    judge: bool
    people: bool
    qid: str


def ordered_pairs(run: OpenedRun, grades: Mapping[tuple[str, str], int]) -> list[PromptPair]:
    """Return the pairs of passages with different human grades that the judge ordered in one prompt.

    Args:
        grades: human grades, by query id and passage id.
    """
    if "rank" not in run.pipeline.order or not run.file("rank.journal").is_file():
        return []
    entries = run.typed("rank.journal", JournalRecord)
    return [pair for entry in entries if source_of(entry.by) != HUMAN_SOURCE for pair in _pairs(entry, grades)]


def _pairs(entry: JournalRecord, grades: Mapping[tuple[str, str], int]) -> Iterator[PromptPair]:
    rank = {doc_id: place for place, doc_id in enumerate(entry.order or ())}
    known = [doc_id for doc_id in entry.shown if doc_id in rank and (entry.qid, doc_id) in grades]
    for one, other in permutations(known, 2):
        mine, theirs = grades[entry.qid, one], grades[entry.qid, other]
        if mine != theirs:
            yield PromptPair(entry.shown.index(one) + 1, rank[one] < rank[other], mine > theirs, entry.qid)


RANKS = (("1 to 10", 10), ("11 to 20", 20), ("21 to 50", 50), ("51 and below", None))
REMEDY = "label some passages before seeing a grade: raggs review serve {run}"


@dataclass(frozen=True)
class GradePair:
    """A passage with the grade of the judge and the human grade.

    Attributes:
        judge, people: the grades, 1 to 5.
        qid: the query.
        answers: all grades that the judge gave the passage.
        facts: by kind of group (such as language), the group of the passage (such as `de`).
        drawn: whether the passage was drawn at random.
    """

    judge: int
    people: int
    qid: str
    answers: tuple[int, ...]
    facts: Mapping[str, str]
    drawn: bool


@dataclass(frozen=True)
class CaseGroup:
    """Agreement within one group of passages: `kind` is the criterion, such as language; `name` the group, such as
    `de`.
    """

    kind: str
    name: str
    checked: JudgeHumanAgreement


@dataclass(frozen=True)
class ExcludedLabels:
    """Numbers of excluded passages.

    Attributes:
        seen: passages whose annotators had seen a grade by a model.
        unsure: passages without a blind grade because every annotator answered `cannot tell`.
        ungraded: passages with a human grade and no grade by the judge.
        by_people: passages whose grade in the run is a human grade.
        fitted: passages with a label that the calibration of the judge was fitted on.
        unknown_fit: why the labels of that fit are not known completely; empty if they are.
    """

    seen: int
    unsure: int
    ungraded: int
    by_people: int
    fitted: int = 0
    unknown_fit: str = ""


@dataclass(frozen=True)
class JudgeCheck:
    """Result of a validation.

    Attributes:
        run, reviews: run directory, and folder of the labels.
        judges: number of compared grades by name of the judge.
        whole: agreement over all compared passages.
        groups: agreement by grade of the judge, language, length, rank in the pool and near-duplicates.
        places: agreement of orders, by place in the prompt; empty if no pair can be compared.
        people: agreement of two annotators on the same passage; None if no passage has two labels.
        drawn: number of passages drawn at random; the others were chosen, often because they are hard.
        left_out: numbers of excluded passages.
        trust: for each use of the grades, whether the agreement is high enough.
        calibration: map from judge grades to expected human grades; raggs does not apply it.
    """

    run: str
    reviews: str
    judges: Mapping[str, int]
    whole: JudgeHumanAgreement
    groups: tuple[CaseGroup, ...]
    places: tuple[CaseGroup, ...]
    people: JudgeHumanAgreement | None
    drawn: int
    left_out: ExcludedLabels
    trust: tuple[JudgeValidity, ...]
    calibration: GradeCalibration


def check_judge(run: OpenedRun, folder: Path | None = None, *, confidence: float = 0.95, seed: int = 1) -> JudgeCheck:
    """Compare the grades of a run with human labels.

    Args:
        folder: folder of the labels [default: `reviews` next to the folder of runs].
        confidence: confidence level of the intervals.
        seed: random seed of the bootstrap, which resamples queries.

    Raises:
        NotFoundError: the judge stage has not run.
        DataError: the run has no comparable label, or a line of the labels is invalid.
    """
    store = ReviewStore(reviews_of(run.folder, folder))
    present, said = items_of(run), store.held()
    held = blind_only(said)
    settled = held.items()
    graded = {(record.qid, record.doc_id): without_human_grade(record) for record in run.typed("judge", JudgeRecord)}
    fitted = fitted_labels(run)
    both = [(item, graded[item]) for item, key in present.items() if key in settled and item in graded]
    used = {item for item, _ in both if item in fitted.pairs}
    both = [each for each in both if each[0] not in used]
    machine = [(item, record) for item, record in both if not by_people(record)]
    facts = _facts(run, {item for item, _ in machine}, graded)
    drawn = ever_drawn(read_draws(store.folder), set(present.values()), said.grades)
    drawn |= {key for key in held.grades if _was_drawn(held, key)}
    by_item = {item: settled[key].grade for item, key in present.items() if key in settled and item not in used}
    cases = [
        GradePair(record.grade, by_item[item], item[0], answers_of(record), facts[item], present[item] in drawn)
        for item, record in machine
        if record.grade is not None
    ]
    left_out = _left_out(said, held, set(present.values()), len(both) - len(machine), len(machine) - len(cases))
    left_out = replace(left_out, fitted=len(used), unknown_fit=fitted.unknown)
    if not cases:
        raise DataError(
            f"no blind human label can be compared with a grade of the judge in {run.folder}",
            where=store.path,
            remedy=_remedy(left_out, run.folder),
        )
    whole = _check_cases(cases, confidence, seed)
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
        trust=judge_validity(whole),
        calibration=_calibrated(cases, seed),
    )


def blind_only(said: CurrentReviews) -> CurrentReviews:
    """Return the labels that were given before the annotator saw a model's grade, even if they were changed
    afterwards.
    """
    return said.unseen


def _remedy(left_out: ExcludedLabels, run: Path) -> str:
    blind = REMEDY.format(run=quote(str(run)))
    if left_out.by_people:
        own = f"the run has only the human grade of {plural(left_out.by_people, 'passage')}, not the judge's"
        return f"{own}: set judge.human_first to store both grades; {blind}"
    if left_out.fitted:
        used = plural(left_out.fitted, "label")
        return f"the judge's calibration was fitted on {used}, which are excluded; {blind}"
    if left_out.ungraded:
        lacking = f"the judge has no grade of {plural(left_out.ungraded, 'passage')} with a blind label"
        return f"{lacking}: run raggs run again to retry failed judgments; {blind}"
    if not left_out.seen:
        return blind
    return f"labels count only if they are blind; {blind}"


def _left_out(
    said: CurrentReviews, held: CurrentReviews, keys: set[Key], by_people: int, ungraded: int
) -> ExcludedLabels:
    spoken = [key for key in keys if said.grades.get(key) or key in said.settling]
    blind = [key for key in spoken if held.grades.get(key) or key in held.settling]
    unsure = sum(held.settled(key) is None for key in blind)
    return ExcludedLabels(len(spoken) - len(blind), unsure, ungraded, by_people)


def _was_drawn(held: CurrentReviews, key: Key) -> bool:
    return any(word.chance is not None for word in held.grades.get(key, {}).values())


def _facts(
    run: OpenedRun, wanted: set[tuple[str, str]], graded: Mapping[tuple[str, str], JudgeRecord]
) -> dict[tuple[str, str], dict[str, str]]:
    """Return the groups of each passage, by criterion: language, length and so on."""
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


def _calibrated(cases: Sequence[GradePair], seed: int) -> GradeCalibration:
    judge, people = [case.judge for case in cases], [case.people for case in cases]
    several = any(len(case.answers) > 1 for case in cases)
    means = [fmean(case.answers) if case.answers else case.judge for case in cases] if several else None
    return calibrate(judge, people, [case.qid for case in cases], seed=seed, means=means)


def _check_cases(cases: Sequence[GradePair], confidence: float, seed: int) -> JudgeHumanAgreement:
    judge, people = [case.judge for case in cases], [case.people for case in cases]
    return check_labels(judge, people, [case.qid for case in cases], confidence=confidence, seed=seed)


def _groups(cases: Sequence[GradePair], confidence: float, seed: int) -> Iterable[CaseGroup]:
    """Yield the groups of each criterion, in a fixed order. A criterion with only one group is omitted."""
    for kind in cases[0].facts:
        names = sorted({case.facts[kind] for case in cases}, key=_order)
        for name in names if len(names) > 1 else ():
            yield CaseGroup(
                kind, name, _check_cases([case for case in cases if case.facts[kind] == name], confidence, seed)
            )


def _places(run: OpenedRun, grades: Mapping[tuple[str, str], int], confidence: float, seed: int) -> Iterable[CaseGroup]:
    """Yield the agreement of the judge's orders with human grades, by place in the prompt."""
    found = ordered_pairs(run, grades)
    for place in sorted({each.place for each in found}):
        mine = [each for each in found if each.place == place]
        labels = [2 if each.judge else 1 for each in mine], [2 if each.people else 1 for each in mine]
        checked = check_labels(*labels, [each.qid for each in mine], confidence=confidence, seed=seed)
        yield CaseGroup(PLACE, str(place), checked)


def _order(name: str) -> tuple[int, int, str]:
    """Return a sort key for names of groups: by number, "more than" last, names without a number alphabetically."""
    number = next((int(word.replace(",", "")) for word in name.split() if word[0].isdigit()), 0)
    return name.startswith("more than"), number if not name.startswith("up to") else 0, name


def _among_people(
    held: CurrentReviews, present: Mapping[tuple[str, str], Key], confidence: float, seed: int
) -> JudgeHumanAgreement | None:
    """Return the agreement between annotators, over all pairs of labels of one passage; None if there are no pairs."""
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


AGREEMENT_FIGURES = ("kappa", "alpha", "exact", "within one", "bias", "leniency")
TERMS = (
    Legend("kappa", "agreement beyond chance, Cohen's, quadratic weights: 1 perfect, 0 chance"),
    Legend("alpha", "Krippendorff's alpha for ordinal grades: 1 perfect, 0 chance"),
    Legend("exact", "share of equal grades; within one: at most one grade apart"),
    Legend("bias", "mean of the judge's grade minus the human grade, in grades"),
    Legend("leniency", "share that the judge graded higher, minus the share it graded lower"),
)


def lay_out_check(found: JudgeCheck) -> ReportDocument:
    """Return the report of a validation; nothing is computed here."""
    return ReportDocument("Judge validation", _verdict_section(found), tuple(_sections(found)), tuple(_notes(found)))


def _verdict_section(found: JudgeCheck) -> Section:
    whole = found.whole
    judges = ", ".join(found.judges)
    said = (
        f"judge {judges}: {plural(whole.cases, 'grade')} of {plural(whole.clusters, 'query')} with human labels",
        *map(trusted, found.trust),
    )
    return Section("Verdict", said)


def trusted(verdict: JudgeValidity) -> str:
    """Return a check as a sentence."""
    more = f", about {plural(verdict.more, 'more label')} needed" if verdict.more else ""
    return f"usable for {verdict.use}: {verdict.answer}{more} ({verdict.rule})"


def _sections(found: JudgeCheck) -> Iterator[Section]:
    sides = (("judge and annotators", found.whole), *([("two annotators", found.people)] if found.people else []))
    head = ("figure", *(name for name, _ in sides))
    figures = [(name, *(check_figure(name, side) for _, side in sides)) for name in AGREEMENT_FIGURES]
    cases = ("grades compared", *(side.cases for _, side in sides))
    said = () if found.people else ("no passage has labels of two annotators, so their agreement is unknown",)
    yield Section("Agreement", said, Table.of(head, [*figures, cases]), terms=TERMS)
    yield Section(
        "Grades: judge in rows, human labels in columns", table=confusion(found.whole.table, "judge", "human")
    )
    yield _judgelayout_calibrated(found.calibration)
    for kind in dict.fromkeys(group.kind for group in found.groups):
        yield _divided(kind, [group for group in found.groups if group.kind == kind])
    if found.places:
        yield _places_section(found.places)


def confusion(table: Sequence[Sequence[int]], one: str, other: str) -> Table | None:
    """Return the table of how often each pair of grades occurs, with a total per row."""
    rows = ((f"{one} {grade}", *(count or "·" for count in row), sum(row)) for grade, row in enumerate(table, 1))
    return Table.of(("", *(f"{other} {grade}" for grade in range(1, 6)), "all"), rows)


def _judgelayout_calibrated(found: GradeCalibration) -> Section:
    rows = (
        (grade, f"{expected:.2f}", cases)
        for grade, (expected, cases) in enumerate(zip(found.expected, found.cases, strict=True), 1)
    )
    before, after = f"{found.error:.2f}", "–" if math.isnan(found.error_mapped) else f"{found.error_mapped:.2f}"
    errors = f"of the judge's grades {before}, of the expected grades {after}"
    said = f"root mean squared error {errors} (cross-validated over queries)"
    helps = "this map of grades helps" if found.helps else "this map of grades does not help"
    table = Table.of(("judge", "expected human grade", "grades"), rows)
    more = () if math.isnan(found.error_by_mean) else (_by_mean(found),)
    return Section("Calibration: expected human grade by grade of the judge", (f"{said}: {helps}", *more), table)


def _by_mean(found: GradeCalibration) -> str:
    kept = "--calibration has both maps" if found.by_mean else "no better, so only the map of the grade is written"
    return f"root mean squared error {found.error_by_mean:.2f} with a map of the judge's mean answer: {kept}"


def _divided(kind: str, groups: list[CaseGroup]) -> Section:
    by_grade = kind == "grade of the judge"
    names = ("exact", "bias") if by_grade else ("kappa", "bias")  # all figures are in the JSON; two fit the screen
    return Section(
        f"Agreement by {kind}", table=Table.of((kind, "grades", *names), (_row(group, names) for group in groups))
    )


def _places_section(groups: tuple[CaseGroup, ...]) -> Section:
    """Return the agreement of orders by place in the prompt."""
    said = ("only pairs of passages with different human grades",)
    head = (PLACE, "pairs", "as annotators", "preferred, minus annotators")
    rows = (_row(each, ("exact", "bias")) for each in groups)
    return Section("Agreement of orders by place in the prompt", said, Table.of(head, rows))


def _row(group: CaseGroup, names: tuple[str, ...]) -> tuple[Value, ...]:
    checked = group.checked
    if checked.few:
        return (group.name, checked.cases, f"too few ({checked.cases})", "")
    return (group.name, checked.cases, *(check_figure(name, checked) for name in names))


def check_figure(name: str, checked: JudgeHumanAgreement) -> str:
    """Return one measure of `AGREEMENT_FIGURES` with its interval, as text."""
    found = {
        "kappa": checked.kappa,
        "alpha": checked.alpha,
        "exact": checked.exact,
        "within one": checked.within_one,
        "bias": checked.bias,
        "leniency": checked.leniency,
    }[name]
    return format_estimate(found, signed=name in {"bias", "leniency"})


def format_estimate(found: AgreementEstimate, *, signed: bool = False) -> str:
    """Return a value with its interval as text; without the interval if it is undefined, and a dash if the value is."""
    form = "+z.2f" if signed else "z.2f"
    if math.isnan(found.value):
        return "–"
    value = format(found.value, form)
    return value if math.isnan(found.low) else f"{value} [{found.low:{form}}, {found.high:{form}}]"


def _notes(found: JudgeCheck) -> Iterator[str]:
    left, cases = found.left_out, found.whole.cases
    least = f"{plural(FEWEST_CASES, 'grade')} or {plural(FEWEST_CLUSTERS, 'query')}"
    yield f"{100 * found.whole.confidence:g}% intervals from resampled queries (bootstrap); too few: below {least}"
    if found.drawn < cases:
        chosen = cases - found.drawn
        yield (
            f"{chosen} of {cases} passages were chosen, not drawn at random; chosen passages are often hard, so the "
            "judge may be better than these figures"
        )
    if left.seen:
        yield f"excluded: {plural(left.seen, 'passage')} whose annotators had seen a grade by a model"
    if left.unsure:
        yield f"excluded: {plural(left.unsure, 'passage')} with only `cannot tell`"
    if left.ungraded:
        yield f"excluded: {plural(left.ungraded, 'passage')} without a grade by the judge"
    if left.by_people:
        yield f"excluded: {plural(left.by_people, 'passage')} whose grade in the run is a human grade"
    if left.fitted:
        yield f"excluded: {plural(left.fitted, 'label')} that the calibration of the judge was fitted on"
    if left.unknown_fit:
        yield f"the labels that the calibration was fitted on may be included: {left.unknown_fit}"


def check_json(found: JudgeCheck) -> str:
    """Return the result as JSON; undefined numbers are null."""
    return dump_json(without_nan(asdict(found)))


def write_check(found: JudgeCheck, folder: Path) -> list[Path]:
    """Write check.json and check.md to `folder`, which is created if missing.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {"check.json": check_json(found) + "\n", "check.md": markdown(lay_out_check(found))}
    return write_texts(folder, texts)


def write_calibration(found: JudgeCheck, file: Path) -> None:
    """Write the calibration map as JSON; raggs does not apply it.

    Raises:
        ProviderError: the file cannot be written.
    """
    said = {"v": 1, "run": found.run, "judges": list(found.judges), **asdict(found.calibration)}
    with disk(file, "choose another --calibration"):
        write_atomic(file, (dump_json(without_nan(said)) + "\n").encode())


def without_nan(value: object) -> object:
    """Replace numbers that JSON cannot represent (NaN, infinity) by None, in nested values, too."""
    if isinstance(value, dict):
        return {key: without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


CONFIDENCE, SEED = 0.95, 1  # the defaults of `raggs judge check`


def held_against_people(manifest: RunManifest, store: RunStore, config: RunConfig) -> RunManifest:
    """Return the manifest with the judge's agreement with annotators in the lock of the judge stage, or without it if
    no gate needs it. Nothing is written.

    Raises:
        DataError: a line of the labels is invalid.
    """
    gate, lock = config.judge.gate, manifest.stages.get("judge")
    if lock is None:
        return manifest
    found = None if gate.kappa is None else against_people(OpenedRun(store, manifest), gate_review_store(config))
    health = lock.health if isinstance(lock.health, JudgeHealth) else JudgeHealth()
    if found == health.people:
        return manifest
    told = health.model_copy(update={"people": found})
    updated = lock.model_copy(update={"health": None if told == JudgeHealth() else told})
    return manifest.model_copy(update={"stages": {**manifest.stages, "judge": updated}})


def gate_review_store(config: RunConfig) -> ReviewStore:
    """Return the store of the labels that the gate of a configuration uses to validate the judge."""
    return ReviewStore(config.judge.gate.reviews or reviews_beside(config.workspace))


def against_people(run: OpenedRun, store: ReviewStore) -> HumanAgreement:
    """Return the agreement of a run's judge with blind human labels.

    Raises:
        DataError: a line of the labels is invalid.
    """
    settled, present, fitted = blind_only(store.held()).items(), items_of(run), fitted_labels(run).pairs
    records = [
        record
        for record in run.typed("judge", JudgeRecord)
        if present.get((record.qid, record.doc_id)) in settled and (record.qid, record.doc_id) not in fitted
    ]
    cases = [
        (record.grade, settled[present[record.qid, record.doc_id]].grade, record.qid)
        for record in map(without_human_grade, records)
        if record.grade is not None and not by_people(record)
    ]
    own = sum(by_people(without_human_grade(record)) for record in records)
    judge, people, questions = zip(*cases, strict=True) if cases else ((), (), ())
    checked = check_labels(judge, people, questions, confidence=CONFIDENCE, seed=SEED)
    kappa = checked.kappa
    known = not (checked.few or math.isnan(kappa.low))
    return HumanAgreement(
        kappa=round_rate(kappa.value),
        interval=(round(kappa.low, 4), round(kappa.high, 4)) if known else None,
        grades=checked.cases,
        questions=checked.clusters,
        by_people=own,
    )
