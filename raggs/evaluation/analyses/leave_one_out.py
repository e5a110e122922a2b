"""Leave-one-out analysis: score and rank of a system without the judgments of passages that only it found.

A passage that only one system found was judged because that system was pooled. If this passage is treated as unjudged,
it counts as not relevant, like the passages of a system that was not pooled (Zobel 1998). `raggs.stats.effects`
computes the contributions; sweeps use the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from raggs.base.document import score
from raggs.base.errors import UsageError
from raggs.base.text import plural
from raggs.base.types import finite_or_none
from raggs.evaluation.analyses import AnalysisFinding, PartAnalysis
from raggs.evaluation.models import LeaveOneOutPart
from raggs.evaluation.study import Study, mean
from raggs.golden.judgments import Judgments
from raggs.metrics.hits import Hits
from raggs.metrics.names import MeasureSpec

if TYPE_CHECKING:
    from raggs.stats.effects import Contribution, LeaveOneOutLoss

DEPTH = 100  # number of ranks of a list that count as pooled, as in the retrieve and merge stages


@dataclass(frozen=True)
class LeaveOneOutScores:
    """Scores of systems with and without the judgments that are unique to a group of systems.

    Attributes:
        contributed: the judgments that are unique to each group.
        scores: scores of all systems with all judgments; higher is better.
        without: maps each group to the scores of all systems without the judgments that are unique to the group.
    """

    contributed: tuple[Contribution, ...]
    scores: Mapping[str, float]
    without: Mapping[str, Mapping[str, float]]

    @property
    def falls(self) -> tuple[LeaveOneOutLoss, ...]:
        """Score drop of each system, largest first."""
        # imported lazily: most reports have no leave-one-out analysis
        from raggs.stats.effects import leave_one_out_losses

        return leave_one_out_losses(self.contributed, self.scores, self.without)

    def own(self, system: str) -> Contribution:
        """Return the unique contribution of the group of a system."""
        return next(each for each in self.contributed if system in each.systems)


def leave_out(
    hits: Mapping[str, Hits],
    named: MeasureSpec,
    depth: int,
    groups: Mapping[str, str],
    pooled: Sequence[str] | None = None,
) -> LeaveOneOutScores:
    """Score all systems with all judgments, then without the unique contribution of each group.

    Args:
        hits: hits of each system, all with the same judgments; at least one system.
        named: the measure; values are negated if lower is better.
        depth: ranks up to which a list contributes to the pool.
        groups: maps each system to the group that is omitted together [default: the system itself].
        pooled: names of the systems that contribute [default: all].
    """
    from raggs.stats.effects import contributions  # imported lazily, as above

    qrels, sign = next(iter(hits.values())).qrels, 1.0 if named.higher else -1.0
    pools = {name: hits[name].item[hits[name].rank <= depth] for name in (hits if pooled is None else pooled)}
    found = contributions(qrels.grade, pools, groups, qrels.scale.relevant)

    def scored(lists: Mapping[str, Hits]) -> dict[str, float]:
        return {name: sign * (mean(named.values(each)) or 0.0) for name, each in lists.items()}

    left = {each.group: scored({name: _unjudged(one, each) for name, one in hits.items()}) for each in found}
    return LeaveOneOutScores(found, scored(hits), left)


def _unjudged(hits: Hits, contribution: Contribution) -> Hits:
    """Return the same hits, in which the passages unique to a group are unjudged."""
    from raggs.stats.effects import grades_without  # imported lazily, as above

    grade = grades_without(hits.qrels.grade, contribution)
    keep = np.flatnonzero(grade[hits.item] >= 0)
    rows = {name: getattr(hits, name)[keep] for name in ("query", "item", "rank", "start", "size")}
    first = None if hits.first is None else hits.first[keep]
    return replace(hits, qrels=hits.qrels.relabelled(grade), first=first, **rows)


class LeaveOneOut(PartAnalysis[LeaveOneOutPart]):
    """Dependence of systems on the pool: score and rank without their unique contributions."""

    NAME = "leave_one_out"
    TITLE = "Leave-one-out from the pool"
    COLUMNS = ("system", "measure", "score", "without", "alone", "relevant", "rank", "rank_without", "overtaken_by")
    PART = LeaveOneOutPart

    def check(self, judgments: Judgments, systems: Sequence[str]) -> None:
        """Check that there are at least two systems, because no passage is unique to a single system.

        Raises:
            UsageError: there is only one system.
        """
        if len(systems) < 2:
            raise UsageError("--leave-one-out needs at least two systems", remedy="pass another system: --run FILE")

    def compute(self, study: Study) -> Sequence[AnalysisFinding[LeaveOneOutPart]]:
        """Return one finding per system on the first measure, except for derived systems and those with projected
        grades.
        """
        named = study.scoring.measures[0]
        qrels = study.judgments.qrels
        hits = {name: each for name, each in study.hits.items() if each.qrels is qrels}
        pooled = [name for name in hits if name not in study.derived]
        if len(pooled) < 2:
            return ()
        found, sign = leave_out(hits, named, DEPTH, {}, pooled), 1.0 if named.higher else -1.0
        return [
            AnalysisFinding(
                fall.system,
                LeaveOneOutPart(
                    measure=named.name,
                    score=finite_or_none(sign * fall.score),
                    without=finite_or_none(sign * fall.without),
                    alone=found.own(fall.system).judged,
                    relevant=found.own(fall.system).useful,
                    rank=_rank(fall.system, found.scores),
                    rank_without=_rank(fall.system, found.without[fall.group]),
                    overtaken_by=fall.overtaken_by,
                ),
            )
            for fall in found.falls
        ]

    def sentences(self, found: Sequence[AnalysisFinding[LeaveOneOutPart]]) -> Sequence[str]:
        """Return a sentence per system with its score and rank, with and without its unique passages."""
        return [
            f"{system} without its unique passages: {part.measure} {score(part.score)} -> {score(part.without)}, rank "
            f"{part.rank} -> {part.rank_without}{_overtaken_clause(part)}; {plural(part.alone, 'judged passage')} "
            f"({part.relevant:,} relevant) are unique to it"
            for system, part in found
        ]


def _overtaken_clause(part: LeaveOneOutPart) -> str:
    return f" (behind {', '.join(part.overtaken_by)})" if part.overtaken_by else ""


def _rank(system: str, scores: Mapping[str, float]) -> int:
    return 1 + sum(value > scores[system] for value in scores.values())
