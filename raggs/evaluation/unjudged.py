"""What unjudged passages could make of verdicts: the bounds of differences, and what a report says of them.

The rule itself is `raggs.metrics.stats.could_reverse`, and the bounds are those of `raggs.metrics.unjudged`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.jsontypes import number
from raggs.evaluation.models import UnjudgedPart, UnjudgedTopPart
from raggs.metrics.names import Named
from raggs.metrics.stats import Ends
from raggs.metrics.unjudged import Shown, Top, difference_ends, reach

POOL = "pool and judge it: raggs run, with {retrievers} under retrieve.retrievers"
DEEPER = "judge deeper pools: raggs run --set merge.depth=N, with N above the run's own"


def ends_between(named: Named, ours: Shown | None, theirs: Shown | None) -> Ends | None:
    """How far unjudged passages could move each query's difference; None if neither system shows any.

    The difference is turned round where lower is better, so that more is always better.

    Args:
        ours, theirs: the systems; None where unjudged passages say nothing.
    """
    if ours is None or theirs is None or not unjudged_in(named, {"ours": ours.top, "theirs": theirs.top}):
        return None
    found = difference_ends(named, ours, theirs)
    return found if named.higher else -found


def unjudged_in(named: Named, tops: Mapping[str, Top]) -> tuple[UnjudgedTopPart, ...]:
    """The systems that show unjudged passages within the reach of a measure, those with the most first."""
    found = []
    for system, top in tops.items():
        k = reach(named, top.depth)
        if (share := top.share(k)) > 0:
            found.append(UnjudgedTopPart(system=system, cutoff=k, share=share))
    return tuple(sorted(found, key=lambda part: -part.share))


def unjudged_part(tops: Sequence[UnjudgedTopPart], ends: Ends, sign: float, remedy: str) -> UnjudgedPart:
    """Why a verdict is inconclusive.

    Args:
        sign: -1 where differences were turned round, since lower is better.
    """
    low, high = sorted((sign * _mean(ends.low), sign * _mean(ends.high)))
    return UnjudgedPart(tops=tuple(tops), low=number(low), high=number(high), remedy=remedy)


def judging_remedy(tops: Iterable[UnjudgedTopPart], sources: Mapping[str, str], golden: str) -> str:
    """The command that has the unjudged passages of systems pooled and judged.

    Args:
        sources: by system, its file or run directory.
        golden: the source of the judgments.
    """
    others = [(part.system, sources.get(part.system, "")) for part in tops]
    named = [_retriever(system, source) for system, source in others if source != golden]
    return POOL.format(retrievers=", ".join(named)) if named else DEEPER


def _retriever(system: str, source: str) -> str:
    """What pools a system's lists."""
    if Path(source).is_file():
        return f"{{type: runfile, path: {shlex.quote(source)}}}"
    return f"the retriever {system} of {source}" if Path(source).is_dir() else f"the lists of {system} as a run file"


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0
