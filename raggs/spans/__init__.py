"""How much of what answers a question stands in the chunks that are retrieved for it: spans in, frozen results out.

Pure: columns of places (document, start, end) and, for each question, the chunks that a system retrieved. Nothing here
knows a text, a chunker or an embedder.

Imports: leaves.
"""

from __future__ import annotations

from raggs.spans.columns import Line, Ruler, Spans
from raggs.spans.index import SpanIndex
from raggs.spans.locate import locate
from raggs.spans.scores import MEASURES, MIN, MOST, Cutoff, Questions, Scores, Summary, Target, score, summary

__all__ = [
    "MEASURES",
    "MIN",
    "MOST",
    "Cutoff",
    "Line",
    "Questions",
    "Ruler",
    "Scores",
    "SpanIndex",
    "Spans",
    "Summary",
    "Target",
    "locate",
    "score",
    "summary",
]
