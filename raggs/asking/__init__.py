"""What making questions from documents rests on: where to ask, what to keep, what to tell apart; plain data in.

Pure: texts, places and vectors in, frozen results out. Nothing here knows a model, a file or a corpus.

Imports: leaves.
"""

from __future__ import annotations

from raggs.asking.extractive import Extracted, Section, clipped, extract
from raggs.asking.filters import (
    THRESHOLDS,
    Duplicate,
    Irrelevant,
    Thresholds,
    duplicates,
    excerpt_cosines,
    irrelevant,
    thresholds_for,
)
from raggs.asking.windows import SIZE, Window, pair_windows, stratified_windows

__all__ = [
    "SIZE",
    "THRESHOLDS",
    "Duplicate",
    "Extracted",
    "Irrelevant",
    "Section",
    "Thresholds",
    "Window",
    "clipped",
    "duplicates",
    "excerpt_cosines",
    "extract",
    "irrelevant",
    "pair_windows",
    "stratified_windows",
    "thresholds_for",
]
