"""Systems scored against a golden set. This `Study` is the common input of all analyses.

Whole system outputs are read here, so that analyses need only the study.

The module also computes how far unjudged passages could move a difference (see `raggs.metrics.unjudged`). Whether that
makes a verdict inconclusive is decided by `raggs.stats.comparison.could_reverse`.

The module also returns warnings if scores are meaningless. Run directories record the corpus that was searched, but run
files do not. If lists hardly contain judged passages, they are probably from another corpus. Advice to improve
retrieval would then be wrong.
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
from raggs.metrics.measures.evidence import find_evidence
from raggs.metrics.measures.novelty import with_first
from raggs.metrics.names import MeasureSpec, parse_measure
from raggs.metrics.unjudged import ShownPassages, TopPassages, difference_ends, top_of, unjudged_depth
from raggs.stats.comparison import DifferenceBounds

POOL = "pool and judge it: raggs run, with {retrievers} under retrieve.retrievers"
DEEPER = "judge deeper pools: raggs run --set merge.depth=N, with N above the current value"


def ends_between(
    named: MeasureSpec, ours: ShownPassages | None, theirs: ShownPassages | None
) -> DifferenceBounds | None:
    """Return how far unjudged passages could move each query's difference; None if neither system has unjudged passages
    in its top.

    Differences are negated if lower is better, so that a positive difference is an improvement.

    Args:
        ours, theirs: the tops of the two systems; None if all judged passages are relevant or the lists are condensed.
    """
    if ours is None or theirs is None or not unjudged_in(named, {"ours": ours.top, "theirs": theirs.top}):
        return None
    found = difference_ends(named, ours, theirs)
    return found if named.higher else -found


def unjudged_in(named: MeasureSpec, tops: Mapping[str, TopPassages]) -> tuple[UnjudgedTopPart, ...]:
    """Return the systems with unjudged passages in the ranks that a measure uses, largest share first."""
    found = []
    for system, top in tops.items():
        k = unjudged_depth(named, top.depth)
        if (share := top.share(k)) > 0:
            found.append(UnjudgedTopPart(system=system, cutoff=k, share=share))
    return tuple(sorted(found, key=lambda part: -part.share))


def unjudged_part(tops: Sequence[UnjudgedTopPart], ends: DifferenceBounds, sign: float, remedy: str) -> UnjudgedPart:
    """Return why a verdict is inconclusive.

    Args:
        sign: -1 if differences were reversed because lower is better.
    """
    low, high = sorted((sign * _mean(ends.low), sign * _mean(ends.high)))
    return UnjudgedPart(tops=tuple(tops), low=finite_or_none(low), high=finite_or_none(high), remedy=remedy)


def judging_remedy(tops: Iterable[UnjudgedTopPart], sources: Mapping[str, str], golden: str) -> str:
    """Return the advice on how to get the unjudged passages of some systems pooled and judged.

    Args:
        sources: maps each system to its file or run directory.
        golden: source of the judgments.
    """
    others = [(part.system, sources.get(part.system, "")) for part in tops]
    named = [_retriever(system, source) for system, source in others if source != golden]
    return POOL.format(retrievers=", ".join(named)) if named else DEEPER


def _retriever(system: str, source: str) -> str:
    """Return the retriever setting that pools the lists of a system."""
    if Path(source).is_file():
        return f"{{type: runfile, path: {shlex.quote(source)}}}"
    return f"the retriever {system} of {source}" if Path(source).is_dir() else f"the lists of {system} as a run file"


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


MAX_SHOWN_IDS = 3


@dataclass(frozen=True)
class ScoringSettings:
    """Settings for scoring systems.

    Attributes:
        measures: measures to compute.
        cutoffs: cutoffs for the analyses that need a cutoff; at least one.
        ties: how equal scores are ordered: as in trec_eval, or as in the file.
        condensed: whether unjudged passages are removed from the lists.
        confidence: confidence of intervals and tests, above 0 and below 1.
        seed: random seed for the bootstrap and all other draws.
        facets: maps passages to facets; overrides the facets of the golden set.
        answer_rank: maps each query to the first rank whose text contains the answer, or to inf if no text does; None
            if texts are unknown.
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
    """Systems scored against a golden set.

    Attributes:
        judgments: the judgments of the golden set.
        scoring: settings of scoring.
        hits: for each system, the ranks of the judged passages.
        values: for each system, the values of every measure.
        makers: systems that the golden set was pooled from. The value is True if the set itself records this.
        derived: systems that are derived from others, such as fusions.
        sources: maps each system to its file or run directory.
        tops: for each system, the top of its lists; empty if lists are condensed, or if no passage is judged not
            relevant.
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
        """Return the hits of a system and the top of its lists; None if the top is not in `tops`."""
        return ShownPassages(self.hits[system], self.tops[system]) if system in self.tops else None

    @property
    def cutoff(self) -> int:
        """Largest cutoff."""
        return max(self.scoring.cutoffs)

    @property
    def evidence(self) -> str:
        """Name of the measure that decides for Acc|Hit whether the evidence was retrieved: all passages of grade 4 or
        5, or one relevant passage if the grades are not 1 to 5.
        """
        return f"hit_all@{self.cutoff}" if self.graded else f"hit@{self.cutoff}"

    @property
    def graded(self) -> bool:
        """Whether the grades are 1 to 5, which RA-nWG and related measures need."""
        return self.judgments.qrels.scale.golden


def study_systems(judgments: Judgments, systems: Sequence[NamedSystem], scoring: ScoringSettings) -> Study:
    """Score every system.

    Raises:
        DataError: a system has no query in common with the judgments, or a measure cannot be computed from the labels.
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
    """Return the top of a system's lists, up to the largest cutoff. Return None if lists are condensed, or if no
    passage is judged not relevant.

    Args:
        judgments: the golden set as it was judged.
        hits: ranks of judged passages in the run.
    """
    if scoring.condensed or not judges_both(judgments.qrels):
        return None
    depth = max(*scoring.cutoffs, *(named.measure.k or 0 for named in scoring.measures))
    return top_of(hits, run, scoring.ties, depth)


