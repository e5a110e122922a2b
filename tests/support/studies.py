"""A small golden set and two systems in memory, ready for an analysis."""

from __future__ import annotations

from raggs.evaluation.analyses import Analysis
from raggs.evaluation.models import EvalReport
from raggs.evaluation.report import make_report
from raggs.evaluation.study import ScoringSettings, Study, study_systems
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.names import parse_measures

MEASURES = ("ra_nwg@2", "recall@2", "mrr", "holes@2")
LABELS = {"query-a": {"doc-1": 5, "doc-2": 1}, "query-b": {"doc-3": 5, "doc-4": 4}, "query-c": {"doc-5": 4}}
GOOD = {"query-a": ["doc-1", "doc-2"], "query-b": ["doc-3", "doc-4"], "query-c": ["doc-5", "doc-9"]}
POOR = {"query-a": ["doc-8", "doc-2", "doc-1"], "query-b": ["doc-4", "doc-9"], "query-c": ["doc-9"]}
SYSTEMS = (NamedSystem("good", "good.trec", Run.of(GOOD)), NamedSystem("poor", "poor.trec", Run.of(POOR)))


def golden(low: int = 1) -> Judgments:
    """On the scale `low` to 5."""
    return Judgments("qrels", Qrels.of(LABELS, GradeScale.of(low, 5)))


def scoring(measures: tuple[str, ...] = MEASURES, cutoffs: tuple[int, ...] = (2,)) -> ScoringSettings:
    return ScoringSettings(parse_measures(measures), cutoffs)


def study(systems: tuple[NamedSystem, ...] = SYSTEMS) -> Study:
    return study_systems(golden(), systems, scoring())


def reported(*analyses: Analysis, systems: tuple[NamedSystem, ...] = SYSTEMS) -> EvalReport:
    return make_report(golden(), systems, scoring(), analyses)


def elsewhere(*analyses: Analysis) -> EvalReport:
    """On labels from 0 to 5, where RA-nWG and its kin are not defined."""
    return make_report(golden(0), SYSTEMS, scoring(("recall@2", "holes@2")), analyses)
