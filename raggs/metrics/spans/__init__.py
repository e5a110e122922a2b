"""Span measures: how much of the relevant text the retrieved chunks contain. Also projects grades to other chunks.

The input is columns of character ranges (document, start, end), and for each question the retrieved chunks. No texts,
chunkers or embedders are needed.
"""

from __future__ import annotations

from raggs.metrics.spans.columns import DocumentOffsets, LengthScale, SpanIndex, Spans
from raggs.metrics.spans.projection import (
    UNJUDGED_GRADE,
    JudgedSpans,
    ProjectedPassages,
    ProjectionRule,
    Stretches,
    project,
)
from raggs.metrics.spans.scores import (
    MAX_COMPAT_CHUNKS,
    MEASURES,
    MIN,
    ChunkTargets,
    Cutoff,
    MeanAndDeviation,
    ReferenceColumns,
    Scores,
    locate,
    new_characters,
    score,
    summary,
)

__all__ = [
    "MAX_COMPAT_CHUNKS",
    "MEASURES",
    "MIN",
    "UNJUDGED_GRADE",
    "ChunkTargets",
    "Cutoff",
    "DocumentOffsets",
    "JudgedSpans",
    "LengthScale",
    "MeanAndDeviation",
    "ProjectedPassages",
    "ProjectionRule",
    "ReferenceColumns",
    "Scores",
    "SpanIndex",
    "Spans",
    "Stretches",
    "locate",
    "new_characters",
    "project",
    "score",
    "summary",
]