def _is_pooled_from(
    judgments: Judgments, system: NamedSystem, hits: Mapping[str, Hits], scoring: ScoringSettings
) -> bool | None:
    """Return True if the set records that it was pooled from a system, and False if this only follows from a top
    without unjudged passages. Return None if the set was not pooled from the system.

    A system that needs a projection never counts as pooled.
    """
    if system.projection:
        return None
    if system.origin.retrieved is not None and system.origin.retrieved == judgments.origin.retrieved:
        return True
    return False if holes_at(hits[system.name], max(scoring.cutoffs)) == 0 and not scoring.condensed else None


def hits_of(judgments: Judgments, system: NamedSystem, scoring: ScoringSettings) -> Hits:
    """Return the ranks of the judged passages of a system, or of passages with projected grades.

    Raises:
        DataError: the system has no query in common with the judgments, or its lists are from another corpus.
    """
    projection = system.projection
    judgments = projection.judgments if projection else judgments
    check_corpus(judgments, system)
    hits = find_hits(judgments.qrels, system.run, scoring.ties)
    if not hits.returned.any():
        raise DataError(
            f"has no query in common with {judgments.source}: it has {_shorten_ids(system.run.qids)}, expected "
            f"{_shorten_ids(judgments.qrels.qids)}",
            where=system.source,
            remedy="use the same query ids in both files",
        )
    if projection:
        hits = replace(hits, reading=projection.reading(system.run, scoring.ties, system.source))
    if (facet := judgments.facets_of(scoring.facets)) is not None:
        hits = replace(hits, facet=facet)
    # only facets need complete lists
    if hits.facet is not None and any(named.measure.FACETS for named in scoring.measures):
        hits = with_first(hits, system.run, {**judgments.facets, **scoring.facets}, scoring.ties)
    if judgments.evidence and any(named.measure.EVIDENCE for named in scoring.measures):
        found = find_evidence(judgments.qrels, system.run, judgments.evidence, scoring.ties, judgments.facets)
        hits = replace(hits, evidence=found)
    if scoring.answer_rank is not None:
        ranks = [scoring.answer_rank.get(qid, math.nan) for qid in judgments.qrels.qids]
        hits = replace(hits, answer_rank=np.array(ranks))
    return hits.condensed() if scoring.condensed else hits


def mean(values: Floats) -> Number:
    """Return the mean over the queries with a defined value; None if there are none.

    Args:
        values: shape (queries,), NaN if the measure is not defined.
    """
    valid = values[np.isfinite(values)]
    return float(valid.mean()) if len(valid) else None


def _shorten_ids(qids: Sequence[str]) -> str:
    return ", ".join(qids[:MAX_SHOWN_IDS]) + (", …" if len(qids) > MAX_SHOWN_IDS else "") or "none"


HOLES = 0.5  # Share of unjudged passages in the top; above it, scores mean little.
MIN_MET_SHARE = 0.1  # minimum share of the queries with results whose list contains a judged passage
HARM_NOTE_FROM = 0.1  # Share of unjudged passages above which a note warns about harm@k.

