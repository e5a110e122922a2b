"""Leaderboard of judges on one labelled sample: statistics, pairwise tests, merging of files, tables.

An entry contains the answers of one judge: a grade per pair of the sample, second samples, orders, and the cost. All
figures are computed from these answers. A file of another person is therefore checked by computing its figures again.

Entries can be merged only if the labels of the whole set and the texts of the sample are the same. Entries that
contradict each other are an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, JsonValue, ValidationError, model_validator

from raggs.app.judge_check import confusion
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
from raggs.base.document import Cell, Legend, ReportDocument, Section, Summary, Table, formatted, markdown
from raggs.base.errors import DataError
from raggs.base.files import read_whole, write_texts
from raggs.base.jsonl import first_fault
from raggs.base.judge_health import is_people
from raggs.base.secrets import mask
from raggs.base.text import plural, shorten
from raggs.base.types import Number, finite_or_none
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.models import ReportPart
from raggs.stats.agreement import AgreementEstimate, check_labels
from raggs.stats.comparison import holm
from raggs.stats.intervals import bootstrap_mean
from raggs.stats.judge_agreement import judges_versus_humans, kappa_difference_test, mean_grades
from raggs.stats.judge_sharpness import ObservedOrder, mean_disagreement, reversed_pairs

LEADERBOARD, PAGE = "leaderboard.json", "leaderboard.md"
SEED, CONFIDENCE, ALPHA = 1, 0.95, 0.05
DIGITS = 6  # decimals of figures in the file
SAME_WITHIN = 1e-5  # stated and computed figures may differ by rounding
PAID_NAME_CHARS, FREE_NAME_CHARS = 25, 40  # of a judge's name on the screen, with and without cost
HASH_DIGITS = 12


class BenchSample(ReportPart):
    """The labelled sample that all judges of a leaderboard grade."""

    name: str = Field(description="name of the labelled collection")
    set_hash: str = Field(description="sha256 of all labels of the collection, as grades")
    sample_hash: str = Field(description="sha256 of the texts and grades of the sampled pairs")
    seed: int
    available: int = Field(description="number of labelled pairs that the sample was drawn from")
    mapping: Mapping[str, int] = Field(description="grade (1 to 5) of each label that occurs")
    unused: Mapping[str, int] = Field(description="number of labels that cannot be used, by reason")
    graders: Mapping[str, int] = Field(description="number of labels by source; empty if unknown")
    labels: tuple[tuple[str, str, int], ...] = Field(description="query id, passage id and grade of each pair")

    @property
    def queries(self) -> int:
        """Number of different queries."""
        return len({qid for qid, _, _ in self.labels})

    @property
    def mapped(self) -> str:
        """The mapping of labels in words; empty if every label is its grade."""
        if all(label == str(grade) for label, grade in self.mapping.items()):
            return ""
        return ", ".join(f"{label} is grade {grade}" for label, grade in self.mapping.items())


class BenchOrder(ReportPart):
    """One order of a list of passages."""

    qid: str
    shown: tuple[str, ...] = Field(description="passages in presentation order")
    order: tuple[str, ...] | None = Field(description="passages, best first; null if the judge returned no order")

    @model_validator(mode="after")
    def _permutation(self) -> BenchOrder:
        if len(set(self.shown)) < len(self.shown) or sorted(self.order or self.shown) != sorted(self.shown):
            raise ValueError("an order must contain each shown passage exactly once")
        return self


class JudgeBenchCost(ReportPart):
    """Cost of a judge's grades. Cached answers count with their original cost."""

    usd_per_1000: Number = Field(description="USD per 1,000 grades; null if there are no grades")
    tokens_per_grade: Number
    calls: int = Field(description="number of answers behind the grades")
    p50_s: Number = Field(description="median latency of a grading call in seconds; null if no call was made")
    p95_s: Number = Field(description="95th percentile of the latency in seconds")


