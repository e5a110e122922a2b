"""Scores corrected for what a judge gets wrong, by the labels that people gave to a random part.

Pure: arrays in, frozen results out. An estimate without an interval that was shown to cover is not given.
"""

from raggs.stats.correction.calibration import Calibration, Point, calibrate
from raggs.stats.correction.estimates import (
    FEWEST,
    FEWEST_WHOLE,
    VARIED,
    Corrected,
    Totals,
    correct,
    correct_ratio,
    correct_values,
    totals_of,
    unlikely,
)

__all__ = [
    "FEWEST",
    "FEWEST_WHOLE",
    "VARIED",
    "Calibration",
    "Corrected",
    "Point",
    "Totals",
    "calibrate",
    "correct",
    "correct_ratio",
    "correct_values",
    "totals_of",
    "unlikely",
]
