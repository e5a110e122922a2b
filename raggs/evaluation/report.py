"""From systems and a golden set to the report: the scores, then what each analysis adds. Nothing is printed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from raggs.base.health import sources_words
from raggs.base.jsontypes import Number, number
from raggs.base.text import plural
from raggs.evaluation.analyses.base import Analysis
from raggs.evaluation.models import GoldenPart, Report, ScorePart, SystemPart
from raggs.evaluation.projected import finer_note, projection_part
from raggs.evaluation.strangers import doubt_of, harmless_note
from raggs.evaluation.study import Scoring, Study, study_systems
from raggs.golden.judgments import Judgments
from raggs.golden.systems import System
from raggs.metrics.evaluate import Evaluation
from raggs.metrics.stats import Interval


def make_report(
    judgments: Judgments, systems: Sequence[System], scoring: Scoring, analyses: Sequence[Analysis] = ()
) -> Report:
    """Score every system and ask each analysis.

    Raises:
        DataError: no query in common, or a measure or analysis that the labels do not allow.
        UsageError: an analysis lacks what it needs.
    """
    return study_and_report(judgments, systems, scoring, analyses)[1]


def study_and_report(
    judgments: Judgments, systems: Sequence[System], scoring: Scoring, analyses: Sequence[Analysis] = ()
) -> tuple[Study, Report]:
    """As `make_report`, with the study that the report was made of.

    Raises:
        DataError, UsageError: as `make_report`.
    """
    for analysis in analyses:
        analysis.check(judgments, [system.name for system in systems])
    study = study_systems(judgments, systems, scoring)
    report = _scores(study, systems)
    for analysis in analyses:
        report = analysis.extend(report, study)
    return study, report


def _scores(study: Study, systems: Sequence[System]) -> Report:
    """The report before any analysis."""
    scoring = study.scoring
    parts = tuple(_system(study, system) for system in systems)
    return Report(
        golden=golden_part(study.judgments),
        measures=tuple(named.name for named in scoring.measures),
        higher_is_better={named.name: named.higher for named in scoring.measures},
        ties=scoring.ties,
        condensed=scoring.condensed,
        confidence=scoring.confidence,
        seed=scoring.seed,
        label_uncertainty=False,
        systems=parts,
        notes=(*_sources(study), *(note for part in parts for note in _notes(part, study))),
        warnings=(
            *study.judgments.warnings,
            *filter(None, [study.judgments.unscorable()]),
            *filter(None, (system.run.note for system in systems)),
            *filter(None, (doubt_of(study, part.name) for part in parts)),
        ),
        per_query={name: _per_query(values) for name, values in study.values.items()},
        shown={name: top.lists(study.judgments.qrels.qids) for name, top in study.tops.items()},
    )


def golden_part(judgments: Judgments) -> GoldenPart:
    """What a report says of the judgments."""
    scale = judgments.qrels.scale
    return GoldenPart(
        source=judgments.source,
        queries=len(judgments.qrels.qids),
        judgments=int((judgments.qrels.grade >= 0).sum()),
        lowest=scale.low,
        highest=scale.high,
        relevant=scale.relevant,
        gains=scale.gains,
        digest=judgments.digest,
    )


def _system(study: Study, system: System) -> SystemPart:
    hits, intervals = study.hits[system.name], study.values[system.name].interval
    return SystemPart(
        name=system.name,
        source=system.source,
        missing=int((~hits.returned).sum()),
        unknown=hits.unknown,
        tied=int(hits.tied.sum()),
        scores={measure: score_part(interval) for measure, interval in intervals.items()},
        projection=projection_part(system.projection, hits, study.cutoff) if system.projection else None,
    )


def score_part(interval: Interval) -> ScorePart:
    """A mean with its interval."""
    return ScorePart(
        mean=number(interval.mean), low=number(interval.low), high=number(interval.high), valid=interval.count
    )


def _sources(study: Study) -> Iterator[str]:
    if sources := study.judgments.sources:
        yield f"grades: {sources_words(sources)}"


def _notes(part: SystemPart, study: Study) -> Iterator[str]:
    """What a reader must know before believing a system's numbers."""
    if part.missing:
        said = plural(part.missing, "judged query")
        yield f"{part.name} has no list for {said}: each scores 0 (as trec_eval -c)"
    if part.unknown:
        yield f"{part.name} has {plural(part.unknown, 'query')} without judgments, left out"
    if note := finer_note(part):
        yield note
    if note := harmless_note(study, part.name):
        yield note


def _per_query(found: Evaluation) -> dict[str, dict[str, Number]]:
    return {
        measure: {qid: value for qid, value in values.items() if math.isfinite(value)}
        for measure, values in found.per_query.items()
    }
