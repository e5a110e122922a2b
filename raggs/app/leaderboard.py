"""Leaderboard of judges on one labelled sample: statistics, pairwise tests, merging of files.

An entry contains the answers of one judge: a grade per pair of the sample, second samples, orders, and the cost. The
figures of agreement are computed from these answers. When a file is read, `CHECKED_FIGURES` are computed again, so that
a changed file of another person is noticed.

Entries can be merged only if the labels of the whole set, and the texts and grades of the sample, are the same. Entries
that contradict each other are an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, JsonValue, ValidationError, model_validator

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
from raggs.base.document import formatted
from raggs.base.errors import DataError
from raggs.base.files import disk, read_whole
from raggs.base.jsonl import first_fault
from raggs.base.secrets import mask
from raggs.base.types import Number, finite_or_none
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.models import ReportPart
from raggs.stats.agreement import AgreementEstimate, check_labels
from raggs.stats.calibration import calibration_error, check_distribution, log_score, reliability
from raggs.stats.comparison import holm
from raggs.stats.intervals import bootstrap_mean
from raggs.stats.judge_agreement import judges_versus_humans, kappa_difference_test, mean_grades
from raggs.stats.judge_sharpness import ObservedOrder, mean_disagreement, reversed_pairs

LEADERBOARD = "leaderboard.json"
SEED, CONFIDENCE, ALPHA = 1, 0.95, 0.05
DIGITS = 6  # decimals of figures in the file
SAME_WITHIN = 1e-5  # stated and computed figures may differ by rounding
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

    def same_as(self, other: BenchSample) -> bool:
        """Return whether both are the same sample of the same set."""
        hashes = (self.set_hash, self.sample_hash) == (other.set_hash, other.sample_hash)
        return hashes and [grade for *_, grade in self.labels] == [grade for *_, grade in other.labels]

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


class ReliabilityPart(ReportPart):
    """Predictions "the label is at least k" of one range of probabilities."""

    low: float
    high: float
    predicted: float = Field(description="mean predicted probability")
    observed: float = Field(description="share of the predictions that are true")
    count: int


class GradeCalibrationPart(ReportPart):
    """Accuracy of the probabilities that a judge states."""

    cases: int = Field(description="number of pairs with probabilities")
    error: Number = Field(description="expected calibration error (ECE)")
    log_score: Number = Field(description="mean of -log p(label): 0 perfect, 1.61 for five equal probabilities")
    reliability: tuple[ReliabilityPart, ...]


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
    unordered: int = Field(description="number of presented lists without a valid order")
    calibration: GradeCalibrationPart | None = Field(None, description="null if the judge states no probabilities")


class JudgeBenchEntry(ReportPart):
    """The answers of one judge."""

    judge: str = Field(min_length=1, description="name of the judge")
    fingerprint: str = Field(description="sha256 of everything that can change the answers")
    raggs: str = Field(description="version of raggs")
    settings: Mapping[str, JsonValue] = Field(description="causes of the answers; files as sha256")
    grades: tuple[int | None, ...] = Field(description="grade of each pair of the sample; null: no grade")
    distributions: tuple[tuple[float, ...] | None, ...] = Field(
        (), description="probabilities of the grades 1 to 5 for each pair; empty if the judge states none"
    )
    excluded: tuple[int, ...] = Field(
        (), description="numbers of the pairs that the judge's calibration was fitted on; they are not graded"
    )
    unknown_fit: bool = Field(False, description="whether a calibration file does not name the labels of its fit")
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
        if any(not 0 <= place < len(self.grades) for place in (*(each[0] for each in self.repeats), *self.excluded)):
            raise ValueError("a second sample or an excluded pair has a number that is not in the sample")
        if len(self.distributions) not in (0, len(self.grades)):
            raise ValueError(f"{len(self.distributions)} distributions for {len(self.grades)} grades")
        for each in filter(None, self.distributions):
            check_distribution(each)
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
    verdict: Verdict = Field(description="on the first judge: inconclusive, unless corrected p and interval agree")


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
        calibration=_calibration(entry, sample),
    )


def _calibration(entry: JudgeBenchEntry, sample: BenchSample) -> GradeCalibrationPart | None:
    """Return the accuracy of the stated probabilities; None if there are none."""
    stated = [
        (shares, label) for shares, (*_, label) in zip(entry.distributions, sample.labels, strict=False) if shares
    ]
    if not stated:
        return None
    rows, labels = [shares for shares, _ in stated], [label for _, label in stated]
    table = reliability(rows, labels)
    parts = tuple(
        ReliabilityPart(
            low=each.low,
            high=each.high,
            predicted=round(each.predicted, DIGITS),
            observed=round(each.observed, DIGITS),
            count=each.count,
        )
        for each in table
    )
    error, score = _rounded(calibration_error(table)), _rounded(log_score(rows, labels))
    return GradeCalibrationPart(cases=len(stated), error=error, log_score=score, reliability=parts)


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
    """Return the leaderboard in a file. The means of `CHECKED_FIGURES` are checked against the answers, if stated.

    Raises:
        NotFoundError: the file is missing.
        DataError: it is not a leaderboard, or a checked figure contradicts the answers.
    """
    try:
        found = Leaderboard.model_validate_json(read_whole(path))
    except ValidationError as error:
        remedy = f"use a file that raggs judge bench has written ({LEADERBOARD})"
        raise DataError(f"is not a leaderboard: {first_fault(error)}", where=path, remedy=remedy) from error
    for entry in found.entries:
        _check_figures(entry, found.sample, path)
    return found


CHECKED_FIGURES = (
    "kappa",
    "alpha",
    "exact",
    "within_one",
    "bias",
    "retest",
    "changed",
    "first_shown",
    "error",
    "log_score",
)


def _check_figures(entry: JudgeBenchEntry, sample: BenchSample, path: Path) -> None:
    if entry.figures is None:
        return
    computed = figures_of(entry, sample)
    for name in CHECKED_FIGURES:
        stated, own = (_checked_figure(each, name) for each in (entry.figures, computed))
        if (stated is None) != (own is None) or abs((stated or 0.0) - (own or 0.0)) > SAME_WITHIN:
            said = f"{entry.judge}: {name} is stated as {_figure(stated)}, but its answers give {_figure(own)}"
            raise DataError(said, where=path, remedy="get the file again from its author")


def _checked_figure(figures: JudgeBenchFigures, name: str) -> Number:
    if name in GradeCalibrationPart.model_fields:
        found: Number = None if figures.calibration is None else getattr(figures.calibration, name)
        return found
    part: MeanPart = getattr(figures, name)
    return part.mean


def _figure(value: Number) -> str:
    return formatted(value, ".4f")


def check_same_sample(added: BenchSample, sample: BenchSample, path: Path) -> None:
    """Check that the entries of a file belong to the same sample of the same set.

    Raises:
        DataError: the set or the sample differs.
    """
    remedy = "use the same labels, --pairs, --seed, --scale and --mapping"
    for what, theirs, ours in (
        ("labelled set", added.set_hash, sample.set_hash),
        ("sample", added.sample_hash, sample.sample_hash),
    ):
        if theirs != ours:
            said = f"is the leaderboard of another {what} (hash {theirs[:HASH_DIGITS]}, here {ours[:HASH_DIGITS]})"
            raise DataError(said, where=path, remedy=remedy)
    if not added.same_as(sample):
        raise DataError("its labels contradict its hash", where=path, remedy="get the file again from its author")


def kept_name(sample: BenchSample) -> str:
    """Return the file name for the leaderboard of an earlier sample."""
    return f"leaderboard-{sample.sample_hash[:HASH_DIGITS]}.json"


def keep_other_sample(folder: Path, sample: BenchSample) -> Path | None:
    """Rename the leaderboard in a folder if it is of another sample, and return its new path; otherwise return None.

    Raises:
        DataError: it is damaged.
        ProviderError: it cannot be renamed.
    """
    file = folder / LEADERBOARD
    if not file.is_file() or (found := read_leaderboard(file).sample).same_as(sample):
        return None
    kept = folder / kept_name(found)
    with disk(kept, "choose another --out"):
        file.replace(kept)
    return kept


def merge_entries(files: Sequence[tuple[Path, Sequence[JudgeBenchEntry]]]) -> list[JudgeBenchEntry]:
    """Return the entries of several files. Of entries with the same judge and the same answers, the first is returned.

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
    return entry.grades, entry.distributions, entry.repeats, entry.orders


def leaderboard_json(found: Leaderboard) -> str:
    """Return the leaderboard as JSON, without secrets."""
    return mask(found.model_dump_json(indent=1))
