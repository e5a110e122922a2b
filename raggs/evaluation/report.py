"""Build the report of an evaluation: first the scores of the systems, then the findings of each analysis.

If grades are projected onto other chunks, the report also states the projection rule, the number of passages with a
grade, and how much of the retrieved text is judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from raggs.base.judge_health import sources_words
from raggs.base.text import plural
from raggs.base.types import Number, finite_or_none
from raggs.evaluation.analyses import Analysis
from raggs.evaluation.models import (
    EvalReport,
    GoldenPart,
    ProjectionPart,
    ScorePart,
    SearchLatencyPart,
    SystemPart,
    TaskSearchesPart,
)
from raggs.evaluation.study import ScoringSettings, Study, doubt_of, harmless_note, study_systems
from raggs.golden.judgments import Judgments
from raggs.golden.places import Projection
from raggs.golden.sources import NamedSystem
from raggs.metrics.evaluate import Evaluation
from raggs.metrics.hits import Hits
from raggs.stats.intervals import Interval

MAX_UNREPORTED_LOSS = 0.05  # Share of the judged characters. A smaller loss is usually white space at chunk boundaries.
# ratio of median chunk lengths (system to judged); below it, the grades are too coarse for the system's chunks
COARSE_GRADES_BELOW = 0.7


def projection_part(projection: Projection, hits: Hits, cutoff: int) -> ProjectionPart:
    """Return the facts about a projection, and about the retrieved text up to the cutoff."""
    rule, found = projection.rule, projection.projected
    return ProjectionPart(
        corpus=projection.origin.corpus,
        judged_corpus=projection.judged.golden.origin.corpus,
        by=rule.by,
        least=rule.least,
        known=rule.known,
        proof=rule.proof,
        overlap=rule.overlap,
        passages=len(found.grade) - found.holes,
        holes=found.holes,
        judged_length=projection.lengths[0],
        length=projection.lengths[1],
        lost=projection.lost,
        cutoff=cutoff,
        judged=None if hits.reading is None else finite_or_none(hits.reading.judged_share(cutoff)),
    )


def projections(report: EvalReport) -> Iterator[str]:
    """Yield a sentence on each projection rule, and a sentence for each group of systems with the same projected
    grades.
    """
    parts = {system.name: system.projection for system in report.systems if system.projection}
    for rule in dict.fromkeys(rule_words(part) for part in parts.values()):
        yield f"projected: {rule}"
    for said in dict.fromkeys(_projection_sentence(part) for part in parts.values()):
        names = [name for name, part in parts.items() if _projection_sentence(part) == said]
        shares = ", ".join(f"{name} {_share(parts[name].judged)}" for name in names)
        yield f"{said}; judged share of the characters in the top {parts[names[0]].cutoff}: {shares}"


def finer_note(part: SystemPart) -> str:
    """Return a note if a system's chunks are much smaller than the judged chunks; otherwise an empty text."""
    found = part.projection
    if found is None or found.length >= COARSE_GRADES_BELOW * found.judged_length:
        return ""
    return (
        f"{part.name} uses smaller chunks than the judged ones ({found.length:,.0f} against {found.judged_length:,.0f} "
        "characters). Every part of a relevant chunk counts as relevant, so its recall and ra_nwg are too low compared "
        "with systems that use larger chunks. Make the golden set with the smallest chunks"
    )


def rule_words(part: ProjectionPart) -> str:
    """Return the projection rule in words."""
    share = f"{part.least:.0%}"
    earned = {
        "cover": f"the highest grade of {share} of its judged characters, or of a judged passage covered by {share}",
        "share": f"the highest grade that {share} of its judged characters have",
        "mean": "the mean grade of its judged characters",
        "max": "the highest grade of its characters",
    }[part.by]
    shared = f"; if judged passages overlap, the {part.overlap} grade counts"
    hole = f"it is unjudged if less than {part.known:.0%} is judged and its grade is below {part.proof}"
    return f"a passage gets {earned}{shared}; {hole}"


def _projection_sentence(part: ProjectionPart) -> str:
    """Return how many passages of a corpus have projected grades, in words."""
    onto = f" onto the corpus {part.corpus[:12]}" if part.corpus else ""
    lost = f", {part.lost:.0%} of the judged text in no passage" if part.lost > MAX_UNREPORTED_LOSS else ""
    return f"{plural(part.passages, 'passage')} with a grade and {plural(part.holes, 'hole')}{onto}{lost}"


def _share(share: Number) -> str:
    return "–" if share is None else f"{share:.0%}"


def make_report(
    judgments: Judgments, systems: Sequence[NamedSystem], scoring: ScoringSettings, analyses: Sequence[Analysis] = ()
) -> EvalReport:
    """Score every system and run each analysis.

    Raises:
        DataError: a system has no query in common with the judgments, or a measure or an analysis cannot be computed
            from the labels.
        UsageError: an analysis lacks a required input.
    """
    return study_and_report(judgments, systems, scoring, analyses)[1]


def study_and_report(
    judgments: Judgments, systems: Sequence[NamedSystem], scoring: ScoringSettings, analyses: Sequence[Analysis] = ()
) -> tuple[Study, EvalReport]:
    """Return the study and its report; see `make_report`.

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


def _scores(study: Study, systems: Sequence[NamedSystem]) -> EvalReport:
    """Return the report with the scores, before any analysis is run."""
    scoring = study.scoring
    parts = tuple(_system(study, system) for system in systems)
    return EvalReport(
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
    """Return the facts about the judgments."""
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
        version=judgments.version,
    )


def _system(study: Study, system: NamedSystem) -> SystemPart:
    latency = system.run.latency
    hits, intervals = study.hits[system.name], study.values[system.name].interval
    return SystemPart(
        name=system.name,
        source=system.source,
        missing=int((~hits.returned).sum()),
        unknown=hits.unknown,
        tied=int(hits.tied.sum()),
        scores={measure: score_part(interval) for measure, interval in intervals.items()},
        projection=projection_part(system.projection, hits, study.cutoff) if system.projection else None,
        tasks=None if (tasks := system.run.tasks) is None else TaskSearchesPart(searches=tasks.searches, usd=tasks.usd),
        latency=None if latency is None else SearchLatencyPart(**asdict(latency)),
    )


def score_part(interval: Interval) -> ScorePart:
    """Return a mean with its interval, as the report stores it."""
    return ScorePart(
        mean=finite_or_none(interval.mean),
        low=finite_or_none(interval.low),
        high=finite_or_none(interval.high),
        valid=interval.count,
    )


def _sources(study: Study) -> Iterator[str]:
    if sources := study.judgments.sources:
        yield f"grades: {sources_words(sources)}"
    if any(named.measure.EVIDENCE for named in study.scoring.measures):
        yield from study.judgments.evidence_notes


def _notes(part: SystemPart, study: Study) -> Iterator[str]:
    """Yield notes on how far a system's scores can be interpreted."""
    if part.missing:
        said = plural(part.missing, "judged query")
        yield f"{part.name} has no results for {said}, scored as an empty list (as trec_eval -c)"
    if part.unknown:
        yield f"{part.name} has {plural(part.unknown, 'query')} without judgments, which are ignored"
    if note := finer_note(part):
        yield note
    if note := harmless_note(study, part.name):
        yield note


def _per_query(found: Evaluation) -> dict[str, dict[str, Number]]:
    return {
        measure: {qid: value for qid, value in values.items() if math.isfinite(value)}
        for measure, values in found.per_query.items()
    }
