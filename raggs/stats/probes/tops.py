"""What lists hold, question by question: copies, what only another system found, how long the missed passages are.

Every function gives one value a question, NaN where it is not defined for it, so that means over questions have the
intervals of `raggs.metrics.stats`.
"""

from __future__ import annotations

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.hits import Hits


def copies_at(hits: Hits, k: int) -> Floats:
    """The share of the first `k` places that near-duplicates of a passage above take; NaN of an empty list.

    Only judged passages are known to be near-duplicates, so this is a lower bound where there are holes.
    """
    length = np.minimum(hits.length, k)
    if hits.facet is None:
        return np.where(length > 0, 0.0, np.nan)
    facet = hits.facet[hits.item]
    shown = (hits.rank <= k) & (facet >= 0)
    pairs = np.unique(np.stack([hits.query[shown], facet[shown]]), axis=1)
    rows = np.bincount(hits.query[shown], minlength=len(length))
    groups = np.bincount(pairs[0], minlength=len(length))
    return _share(rows - groups, length)


def found_alone(other: Hits, hits: Hits, pool: int) -> Floats:
    """Of the relevant passages of each question, the share that `other` has among its first `pool` and `hits` has not.

    Both are of the same judgments. NaN of a question without relevant passages.
    """
    qrels = hits.qrels
    relevant = qrels.grade >= qrels.scale.relevant
    alone = relevant & _first(other, pool) & ~_first(hits, pool)
    count = len(hits.length)
    wanted = np.bincount(qrels.query[relevant], minlength=count)
    return _share(np.bincount(qrels.query[alone], minlength=count), wanted)


def missed_length(hits: Hits, letters: Floats, pool: int) -> Floats:
    """How much longer the relevant passages are that are not among the first `pool` than those that are, in doublings.

    The base 2 logarithm of the ratio of their mean lengths; NaN of a question that has not both.

    Args:
        letters: shape (m,), the length of each judged passage in characters; NaN where it is not known.
    """
    qrels = hits.qrels
    relevant = (qrels.grade >= qrels.scale.relevant) & np.isfinite(letters) & (letters > 0)
    found = _first(hits, pool)
    means = [_mean(hits, letters, relevant & side) for side in (~found, found)]
    return np.asarray(np.log2(means[0] / means[1]))


def _first(hits: Hits, pool: int) -> Flags:
    """Shape (m,): which judged passages are among the first `pool`."""
    found = np.zeros(len(hits.qrels.query), dtype=bool)
    found[hits.item[hits.rank <= pool]] = True
    return found


def _mean(hits: Hits, values: Floats, chosen: Flags) -> Floats:
    query, count = hits.qrels.query[chosen], len(hits.length)
    sums = np.bincount(query, weights=values[chosen], minlength=count)
    return _share(sums, np.bincount(query, minlength=count))


def _share(part: Floats | Ints, whole: Floats | Ints) -> Floats:
    """NaN where there is nothing to be a share of."""
    held = whole > 0
    return np.where(held, part / np.where(held, whole, 1), np.nan)
