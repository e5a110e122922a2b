"""How much of what answers a question stands in the chunks that are retrieved for it, and what grades say of passages
that are cut differently: spans in, frozen results out.

Pure: columns of places (document, start, end) and, for each question, the chunks that a system retrieved. Nothing here
knows a text, a chunker or an embedder.
"""

from __future__ import annotations

from raggs.metrics.spans.columns import DocumentOffsets, LengthScale, SpanIndex, Spans
from raggs.metrics.spans.projection import HOLE, JudgedSpans, ProjectedPassages, ProjectionRule, Stretches, project
from raggs.metrics.spans.scores import (
    MEASURES,
    MIN,
    MOST,
    ChunkTargets,
    Cutoff,
    ReferenceColumns,
    Scores,
    Summary,
    fresh,
    locate,
    score,
    summary,
)

__all__ = [
    "HOLE",
    "MEASURES",
    "MIN",
    "MOST",
    "ChunkTargets",
    "Cutoff",
    "DocumentOffsets",
    "JudgedSpans",
    "LengthScale",
    "ProjectedPassages",
    "ProjectionRule",
    "ReferenceColumns",
    "Scores",
    "SpanIndex",
    "Spans",
    "Stretches",
    "Summary",
    "fresh",
    "locate",
    "project",
    "score",
    "summary",
]
