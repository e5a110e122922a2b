"""From systems and a golden set to the report. Everything that is counted is counted here; nothing is printed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raggs.arrays import Floats
from raggs.errors import DataError, UsageError
from raggs.evaluation.comparisons import comparisons
from raggs.evaluation.models import (
    AnswersPart,
    BottleneckPart,
    GoldenPart,
    Number,
    Report,
    RobustnessPart,
    ScorePart,
    SettingPart,
    SystemPart,
    TiePart,
    number,
)
from raggs.golden.judgments import Judgments
from raggs.golden.systems import System
from raggs.metrics.bottleneck import bottleneck
from raggs.metrics.bounds import bounds
from raggs.metrics.evaluate import Evaluation, measure_hits
from raggs.metrics.hits import Hits, Ties, find_hits
from raggs.metrics.names import Named, parse_measure
from raggs.metrics.robustness import recall_profile
from raggs.metrics.sensitivity import sensitivity
from raggs.metrics.stats import Interval
from raggs.metrics.uncertainty import with_doubt
from raggs.text import plural

SHOWN = 3


@dataclass(frozen=True)
class Options:
    """How to evaluate; see `raggs eval --help`."""

    measures: Sequence[Named]
    cutoffs: Sequence[int] = (10,)
    ties: Ties = "trec"
    condensed: bool = False
    baseline: str | None = None
    pool: int = 50
    bounds: bool = False
    sensitivity: bool = False
    robustness: bool = False
    uncertainty: bool = False
    confidence: float = 0.95
    seed: int = 1
    facets: Mapping[str, str] = field(default_factory=dict)
    correct: Mapping[str, bool] | None = None
    answer_rank: Mapping[str, float] | None = None


def make_report(golden: Judgments, systems: Sequence[System], options: Options) -> Report:
    """Score every system.

    Raises:
        DataError: no query in common, or a measure that the labels do not allow.
        UsageError: no baseline of that name.
    """
    hits = {system.name: hits_of(golden, system, options) for system in systems}
    if options.baseline is not None and options.baseline not in hits:
        raise UsageError(f"no system is called {options.baseline}", remedy=f"known: {', '.join(hits)}")
    found = {
        name: measure_hits(table, options.measures, confidence=options.confidence, seed=options.seed)
        for name, table in hits.items()
    }
    parts = [_system(golden, system, hits[system.name], found[system.name], options) for system in systems]
    wide = options.sensitivity and golden.qrels.scale.golden
    return Report(
        golden=_golden(golden),
        measures=tuple(named.name for named in options.measures),
        higher_is_better={named.name: named.higher for named in options.measures},
        ties=options.ties,
        condensed=options.condensed,
        confidence=options.confidence,
        seed=options.seed,
        label_uncertainty=options.uncertainty,
        systems=tuple(parts),
        comparisons=tuple(
            comparisons(found, options.measures, options.baseline, confidence=options.confidence, seed=options.seed)
        ),
        sensitivity=tuple(_sensitivity(hits, max(options.cutoffs)) if wide else ()),
        notes=tuple(_notes(parts)),
        per_query={name: _per_query(evaluation) for name, evaluation in found.items()},
    )


def hits_of(golden: Judgments, system: System, options: Options) -> Hits:
    """Where a system put the judged passages, with all that `options` say of its lists.

    Raises:
        DataError: no query in common.
    """
    hits = find_hits(golden.qrels, system.run, options.ties)
    if not hits.returned.any():
        raise DataError(
            f"has none of the queries of {golden.source}: it has {_some(system.run.qids)}, wanted are "
            f"{_some(golden.qrels.qids)}",
            where=system.source,
            remedy="make both name queries in the same way",
        )
    facets = {**golden.facets, **options.facets}
    if facets:
        hits = replace(hits, facet=golden.qrels.facets(facets))
    if options.answer_rank is not None:
        ranks = [options.answer_rank.get(qid, math.nan) for qid in golden.qrels.qids]
        hits = replace(hits, answer_rank=np.array(ranks))
    return hits.condensed() if options.condensed else hits


def _some(qids: Sequence[str]) -> str:
    return ", ".join(qids[:SHOWN]) + (", …" if len(qids) > SHOWN else "") or "none"


def _golden(golden: Judgments) -> GoldenPart:
    scale = golden.qrels.scale
    return GoldenPart(
        source=golden.source,
        queries=len(golden.qrels.qids),
        judgments=int((golden.qrels.grade >= 0).sum()),
        lowest=scale.low,
        highest=scale.high,
        relevant=scale.relevant,
        gains=scale.gains,
        digest=golden.digest,
    )


def _system(golden: Judgments, system: System, hits: Hits, found: Evaluation, options: Options) -> SystemPart:
    intervals: Sequence[Interval] = list(found.interval.values())
    if options.uncertainty and golden.doubt is not None:
        intervals = with_doubt(hits, options.measures, golden.doubt, intervals, seed=options.seed)
    k = max(options.cutoffs)
    graded = golden.qrels.scale.golden
    return SystemPart(
        name=system.name,
        source=system.source,
        missing=int((~hits.returned).sum()),
        unknown=hits.unknown,
        tied=int(hits.tied.sum()),
        scores={
            named.name: _score(hits, named, interval, options.bounds)
            for named, interval in zip(options.measures, intervals, strict=True)
        },
        ties=tuple(_ties(hits, options.measures)) if hits.tied.any() else (),
        bottleneck=tuple(_bottleneck(hits, name, k, options.pool) for name in ("ra_nwg", "n_recall4"))
        if graded
        else (),
        robustness=tuple(_robustness(hits, cutoff) for cutoff in options.cutoffs) if options.robustness else (),
        answers=None if options.correct is None else _answers(hits, k, options.correct, options.confidence),
    )


def _score(hits: Hits, named: Named, interval: Interval, bounded: bool) -> ScorePart:
    return score_part(interval, *(map(_mean, bounds(hits, named)) if bounded else ()))


def score_part(interval: Interval, lowest: Number = None, highest: Number = None) -> ScorePart:
    """A mean with its interval, and with its holes filled where that was asked for."""
    return ScorePart(
        mean=number(interval.mean),
        low=number(interval.low),
        high=number(interval.high),
        valid=interval.count,
        lowest=lowest,
        highest=highest,
    )


def _ties(hits: Hits, measures: Sequence[Named]) -> list[TiePart]:
    """The measures whose value depends on how ties are broken."""
    found = []
    for named in measures:
        if named.mode or not named.measure.TIES:
            continue
        least, most = (replace(named, mode=mode).values(hits) for mode in ("min", "max"))
        moved = int((most - least > 0).sum())
        if moved:
            expected = replace(named, mode="E").values(hits)
            found.append(
                TiePart(
                    measure=named.name,
                    expected=_mean(expected),
                    least=_mean(least),
                    most=_mean(most),
                    bias=_mean(named.values(hits) - expected),
                    queries=moved,
                )
            )
    return found


def _bottleneck(hits: Hits, measure: str, k: int, pool: int) -> BottleneckPart:
    found = bottleneck(hits, measure, k=k, pool=pool)
    return BottleneckPart(
        measure=f"{measure}@{k}",
        pool=found.pool,
        actual=number(found.actual),
        ceiling=number(found.ceiling),
        retrieval=number(found.retrieval),
        ordering=number(found.ordering),
        kind=found.kind,
        queries={kind: found.by_query.count(kind) for kind in ("retrieval", "ordering", "none")},
        by_query={qid: kind for qid, kind in zip(hits.qrels.qids, found.by_query, strict=True) if kind},
    )


def _robustness(hits: Hits, k: int) -> RobustnessPart:
    profile = recall_profile(parse_measure(f"recall@{k}").values(hits))
    beside = {name: _mean(parse_measure(name).values(hits)) for name in (f"map@{k}", f"ndcg@{k}", f"mrr@{k}")}
    return RobustnessPart(
        measure=f"recall@{k}",
        mean=profile.mean,
        zero=profile.zero,
        area=profile.area,
        shares={f"{delta:g}": share for delta, share in profile.shares.items()},
        percentiles={str(percent): value for percent, value in profile.percentiles.items()},
        histogram=profile.histogram,
        beside=beside,
    )


def _answers(hits: Hits, k: int, correct: Mapping[str, bool], confidence: float) -> AnswersPart:
    from raggs.agreement import accuracy_given_hit  # late: few evaluations know answers

    name = f"hit_all@{k}" if hits.qrels.scale.golden else f"hit@{k}"
    values = parse_measure(name).values(hits)
    flags = np.array([float(correct[qid]) if qid in correct else np.nan for qid in hits.qrels.qids])
    if not np.isfinite(flags).any():
        raise DataError("no judged query has a known answer", remedy="make both files name queries in the same way")
    found = accuracy_given_hit(flags, values, confidence=confidence)
    return AnswersPart(
        measure=name,
        accuracy=number(found.value),
        low=found.low,
        high=found.high,
        hits=found.hits,
        correct=found.correct,
        queries=int(np.isfinite(flags).sum()),
    )


def _sensitivity(hits: Mapping[str, Hits], k: int) -> list[SettingPart]:
    return [
        SettingPart(
            alpha=point.alpha,
            cap4=point.cap4,
            cap3=point.cap3,
            means={name: number(mean) for name, mean in point.means.items()},
            order=point.order,
            swapped=point.swapped,
        )
        for point in sensitivity(hits, k=k)
    ]


def _notes(parts: Sequence[SystemPart]) -> list[str]:
    """What a reader must know before believing a number."""
    notes = []
    for part in parts:
        if part.missing:
            notes.append(
                f"{part.name} has no list for {plural(part.missing, 'judged query')}: each scores 0 (as trec_eval -c)"
            )
        if part.unknown:
            notes.append(f"{part.name} has {plural(part.unknown, 'query')} without judgments, left out")
        if part.ties:
            worst = max(part.ties, key=lambda tie: (tie.most or 0.0) - (tie.least or 0.0))
            notes.append(
                f"{part.name}: {plural(part.tied, 'passage')} share their score with another; by how ties are broken, "
                f"{worst.measure} lies in {worst.least:.4f} to {worst.most:.4f}, expected {worst.expected:.4f} "
                f"({plural(worst.queries, 'query')})"
            )
    return notes


def _per_query(found: Evaluation) -> dict[str, dict[str, Number]]:
    return {
        measure: {qid: value for qid, value in values.items() if math.isfinite(value)}
        for measure, values in found.per_query.items()
    }


def _mean(values: Floats) -> Number:
    valid = values[np.isfinite(values)]
    return float(valid.mean()) if len(valid) else None