class JudgeBenchFigures(ReportPart):
    """Statistics of a judge, computed from its answers. Intervals resample queries."""

    cases: int = Field(description="number of graded pairs")
    queries: int
    kappa: MeanPart = Field(description="Cohen's kappa with quadratic weights")
    alpha: MeanPart = Field(description="Krippendorff's alpha, ordinal")
    exact: MeanPart = Field(description="share of grades equal to the label")
    within_one: MeanPart = Field(description="share of grades at most one from the label")
    bias: MeanPart = Field(description="mean grade minus mean label")
    by_grade: tuple[MeanPart, ...] = Field(description="mean grade of the judge for each label from 1 to 5")
    confusion: tuple[tuple[int, ...], ...] = Field(description="counts; one row per grade, one column per label")
    repeated: int = Field(description="number of pairs that were graded twice")
    retest: MeanPart = Field(description="share of pairs with the same grade in both samples")
    retest_kappa: MeanPart
    lists: int = Field(description="number of lists that were ordered in both presentation orders")
    changed: MeanPart = Field(description="share of passage pairs whose order changes with the presentation order")
    first_shown: MeanPart = Field(description="share of changed pairs won by the passage shown first; 0.5: no bias")
    unordered: int = Field(description="number of calls without a valid order")


class JudgeBenchEntry(ReportPart):
    """The answers of one judge."""

    judge: str = Field(min_length=1, description="name of the judge")
    fingerprint: str = Field(description="sha256 of everything that can change the answers")
    raggs: str = Field(description="version of raggs")
    settings: Mapping[str, JsonValue] = Field(description="causes of the answers; files as sha256")
    grades: tuple[int | None, ...] = Field(description="grade of each pair of the sample; null: no grade")
    failed: int = Field(0, ge=0, description="number of pairs on which the judge failed")
    abstained: int = Field(0, ge=0)
    errors: tuple[str, ...] = Field((), description="the first reasons of failures")
    repeats: tuple[tuple[int, int | None, int | None], ...] = Field(
        (), description="number of the pair in the sample, first and second grade"
    )
    orders: tuple[BenchOrder, ...] = ()
    cost: JudgeBenchCost
    figures: JudgeBenchFigures | None = Field(None, description="statistics of these answers")

    @model_validator(mode="after")
    def _valid_grades(self) -> JudgeBenchEntry:
        given = [*self.grades, *(grade for _, *both in self.repeats for grade in both)]
        if any(grade is not None and not MIN_GRADE <= grade <= MAX_GRADE for grade in given):
            raise ValueError(f"a grade is not {MIN_GRADE} to {MAX_GRADE}")
        if any(not 0 <= place < len(self.grades) for place, *_ in self.repeats):
            raise ValueError("a second sample is of no pair of the sample")
        return self

    @property
    def shown(self) -> JudgeBenchFigures:
        """The statistics of a complete entry."""
        if self.figures is None:
            raise TypeError("the statistics are not computed yet")
        return self.figures


Verdict = Literal["better", "worse", "inconclusive"]


class JudgePairResult(ReportPart):
    """Comparison of two judges on the pairs that both graded."""

    first: str
    second: str
    cases: int
    kappa: MeanPart = Field(description="kappa of the first minus that of the second")
    p: Number = Field(description="p value of the randomisation test")
    corrected: Number = Field(description="p value corrected over all pairs of judges (Holm)")
    verdict: Verdict = Field(description="first judge: better or worse if corrected p and interval agree")


class Leaderboard(ReportPart):
    """Judges on one labelled sample, best kappa first."""

    v: Literal[1] = 1
    sample: BenchSample
    entries: tuple[JudgeBenchEntry, ...]
    pairs: tuple[JudgePairResult, ...] = ()

    @model_validator(mode="after")
    def _lengths(self) -> Leaderboard:
        for entry in self.entries:
            if len(entry.grades) != len(self.sample.labels):
                raise ValueError(f"{entry.judge} has {len(entry.grades)} grades for {len(self.sample.labels)} labels")
        return self

    def result(self, first: str, second: str) -> JudgePairResult | None:
        """Return the comparison of two judges, in the order of the leaderboard; None if there is none."""
        return next((each for each in self.pairs if (each.first, each.second) == (first, second)), None)


# --- statistics -----------------------------------------------------------------------------------------------


def _part(found: AgreementEstimate) -> MeanPart:
    return MeanPart(**{name: _rounded(getattr(found, field)) for name, field in PART_FIELDS.items()})


PART_FIELDS = {"mean": "value", "low": "low", "high": "high"}


def _rounded(value: float) -> Number:
    return finite_or_none(round(value, DIGITS))


