"""Evaluation of systems against a golden set: report, gates and worst queries.

A request contains typed options, and paths or open sets. This module opens the files before it scores a system. The
worst queries have the worst values, or the largest losses compared with an earlier result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.app.eval_request import (
    AnalysisRequest,
    EvalRequest,
    JudgedFiles,
    JudgedSystems,
    MeasureRequest,
    SampleFiles,
    ScaleRequest,
    with_sources,
)
from raggs.app.gates import keep_earlier, open_gates
from raggs.base.errors import UsageError
from raggs.base.tables import check_column
from raggs.base.text import did_you_mean
from raggs.base.types import Number
from raggs.evaluation.analyses import DEFAULT_ANALYSES, REGISTRY, Analysis
from raggs.evaluation.analyses.answers import GivenAnswers
from raggs.evaluation.analyses.comparisons import Comparisons
from raggs.evaluation.analyses.losses import BottleneckAnalysis
from raggs.evaluation.gates import Gates
from raggs.evaluation.models import ComparisonPart, EvalReport, ValidityPart
from raggs.evaluation.report import make_report, study_and_report
from raggs.evaluation.samples import read_correct, read_facets
from raggs.evaluation.study import ScoringSettings
from raggs.golden.base import GoldenSet
from raggs.golden.files import FileGolden
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem, open_golden, open_systems, split_name
from raggs.metrics.bottleneck import PUBLISHED
from raggs.metrics.columns import GradeScale
from raggs.metrics.names import MeasureSpec, at_cutoffs, needs_cutoff, parse_measure

if TYPE_CHECKING:
    from pandas import DataFrame

    from raggs.app.corrections import Corrections
    from raggs.evaluation.layout import SummaryContext
    from raggs.evaluation.svg import Plot

__all__ = ["EvalResult", "evaluate"]


WORST_SHOWN = 10  # number of queries to list


@dataclass(frozen=True)
class WorstQuery:
    """A query on which a system performs badly.

    Attributes:
        system, qid: the system and the query id.
        value: value of the measure.
        before: value in the earlier result; None if there is none.
        text: text of the query; empty if unknown.
    """

    system: str
    qid: str
    value: float
    before: Number
    text: str


def worst_of(
    report: EvalReport,
    golden: GoldenSet | None,
    before: EvalReport | None = None,
    *,
    measure: str | None = None,
    count: int = WORST_SHOWN,
) -> tuple[WorstQuery, ...]:
    """Return the worst queries, worst first; ties are sorted by query id.

    Args:
        golden: source of the query texts.
        before: an earlier result; it is ignored if it used other judgments.
        measure: a measure of the report [default: its first one].
        count: maximum number of queries.

    Raises:
        UsageError: the report has no such measure.
    """
    name = measure or report.measures[0]
    if name not in report.measures:
        raise UsageError(f"{name} is not a measure of this report", remedy=did_you_mean(name, report.measures))
    sign = 1.0 if report.higher_is_better[name] else -1.0
    found = [(sign * (each.value - (each.before or 0.0)), each) for each in _values(report, before, name)]
    found.sort(key=lambda pair: (pair[0], pair[1].qid, pair[1].system))
    texts = {} if golden is None else {query.qid: query.text for query in golden.queries()}
    return tuple(replace(each, text=texts.get(each.qid, "")) for _, each in found[:count])


def _values(report: EvalReport, before: EvalReport | None, measure: str) -> Iterator[WorstQuery]:
    for system, by_measure in report.per_query.items():
        then = _earlier_values(report, before, system).get(measure, {})
        for qid, value in by_measure.get(measure, {}).items():
            if value is not None:
                yield WorstQuery(system, qid, value, then.get(qid), "")


def _earlier_values(report: EvalReport, before: EvalReport | None, system: str) -> Mapping[str, Mapping[str, Number]]:
    """Return a system's earlier values. If both reports have only one system, its name may differ."""
    if before is None or report.golden.digest != before.golden.digest:
        return {}
    alone = len(report.per_query) == len(before.per_query) == 1
    return next(iter(before.per_query.values())) if alone else before.per_query.get(system, {})


GRADED = ("ra_nwg", "n_recall4", "n_recall5", "precision4", "harm", "ndcg", "recall", "mrr")
PROJECTED = (*GRADED[:1], "span_recall4", "span_precision4", *GRADED[1:])
BINARY_MEASURES = ("ndcg", "recall", "precision", "mrr", "map", "hit")
OF_SAMPLES = ("hit", "recall", "precision", "mrr", "ndcg")
DEFAULT_CUTOFF = 10