OTHER_CORPUS_REMEDY = (
    "evaluate it against a golden set of the same corpus; if the ids do mean the same texts, export its lists "
    "(raggs export --format trec) and pass the file"
)
RECUT = "both are chunks of the same documents: --project maps the grades by position"


def check_corpus(judgments: Judgments, system: NamedSystem) -> None:
    """Check that the lists of a system are not from another corpus than the judgments.

    Raises:
        DataError: both corpora are known and differ.
    """
    if other := system.origin.other_corpus(judgments.origin):
        recut = same_documents(judgments.source, system.source)
        raise DataError(
            f"was retrieved from another corpus than the one judged in {judgments.source} (content {other}), so equal "
            "ids mean different texts",
            where=system.source,
            remedy=RECUT if recut else OTHER_CORPUS_REMEDY,
        )


def doubt_of(study: Study, system: str) -> str:
    """Return why the scores of a system mean little. The text is empty if there is no such reason.

    If all labels are relevant, unjudged passages are not relevant by convention, so a large share of them is expected.
    """
    hits, k = study.hits[system], min(study.scoring.cutoffs)
    if hits.reading is not None:
        return _unreached(study, system, hits, k)
    if said := foreign_lists_warning(study.judgments.source, system, hits):
        return f"{said}. Its scores are meaningless"
    holes = holes_at(hits, k)
    if holes is None or holes <= HOLES or not judges_both(hits.qrels):
        return ""
    holes_text = f"{system}: {holes:.0%} of its top {k} is unjudged and counts as not relevant"
    if lowest_label(hits.qrels) is not None:
        return (
            f"{holes_text}. Its scores mean little, unless the labels list all relevant passages. --bounds prints the "
            "range of its scores"
        )
    return (
        f"{holes_text}, so its scores mean little. "
        "Is it from another corpus, or was it never pooled? --bounds prints the range of its scores"
    )


def foreign_lists_warning(source: str, system: str, hits: Hits) -> str:
    """Return a warning if the lists of a system hardly contain judged passages; else an empty text."""
    met = met_share(hits)
    if met >= MIN_MET_SHARE:
        return ""
    return (
        f"{system}: its lists hardly contain judged passages of {source} ({met:.0%} of the queries): check corpus, ids "
        "and chunks"
    )


def _unreached(study: Study, system: str, hits: Hits, k: int) -> str:
    """Return a warning if much of the top has too little judged text, for grades that were projected onto the
    system's corpus.
    """
    holes = holes_at(hits, k)
    if holes is None or holes <= HOLES:
        return ""
    return (
        f"{system}: {holes:.0%} of its top {k} contains too little judged text for a grade, so its scores mean little. "
        f"The pool of {study.judgments.source} did not cover it; --bounds prints the range of its scores"
    )


def met_share(hits: Hits) -> float:
    """Return the share of queries with results whose list contains a judged passage."""
    met = np.bincount(hits.query, minlength=len(hits.length)) > 0
    return float(met[hits.returned].mean())


def holes_at(hits: Hits, k: int) -> Number:
    """Return the mean share of unjudged passages in the top k, over the queries with results; None if there are
    none.
    """
    found = parse_measure(f"holes@{k}").values(hits)[hits.returned]
    return float(found.mean()) if len(found) else None


def harmless_note(study: Study, system: str) -> str:
    """Return a note if harm@k was requested and many passages are unjudged, which it counts as harmless. Otherwise,
    return an empty text.
    """
    asked = [named for named in study.scoring.measures if named.measure.NAME == "harm" and named.measure.k]
    for named in asked:
        holes = holes_at(study.hits[system], named.measure.cutoff)
        if holes is not None and holes > HARM_NOTE_FROM:
            return (
                f"{named.name} counts unjudged passages as harmless, but {holes:.0%} of the passages of {system} are "
                "unjudged: its harm may be larger"
            )
    return ""


def lowest_label(qrels: Qrels) -> int | None:
    """Return the lowest grade of the labels if it is above the lowest grade of the scale, else None.

    Such labels may list only relevant passages, even if some of their grades do not count as relevant.
    """
    judged = qrels.grade[qrels.grade >= 0]
    return int(judged.min()) if judged.size and judged.min() > qrels.scale.low else None


def judges_both(qrels: Qrels) -> bool:
    """Return whether some passages are judged not relevant. If not, unjudged passages are not relevant by
    convention.
    """
    judged = qrels.grade[qrels.grade >= 0]
    return bool((judged < qrels.scale.relevant).any())