def figures_of(entry: JudgeBenchEntry, sample: BenchSample) -> JudgeBenchFigures:
    """Return the statistics of a judge's answers."""
    cases = [(grade, label, qid) for grade, (qid, _, label) in zip(entry.grades, sample.labels, strict=True) if grade]
    grades, labels, qids = _columns(cases)
    found = check_labels(grades, labels, qids, confidence=CONFIDENCE, seed=SEED)
    twice = [(one, two, sample.labels[place][0]) for place, one, two in entry.repeats if one and two]
    again = check_labels(*_columns(twice), confidence=CONFIDENCE, seed=SEED)
    lists = _lists(entry.orders)
    return JudgeBenchFigures(
        cases=found.cases,
        queries=found.clusters,
        kappa=_part(found.kappa),
        alpha=_part(found.alpha),
        exact=_part(found.exact),
        within_one=_part(found.within_one),
        bias=_part(found.bias),
        by_grade=tuple(map(_part, mean_grades(grades, labels, qids, confidence=CONFIDENCE, seed=SEED))),
        confusion=found.table,
        repeated=again.cases,
        retest=_part(again.exact),
        retest_kappa=_part(again.kappa),
        lists=len(lists),
        changed=_mean([mean_disagreement(each, same=False) for each in lists]),
        first_shown=_mean([reversed_pairs(each).share for each in lists]),
        unordered=sum(each.order is None for each in entry.orders),
    )


def _columns(cases: Sequence[tuple[int, int, str]]) -> tuple[list[int], list[int], list[str]]:
    return [one for one, _, _ in cases], [two for _, two, _ in cases], [qid for _, _, qid in cases]


def _lists(orders: Sequence[BenchOrder]) -> list[list[ObservedOrder]]:
    """Return the orders by list, for lists with at least two orders."""
    found: dict[str, list[ObservedOrder]] = {}
    for each in orders:
        if each.order is not None:
            found.setdefault(each.qid, []).append(ObservedOrder.of(each.shown, each.order))
    return [each for each in found.values() if len(each) > 1]


def _mean(values: Sequence[float]) -> MeanPart:
    found = bootstrap_mean(np.array(values, dtype=np.float64), seed=SEED)
    return MeanPart(mean=_rounded(found.mean), low=_rounded(found.low), high=_rounded(found.high))


def make_leaderboard(sample: BenchSample, entries: Sequence[JudgeBenchEntry]) -> Leaderboard:
    """Return the leaderboard of judges with their statistics and pairwise comparisons, best kappa first."""
    whole = [each.model_copy(update={"figures": figures_of(each, sample)}) for each in entries]
    ranked = sorted(whole, key=lambda each: (-_order_key(each.shown.kappa.mean), each.judge))
    return Leaderboard(sample=sample, entries=tuple(ranked), pairs=tuple(_compare_pairs(sample, ranked)))


def _order_key(kappa: Number) -> float:
    return -math.inf if kappa is None else kappa


def _compare_pairs(sample: BenchSample, entries: Sequence[JudgeBenchEntry]) -> Iterator[JudgePairResult]:
    found = [_compare_two(sample, *pair) for pair in combinations(entries, 2)]
    corrected = holm([math.nan if each.p is None else each.p for each in found])
    for each, p in zip(found, corrected, strict=True):
        verdict: Verdict = "inconclusive"
        if p < ALPHA and each.kappa.clear:
            verdict = "better" if (each.kappa.mean or 0.0) > 0 else "worse"
        yield each.model_copy(update={"corrected": _rounded(p), "verdict": verdict})


def _compare_two(sample: BenchSample, first: JudgeBenchEntry, second: JudgeBenchEntry) -> JudgePairResult:
    cases = [
        (one, two, label, qid)
        for one, two, (qid, _, label) in zip(first.grades, second.grades, sample.labels, strict=True)
        if one and two
    ]
    ours, theirs, labels, qids = ([case[at] for case in cases] for at in range(4))
    columns = np.array(ours, dtype=np.int64), np.array(theirs, dtype=np.int64), np.array(labels, dtype=np.int64)
    found = judges_versus_humans(*columns, [str(qid) for qid in qids], confidence=CONFIDENCE, seed=SEED)
    p = kappa_difference_test(*columns, [str(qid) for qid in qids], seed=SEED)
    return JudgePairResult(
        first=first.judge,
        second=second.judge,
        cases=found.cases,
        kappa=_part(found.kappa.gain),
        p=_rounded(p),
        corrected=None,
        verdict="inconclusive",
    )