@dataclass(frozen=True)
class EvalResult:
    """Result of an evaluation; after writing it, check the gates with ``result.gates.judge(result.report)``.

    `systems` are the scored lists, `judgments` the labels, and `golden` is the set of these labels. All three are empty
    for an evaluation of samples. `request` is the request that was evaluated.
    """

    report: EvalReport
    gates: Gates
    systems: Sequence[NamedSystem] = ()
    judgments: Judgments | None = None
    golden: GoldenSet | None = None
    request: EvalRequest | None = None

    def recorded(self, folder: Path) -> EvalReport:
        """Return the report with the hashes of its input files, for an eval.json in `folder`.

        Raises:
            OSError: a file no longer exists.
        """
        return self.report if self.request is None else with_sources(self.report, self.request, folder)

    def worst(self, count: int = WORST_SHOWN, measure: str | None = None) -> tuple[WorstQuery, ...]:
        """Return the queries with the worst values, or with the largest losses against the gates' earlier result."""
        return worst_of(self.report, self.golden, self.gates.before, measure=measure, count=count)

    def context(self, digits: int = 3, outcomes: tuple[int, int] = (0, 0)) -> SummaryContext:
        """Return what the default output of `raggs eval` needs in addition to the report (`layout.summarise`).

        Without a baseline, systems are compared with the first one, on the primary measure only.

        Args:
            digits: decimals of scores in sentences.
            outcomes: number of gates, and how many of them failed.
        """
        from raggs.evaluation.analyses.comparisons import compare_on
        from raggs.evaluation.layout import SummaryContext
        from raggs.evaluation.study import lowest_label

        named, primary, study = self._named_measures(), self.primary, self.gates.study
        parts: Sequence[ComparisonPart] = [part for part in self.report.comparisons if part.measure == primary]
        if not self.report.comparisons and study is not None:
            parts = compare_on(study, primary)
        makers = {} if study is None else study.makers
        lacks, model_versions = ("", ()) if self.golden is None else (self.golden.lacks, self.golden.model_versions)
        lowest = None if study is None else lowest_label(study.judgments.qrels)
        return SummaryContext(named, tuple(parts), makers, lacks, model_versions, outcomes, digits, lowest)

    @property
    def primary(self) -> str:
        """Measure that decides: the first one that the request names, else nDCG at its largest cutoff, if measured."""
        from raggs.evaluation.layout import shown_measures

        return shown_measures(self.report, self._named_measures())[0]

    def _named_measures(self) -> list[str]:
        """Return the measures of the report that the request names, at all their cutoffs."""
        names = () if self.request is None else self.request.measures.names
        stems = {at_cutoffs(name, [1])[0].name.partition("@")[0] for name in names}
        return [name for name in self.report.measures if name.partition("@")[0] in stems]

    def write(self, folder: Path | str) -> list[Path]:
        """Write eval.json, eval.csv and eval.md into a folder.

        Raises:
            UsageError: the folder holds the earlier result that this one is compared with.
            ProviderError: the folder cannot be written.
        """
        from raggs.evaluation.layout import RESULT, write_report

        keep_earlier(self.gates.where, Path(folder) / RESULT)
        return write_report(self.recorded(Path(folder)), Path(folder))

    def to_pandas(self) -> DataFrame:
        """Return one row per system and query and one column per measure; undefined values are None.

        Raises:
            PrerequisiteError: pandas is not installed.
        """
        from raggs.base.document import frame_of
        from raggs.evaluation.layout import per_query_head, per_query_rows

        rows = ((system, qid, *values) for system, qid, values in per_query_rows(self.report))
        return frame_of(per_query_head(self.report), rows)

    def plot(self, measure: str | None = None) -> Plot:
        """Return a figure of the differences from the baseline, or of the scores if there is no baseline.

        Args:
            measure: a measure of the report [default: the primary one].

        Raises:
            UsageError: the report has no such measure, or no system has a value.
        """
        from raggs.evaluation.messages import interval_words
        from raggs.evaluation.svg import ForestRow, Plot, forest

        report, name = self.report, measure or self.primary
        parts = [part for part in report.comparisons if part.measure == name and part.difference is not None]
        scores = [(each.name, each.scores[name]) for each in report.systems if name in each.scores]
        if parts:
            title = f"{name}: difference from {parts[0].baseline}"
            told = f"mean paired difference, {report.confidence:.0%} interval; grey: not significant"
            rows = [
                ForestRow(part.system, part.difference or 0.0, part.low, part.high, part.verdict in ("better", "worse"))
                for part in parts
            ]
        else:
            title, told = f"{name} of each system", f"mean, {interval_words(report)}"
            rows = [ForestRow(each, part.mean, part.low, part.high) for each, part in scores if part.mean is not None]
        if not rows:
            raise UsageError(f"{name} was not measured", remedy=did_you_mean(name, report.measures))
        return Plot(title, forest(title, rows, told, changes=bool(parts)))

    def _repr_html_(self) -> str:
        from raggs.base.document import summary_fragment
        from raggs.evaluation.layout import lay_out, summarise

        return summary_fragment(summarise(self.report, self.context()), lay_out(self.report))


