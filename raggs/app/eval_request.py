"""Request of an evaluation, and the input files and options that eval.json records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
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
    """How grades are projected onto other chunks.

    Attributes:
        corpora: entries ``[SYSTEM=]PATH``: the configuration or run directory whose corpus the system searched. A path
            without a system applies to all systems without an entry. For labels in a file, the system `golden` stands
            for the judged corpus.
        rule: how the grade of a chunk is computed from the judged passages.
    """

    corpora: tuple[str, ...] = ()
    rule: ProjectionRule = USUAL_RULE


@dataclass(frozen=True)
class JudgedFiles:
    """Judgments and systems in files.

    Attributes:
        golden: a run directory, a folder of an export, or a file of labels.
        runs: entries ``[NAME=]PATH``: a file of lists, or a run directory for its retrievers.
        projection: how grades are projected onto systems with other chunks; None for no projection.
        columns: names of columns in tables of labels or lists, by role, e.g. ``{"grade": "score"}``.
    """

    golden: Path
    runs: tuple[str, ...]
    projection: ProjectionRequest | None = None
    columns: ColumnNames = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedSystems:
    """Judgments and systems that are already open or exist only in memory."""

    golden: GoldenSet
    systems: tuple[NamedSystem, ...]


@dataclass(frozen=True)
class SampleFiles:
    """A file of samples with their expected passages, and a file of the passages that a system returned for them."""

    samples: Path
    outputs: Path


@dataclass(frozen=True)
class MeasureRequest:
    """Measures, and the treatment of lists.

    Attributes:
        names: measures, with or without a cutoff [default: the usual measures].
        cutoffs: cutoffs of measures without a cutoff in their name; empty for the default.
        ties: order of passages with equal scores.
        condensed: whether unjudged passages are removed from the lists.
        facets: file of ``doc_id<TAB>facet`` lines.
        default_k: cutoff that applies if the name, `cutoffs` and the sample give none; None for the usual default.
    """

    names: tuple[str, ...] = ()
    cutoffs: tuple[int, ...] = ()
    ties: Ties = "trec"
    condensed: bool = False
    facets: Path | None = None
    default_k: int | None = None


@dataclass(frozen=True)
class ScaleRequest:
    """Scale of the labels, if the labels do not imply it, and the day on which they must be valid.

    Attributes:
        ends: lowest and highest grade.
        relevant: lowest relevant grade.
        gains: gain by grade, for some grades.
        as_of: day on which queries and labels must be valid; the others are excluded. None: all count, and the report
            states how many are not valid today.
    """

    ends: tuple[int, int] | None = None
    relevant: int | None = None
    gains: Mapping[int, float] = field(default_factory=dict)
    as_of: date | None = None


@dataclass(frozen=True)
class AnalysisRequest:
    """Analyses beyond the scores.

    Attributes:
        names: analyses in addition to the default ones.
        baseline: system that all others are tested against.
        pool: number of candidates for the PROC ceilings.
        correct: file with the correctness of answers: ``qid<TAB>0|1`` lines, or JSON lines by system.
        reviews: folder of reviews whose random sample corrects the scores.
        against_first: whether the first system is the baseline if none is named.
    """

    names: frozenset[str] = frozenset()
    baseline: str | None = None
    pool: int = 50
    correct: Path | None = None
    reviews: Path | None = None
    against_first: bool = False


@dataclass(frozen=True)
class EvalRequest:
    """An evaluation request.

    Attributes:
        subject: the systems to score, and the labels or samples that define the scores.
        measures, scale, analyses, gates: options; see their classes.
        confidence: confidence level of intervals and tests, between 0 and 1.
        seed: random seed of the bootstrap.
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
    """Return the report with its input files and options, so that an audit can evaluate them again.

    If the systems are in memory, the report is returned unchanged.

    Args:
        folder: folder of eval.json; stored paths are relative to it.
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
    """Yield role, name and path of each input file or folder; nothing if the lists are in memory."""
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
    # The last part of the path is not resolved: a link's own name may be the system's name.
    whole = path.parent.resolve() / path.name
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
    """Return the files in a folder that an evaluation reads: artifacts of a run, labels and lists of an export,
    reviews.
    """
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
        columns=dict(subject.columns) if isinstance(subject, JudgedFiles) else {},
        as_of=scale.as_of,
    )
