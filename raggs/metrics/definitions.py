"""What each measure of raggs is, in a line that a file can keep: its formula, its usual parameters, and an example.

Two versions of raggs whose lines differ may not have their scores compared. A formula is words; the example is what the
code makes of a small world that never changes, so a line differs also where the words were forgotten.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raggs.base.errors import DataError
from raggs.base.text import one_line
from raggs.metrics.belief import belief_of
from raggs.metrics.columns import Qrels, Run, Scale
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.measures import REGISTRY
from raggs.metrics.names import parse_measure

CUTOFF = 3
LABELS = {
    "one": {"a": 5, "b": 4, "c": 3, "d": 2, "e": 1, "f": 4},
    "two": {"a": 4, "b": 1, "c": 5, "d": 3},
    "three": {"a": 1, "b": 4, "c": 2},
}
RANKED = {("one", "b"): (4.4, 0.3), ("one", "f"): (3.7, 0.3), ("two", "a"): (4.2, 0.0), ("two", "c"): (4.8, 0.5)}
LISTS = {
    "one": {"d": 9.0, "a": 8.0, "x": 8.0, "c": 6.0, "f": 5.0, "b": 4.0},
    "two": {"c": 3.0, "b": 2.0, "y": 1.5, "a": 1.0},
    "three": {"c": 2.0, "z": 1.0},
}


def definitions() -> dict[str, str]:
    """A line for each measure that comes with raggs, by name."""
    qrels = Qrels.of(LABELS, Scale.of(1, 5))
    pairs = ((qid, doc_id) for qid in qrels.qids for doc_id in LABELS[qid])
    hits = find_hits(replace(qrels, belief=belief_of(pairs, RANKED)), Run.of(LISTS), "trec")
    return {name: _line(name, hits) for name in REGISTRY.builtin}


def _line(name: str, hits: Hits) -> str:
    measure = REGISTRY.load(name)
    usual = [f"{key}={each.usual:g}" for key, each in measure.PARAMS.items() if each.usual is not None]
    parts = [one_line(measure.FORMULA), ", ".join(usual), _example(name, hits)]
    return "; ".join(part for part in parts if part)


def _example(name: str, hits: Hits) -> str:
    """The mean at the cutoff; nothing where the world lacks what the measure looks at."""
    try:
        values = parse_measure(f"{name}@{CUTOFF if REGISTRY.load(name).AT is None else 0.5}").values(hits)
    except DataError:  # it needs places
        return ""
    valid = values[np.isfinite(values)]
    return f"example {float(valid.mean()) + 0.0:.6f}" if len(valid) else ""
