"""What an evaluation is asked: typed, with every usual value, and without having read anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raggs.app.gating import GateRequest
from raggs.base.tables import ColumnNames
from raggs.golden.base import GoldenSet
from raggs.golden.projecting import USUAL as USUAL_RULE
from raggs.golden.systems import System
from raggs.metrics.hits import Ties
from raggs.metrics.spans import Rule


@dataclass(frozen=True)
class ProjectionRequest:
    """How grades are carried over.

    Attributes:
        corpora: ``[SYSTEM=]PATH`` each: a configuration or a run directory, whose corpus the lists are of. Without a
            name for all systems that have none of their own; by the name golden that of labels in a file.
        rule: by which grades are earned.
    """

    corpora: tuple[str, ...] = ()
    rule: Rule = USUAL_RULE


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
class JudgedLists:
    """Judgments and systems that are open already, or never were files."""

    golden: GoldenSet
    systems: tuple[System, ...]


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

    subject: JudgedFiles | JudgedLists | SampleFiles
    measures: MeasureRequest = MeasureRequest()
    scale: ScaleRequest = ScaleRequest()
    analyses: AnalysisRequest = AnalysisRequest()
    gates: GateRequest = field(default_factory=GateRequest)
    confidence: float = 0.95
    seed: int = 1
