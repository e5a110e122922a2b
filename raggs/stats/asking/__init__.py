"""What making questions from documents rests on: where to ask, what to keep, what to tell apart; plain data in.

Pure: texts, places and vectors in, frozen results out. Nothing here knows a model, a file or a corpus. The rules
of `raggs.stats.asking.wording` are imported by whoever asks by them: each of them is a pattern that has to be
compiled.
"""

from __future__ import annotations

from raggs.stats.asking.filters import (
    DIFFICULTIES,
    OF_EMBEDDERS,
    THRESHOLDS,
    Difficulty,
    Duplicate,
    Irrelevant,
    LeakageSummary,
    Part,
    Thresholds,
    WordWeights,
    difficulties,
    duplicates,
    excerpt_cosines,
    irrelevant,
    leakage,
    part_of,
    summarise_leakage,
    thresholds_for,
)
from raggs.stats.asking.windows import SIZE, Window, stratified_windows

__all__ = [
    "DIFFICULTIES",
    "OF_EMBEDDERS",
    "SIZE",
    "THRESHOLDS",
    "Difficulty",
    "Duplicate",
    "Irrelevant",
    "LeakageSummary",
    "Part",
    "Thresholds",
    "Window",
    "WordWeights",
    "difficulties",
    "duplicates",
    "excerpt_cosines",
    "irrelevant",
    "leakage",
    "part_of",
    "stratified_windows",
    "summarise_leakage",
    "thresholds_for",
]