# --- files ----------------------------------------------------------------------------------------------------


def read_leaderboard(path: Path) -> Leaderboard:
    """Return the leaderboard in a file, after checking that its figures are those of its answers.

    Raises:
        NotFoundError: the file is missing.
        DataError: it is not a leaderboard, or a figure contradicts the answers.
    """
    try:
        found = Leaderboard.model_validate_json(read_whole(path))
    except ValidationError as error:
        remedy = f"add files that raggs judge bench has written ({LEADERBOARD})"
        raise DataError(f"is not a leaderboard: {first_fault(error)}", where=path, remedy=remedy) from error
    for entry in found.entries:
        _check_figures(entry, found.sample, path)
    return found


CHECKED_FIGURES = ("kappa", "alpha", "exact", "within_one", "bias", "retest", "changed", "first_shown")


def _check_figures(entry: JudgeBenchEntry, sample: BenchSample, path: Path) -> None:
    if entry.figures is None:
        return
    computed = figures_of(entry, sample)
    for name in CHECKED_FIGURES:
        stated, own = (getattr(each, name).mean for each in (entry.figures, computed))
        if (stated is None) != (own is None) or abs((stated or 0.0) - (own or 0.0)) > SAME_WITHIN:
            said = f"{entry.judge}: {name} is stated as {_figure(stated)}, but its answers give {_figure(own)}"
            raise DataError(said, where=path, remedy="get the file again from its author")


def _figure(value: Number) -> str:
    return formatted(value, ".4f")


def check_same_sample(added: BenchSample, sample: BenchSample, path: Path, *, own: bool) -> None:
    """Check that the entries of a file belong to the same sample of the same set.

    Args:
        own: whether the file is the leaderboard of the output folder.

    Raises:
        DataError: the set or the sample differs.
    """
    remedy = "choose another --out" if own else "use the same labels, --pairs, --seed, --scale and --mapping"
    for what, theirs, ours in (
        ("labelled set", added.set_hash, sample.set_hash),
        ("sample", added.sample_hash, sample.sample_hash),
    ):
        if theirs != ours:
            said = f"is the leaderboard of another {what} (hash {theirs[:HASH_DIGITS]}, here {ours[:HASH_DIGITS]})"
            raise DataError(said, where=path, remedy=remedy)
    if [grade for *_, grade in added.labels] != [grade for *_, grade in sample.labels]:
        raise DataError("its labels contradict its hash", where=path, remedy="get the file again from its author")


def merge_entries(files: Sequence[tuple[Path, Sequence[JudgeBenchEntry]]]) -> list[JudgeBenchEntry]:
    """Return the entries of several files, given by file. Equal entries count once.

    Raises:
        DataError: two entries have the same judge but other answers, or the same name but another judge.
    """
    found: dict[str, tuple[Path, JudgeBenchEntry]] = {}
    for path, entries in files:
        for entry in entries:
            file, other = found.setdefault(entry.judge, (path, entry))
            check_same_judge(entry, path, other.fingerprint, file)
            if _answers(other) != _answers(entry):
                said = f"{entry.judge}: contains other answers of the same judge than {file}"
                raise DataError(said, where=path, remedy="omit one of the two")
    return [entry for _, entry in found.values()]


def check_same_judge(entry: JudgeBenchEntry, path: Path, fingerprint: str, other: Path | str) -> None:
    """Check that an entry belongs to the judge with the same name.

    Args:
        entry: the entry.
        path: its file.
        fingerprint: fingerprint of the other judge.
        other: source of the other judge.

    Raises:
        DataError: the fingerprints differ.
    """
    if entry.fingerprint != fingerprint:
        said = f"{entry.judge}: this judge has other settings, prompts or files than that of the same name in {other}"
        raise DataError(said, where=path, remedy="rename one of the judges (`name` in --config)")


def _answers(entry: JudgeBenchEntry) -> tuple[object, ...]:
    return entry.grades, entry.repeats, entry.orders


