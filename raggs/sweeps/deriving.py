"""Derive the report of a sweep from its folder: scores, front, choice. This module searches for nothing, calls no model
and times nothing.

The report at the end of a sweep, a new choice under other limits, and the audit of a sweep all use this module.

The report compares approximate indexes with the exact one. It also scores each system without the judged passages that
only this system found. Systems that the golden set was pooled from have an advantage through such passages. Systems
that differ only in the number of candidates or the reranker count as one system here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from raggs.base.arrays import Floats
from raggs.base.cache import OnceCache
from raggs.base.errors import RaggsError
from raggs.base.text import plural
from raggs.base.types import BuildProgress, Number, ProgressListener, finite_or_none, ignore_progress
from raggs.evaluation.analyses.comparisons import comparison_part
from raggs.evaluation.analyses.leave_one_out import leave_out
from raggs.evaluation.models import ComparisonPart, UnjudgedPart
from raggs.evaluation.report import golden_part
from raggs.golden.judgments import Judgments
from raggs.metrics.columns import Run
from raggs.metrics.hits import Hits
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import ShownPassages
from raggs.stats.comparison import compare_many
from raggs.stats.front import MAX_LOSS, MeasuredIndex, deltas, efficiency
from raggs.sweeps.comparing import cut_notes
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.deciding import SweepDecision, decide
from raggs.sweeps.effects import SweepUncertainty
from raggs.sweeps.grid import CHUNKER, family_levels
from raggs.sweeps.judgments import ChunkingGrades, is_reference
from raggs.sweeps.models import IndexLossPart, SweepReport, SystemRow, UniqueContributionPart
from raggs.sweeps.scoring import ScoredSystem, SystemScorer

AXIS, EXACT = "index", "flat"


def index_deltas(
    rows: Sequence[SystemRow], quality: Sequence[str], doubts: Mapping[str, SweepUncertainty | None]
) -> Iterator[IndexLossPart]:
    """Compare each system that uses an approximate index with the one that uses the exact index.

    Args:
        rows: the systems with their scores.
        quality: the deciding measures.
        doubts: by measure, bounds for unjudged passages; None if they carry no information.
    """
    families: dict[object, list[SystemRow]] = {}
    for row in rows:
        if AXIS in row.levels and all(name in row.scores for name in quality):
            families.setdefault(family_levels(row.levels, AXIS), []).append(row)
    for members in families.values():
        exact = next((row for row in members if row.levels[AXIS] == EXACT), None)
        others = [row for row in members if row is not exact]
        if exact is None or not others:
            continue
        for found in deltas(_measured(exact, quality), [_measured(row, quality) for row in others]):
            yield IndexLossPart(
                system=found.name,
                exact=exact.name,
                quality=dict(zip(quality, found.quality, strict=True)),
                latency=found.latency,
                loss=found.loss,
                unjudged=_unjudged(found.name, exact, dict(zip(quality, found.quality, strict=True)), doubts),
            )


def _unjudged(
    name: str, exact: SystemRow, changes: Mapping[str, float | None], doubts: Mapping[str, SweepUncertainty | None]
) -> UnjudgedPart | None:
    """Return why it is inconclusive whether an index is good enough on every measure, or None if it is conclusive.

    The result is conclusive if an index is not good enough on one measure for all possible grades of unjudged passages.
    """
    lost = {measure for measure, change in changes.items() if change is None or change < -MAX_LOSS}
    open_ = [(measure, each) for measure in changes if (each := doubts.get(measure)) is not None
             and each.could_cross_share(name, exact.name, 1.0 - MAX_LOSS)]  # fmt: skip
    if not open_ or lost - {measure for measure, _ in open_}:
        return None
    return next(each for measure, each in open_ if not lost or measure in lost).part([(name, exact.name)])


def _measured(row: SystemRow, quality: Sequence[str]) -> MeasuredIndex:
    means = tuple(row.scores[name].mean or 0.0 for name in quality)
    spread = row.latency.retrieve
    return MeasuredIndex(row.name, means, None if spread is None else spread.p50)


UNGROUPED_AXES = ("k", "reranker")  # axes that do not change the search


def unique_contributions(
    rows: Sequence[SystemRow], hits: Mapping[str, Hits], measure: str, depth: int
) -> tuple[UniqueContributionPart, ...]:
    """Return each system's score with and without its unique contributions, largest drop first.

    Args:
        rows: the systems.
        hits: by system, the ranks of judged passages.
        measure: the primary measure.
        depth: ranks up to which a list contributes to the pool.
    """
    if not hits:
        return ()
    groups = {row.name: _group(row) for row in rows if row.name in hits}
    named = parse_measure(measure)
    found, sign = leave_out(hits, named, depth, groups), 1.0 if named.higher else -1.0
    return tuple(
        UniqueContributionPart(
            system=fall.system,
            group=fall.group,
            measure=named.name,
            score=finite_or_none(sign * fall.score),
            without=finite_or_none(sign * fall.without),
            alone=found.own(fall.system).judged,
            overtaken_by=fall.overtaken_by,
        )
        for fall in found.falls
    )


def _group(row: SystemRow) -> str:
    return "+".join(label for _, label in family_levels(row.levels, *UNGROUPED_AXES))


UNSCORED: dict[str, object] = {
    "file": None,
    "scores": {},
    "realised": {},
    "holes": {},
    "unjudged_characters": {},
    "projection": None,
}
MAX_NAMED_SYSTEMS = 3  # maximum number of notes on systems that halving kept because of unjudged passages
MAX_COMPARED_SYSTEMS = 50  # with more systems, only the front is compared with the baseline


def derive(
    config: SweepConfig,
    judgments: Judgments,
    rows: Sequence[SystemRow],
    run_of: Callable[[SystemRow], Run],
    left_out: Sequence[str] = (),
    hear: ProgressListener = ignore_progress,
    atlas: ChunkingGrades | None = None,
) -> SweepReport:
    """Score the systems, compare them and choose.

    Args:
        config: of the sweep.
        judgments: grades of the golden set.
        rows: the measured systems; their scores are computed here.
        run_of: returns the lists of a row with a file.
        left_out: sentences about combinations that are not systems.
        atlas: chunkings of the corpus and their grades; None if all systems use the chunks of the corpus.

    Raises:
        DataError: lists cannot be scored. An external run is marked unfinished instead.
    """
    few = sum(row.file is not None for row in rows) <= MAX_COMPARED_SYSTEMS
    scorers = OnceCache[SystemScorer]()

    def scorer_of(label: str | None) -> SystemScorer:
        sheet = atlas.sheet(label) if atlas and label is not None else None
        return scorers(label, lambda: SystemScorer(config, judgments, many=not few, sheet=sheet))

    scorer = scorer_of(next((row.levels[CHUNKER] for row in rows if atlas), None))
    values: dict[str, dict[str, Floats]] = {}
    hits: dict[str, Hits] = {}
    shown: dict[str, ShownPassages | None] = {}
    scored: list[SystemRow] = []
    for done, row in enumerate(rows):
        hear(BuildProgress("scored systems", done, len(rows)))
        if row.file is None:
            scored.append(row)
            continue
        try:
            found = scorer_of(row.levels.get(CHUNKER)).score(row.name, run_of(row), row.k)
        except RaggsError as error:
            if row.sha256 is None:
                raise
            scored.append(row.model_copy(update={**UNSCORED, "failed": str(error)}))
            continue
        values[row.name], shown[row.name] = found.values, found.shown
        if few and found.projection is None:
            hits[row.name] = found.hits
        scored.append(_with_scores(row, found, scorer.quality, config))
    hear(BuildProgress("scored systems", len(rows), len(rows)))
    open_ = {measure: SweepUncertainty.of(measure, shown, config.golden) for measure in scorer.quality}
    decision = decide(config, scorer.quality, scored, values, doubts := open_[scorer.quality[0]])
    return SweepReport(
        name=config.name,
        golden=golden_part(judgments),
        questions=max((row.questions for row in rows), default=0),
        quality=scorer.quality,
        measures=scorer.measures(),
        cutoffs=config.cutoffs,
        ceilings=scorer.ceilings,
        jitter_ms=config.latency.jitter_ms,
        margin=config.margin,
        cost_jitter=config.cost_jitter,
        confidence=config.confidence,
        seed=config.seed,
        systems=tuple(scored),
        cuts=() if atlas is None else atlas.parts,
        left_out=tuple(left_out),
        front=decision.front,
        dominated=decision.dominated,
        choice=decision.choice,
        frontiers=decision.frontiers,
        effects=decision.effects,
        interactions=decision.interactions,
        deltas=tuple(index_deltas(scored, scorer.quality, open_)),
        steps=decision.steps,
        wins=decision.wins,
        baseline=decision.baseline,
        comparisons=_comparisons(config, scorer.quality[0], decision, values, doubts),
        loyalty=_contributions(scored, hits, scorer.quality[0], config),
        notes=(*_notes(scored, doubts, few=few), *_cut_notes(scored, atlas, decision, scorer.quality[0], config)),
    )


def _with_scores(row: SystemRow, found: ScoredSystem, quality: Sequence[str], config: SweepConfig) -> SystemRow:
    means = [found.scores[name].mean for name in quality]
    known = [mean for mean in means if mean is not None]
    latency = row.latency
    local = latency.rerank or latency.retrieve
    return row.model_copy(
        update={
            "scores": found.scores,
            "realised": found.realised,
            "holes": found.holes,
            "unjudged_characters": found.unjudged,
            "projection": found.projection,
            "efficiency": _efficiency(known, None if local is None else local.p50),
            "efficiency_all": _efficiency(
                known, None if latency.total is None else latency.total.p50 + config.latency.generation_ms
            ),
        }
    )


def _efficiency(quality: Sequence[float], ms: float | None) -> Number:
    return None if ms is None or not quality else finite_or_none(efficiency(quality, ms))


def _comparisons(
    config: SweepConfig,
    measure: str,
    decision: SweepDecision,
    values: dict[str, dict[str, Floats]],
    doubts: SweepUncertainty | None,
) -> tuple[ComparisonPart, ...]:
    """Compare each system with the baseline on the primary measure, with Holm's correction over these systems. With
    more than `MAX_COMPARED_SYSTEMS`, compare only the front.
    """
    baseline = decision.baseline
    if baseline is None or baseline not in values:
        return ()
    names = list(values) if len(values) <= MAX_COMPARED_SYSTEMS else [name for name in decision.front if name in values]
    others = {name: values[name][measure] for name in names if name != baseline}
    if not others:
        return ()
    bounds = {} if doubts is None else {name: doubts.ends(name, baseline) for name in others}
    ends = {name: each for name, each in bounds.items() if each is not None}
    alpha = 1 - config.confidence
    found = compare_many(values[baseline][measure], others, seed=config.seed, alpha=alpha, ends=ends)
    return tuple(
        comparison_part(
            name,
            baseline,
            measure,
            one,
            unjudged=None if one.verdict != "unjudged" else _unjudged_reason(doubts, name, baseline),
        )
        for name, one in found.items()
    )


def _unjudged_reason(doubts: SweepUncertainty | None, name: str, baseline: str) -> UnjudgedPart | None:
    return None if doubts is None else doubts.part([(name, baseline)])


def _contributions(
    rows: Sequence[SystemRow], hits: dict[str, Hits], measure: str, config: SweepConfig
) -> tuple[UniqueContributionPart, ...]:
    """Return the scores without unique contributions. They are empty for measures by references, which do not depend on
    a pool, and if there are no `hits`.
    """
    return () if is_reference(measure) else unique_contributions(rows, hits, measure, max(config.cutoffs))


def _cut_notes(
    rows: Sequence[SystemRow], atlas: ChunkingGrades | None, decision: SweepDecision, measure: str, config: SweepConfig
) -> Iterator[str]:
    if atlas is not None:
        yield from cut_notes(rows, atlas.parts, decision.effects, measure, config.cutoffs[0])


def _undecided(rows: Sequence[SystemRow], doubts: SweepUncertainty | None) -> Iterator[str]:
    """Yield sentences on the systems that halving kept because unjudged passages could reverse the result, and on how
    to get these passages judged.
    """
    kept = [row for row in rows if row.undecided]
    yield from (f"{row.name} was not given up early: {row.undecided}" for row in kept[:MAX_NAMED_SYSTEMS])
    if len(kept) > MAX_NAMED_SYSTEMS:
        yield (
            f"{plural(len(kept) - MAX_NAMED_SYSTEMS, 'more system')} not given up early for the same reason, "
            "see systems.jsonl"
        )
    if kept and doubts is not None:
        yield f"next: {doubts.remedy}"


def _notes(rows: Sequence[SystemRow], doubts: SweepUncertainty | None, *, few: bool) -> list[str]:
    """Return notes that limit the interpretation of the numbers."""
    found = [f"{row.name} is unfinished: {row.failed}" for row in rows if row.failed]
    found += [f"{row.name} was given up early: {row.dropped}" for row in rows if row.dropped]
    found += _undecided(rows, doubts)
    for row, part in ((row, row.fit) for row in rows if row.fit):
        one, other = part.chosen
        found.append(
            f"{row.name}: weight {one:g} on {plural(len(part.first), 'query')} and {other:g} on the others; each half "
            f"uses the weight that is best for {part.measure} on the other half (seed {part.seed})"
        )
    asked = [row for row in rows if row.projection is None]
    unjudged = [hole for row in asked for hole in row.holes.values() if hole is not None]
    if unjudged and max(unjudged) > 0:
        found.append(
            f"up to {max(unjudged):.0%} of a system's top passages are unjudged and count as not relevant: "
            "the option --judge-holes has them judged"
        )
    timed = {row.latency.total is None for row in rows if row.file}
    if True in timed:
        found.append("some systems were not timed in every step, so they do not meet any latency limit")
    if not few:
        found.append(
            f"with more than {MAX_COMPARED_SYSTEMS} systems, only the deciding measures have intervals, and only the "
            "systems on the front are compared with the baseline"
        )
    return found
