"""How much of what answers a question stands in the chunks that are retrieved for it, and what grades say of passages
that are cut differently: spans in, frozen results out.

Pure: columns of places (document, start, end) and, for each question, the chunks that a system retrieved. Nothing here
knows a text, a chunker or an embedder.
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
