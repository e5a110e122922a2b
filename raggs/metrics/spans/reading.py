"""What a list of passages adds of the characters that are wanted, rank after rank: each character counts where it is
first read.

Pure, and in time that grows with the passages and with what they hold: so any cutoff is one sum.
"""

from __future__ import annotations

import numpy as np

from raggs.base.arrays import Ints
from raggs.metrics.spans.columns import Line, Spans
from raggs.metrics.spans.index import SpanIndex, runs
from raggs.metrics.spans.projection import Stretches

NEVER = np.iinfo(np.int64).max


def fresh(wanted: Stretches, shown: Spans, query: Ints, rank: Ints, line: Line) -> Ints:
    """Shape (shown,): the wanted characters of its query that each passage holds and no better ranked one does.

    Args:
        wanted: what is looked for, without overlaps within a query.
        shown: the places of the retrieved passages, in any order.
        query: shape (shown,), for which query each was retrieved.
        rank: shape (shown,), from 1, each once a query.
        line: of the documents.
    """
    width = line.length + 1
    index = SpanIndex(wanted.starts + wanted.query * width, wanted.ends + wanted.query * width)
    starts, ends = line.starts(shown) + query * width, line.ends(shown) + query * width
    row, part = index.overlapping(starts, ends)
    shift = wanted.query[part] * width
    low = np.maximum(starts[row], wanted.starts[part] + shift)
    high = np.minimum(ends[row], wanted.ends[part] + shift)
    edges = np.unique(np.concatenate([low, high]))
    first = np.searchsorted(edges, low)
    pieces = np.searchsorted(edges, high) - first
    piece, owner = runs(first, pieces), np.repeat(row, pieces)
    best = np.full(len(edges), NEVER, dtype=np.int64)
    np.minimum.at(best, piece, rank[owner])
    mine = best[piece] == rank[owner]
    lengths = np.diff(edges, append=edges[-1:])
    found = np.bincount(owner[mine], weights=lengths[piece[mine]], minlength=len(query))
    return found.astype(np.int64)