def write_leaderboard(found: Leaderboard, folder: Path) -> list[Path]:
    """Write leaderboard.json and leaderboard.md to `folder`, and return their paths.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {LEADERBOARD: leaderboard_json(found) + "\n", PAGE: markdown(lay_out_leaderboard(found))}
    return write_texts(folder, texts)


def leaderboard_json(found: Leaderboard) -> str:
    """Return the leaderboard as JSON, without secrets."""
    return mask(found.model_dump_json(indent=1))


# --- layout ---------------------------------------------------------------------------------------------------

TERMS = (
    Legend("kappa", "agreement with the labels beyond chance, quadratic weights: 1 perfect, 0 chance"),
    Legend("exact", "share of grades equal to the label"),
    Legend("bias", "mean grade of the judge minus mean label"),
    Legend("retest", "share of pairs with the same grade in a second sample"),
    Legend("changed", "share of passage pairs whose order changes with the presentation order"),
    Legend("first", "share of changed pairs won by the passage shown first; 50%: no position bias"),
    Legend("USD", "per 1,000 grades; cached answers count with their original cost"),
    Legend("p50, p95", "latency of a grading call in seconds, at the configured concurrency"),
)


def headline(found: Leaderboard) -> tuple[str, ...]:
    """Return which judge agrees best with the labels, and which judges it is significantly better than."""
    if not found.entries:
        return ("No judge was compared.",)
    best, *others = found.entries
    figures, sample = best.shown, found.sample
    on = f"{plural(figures.cases, 'grade')} of {plural(figures.queries, 'query')}"
    lead = f"{best.judge} agrees best with the labels" if others else f"{best.judge} agrees with the labels"
    first = f"{lead} of {sample.name}: kappa {bounded_text(figures.kappa)} on {on}."
    results = [(each, found.result(best.judge, each.judge)) for each in others]
    beaten = [each.judge for each, result in results if result is not None and result.verdict == "better"]
    tied = [each.judge for each in others if each.judge not in beaten]
    if not others:
        return (first,)
    if not tied:
        return (first, f"It is significantly better than {'the other' if len(others) == 1 else 'all others'}.")
    against = ", ".join(tied[:2]) + (f" and {len(tied) - 2} more" if len(tied) > 2 else "")
    return (first, f"The difference to {against} is inconclusive.")


def bounded_text(part: MeanPart, form: str = "z.2f") -> str:
    """Return a value with its interval as text; a dash if it is undefined."""
    if part.mean is None or part.low is None or part.high is None:
        return formatted(part.mean, form)
    return f"{part.mean:{form}} [{part.low:{form}}, {part.high:{form}}]"


def limitations(found: Leaderboard) -> Iterator[str]:
    """Yield sentences about the labels and about missing grades, the most important first."""
    sample = found.sample
    for each in found.entries:
        if each.failed:
            reason = f" ({shorten(each.errors[0], 60)})" if each.errors else ""
            yield f"{each.judge} failed on {each.failed:,} of {plural(len(each.grades), 'pair')}{reason}."
        if each.abstained:
            yield f"{each.judge} abstained on {each.abstained:,} of {plural(len(each.grades), 'pair')}."
    if sample.mapped:
        yield f"Labels are mapped to grades: {sample.mapped}."
    if models := {name: count for name, count in sample.graders.items() if not is_people(name)}:
        first = max(models, key=lambda name: models[name])
        yield f"{sum(models.values()):,} labels are grades by a model ({first}), not by humans."
    if sample.unused:
        yield "Not used: " + ", ".join(f"{plural(count, 'label')} {why}" for why, count in sample.unused.items()) + "."
    share = f"{len(sample.labels):,} of {plural(sample.available, 'labelled pair')}"
    if len(sample.labels) < sample.available:
        yield f"Sample stratified by label: {share}; rare labels are over-represented."


def summarise_leaderboard(found: Leaderboard, command: str) -> Summary:
    """Return the default output of `raggs judge bench`.

    Args:
        command: the command to run next.
    """
    paid = any(each.cost.calls for each in found.entries)
    names = short_names([each.judge for each in found.entries], PAID_NAME_CHARS if paid else FREE_NAME_CHARS)
    rows = [
        (
            name,
            bounded_text(each.shown.kappa),
            formatted(each.shown.exact.mean, ".0%"),
            formatted(each.shown.bias.mean, "+z.2f"),
            formatted(each.shown.retest.mean, ".0%"),
            *((formatted(each.cost.usd_per_1000, ".2f"), formatted(each.cost.p50_s, ".1f")) if paid else ()),
        )
        for name, each in zip(names, found.entries, strict=True)
    ]
    legend = "exact: same grade as the label, retest: same grade again, bias: judge minus label"
    return Summary(
        headline=headline(found),
        table=Table.of(("judge", "kappa", "exact", "bias", "retest", *(("USD", "p50 s") if paid else ())), rows),
        legend=f"{legend}; USD per 1,000 grades, p50 s: median latency" if paid else legend,
        trust=tuple(limitations(found)),
        next=command,
        details="--details: pairwise tests, bias by grade, confusion matrices, position bias",
    )


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Return names of at most `most` characters: their beginnings, or their ends if the beginnings are equal."""
    found = [shorten(name, most) for name in names]
    if len(set(found)) == len(found):
        return found
    return [name if len(name) <= most else f"…{name[1 - most :]}" for name in names]


