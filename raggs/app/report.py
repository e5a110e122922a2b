"""Report: a golden set with its systems and sweeps as one HTML file.

Everything is opened and scored here; `raggs.reporting` only says it. An evaluation that was made with another golden
set is refused, for its numbers would stand beside a set that they say nothing of.
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
from raggs.diagnosis import FOLDER as DIAGNOSES
from raggs.evaluation.gates import read_report
from raggs.evaluation.models import EvalReport
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem, open_golden, open_systems
from raggs.reporting.base import JudgeValidation, ReportFacts
from raggs.reporting.page import report_page
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import RunStore

if TYPE_CHECKING:
    from raggs.diagnosis.models import DiagnosisReport
    from raggs.parts.reviews import CurrentReviews
    from raggs.sweeps.models import SweepReport

ANALYSES = frozenset({"bounds", "depths", "robustness", "sensitivity", "waterfall"})  # besides the usual ones
OTHER_SET = "evaluate the systems against this set: raggs report RUN --run FILE"


@dataclass(frozen=True)
class ReportRequest:
    """A report.

    Attributes:
        golden: a run directory or a file of labels.
        runs: ``[NAME=]PATH`` each, as `raggs eval --run`; the run's own retrievers where nothing is named.
        evaluation: an eval.json in place of `runs`.
        sweeps: folders of sweeps over the set.
        diagnoses: the folder of diagnoses; `diagnose` in the run's folder where left out, if it is there.
        baseline: the system that is shipped now; the first one where left out.
        measures: what is measured; the first one decides.
        reviews: a folder of reviews; `reviews` beside the folder of runs where left out.
        texts: whether passages are shown.
        out: the file; it names itself in the command that makes it again.
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
    """An evaluation, or why there is none; and what its systems returned, where that is at hand."""

    report: EvalReport | None = None
    missing: str = ""
    systems: tuple[NamedSystem, ...] | None = None
    judgments: Judgments | None = None


def report(request: ReportRequest) -> str:
    """The page.

    Raises:
        UsageError: both systems and an evaluation are named.
        NotFoundError, DataError: something named is not there, cannot be right, or is of another golden set.
    """
    return report_page(gather(request))


def write_report_page(request: ReportRequest) -> Path:
    """Write the page; it appears whole or not at all.

    Raises:
        RaggsError: as `report`; or the file cannot be written.
    """
    return keep_page(gather(request), request.out)


def keep_page(facts: ReportFacts, file: Path) -> Path:
    """Write the page of some facts.

    Raises:
        ProviderError: the file cannot be written.
    """
    page = report_page(facts)
    with disk(file, "choose another --out"):
        file.resolve().parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, page.encode())
    return file


def gather(request: ReportRequest) -> ReportFacts:
    """All that the report may say.

    Raises:
        RaggsError: as `report`.
    """
    if request.evaluation is not None and (request.runs or request.baseline):
        raise UsageError("--eval holds systems and a baseline already", remedy="leave --run and --baseline out")
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
    )


def _diagnoses(
    request: ReportRequest, golden: GoldenSet, run: OpenedRun | None, scored: _ScoredSystems
) -> tuple[tuple[DiagnosisReport, ...], tuple[str, ...]]:
    """The diagnoses of the set, and a sentence on each file that is none of it."""
    folder = request.diagnoses or (None if run is None else run.folder / DIAGNOSES)
    if folder is None or (request.diagnoses is None and not folder.is_dir()):
        return (), ()
    from raggs.diagnosis.store import read_folder  # late: most reports are of no diagnosis

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
    """The evaluation, or why there is none."""
    if request.evaluation is not None:
        found = _read(request.evaluation, golden)
        files = [f"{each.name}={each.source}" for each in found.systems if Path(each.source).is_file()]
        return _ScoredSystems(found, systems=tuple(open_systems(files)) if files else None)
    if run is not None and not run.file("judge").is_file():
        return _ScoredSystems(missing="the set has no grades yet, so nothing can be scored")
    runs = request.runs or ((str(request.golden),) if run is not None else ())
    if not runs:
        return _ScoredSystems(missing="no system was named (--run), so nothing was scored")
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
        said = f"was measured on other judgments ({theirs[:12]}) than those of {golden.source} ({ours[:12]})"
        raise DataError(said, where=path, remedy=OTHER_SET)
    return found


def _sweep(folder: Path, golden: GoldenSet) -> SweepReport:
    from raggs.app.audit import is_sweep  # late: most reports are of no sweep
    from raggs.sweeps.config import SweepConfig
    from raggs.sweeps.judgments import of_queries
    from raggs.sweeps.store import SweepStore
    from raggs.sweeps.world import scale_of

    store = SweepStore(folder)
    if _is_run(folder) and not is_sweep(folder):
        remedy = f"--run {shlex.quote(str(folder))} scores what its retrievers found"
        raise UsageError("--sweep names a run, not a sweep", where=folder, remedy=remedy)
    manifest, found = store.manifest(), store.report()
    scale = scale_of(SweepConfig.model_validate(manifest.config))
    if manifest.golden != of_queries(golden.judgments(scale), manifest.questions).digest:
        said = f"was measured on other judgments than those of {golden.source}"
        raise DataError(said, where=folder, remedy="run the sweep again with `golden` naming this set")
    return found


def _validate_judge(run: OpenedRun | None, folder: Path | None) -> JudgeValidation:
    """The judge held against people; why not, where nobody graded anything that can be compared."""
    if run is None:
        return JudgeValidation(why="labels from a file: who gave them is not known")
    from raggs.app.review import reviews_of
    from raggs.parts.reviews import ReviewStore

    if folder is None and not ReviewStore(reviews_of(run.folder, None)).size:
        return JudgeValidation()
    from raggs.app.judge_check import check_judge, lay_out_check, trusted

    try:
        found = check_judge(run, folder)
    except (NotFoundError, DataError) as error:
        if folder is not None:
            raise
        return JudgeValidation(why=error.message)
    return JudgeValidation(found.trust, tuple(map(trusted, found.trust)), lay_out_check(found))


def _command(request: ReportRequest) -> Iterator[str]:
    """The words that make the same report again."""
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
