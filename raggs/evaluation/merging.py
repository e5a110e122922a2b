"""Samples with cutoffs of their own: each is scored at its own, and the values are joined again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from raggs.base.arrays import Floats
from raggs.evaluation.analyses.base import Analysis
from raggs.evaluation.models import Report
from raggs.evaluation.report import make_report, score_part
from raggs.evaluation.study import Scoring, hits_of
from raggs.evaluation.words import OWN_CUTOFFS
from raggs.golden.judgments import Judgments
from raggs.golden.systems import System
from raggs.metrics.evaluate import measure_hits
from raggs.metrics.names import Named
from raggs.metrics.stats import bootstrap_means


def merged_by_cutoff(
    judgments: Judgments,
    system: System,
    scoring: Scoring,
    cutoffs: Mapping[int | None, frozenset[str]],
    analyses: Sequence[Analysis] = (),
) -> Report:
    """A report where each sample is scored at its own cutoff, where it has one.

    The measures are then called ``name@k`` with the letter k, for cutoffs differ.

    Args:
        judgments: the samples' expected passages.
        system: what was returned.
        scoring: how to score those without a cutoff of their own.
        cutoffs: the samples by their own cutoff; those without one by None.
        analyses: asked at the cutoffs of `scoring`.

    Raises:
        DataError, UsageError: as `make_report`.
    """
    labels: dict[str, Named] = {}
    for named in scoring.measures:  # of several cutoffs of a measure the first is that of samples without their own
        labels.setdefault(_label(named), named)
    values: dict[str, dict[str, float | None]] = {}
    whole, hits = make_report(judgments, [system], scoring, analyses), hits_of(judgments, system, scoring)
    for own, names in cutoffs.items():
        moved = {label: _moved(named, own) for label, named in labels.items()}
        found = measure_hits(hits, list(moved.values())).per_query
        for label, named in moved.items():
            column = found[named.name]
            values.setdefault(label, {}).update({name: column[name] for name in names if math.isfinite(column[name])})
    return _joined(whole, system, values, {label: named.higher for label, named in labels.items()})


def _joined(
    whole: Report, system: System, values: Mapping[str, Mapping[str, float | None]], higher: Mapping[str, bool]
) -> Report:
    qids = sorted({qid for column in values.values() for qid in column})
    matrix: Floats = np.array([[column.get(qid, np.nan) for qid in qids] for column in values.values()], dtype=float)
    intervals = bootstrap_means(matrix, confidence=whole.confidence, seed=whole.seed)
    scores = {name: score_part(one) for name, one in zip(values, intervals, strict=True)}
    rescored = whole.with_systems({system.name: {"scores": scores, "ties": ()}})
    return rescored.model_copy(
        update={
            "measures": tuple(values),
            "higher_is_better": dict(higher),
            "per_query": {system.name: values},
            "notes": (*whole.notes, OWN_CUTOFFS),
        }
    )


def _moved(named: Named, k: int | None) -> Named:
    if k is None or named.measure.k is None:
        return named
    return replace(named, measure=replace(named.measure, k=k))


def _label(named: Named) -> str:
    return named.name if named.measure.k is None else named.name.replace(f"@{named.measure.k}", "@k")
