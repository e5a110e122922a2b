"""Retrieval measures: pure functions from judgments and runs to immutable results.

evaluate, names     the function that scores a run, and the notation of measures
columns, hits       judgments and runs as columns, and the ranks of judged passages in a run
measure, measures   base class of measures, and the measures by name; `weights`: their shared functions
unjudged            bounds for unjudged passages, effects of uncertain labels
bottleneck          losses by retrieval and by order
spans               measures over characters, and projection of grades to other chunks
"""

from __future__ import annotations

from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.evaluate import Evaluation, evaluate
from raggs.metrics.names import parse_measure

__all__ = ["Evaluation", "GradeScale", "Qrels", "Run", "evaluate", "parse_measure"]
