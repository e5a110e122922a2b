"""An evaluation as it is requested, and the files and options that eval.json records of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from raggs.app.gates import GateRequest
from raggs.base.artifacts import artifact_file
from raggs.base.files import hash_file
from raggs.base.hashing import hash_value
from raggs.base.tables import ColumnNames
from raggs.evaluation.models import EvalReport, InputPart, OptionsPart, SourcesPart
from raggs.golden.base import GoldenSet
from raggs.golden.files import labels_in
from raggs.golden.places import DEFAULT_RULE as USUAL_RULE
from raggs.golden.sources import NamedSystem, lists_in, split_name
from raggs.metrics.hits import Ties
from raggs.metrics.spans import ProjectionRule
from raggs.runs.manifests.store import RunStore


@dataclass(frozen=True)
class ProjectionRequest:
    """How grades are carried over.

    Attributes:
        corpora: ``[SYSTEM=]PATH`` each: a configuration or a run directory, whose corpus the lists are of. Without a
            name for all systems that have none of their own; by the name golden that of labels in a file.
        rule: by which grades are earned.
    """

    corpora: tuple[str, ...] = ()
    rule: ProjectionRule = USUAL_RULE


@dataclass(frozen=True)
class JudgedFiles:
    """Judgments and systems.

    Attributes:
        golden: a run directory or a file of labels.
        runs: ``[NAME=]PATH`` each: a file of lists, or a run directory for its retrievers.
        projection: whether, and how, the grades are carried over to systems whose corpus is cut in another way.
        columns: by role, the name of a column in tables of labels or of lists, e.g. ``{"grade": "score"}``.
    """

    golden: Path
    runs: tuple[str, ...]
    projection: ProjectionRequest | None = None
    columns: ColumnNames = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedSystems:
    """Judgments and systems that are open already, or never were files."""

    golden: GoldenSet
    systems: tuple[NamedSystem, ...]


@dataclass(frozen=True)
class SampleFiles:
    """Samples with their expected passages, and what a system returned for them."""

    samples: Path
    outputs: Path


@dataclass(frozen=True)
class MeasureRequest:
    """What is measured, and on which lists.

    Attributes:
        names: of measures, with or without a cutoff; the usual ones where left out.
        cutoffs: of measures named without one; the default where empty.
        ties: the order of equal scores.
        condensed: whether unjudged passages are left out of the lists.
        facets: a file of ``doc_id<TAB>facet`` lines.
        default_k: the cutoff where neither a name, nor `cutoffs`, nor a sample says one; None for the usual one.
    """

    names: tuple[str, ...] = ()
    cutoffs: tuple[int, ...] = ()
    ties: Ties = "trec"
    condensed: bool = False
    facets: Path | None = None
    default_k: int | None = None


@dataclass(frozen=True)
class ScaleRequest:
    """What grades mean, where that is not to follow from the labels.

    Attributes:
        ends: the lowest and the highest grade.
        relevant: the lowest relevant grade.
        gains: of some grades.
    """

    ends: tuple[int, int] | None = None
    relevant: int | None = None
    gains: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AnalysisRequest:
    """What is asked beyond the scores.

    Attributes:
        names: of analyses, besides those that are done unasked.
        baseline: the system that all others are tested against.
        pool: candidates for the PROC ceilings.
        correct: a file that says whether answers were right: ``qid<TAB>0|1`` lines, or JSON lines by system.
        reviews: a folder of reviews, by whose random part scores are corrected.
        against_first: whether the first system is the baseline where none is named.
    """

    names: frozenset[str] = frozenset()
    baseline: str | None = None
    pool: int = 50
    correct: Path | None = None
    reviews: Path | None = None
    against_first: bool = False


@dataclass(frozen=True)
class EvalRequest:
    """An evaluation.

    Attributes:
        subject: what is scored, and against what.
        measures, scale, analyses, gates: see there.
        confidence: of intervals and tests, inside 0..1.
        seed: of the bootstrap.
    """

    subject: JudgedFiles | JudgedSystems | SampleFiles
    measures: MeasureRequest = MeasureRequest()
    scale: ScaleRequest = ScaleRequest()
    analyses: AnalysisRequest = AnalysisRequest()
    gates: GateRequest = field(default_factory=GateRequest)
    confidence: float = 0.95
    seed: int = 1


ARTIFACTS = ("queries", "retrieve", "merge", "judge", "prune", "rank", "rank.queries")


def with_sources(report: EvalReport, request: EvalRequest, folder: Path) -> EvalReport:
    """The report with what it was made from, as a file in a folder names it.

    Args:
        folder: of eval.json.
    """
    inputs = tuple(_input(role, name, path, folder) for role, name, path in _named_inputs(request))
    if not inputs:
        return report
    options = _options(request)
    sources = SourcesPart(inputs=inputs, options=options, options_sha256=_hash(options))
    return report.model_copy(update={"sources": sources})


def _hash(options: OptionsPart) -> str:
    return hash_value(options.model_dump(mode="json"))


def _named_inputs(request: EvalRequest) -> Iterator[tuple[str, str, Path]]:
    """Role, name and path of each file and folder; nothing where lists were in memory."""
    subject = request.subject
    if isinstance(subject, SampleFiles):
        yield from (("samples", "", subject.samples), ("outputs", "", subject.outputs))
    elif isinstance(subject, JudgedFiles):
        yield "golden", "", subject.golden
        yield from (("run", *split_name(spec)) for spec in subject.runs)
        for spec in subject.projection.corpora if subject.projection else ():
            name, _, place = ("", "", spec) if Path(spec).exists() else spec.rpartition("=")
            yield "corpus", name, Path(place)
    else:
        return
    beside = {
        "facets": request.measures.facets,
        "correct": request.analyses.correct,
        "reviews": request.analyses.reviews,
    }
    yield from ((role, "", path) for role, path in beside.items() if path is not None)


def _input(role: str, name: str, path: Path, folder: Path) -> InputPart:
    whole = path.parent.resolve() / path.name  # a link keeps its name, which may be the system's
    try:
        place = os.path.relpath(whole, folder.resolve())
    except ValueError:  # on another drive
        place = str(whole)
    sha256 = hash_file(path) if path.is_file() else None
    files = {name: hash_file(path / name) for name in _files_read(path)} if path.is_dir() else {}
    return InputPart.model_validate(
        {"role": role, "name": name, "path": Path(place).as_posix(), "sha256": sha256, "files": files}
    )


def _files_read(folder: Path) -> list[str]:
    """The files of a folder that an evaluation reads: a run's artifacts, an export's labels and lists, reviews."""
    if RunStore(folder).exists:
        files = [folder / artifact_file(name) for name in ARTIFACTS]
    elif labels := labels_in(folder):
        beside = [*folder.glob("*meta.json"), *([labels[1]] if labels[1] else [])]
        files = [labels[0], *beside, *lists_in(folder)]
    else:
        files = [*lists_in(folder), *folder.rglob("*.jsonl")]
    return sorted(file.relative_to(folder).as_posix() for file in files if file.is_file())


def _options(request: EvalRequest) -> OptionsPart:
    asked, scale, analyses = request.measures, request.scale, request.analyses
    subject = request.subject
    project = subject.projection if isinstance(subject, JudgedFiles) else None
    return OptionsPart(
        measures=asked.names,
        cutoffs=asked.cutoffs,
        ties=asked.ties,
        condensed=asked.condensed,
        default_k=asked.default_k,
        scale=scale.ends,
        relevant=scale.relevant,
        gains={str(grade): gain for grade, gain in scale.gains.items()},
        analyses=tuple(sorted(analyses.names)),
        baseline=analyses.baseline,
        pool=analyses.pool,
        against_first=analyses.against_first,
        limits=dict(request.gates.limits),
        confidence=request.confidence,
        seed=request.seed,
        project=None if project is None else asdict(project.rule),
    )
