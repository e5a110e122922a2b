"""What every analysis works on: the golden set, where each system put the judged passages, and its values.

Everything that costs a pass over a run is done here, once; an analysis only reads.

What unjudged passages could make of verdicts: the bounds of differences, and what a report says of them.

The rule itself is `raggs.stats.comparison.could_reverse`, and the bounds are those of `raggs.metrics.unjudged`.

Whether a system and the judgments are about the same passages: what tells that scores say nothing.

Runs say which corpus they searched; files do not, so lists that hardly meet the judgments are a reason to doubt. A
list of another corpus scores near nothing, and advice to retrieve better would be advice to do the wrong thing.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.base.types import Number, finite_or_none
from raggs.evaluation.models import UnjudgedPart, UnjudgedTopPart
from raggs.golden.judgments import Judgments
from raggs.golden.places import same_documents
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import Qrels, Run
from raggs.metrics.evaluate import Evaluation, measure_hits
from raggs.metrics.hits import Hits, Ties, find_hits
from raggs.metrics.measures.novelty import with_first
from raggs.metrics.names import MeasureSpec, parse_measure
from raggs.metrics.unjudged import ShownPassages, TopPassages, difference_ends, top_of, unjudged_depth
from raggs.stats.comparison import DifferenceBounds

POOL = "pool and judge it: raggs run, with {retrievers} under retrieve.retrievers"
DEEPER = "judge deeper pools: raggs run --set merge.depth=N, with N above the run's own"


def ends_between(
    named: MeasureSpec, ours: ShownPassages | None, theirs: ShownPassages | None
) -> DifferenceBounds | None:
    """How far unjudged passages could move each query's difference; None if neither system shows any.

    The difference is turned round where lower is better, so that more is always better.

    Args:
        ours, theirs: the systems; None where unjudged passages say nothing.
    """
    if ours is None or theirs is None or not unjudged_in(named, {"ours": ours.top, "theirs": theirs.top}):
        return None
    found = difference_ends(named, ours, theirs)
    return found if named.higher else -found


def unjudged_in(named: MeasureSpec, tops: Mapping[str, TopPassages]) -> tuple[UnjudgedTopPart, ...]:
    """The systems that show unjudged passages within the reach of a measure, those with the most first."""
    found = []
    for system, top in tops.items():
        k = unjudged_depth(named, top.depth)
        if (share := top.share(k)) > 0:
            found.append(UnjudgedTopPart(system=system, cutoff=k, share=share))
    return tuple(sorted(found, key=lambda part: -part.share))


def unjudged_part(tops: Sequence[UnjudgedTopPart], ends: DifferenceBounds, sign: float, remedy: str) -> UnjudgedPart:
    """Why a verdict is inconclusive.

    Args:
        sign: -1 where differences were turned round, since lower is better.
    """
    low, high = sorted((sign * _mean(ends.low), sign * _mean(ends.high)))
    return UnjudgedPart(tops=tuple(tops), low=finite_or_none(low), high=finite_or_none(high), remedy=remedy)


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


MAX_SHOWN_IDS = 3


@dataclass(frozen=True)
class ScoringSettings:
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

    measures: Sequence[MeasureSpec]
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
    scoring: ScoringSettings
    hits: Mapping[str, Hits]
    values: Mapping[str, Evaluation]
    makers: Mapping[str, bool] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    sources: Mapping[str, str] = field(default_factory=dict)
    tops: Mapping[str, TopPassages] = field(default_factory=dict)

    def shown(self, system: str) -> ShownPassages | None:
        """A system with the top of its lists; None where unjudged passages say nothing."""
        return ShownPassages(self.hits[system], self.tops[system]) if system in self.tops else None

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


def study_systems(judgments: Judgments, systems: Sequence[NamedSystem], scoring: ScoringSettings) -> Study:
    """Score every system.

    Raises:
        DataError: no query in common, or a measure that the labels do not allow.
    """
    hits = {system.name: hits_of(judgments, system, scoring) for system in systems}
    values = {
        name: measure_hits(table, scoring.measures, confidence=scoring.confidence, seed=scoring.seed)
        for name, table in hits.items()
    }
    makers = {
        each.name: stated for each in systems if (stated := _is_pooled_from(judgments, each, hits, scoring)) is not None
    }
    derived = frozenset(each.name for each in systems if each.derived)
    sources = {each.name: each.source for each in systems}
    return Study(judgments, scoring, hits, values, makers, derived, sources, _tops(judgments, systems, hits, scoring))


def _tops(
    judgments: Judgments, systems: Sequence[NamedSystem], hits: Mapping[str, Hits], scoring: ScoringSettings
) -> dict[str, TopPassages]:
    tops = ((each.name, top_in(judgments, each.run, hits[each.name], scoring)) for each in systems)
    return {name: top for name, top in tops if top is not None}


def top_in(judgments: Judgments, run: Run, hits: Hits, scoring: ScoringSettings) -> TopPassages | None:
    """The top of a system's lists to the deepest cutoff; None where unjudged passages say nothing.

    Args:
        judgments: the golden set, as it was judged.
        hits: of the run.
    """
    if scoring.condensed or not judges_both(judgments.qrels):
        return None
    depth = max(*scoring.cutoffs, *(named.measure.k or 0 for named in scoring.measures))
    return top_of(hits, run, scoring.ties, depth)


def _is_pooled_from(
    judgments: Judgments, system: NamedSystem, hits: Mapping[str, Hits], scoring: ScoringSettings
) -> bool | None:
    """Whether the set says that it was pooled from a system; None where it was not, as far as its lists show.

    A set that was projected has the pool of no system that is cut in another way.
    """
    if system.projection:
        return None
    if system.origin.retrieved is not None and system.origin.retrieved == judgments.origin.retrieved:
        return True
    return False if holes_at(hits[system.name], max(scoring.cutoffs)) == 0 and not scoring.condensed else None


def hits_of(judgments: Judgments, system: NamedSystem, scoring: ScoringSettings) -> Hits:
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
            f"has none of the queries of {judgments.source}: it has {_shorten_ids(system.run.qids)}, wanted are "
            f"{_shorten_ids(judgments.qrels.qids)}",
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


def _shorten_ids(qids: Sequence[str]) -> str:
    return ", ".join(qids[:MAX_SHOWN_IDS]) + (", …" if len(qids) > MAX_SHOWN_IDS else "") or "none"


HOLES = 0.5  # of the shown passages; above it, most of what a score is about is not known
MIN_MET_SHARE = 0.1  # of the queries with a list, those where it holds a judged passage
HARM_NOTE_FROM = 0.1  # holes beside which harm says so

OTHER_CORPUS_REMEDY = (
    "evaluate it against a set of its own corpus; if the ids do mean the same texts, export its lists "
    "(raggs export --format trec) and name the file"
)
RECUT = "both are cut from the same documents: --project carries the grades over by their places"


def check_corpus(judgments: Judgments, system: NamedSystem) -> None:
    """Refuse lists from another corpus than the judgments are about.

    Raises:
        DataError: both are known, and differ.
    """
    if other := system.origin.other_corpus(judgments.origin):
        recut = same_documents(judgments.source, system.source)
        raise DataError(
            f"was retrieved from another corpus than {judgments.source} was judged on (content {other}), so equal ids "
            "mean other texts",
            where=system.source,
            remedy=RECUT if recut else OTHER_CORPUS_REMEDY,
        )


def doubt_of(study: Study, system: str) -> str:
    """Why the scores of a system say little; empty where nothing speaks for that.

    Labels that are all relevant leave the rest unjudged by custom, so that holes tell nothing beside them.
    """
    hits, k = study.hits[system], min(study.scoring.cutoffs)
    if hits.reading is not None:
        return _unreached(study, system, hits, k)
    if said := foreign_lists_warning(study.judgments.source, system, hits):
        return f"{said}. Its scores are meaningless"
    holes = holes_at(hits, k)
    if holes is None or holes <= HOLES or not judges_both(hits.qrels):
        return ""
    return (
        f"{system}: {holes:.0%} of its top {k} is unjudged and counts as not relevant, so its scores mean little. "
        "Is it from another corpus, or was it never pooled? --bounds prints the range of its scores"
    )


def foreign_lists_warning(source: str, system: str, hits: Hits) -> str:
    """That the lists of a system hardly meet the judgments of a set; empty where they do."""
    met = met_share(hits)
    if met >= MIN_MET_SHARE:
        return ""
    return (
        f"{system}: its lists hardly contain judged passages of {source} ({met:.0%} of the queries): check corpus, ids "
        "and chunks"
    )


def _unreached(study: Study, system: str, hits: Hits, k: int) -> str:
    """The same of a set whose grades were carried over to the system's own corpus, so that it is no stranger."""
    holes = holes_at(hits, k)
    if holes is None or holes <= HOLES:
        return ""
    return (
        f"{system}: {holes:.0%} of its top {k} contains too little judged text for a grade, so its scores mean little. "
        f"The pool of {study.judgments.source} did not cover it; --bounds prints the range of its scores"
    )


