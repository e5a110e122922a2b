"""Random judgments and runs, with everything that makes evaluation hard: ties, gaps, odd ids, short lists."""

from __future__ import annotations

from hypothesis import strategies as st

# Prefixes of one another, wider than a machine word or two, and alphabets whose bytes and code units sort differently.
IDS = ("a", "a1", "a10", "a2", "B", "Z-" + "z" * 17, "Z-" + "z" * 18, "y" * 24, "y" * 33, "é", "文", "\uffee", "𝄞")
QIDS = ("1", "10", "2", "q")
SCORES = st.sampled_from([-2.0, 0.0, -0.0, 0.5, 1.0, 3.0]) | st.floats(-8, 8, width=32)

Labels = dict[str, dict[str, int]]
Lists = dict[str, dict[str, float]]


def labels(low: int, high: int, least: int = 0) -> st.SearchStrategy[Labels]:
    """Grades from `low` on; below 0 they mean pooled but unjudged."""
    judged = st.dictionaries(st.sampled_from(IDS), st.integers(low, high), min_size=least)
    return st.dictionaries(st.sampled_from(QIDS), judged, min_size=1)


def lists(least: int = 0) -> st.SearchStrategy[Lists]:
    found = st.dictionaries(st.sampled_from((*IDS, "x1", "x2", "x3")), SCORES)
    return st.dictionaries(st.sampled_from((*QIDS, "nobody judged it")), found, min_size=least)
