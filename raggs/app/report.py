"""Report: a golden set with its systems, sweeps and diagnoses as one HTML file.

This module opens and scores the inputs; `raggs.reporting` only renders them. An evaluation of another golden set is
rejected, because its scores do not apply to this one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.app.eval_request import AnalysisRequest, EvalRequest, JudgedFiles, MeasureRequest
from raggs.app.evaluate import evaluate
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.files import disk, write_atomic
from raggs.base.types import as_object
from raggs.diagnosis import FOLDER as DIAGNOSES
from raggs.evaluation.gates import read_report
from raggs.evaluation.models import EvalReport
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem, open_golden, open_systems
from raggs.reporting.base import JudgeValidation, ReportedSweep, ReportFacts
from raggs.reporting.page import report_page
from raggs.runs.manifests.open_run import OpenedRun, find_config_file, open_run
from raggs.runs.manifests.store import RunStore

if TYPE_CHECKING:
    from raggs.diagnosis.models import DiagnosisReport
    from raggs.parts.reviews import CurrentReviews

# analyses that the report needs in addition to the default ones
ANALYSES = frozenset({"bounds", "depths", "robustness", "sensitivity", "waterfall"})
OTHER_SET = "evaluate the systems against this set: raggs report RUN --run FILE"


@dataclass(frozen=True)
class ReportRequest:
    """Request for a report.

    Attributes:
        golden: run directory or file of labels.
        runs: systems as ``[NAME=]PATH``, as in `raggs eval --run`; empty for the retrievers of the run.
        evaluation: eval.json to use instead of `runs`.
        sweeps: folders of sweeps over the golden set.
        diagnoses: folder of diagnoses; None for `diagnose` in the run directory, if it exists.
        baseline: system in production; None for the first system.
        measures: metrics; the first one decides which system is best.
        reviews: folder of the labels; None for `reviews` next to the folder of runs.
        texts: whether to include the texts of passages.
        out: output file; the report contains a command that writes this file again.
    """

    golden: Path
    runs: tuple[str, ...] = ()
    evaluation: Path | None = None
    sweeps: tuple[Path, ...] = ()
    diagnoses: Path | None = None
    baseline: str | None = None
    measures: MeasureRequest = field(default_factory=MeasureRequest)
    reviews: Path | None = None
    texts: bool = True
    out: Path = Path("report.html")


@dataclass(frozen=True)
class _ScoredSystems:
    """An evaluation, or the reason why there is none; and the lists of its systems if their files are available."""

    report: EvalReport | None = None
    missing: str = ""
    systems: tuple[NamedSystem, ...] | None = None
    judgments: Judgments | None = None


def report(request: ReportRequest) -> str:
    """Return the HTML page.

    Raises:
        UsageError: `evaluation` is combined with `runs` or `baseline`, or an entry of `sweeps` is a run.
        NotFoundError, DataError: an input is missing, invalid, or belongs to another golden set.
    """
    return report_page(gather(request))


def write_report_page(request: ReportRequest) -> Path:
    """Write the page atomically, and return its path.

    Raises:
        RaggsError: see `report`, or the file cannot be written.
    """
    return keep_page(gather(request), request.out)


def keep_page(facts: ReportFacts, file: Path) -> Path:
    """Write the page for these facts, and return its path.

    Raises:
        ProviderError: the file cannot be written.
    """
    page = report_page(facts)
    with disk(file, "choose another --out"):
        file.resolve().parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, page.encode())
    return file


def gather(request: ReportRequest) -> ReportFacts:
    """Return the content of the report.

    Raises:
        RaggsError: see `report`.
    """
    if request.evaluation is not None and (request.runs or request.baseline):
        raise UsageError("--eval already contains systems and a baseline", remedy="remove --run and --baseline")
    golden = open_golden(request.golden)
    run = open_run(request.golden) if _is_run(request.golden) else None
    scored = _score_systems(request, golden, run)
    diagnoses, undiagnosed = _diagnoses(request, golden, run, scored)
    return ReportFacts(
        place=str(request.golden),
        golden=golden,
        run=run,
        report=scored.report,
        missing=scored.missing,
        sweeps=tuple(_sweep(folder, golden) for folder in request.sweeps),
        people=_validate_judge(run, request.reviews),
        texts=request.texts,
        command=shlex.join(_command(request)),
        systems=scored.systems,
        judged=scored.judgments,
        reviews=_reviews(run, request.reviews),
        diagnoses=diagnoses,
        undiagnosed=undiagnosed,
        terms=_terms(scored.report),
    )


PLAIN_TERMS = frozenset(
    "query passage document corpus run grade relevant label system stage cost difference gain latency margin".split()  # noqa: SIM905
)


LINKED_ALIASES = ("p95", "front")  # further words of the glossary that the page links
LINKED_HEADINGS = ("name margin",)  # headings of tables that the page links in sentences


def _terms(report: EvalReport | None) -> dict[str, str]:
    """Return the definitions of terms that a reader may not know: those of the glossary, and the report's measures."""
    from raggs.app.catalog import glossary_entries, heading_entries  # imported lazily: it reads the glossary
    from raggs.metrics.names import glossary

    found = glossary_entries()
    entries = {entry.words[0]: entry.text for entry in found.values()}
    entries |= {name: found[name].text for name in LINKED_ALIASES}
    entries |= {
        name: entry.text for entry in heading_entries().values() for name in entry.words if name in LINKED_HEADINGS
    }
    measures = {} if report is None else glossary(report.measures)
    return {name: text for name, text in {**entries, **measures}.items() if name not in PLAIN_TERMS}