def evaluate(request: EvalRequest) -> EvalResult:
    """Read all files and score the systems.

    Raises:
        UsageError, NotFoundError, DataError: a requested file or option does not exist, or a file is invalid.
        RaggsError: a system in a YAML file cannot be searched.
    """
    gates, subject = open_gates(request.gates), request.subject
    if isinstance(subject, SampleFiles):
        return EvalResult(_of_samples(request, subject), gates, request=request)
    return _of_judged(request, subject, gates)


def _of_judged(request: EvalRequest, subject: JudgedFiles | JudgedSystems, gates: Gates) -> EvalResult:
    corrections, ends = _corrections(subject, request.analyses), request.scale.ends
    golden = _golden(subject)
    known, validity = _valid(golden, golden.judgments(None if ends is None else GradeScale.of(*ends)), request.scale)
    meant = judgments = _on_scale(known, request.scale)
    systems = list(_open_systems(subject, golden, judgments) if isinstance(subject, JudgedFiles) else subject.systems)
    names: tuple[str, ...] = GRADED if judgments.qrels.scale.golden else BINARY_MEASURES
    if isinstance(subject, JudgedFiles) and subject.projection is not None:
        from raggs.app.projection import projected  # Imported lazily: only projections open a corpus.

        judgments, systems = projected(golden, judgments, systems, subject.projection)
        names = PROJECTED if names == GRADED and not request.measures.condensed else names
    scoring = _scoring(request, _DefaultMeasures(names, request.measures.default_k or DEFAULT_CUTOFF, always=False))
    if request.gates.lock is not None:
        from raggs.app.gates import check_lock  # Imported lazily: most evaluations check no lock.

        check_lock(request.gates.lock, meant, scoring.measures)
    corrected = corrections.analyses if corrections else ()
    analyses = [*_analyses(request.analyses, request.measures), *corrected]
    study, report = study_and_report(judgments, systems, scoring, analyses)
    more = corrections.notes if corrections else ()
    notes = (*filter(None, [golden.lacks]), *golden.made, *report.notes, *more)
    told = report.model_copy(update={"notes": notes, "validity": validity})
    return EvalResult(told, replace(gates, study=study), systems, meant, golden, request)


def _valid(golden: GoldenSet, judgments: Judgments, asked: ScaleRequest) -> tuple[Judgments, ValidityPart | None]:
    """Return the judgments that count on the requested day, and the numbers of parts that are not valid.

    The numbers are None if no part of the set has a date.
    """
    from raggs.golden.validity import invalid_parts, valid_judgments

    found = invalid_parts(golden, asked.as_of or datetime.now(UTC).date())
    if not found.dated:
        return judgments, None
    excluded = asked.as_of is not None
    part = ValidityPart(day=found.day, queries=found.queries, labels=len(found.labels), excluded=excluded)
    return valid_judgments(judgments, found) if excluded else judgments, part


def _open_systems(subject: JudgedFiles, golden: GoldenSet, judgments: Judgments) -> Iterator[NamedSystem]:
    """Yield the systems. Send all judged queries to each retriever in a YAML file."""

    def search(name: str, path: Path) -> NamedSystem:
        from raggs.app.search_systems import search_system  # Imported lazily: most systems are files.

        return search_system(name, path, golden, judgments.qrels.qids)

    return open_systems(list(subject.runs), subject.columns, search)


def _golden(subject: JudgedFiles | JudgedSystems) -> GoldenSet:
    if isinstance(subject, JudgedSystems):
        return subject.golden
    found = open_golden(subject.golden, subject.columns)
    labels = [found.labels] if isinstance(found, FileGolden) else []
    lists = [path for _, path in map(split_name, subject.runs) if not path.is_dir()]
    for role, name in subject.columns.items():
        files = [*(labels if role not in ("score", "rank") else []), *(lists if role != "grade" else [])]
        if all(path.is_file() for path in files):  # a pipe can be read only once
            check_column(role, name, files)
    return found


def _corrections(subject: JudgedFiles | JudgedSystems, asked: AnalysisRequest) -> Corrections | None:
    if asked.reviews is None:
        return None
    from raggs.app.corrections import corrections_of  # Imported lazily: most evaluations read no reviews.

    if isinstance(subject, JudgedSystems):
        raise UsageError(
            "data in memory cannot be corrected", remedy="evaluate JudgedFiles, or use raggs eval --reviews"
        )
    return corrections_of(subject.golden, asked.reviews, asked.baseline, projected=subject.projection is not None)


