"""Scores of systems: every list is scored as in `raggs eval`.

The ceilings (PROC) use a system's own candidates: the best order of its first k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.base.types import Number, finite_or_none
from raggs.evaluation.models import ProjectionPart, ScorePart
from raggs.evaluation.report import projection_part, score_part
from raggs.evaluation.study import ScoringSettings, hits_of, holes_at, mean, top_in
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem as Listed
from raggs.metrics.columns import Run
from raggs.metrics.evaluate import Evaluation, measure_hits
from raggs.metrics.hits import Hits, Ties
from raggs.metrics.names import MeasureSpec, at_cutoffs, parse_measure
from raggs.metrics.unjudged import ShownPassages, TopPassages
from raggs.stats.intervals import bootstrap_means
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.judgments import TERMS, ChunkingJudgments, is_reference

GRADED = ("ra_nwg", "n_recall4", "n_recall5", "ndcg", "harm", "holes")
BINARY_MEASURES = ("ndcg", "recall", "precision", "mrr", "holes")
READ = ("span_recall4", "span_precision4")  # counted in characters, because chunkings have different passages
CEILINGS = ("ra_nwg", "n_recall4")
DECIDE_GRADED = ("ra_nwg", "n_recall4")
DECIDE_OTHERS = ("ndcg", "recall")


@dataclass(frozen=True)
class ScoredSystem:
    """Scores of one system.

    Attributes:
        scores: by measure, with intervals.
        realised: %PROC as ratio of means, by measure.
        holes: unjudged share of the top, by cutoff.
        values: by deciding measure, a value for each judged query; NaN if not defined.
        hits: ranks of judged passages.
        top: top of its lists; None if unjudged passages carry no information.
        unjudged: unjudged share of the top's characters, by cutoff; empty if all systems use the chunks of the corpus.
        projection: projection of the grades; None if the system uses the judged chunks.
    """

    scores: dict[str, ScorePart]
    realised: dict[str, Number]
    holes: dict[str, Number]
    values: dict[str, Floats]
    hits: Hits = field(repr=False)
    top: TopPassages | None = field(default=None, repr=False)
    unjudged: dict[str, Number] = field(default_factory=dict)
    projection: ProjectionPart | None = None

    @property
    def shown(self) -> ShownPassages | None:
        """Return the system with the top of its lists; None if unjudged passages carry no information."""
        return None if self.top is None else ShownPassages(self.hits, self.top)


class SystemScorer:
    """Scorer of systems against a golden set.

    Args:
        config: configuration of the sweep.
        judgments: the grades.
        many: whether only deciding measures get intervals, because there are many systems.
        sheet: judgments of the systems' chunking; None if all systems use the chunks of the corpus.
    """

    def __init__(
        self, config: SweepConfig, judgments: Judgments, *, many: bool = False, sheet: ChunkingJudgments | None = None
    ) -> None:
        self._config, self._many, self._sheet = config, many, sheet
        self.judgments = judgments

    @property
    def quality(self) -> tuple[str, ...]:
        """Deciding measures by canonical name, most important first; efficiency is their mean.

        Raises:
            UsageError: a measure is unknown.
        """
        named = self._config.quality
        if not named:
            first = DECIDE_GRADED if self._graded else DECIDE_OTHERS
            cutoffs = sorted({min(self._config.cutoffs), max(self._config.cutoffs)})
            named = tuple(f"{name}@{k}" for k in cutoffs for name in first)
        return tuple(name if self._marked and is_reference(name) else parse_measure(name).name for name in named)

    @property
    def _marked(self) -> bool:
        """Return whether questions state the positions of their references."""
        return self._sheet is not None and self._sheet.excerpts is not None

    def measures(self) -> tuple[str, ...]:
        """Return the measures of every system, with names that do not contain its k."""
        names = (GRADED if self._sheet is None else (*GRADED, *READ)) if self._graded else BINARY_MEASURES
        plain = [f"{name}@{k}" for k in self._config.cutoffs for name in names]
        ceilings = [
            f"{form}_{name}@{k}"
            for k in self._config.cutoffs
            for name in self.ceilings
            for form in ("proc", "pct_proc")
        ]
        named = [name for name in self._config.measures if not (self._marked and is_reference(name))]
        more = [one.name for name in named for one in at_cutoffs(name, self._config.cutoffs)]
        marked = [f"{name}@{k}" for k in self._config.cutoffs for name in TERMS]
        marked = [*marked, *filter(is_reference, self._config.measures)] if self._marked else []
        return tuple(dict.fromkeys((*self.quality, *plain, *marked, *more, *ceilings)))

    def score(self, name: str, run: Run, k: int) -> ScoredSystem:
        """Score one system.

        Args:
            name: name of the system, for messages.
            run: its lists.
            k: number of its candidates.

        Raises:
            DataError: as `hits_of`: no judged query, or lists of another corpus.
        """
        measures = self.measures()
        named = {told: self._named(told, k) for told in measures if not is_reference(told)}
        scoring = ScoringSettings(
            list(named.values()), self._config.cutoffs, confidence=self._config.confidence, seed=self._config.seed
        )
        hits = self._hits(name, run, scoring)
        found = measure_hits(hits, scoring.measures, confidence=scoring.confidence, seed=scoring.seed)
        marked = self._in_references([told for told in measures if is_reference(told)], hits, run, scoring.ties, name)
        means = {told: found.mean[one.name] for told, one in named.items()}
        return ScoredSystem(
            scores=self._ordered(self._parts(found, named) | self._intervals(marked)),
            realised={
                f"{name}@{cutoff}": _ratio(means[f"{name}@{cutoff}"], means[f"proc_{name}@{cutoff}"])
                for cutoff in self._config.cutoffs
                for name in self.ceilings
            },
            holes={str(cutoff): holes_at(hits, cutoff) for cutoff in self._config.cutoffs},
            values={told: marked[told] if told in marked else found.column(named[told].name) for told in self.quality},
            hits=hits,
            top=top_in(self.judgments, run, hits, scoring),
            unjudged={}
            if hits.reading is None
            else {
                str(cutoff): finite_or_none(1.0 - hits.reading.judged_share(cutoff)) for cutoff in self._config.cutoffs
            },
            projection=self._projected(hits),
        )

    def _hits(self, name: str, run: Run, scoring: ScoringSettings) -> Hits:
        """Return the ranks of graded passages; also in characters, unless all systems use the chunks of the corpus."""
        sheet = self._sheet
        projection = None if sheet is None else sheet.projection
        hits = hits_of(self.judgments, Listed(name, name, run, projection=projection), scoring)
        if sheet is None or hits.reading is not None:
            return hits
        return replace(hits, reading=sheet.places.reading(run, scoring.ties, name))

    def _in_references(
        self, names: Sequence[str], hits: Hits, run: Run, ties: Ties, where: str
    ) -> Mapping[str, Floats]:
        excerpts = None if self._sheet is None else self._sheet.excerpts
        return {} if excerpts is None else excerpts.values(names, hits, run, ties, where)

    def _intervals(self, values: Mapping[str, Floats]) -> dict[str, ScorePart]:
        """Return means of measures that were computed here, with intervals if they are affordable."""
        config = self._config
        told = [name for name in values if not self._many or name in self.quality]
        rows = np.array([values[name] for name in told])
        found = bootstrap_means(rows, confidence=config.confidence, seed=config.seed) if told else ()
        plain = {name: _mean(column) for name, column in values.items()}
        return plain | {name: score_part(each) for name, each in zip(told, found, strict=True)}

    def _ordered(self, scores: Mapping[str, ScorePart]) -> dict[str, ScorePart]:
        return {name: scores[name] for name in self.measures()}

    def _projected(self, hits: Hits) -> ProjectionPart | None:
        projection = None if self._sheet is None else self._sheet.projection
        return projection_part(projection, hits, min(self._config.cutoffs)) if projection else None

    def _parts(self, found: Evaluation, named: Mapping[str, MeasureSpec]) -> dict[str, ScorePart]:
        """Return means, with intervals if they are affordable."""
        if not self._many:
            return {told: score_part(found.interval[one.name]) for told, one in named.items()}
        names = tuple(named[told].name for told in self.quality if told in named)
        deciding = replace(found, measures=names, values=np.array([found.column(name) for name in names]))
        return {
            told: score_part(deciding.interval[one.name]) if one.name in names else _mean(found.column(one.name))
            for told, one in named.items()
        }

    @property
    def _graded(self) -> bool:
        return self.judgments.qrels.scale.golden

    @property
    def ceilings(self) -> tuple[str, ...]:
        """Measures that have a ceiling."""
        return CEILINGS if self._graded else ()

    def _named(self, told: str, k: int) -> MeasureSpec:
        """Return a measure; a ceiling uses the system's candidates."""
        name, _, cutoff = told.partition("@")
        return parse_measure(f"{name}({k})@{cutoff}" if name.startswith(("proc_", "pct_proc_")) else told)


def run_of(lists: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> Run:
    """Return lists as columns. Passages with equal scores stay in the order of the list.

    The system that wrote a list has broken its ties, so ranks are scored.

    Raises:
        DataError: all lists are empty.
    """
    qids = [qid for qid, hits in lists for _ in hits]
    docs = [doc for _, hits in lists for doc, _ in hits]
    ranks = [-float(rank) for _, hits in lists for rank in range(len(hits))]
    if not qids:
        raise DataError("returned nothing for any query", remedy="check its settings")
    return Run.from_columns(qids, docs, ranks)


def _mean(values: Floats) -> ScorePart:
    return ScorePart(mean=mean(values), low=None, high=None, valid=int(np.isfinite(values).sum()))


def _ratio(part: float, whole: float) -> Number:
    return finite_or_none(part / whole) if np.isfinite(part) and whole > 0 else None