def _diagnoses(
    request: ReportRequest, golden: GoldenSet, run: OpenedRun | None, scored: _ScoredSystems
) -> tuple[tuple[DiagnosisReport, ...], tuple[str, ...]]:
    """Return the diagnoses of the golden set, and one sentence per file that cannot be used."""
    folder = request.diagnoses or (None if run is None else run.folder / DIAGNOSES)
    if folder is None or (request.diagnoses is None and not folder.is_dir()):
        return (), ()
    from raggs.diagnosis.store import read_folder  # imported lazily: most reports have no diagnoses

    judged = run is None or run.file("judge").is_file()
    return read_folder(folder, (scored.judgments or golden.judgments()).digest if judged else None)


def _reviews(run: OpenedRun | None, folder: Path | None) -> CurrentReviews | None:
    from raggs.app.review import reviews_of
    from raggs.parts.reviews import ReviewStore

    store = None if run is None else ReviewStore(reviews_of(run.folder, folder))
    return store.held() if store is not None and store.size else None


def _is_run(path: Path) -> bool:
    return path.is_dir() and RunStore(path).exists


def _score_systems(request: ReportRequest, golden: GoldenSet, run: OpenedRun | None) -> _ScoredSystems:
    """Return the evaluation, or the reason why there is none."""
    if request.evaluation is not None:
        found = _read(request.evaluation, golden)
        files = [f"{each.name}={each.source}" for each in found.systems if Path(each.source).is_file()]
        return _ScoredSystems(found, systems=tuple(open_systems(files)) if files else None)
    if run is not None and not run.file("judge").is_file():
        return _ScoredSystems(missing="the set has no grades yet, so nothing can be scored")
    runs = request.runs or ((str(request.golden),) if run is not None else ())
    if not runs:
        return _ScoredSystems(missing="no system is given with --run, so there are no scores")
    asked = EvalRequest(
        JudgedFiles(request.golden, runs),
        measures=request.measures,
        analyses=AnalysisRequest(ANALYSES, request.baseline, against_first=True),
    )
    scored = evaluate(asked)
    return _ScoredSystems(scored.report, systems=tuple(scored.systems), judgments=scored.judgments)


def _read(path: Path, golden: GoldenSet) -> EvalReport:
    found = read_report(path)
    ours = golden.judgments().digest
    if found.golden.digest != ours:
        theirs = found.golden.digest
        said = f"used other judgments ({theirs[:12]}) than those of {golden.source} ({ours[:12]})"
        raise DataError(said, where=path, remedy=OTHER_SET)
    return found


def _sweep(folder: Path, golden: GoldenSet) -> ReportedSweep:
    """Return a sweep over the golden set."""
    from raggs.app.audit import is_sweep  # imported lazily: most reports have no sweep
    from raggs.sweeps.config import SweepConfig
    from raggs.sweeps.judgments import of_queries
    from raggs.sweeps.store import SweepStore
    from raggs.sweeps.world import scale_of

    store = SweepStore(folder)
    if _is_run(folder) and not is_sweep(folder):
        remedy = f"--run {shlex.quote(str(folder))} scores the retrievers of this run"
        raise UsageError("--sweep names a run, not a sweep", where=folder, remedy=remedy)
    manifest, found = store.manifest(), store.report()
    scale = scale_of(SweepConfig.model_validate(manifest.config))
    if manifest.golden != of_queries(golden.judgments(scale), manifest.questions).digest:
        said = f"used other judgments than those of {golden.source}"
        raise DataError(said, where=folder, remedy="set `golden` of the sweep to this set, and run the sweep again")
    file = "" if manifest.config_file is None else str(find_config_file(folder, manifest.config_file))
    return ReportedSweep(found, file)


def _source_of_grades(run: OpenedRun) -> str:
    """Return which file the judge copies its grades from; empty for other judges."""
    judge = as_object(as_object(lock.params).get("judge")) if (lock := run.manifest.stages.get("judge")) else {}
    grades = f"the judge copies grades from {Path(str(judge.get('path'))).name}"
    said = f"{grades}, and gives {judge.get('default_grade', 1)} to passages without a label there"
    return said if judge.get("type") == "qrels" and not judge.get("grade_noise") else ""


def _validate_judge(run: OpenedRun | None, folder: Path | None) -> JudgeValidation:
    """Return the comparison of the judge with human labels, or the reason why there is none."""
    if run is None:
        return JudgeValidation(why="the labels are from a file without annotators, so the judge cannot be validated")
    from raggs.app.review import reviews_of
    from raggs.parts.reviews import ReviewStore

    if folder is None and not ReviewStore(reviews_of(run.folder, None)).size:
        return JudgeValidation(why=_source_of_grades(run))
    from raggs.app.judge_check import check_judge, lay_out_check, trusted

    try:
        found = check_judge(run, folder)
    except (NotFoundError, DataError) as error:
        if folder is not None:
            raise
        return JudgeValidation(why=error.message)
    return JudgeValidation(
        found.trust, tuple(map(trusted, found.trust)), lay_out_check(found), grades=found.whole.table
    )


def _command(request: ReportRequest) -> Iterator[str]:
    """Yield the arguments of the command that creates the report again."""
    yield from ("raggs", "report", str(request.golden))
    for run in request.runs:
        yield from ("--run", run)
    for folder in request.sweeps:
        yield from ("--sweep", str(folder))
    named = {
        "--diagnose": request.diagnoses,
        "--eval": request.evaluation,
        "--baseline": request.baseline,
        "--reviews": request.reviews,
    }
    for option, value in named.items():
        if value is not None:
            yield from (option, str(value))
    if request.measures.names:
        yield from ("--measures", ",".join(request.measures.names))
    if request.measures.cutoffs:
        yield from ("--k", ",".join(map(str, request.measures.cutoffs)))
    if not request.texts:
        yield "--no-text"
    yield from ("--out", str(request.out))
