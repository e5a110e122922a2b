"""Every number that judges retrieval: pure mathematics, columns in and frozen results out."""

from __future__ import annotations

from raggs.metrics.columns import Qrels, Run, Scale
from raggs.metrics.evaluate import Evaluation, evaluate
from raggs.metrics.names import parse_measure

__all__ = ["Evaluation", "Qrels", "Run", "Scale", "evaluate", "parse_measure"]
