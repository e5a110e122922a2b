"""What may be said about means over queries and about the difference of two systems.

Pure: arrays with one value a query in (NaN where a measure is undefined), frozen results out. Every random draw
comes from a seed, so equal inputs give equal results; nothing here knows what was measured.
"""

from raggs.stats.comparison.compare import (
    Comparison,
    Ends,
    Verdict,
    compare,
    compare_many,
    could_cross,
    could_reverse,
    outcomes,
)
from raggs.stats.comparison.groups import Contrast, contrasts, permutation_tests
from raggs.stats.comparison.intervals import Interval, bootstrap_mean, bootstrap_means
from raggs.stats.comparison.paired import effect_size, holm, least_queries, queries_needed, randomisation_test

__all__ = [
    "Comparison",
    "Contrast",
    "Ends",
    "Interval",
    "Verdict",
    "bootstrap_mean",
    "bootstrap_means",
    "compare",
    "compare_many",
    "contrasts",
    "could_cross",
    "could_reverse",
    "effect_size",
    "holm",
    "least_queries",
    "outcomes",
    "permutation_tests",
    "queries_needed",
    "randomisation_test",
]
