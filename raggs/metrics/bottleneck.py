"""Where a system loses: by what it retrieves, or by how it orders that.

With its own top `pool` as candidates, 1 - PROC is what better retrieval could give at most, and PROC - actual what a
perfect order of the same candidates would give (Dallaire 2025, sections 2.3 and 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.hits import Hits
from raggs.metrics.measures.ceilings import ProcNRecall4, ProcNRecall5, ProcRaNwg
from raggs.metrics.measures.n_recall import NRecall4, NRecall5
from raggs.metrics.measures.ra_nwg import RaNwg

Kind = Literal["retrieval", "ordering", "none"]
NEGLIGIBLE = 0.01  # losses below this are no bottleneck

PUBLISHED = (10, 30)  # the cutoffs at which the source gives ceilings
PAIRS = {
    "ra_nwg": (RaNwg, ProcRaNwg),
    "n_recall4": (NRecall4, ProcNRecall4),
    "n_recall5": (NRecall5, ProcNRecall5),
}


@dataclass(frozen=True)
class Bottleneck:
    """The losses of a system on one measure, over the queries where it is defined.

    Attributes:
        measure: "ra_nwg", "n_recall4" or "n_recall5".
        k, pool: the cutoff and the candidates.
        actual, ceiling: mean values.
        share: the mean over queries of actual / ceiling, where the ceiling is not 0; NaN without any.
        retrieval, ordering: the mean gain that perfect retrieval, or a perfect order of the pool, could bring.
        kind: the larger loss, "none" where both are negligible.
        by_query: the larger loss of each query, "" where the measure is not defined.
        losses: shape (queries, 2), the loss of each query by retrieval and by ordering; NaN where not defined.
    """

    measure: str
    k: int
    pool: int
    actual: float
    ceiling: float
    share: float
    retrieval: float
    ordering: float
    kind: Kind
    by_query: tuple[str, ...]
    losses: Floats

    @property
    def share_of_means(self) -> float:
        """actual / ceiling: %PROC as published; it weighs queries by their ceiling, as `share` does not. NaN over 0."""
        return self.actual / self.ceiling if self.ceiling > 0 else np.nan


def bottleneck(hits: Hits, measure: str = "ra_nwg", *, k: int = 10, pool: int = 50) -> Bottleneck:
    """Find where a system loses.

    Args:
        hits: the run.
        measure: "ra_nwg", "n_recall4" or "n_recall5".
        k: the cutoff.
        pool: how many of its passages are its candidates; at least `k` of them.

    Raises:
        DataError: the labels are not grades 1 to 5.
    """
    plain, best = PAIRS[measure]
    plain(k).check(hits)
    actual, ceiling = plain(k).score(hits), best(k, {"pool": pool}).score(hits)
    losses = np.stack([1.0 - ceiling, ceiling - actual], axis=1)
    valid = np.isfinite(actual)
    shares = actual[valid & (ceiling > 0)] / ceiling[valid & (ceiling > 0)]
    means = losses[valid].mean(axis=0) if valid.any() else np.full(2, np.nan)
    return Bottleneck(
        measure=measure,
        k=k,
        pool=max(pool, k),
        actual=float(actual[valid].mean()) if valid.any() else np.nan,
        ceiling=float(ceiling[valid].mean()) if valid.any() else np.nan,
        share=float(shares.mean()) if len(shares) else np.nan,
        retrieval=float(means[0]),
        ordering=float(means[1]),
        kind=_kind(*means),
        by_query=tuple(_kind(*row) if defined else "" for row, defined in zip(losses, valid, strict=True)),
        losses=losses,
    )


def _kind(retrieval: float, ordering: float) -> Kind:
    if not max(retrieval, ordering) >= NEGLIGIBLE:
        return "none"
    return "retrieval" if retrieval >= ordering else "ordering"
