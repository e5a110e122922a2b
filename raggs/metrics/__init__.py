"""Measures of retrieval: pure mathematics, columns in and frozen results out.

evaluate, names     the function that scores a run, and how measures are written
columns, hits       judgments and runs as columns; where a run ranked the judged passages
measure, measures   what a measure is, and the measures by name; `weights`: what several of them share
unjudged            bounds for unjudged passages
bottleneck          losses by retrieval and by order
spans               measures over characters, and grades projected to another chunking
"""

from __future__ import annotations

from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.evaluate import Evaluation, evaluate
from raggs.metrics.names import parse_measure

__all__ = ["Evaluation", "GradeScale", "Qrels", "Run", "evaluate", "parse_measure"]