def met_share(hits: Hits) -> float:
    """Of the queries with a list, the share where it holds a judged passage at any rank."""
    met = np.bincount(hits.query, minlength=len(hits.length)) > 0
    return float(met[hits.returned].mean())


def holes_at(hits: Hits, k: int) -> Number:
    """The mean share of unjudged passages in the top k of the queries with a list."""
    found = parse_measure(f"holes@{k}").values(hits)[hits.returned]
    return float(found.mean()) if len(found) else None


def harmless_note(study: Study, system: str) -> str:
    """What harm@k leaves out, where that is much; empty where harm was not asked for."""
    asked = [named for named in study.scoring.measures if named.measure.NAME == "harm" and named.measure.k]
    for named in asked:
        holes = holes_at(study.hits[system], named.measure.cutoff)
        if holes is not None and holes > HARM_NOTE_FROM:
            return (
                f"{named.name} counts unjudged passages as harmless, and {holes:.0%} of what {system} shows there is "
                "unjudged: its harm may be larger"
            )
    return ""


def judges_both(qrels: Qrels) -> bool:
    """Whether passages were judged not relevant, too. Otherwise an unjudged passage is not relevant by custom."""
    judged = qrels.grade[qrels.grade >= 0]
    return bool((judged < qrels.scale.relevant).any())