def _of_samples(request: EvalRequest, subject: SampleFiles) -> EvalReport:
    if request.analyses.reviews is not None:
        raise UsageError("scores of samples cannot be corrected", remedy="--reviews needs --golden RUN_DIRECTORY")
    if request.gates.lock is not None:
        raise UsageError("samples have no golden set to match", remedy="--lock needs --golden")
    from raggs.evaluation.samples import DEFAULT_K, merged_by_cutoff, open_samples

    read = open_samples(subject.samples, subject.outputs)
    names = (*OF_SAMPLES, "containment") if read.answer_rank else OF_SAMPLES
    usual = _DefaultMeasures(names, request.measures.default_k or DEFAULT_K, always=True)
    scoring = replace(_scoring(request, usual), answer_rank=read.answer_rank or None)
    judgments, analyses = _on_scale(read.judgments, request.scale), _analyses(request.analyses, request.measures)
    if not any(read.cutoffs):
        return make_report(judgments, [read.system], scoring, analyses)
    return merged_by_cutoff(judgments, read.system, scoring, read.cutoffs, analyses)


def _on_scale(judgments: Judgments, asked: ScaleRequest) -> Judgments:
    """Return the judgments with the requested relevance threshold and gains."""
    scale = judgments.qrels.scale
    if asked.relevant is None and not asked.gains:
        return judgments
    for grade in asked.gains:
        if grade not in scale.grades():
            raise UsageError(f"--gains: {grade} is not a grade", remedy=f"grades are {scale.low} to {scale.high}")
    return judgments.on_scale(asked.relevant, asked.gains)


def _analyses(asked: AnalysisRequest, measured: MeasureRequest) -> list[Analysis]:
    """Return the default and the requested analyses, in the order of the report's sections."""
    made: Mapping[str, Analysis] = {
        "comparisons": Comparisons(asked.baseline, asked.against_first),
        "bottleneck": BottleneckAnalysis(asked.pool, () if measured.names or measured.cutoffs else PUBLISHED),
        "answers": _given_answers(asked.correct),
    }
    wanted = {*DEFAULT_ANALYSES, *asked.names}
    names = [name for name in REGISTRY.builtin if name in wanted] + sorted(wanted.difference(REGISTRY.builtin))
    return [made[name] if name in made else REGISTRY.load(name)() for name in names]


def _given_answers(file: Path | None) -> GivenAnswers:
    by_system = {} if file is None else read_correct(file)
    return GivenAnswers(by_system.pop("", {}), by_system)


@dataclass(frozen=True)
class _DefaultMeasures:
    """Measures for a request that names none.

    Attributes:
        names: names of measures.
        k: default cutoff.
        always: whether measures that need no cutoff are also computed at the default cutoff. Reciprocal rank is an
            exception: it stays without a cutoff, unless the request names mrr@k, or names mrr and a cutoff for all
            measures.
    """

    names: tuple[str, ...]
    k: int
    always: bool

    def at(self, name: str) -> list[int]:
        """Return the cutoffs of a measure that was requested without one."""
        return [self.k] if needs_cutoff(name) or (self.always and not _uncut(name)) else []

    def all(self, cutoffs: Sequence[int]) -> Iterator[MeasureSpec]:
        """Yield the default measures, at the requested cutoffs or at the default one."""
        for name in self.names:
            whole = self.always and _uncut(name)
            if whole:
                yield parse_measure(name)
            yield from at_cutoffs(name, cutoffs or ([] if whole else [self.k]))


def _scoring(request: EvalRequest, usual: _DefaultMeasures) -> ScoringSettings:
    asked = request.measures
    wanted = _measures(asked, usual)
    shown = sorted({named.measure.k for named in wanted if named.measure.k}) or [usual.k]
    wanted += [parse_measure(name) for name in (*request.gates.limits, *(f"holes@{k}" for k in shown))]
    return ScoringSettings(
        measures=list({named.name: named for named in wanted}.values()),
        cutoffs=asked.cutoffs or shown,
        ties=asked.ties,
        condensed=asked.condensed,
        confidence=request.confidence,
        seed=request.seed,
        facets={} if asked.facets is None else read_facets(asked.facets),
    )


def _measures(asked: MeasureRequest, usual: _DefaultMeasures) -> list[MeasureSpec]:
    """Return each measure at its own cutoff, at the requested cutoffs, or at the default one."""
    if asked.names:
        return [one for name in asked.names for one in at_cutoffs(name, asked.cutoffs or usual.at(name))]
    return list(usual.all(asked.cutoffs))


def _uncut(name: str) -> bool:
    return not needs_cutoff(name) and parse_measure(name).measure.NAME == "mrr"
