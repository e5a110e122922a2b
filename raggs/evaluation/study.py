"""What every analysis works on: the golden set, where each system put the judged passages, and its values.

Everything that costs a pass over a run is done here, once; an analysis only reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.base.jsontypes import Number
from raggs.evaluation.strangers import check_corpus, holes_at, judges_both
from raggs.golden.judgments import Judgments
from raggs.golden.systems import System
from raggs.metrics.columns import Run
from raggs.metrics.evaluate import Evaluation, measure_hits
from raggs.metrics.facets import with_first
from raggs.metrics.hits import Hits, Ties, find_hits
from raggs.metrics.names import Named
from raggs.metrics.unjudged import Shown, Top, top_of

SHOWN = 3


@dataclass(frozen=True)
class Scoring:
    """How lists are scored.

    Attributes:
        measures: what is measured.
        cutoffs: those that analyses with a cutoff look at; at least one.
        ties: the order of equal scores, as trec_eval's or as in the file.
        condensed: whether unjudged passages are left out of the lists.
        confidence: of intervals and tests, inside 0..1.
        seed: of the bootstrap and of every draw.
        facets: the facet of a passage, over those that the golden set names.
        answer_rank: by query, the first rank whose text holds the answer, inf for none; None where texts are not known.
    """

    measures: Sequence[Named]
    cutoffs: Sequence[int] = (10,)
    ties: Ties = "trec"
    condensed: bool = False
    confidence: float = 0.95
    seed: int = 1
    facets: Mapping[str, str] = field(default_factory=dict)
    answer_rank: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Study:
    """Systems that were scored against a golden set.

    Attributes:
        judgments: what is scored against.
        scoring: how they were scored.
        hits: by system, where it put the judged passages.
        values: by system, its values of every measure.
        makers: the systems that the golden set was pooled from, and whether the set itself says so.
        derived: the systems that are made of others.
        sources: by system, its file or run directory.
        tops: by system, the top of its lists; empty where unjudged passages are left out, or not relevant by custom.
    """

    judgments: Judgments
    scoring: Scoring
    hits: Mapping[str, Hits]
    values: Mapping[str, Evaluation]
    makers: Mapping[str, bool] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    sources: Mapping[str, str] = field(default_factory=dict)
    tops: Mapping[str, Top] = field(default_factory=dict)

    def shown(self, system: str) -> Shown | None:
        """A system with the top of its lists; None where unjudged passages say nothing."""
        return Shown(self.hits[system], self.tops[system]) if system in self.tops else None

    @property
    def cutoff(self) -> int:
        """The largest cutoff."""
        return max(self.scoring.cutoffs)

    @property
    def evidence(self) -> str:
        """The measure that is 1 for a query whose evidence is in the top K, for Acc|Hit."""
        return f"hit_all@{self.cutoff}" if self.graded else f"hit@{self.cutoff}"

    @property
    def graded(self) -> bool:
        """Whether the grades are 1 to 5, which RA-nWG and its kin need."""
        return self.judgments.qrels.scale.golden


def study_systems(judgments: Judgments, systems: Sequence[System], scoring: Scoring) -> Study:
    """Score every system.

    Raises:
        DataError: no query in common, or a measure that the labels do not allow.
    """
    hits = {system.name: hits_of(judgments, system, scoring) for system in systems}
    values = {
        name: measure_hits(table, scoring.measures, confidence=scoring.confidence, seed=scoring.seed)
        for name, table in hits.items()
    }
    makers = {each.name: stated for each in systems if (stated := _made(judgments, each, hits, scoring)) is not None}
    derived = frozenset(each.name for each in systems if each.derived)
    sources = {each.name: each.source for each in systems}
    return Study(judgments, scoring, hits, values, makers, derived, sources, _tops(judgments, systems, hits, scoring))


def _tops(
    judgments: Judgments, systems: Sequence[System], hits: Mapping[str, Hits], scoring: Scoring
) -> dict[str, Top]:
    tops = ((each.name, top_in(judgments, each.run, hits[each.name], scoring)) for each in systems)
    return {name: top for name, top in tops if top is not None}


def top_in(judgments: Judgments, run: Run, hits: Hits, scoring: Scoring) -> Top | None:
    """The top of a system's lists to the deepest cutoff; None where unjudged passages say nothing.

    Args:
        judgments: the golden set, as it was judged.
        hits: of the run.
    """
    if scoring.condensed or not judges_both(judgments.qrels):
        return None
    depth = max(*scoring.cutoffs, *(named.measure.k or 0 for named in scoring.measures))
    return top_of(hits, run, scoring.ties, depth)


def _made(judgments: Judgments, system: System, hits: Mapping[str, Hits], scoring: Scoring) -> bool | None:
    """Whether the set says that it was pooled from a system; None where it was not, as far as its lists show.

    A set that was projected has the pool of no system that is cut in another way.
    """
    if system.projection:
        return None
    if system.origin.retrieved is not None and system.origin.retrieved == judgments.origin.retrieved:
        return True
    return False if holes_at(hits[system.name], max(scoring.cutoffs)) == 0 and not scoring.condensed else None


def hits_of(judgments: Judgments, system: System, scoring: Scoring) -> Hits:
    """Where a system put the judged passages, or those with a projected grade, as `scoring` says of its lists.

    Raises:
        DataError: no query in common, or lists of another corpus.
    """
    projection = system.projection
    judgments = projection.judgments if projection else judgments
    check_corpus(judgments, system)
    hits = find_hits(judgments.qrels, system.run, scoring.ties)
    if not hits.returned.any():
        raise DataError(
            f"has none of the queries of {judgments.source}: it has {_some(system.run.qids)}, wanted are "
            f"{_some(judgments.qrels.qids)}",
            where=system.source,
            remedy="make both name queries in the same way",
        )
    if projection:
        hits = replace(hits, reading=projection.reading(system.run, scoring.ties, system.source))
    if (facet := judgments.facets_of(scoring.facets)) is not None:
        hits = replace(hits, facet=facet)
    if hits.facet is not None and any(named.measure.FACETS for named in scoring.measures):  # others read no whole list
        hits = with_first(hits, system.run, {**judgments.facets, **scoring.facets}, scoring.ties)
    if scoring.answer_rank is not None:
        ranks = [scoring.answer_rank.get(qid, math.nan) for qid in judgments.qrels.qids]
        hits = replace(hits, answer_rank=np.array(ranks))
    return hits.condensed() if scoring.condensed else hits


def mean(values: Floats) -> Number:
    """The mean over the queries where a measure is defined; None without any.

    Args:
        values: shape (queries,), NaN where the measure is not defined.
    """
    valid = values[np.isfinite(values)]
    return float(valid.mean()) if len(valid) else None


def _some(qids: Sequence[str]) -> str:
    return ", ".join(qids[:SHOWN]) + (", …" if len(qids) > SHOWN else "") or "none"