def lay_out_leaderboard(found: Leaderboard) -> ReportDocument:
    """Return the leaderboard as a document; nothing is computed here."""
    sections = [_stability(found), _by_grade(found), *([_pairs(found)] if found.pairs else [])]
    sections += [
        Section(
            f"Grades of {each.judge} in rows, labels in columns", (), confusion(each.shown.confusion, "grade", "label")
        )
        for each in found.entries
    ]
    sample = found.sample
    notes = (
        *limitations(found),
        f"{100 * CONFIDENCE:g}% intervals from resampled queries (bootstrap)",
        f"labelled set {sample.set_hash[:HASH_DIGITS]}, sample {sample.sample_hash[:HASH_DIGITS]}, seed {sample.seed}: "
        "entries of other people with the same hashes can be added",
    )
    return ReportDocument("Judges on labelled data", _scores(found), tuple(sections), notes)


def _scores(found: Leaderboard) -> Section:
    head = ("", "judge", "kappa", "alpha", "exact", "within one", "bias", "grades", "USD", "p50", "p95")
    rows = (
        (
            rank,
            each.judge,
            bounded_text(each.shown.kappa),
            bounded_text(each.shown.alpha),
            bounded_text(each.shown.exact),
            bounded_text(each.shown.within_one),
            bounded_text(each.shown.bias, "+z.2f"),
            each.shown.cases,
            formatted(each.cost.usd_per_1000, ".3f"),
            formatted(each.cost.p50_s, ".2f"),
            formatted(each.cost.p95_s, ".2f"),
        )
        for rank, each in enumerate(found.entries, start=1)
    )
    return Section("Leaderboard", headline(found), Table.of(head, rows), terms=TERMS)


def _stability(found: Leaderboard) -> Section:
    head = ("judge", "graded twice", "retest", "retest kappa", "lists", "changed", "first", "no order")
    rows = (
        (
            each.judge,
            each.shown.repeated,
            bounded_text(each.shown.retest),
            bounded_text(each.shown.retest_kappa),
            each.shown.lists,
            bounded_text(each.shown.changed),
            bounded_text(each.shown.first_shown),
            each.shown.unordered,
        )
        for each in found.entries
    )
    said = ("second samples, and short lists of passages in two presentation orders",)
    return Section("Test-retest agreement and position bias", said, Table.of(head, rows))


def _by_grade(found: Leaderboard) -> Section:
    head = ("judge", *(f"label {grade}" for grade in range(MIN_GRADE, MAX_GRADE + 1)))
    rows = ((each.judge, *map(bounded_text, each.shown.by_grade)) for each in found.entries)
    return Section("Bias by grade: mean grade of the judge for each label", (), Table.of(head, rows))


def _pairs(found: Leaderboard) -> Section:
    said = (
        f"better or worse: corrected p below {ALPHA:g} and an interval that excludes 0; p from a randomisation test, "
        "corrected over all pairs of judges (Holm)",
    )
    head = ("first", "second", "pairs", "difference of kappa", "p", "corrected p", "first is")
    rows = (
        (
            each.first,
            each.second,
            each.cases,
            bounded_text(each.kappa, "+z.3f"),
            formatted(each.p, ".4f"),
            formatted(each.corrected, ".4f"),
            Cell(each.verdict, best=each.verdict == "better"),
        )
        for each in found.pairs
    )
    return Section("Pairwise comparison", said, Table.of(head, rows))
