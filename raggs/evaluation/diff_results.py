"""Compare two golden sets or two runs: figures, verdicts on systems, settings, results and cost.

`health_words` names the figures of the judge's health for tables. JSON files contain the paths of these figures in the
locks of the stages instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from raggs.base import __version__
from raggs.base.arrays import Floats
from raggs.base.artifacts import Frozen
from raggs.base.errors import RaggsError
from raggs.base.hashing import canonical_json
from raggs.base.settings import counts_by_value
from raggs.base.types import as_object, as_text, finite_or_none, leaves
from raggs.evaluation.diff_sets import (
    DecisionsPart,
    EstimatePart,
    FigurePart,
    GoldenSide,
    MovePart,
    ScoreDiffPart,
    SettingDiffPart,
    StageInputDiffPart,
    VerdictPart,
)
from raggs.llm import LLMSettings
from raggs.runs.manifests.costs import LedgerSum, LedgerTotals
from raggs.runs.manifests.models import RunManifest
from raggs.runs.manifests.reasons import ABSENT, ComponentChanged, differences
from raggs.stages.pipeline import load_pipeline
from raggs.stats.comparison import Comparison, DifferenceBounds, Verdict, compare_many

FiguresByName = Mapping[str, float | None]


def figure_parts(old: FiguresByName, new: FiguresByName) -> tuple[FigurePart, ...]:
    """Return one part for each figure that at least one of the sets has."""
    names = dict.fromkeys([*old, *new])
    return tuple(FigurePart(name=name, old=old.get(name), new=new.get(name)) for name in names)


def differing_figures(parts: Iterable[FigurePart]) -> tuple[FigurePart, ...]:
    """Return the figures that differ."""
    return tuple(part for part in parts if part.old != part.new)


def coverage(side: GoldenSide) -> dict[str, float | None]:
    """Return the counts of judged queries, passages, ranked queries and failures, and of grades per query."""
    counts = Counter(grade for judged in side.grades.values() for grade in judged.values())
    queries = len(side.grades)
    stages = {} if side.manifest is None else side.manifest.stages
    found: dict[str, float | None] = {
        "questions": queries,
        "passages judged": sum(counts.values()),
        "judged per question": sum(counts.values()) / queries if queries else None,
        "questions ranked": len(side.orders),
        "judgments that failed": sum(lock.failed for lock in stages.values()) if stages else None,
    }
    grades = range(side.part.highest, side.part.lowest - 1, -1)
    return found | {f"grade {grade}, per question": counts[grade] / queries if queries else None for grade in grades}


def cost(side: GoldenSide) -> dict[str, float | None]:
    """Return calls and cost in USD, in total and by stage. The mapping is empty for a set that was read from files."""
    if side.costs is None:
        return {}
    found: dict[str, float | None] = {"calls": side.costs.total.calls, "USD": side.costs.total.usd}
    for stage, each in side.costs.stage.items():
        found |= {f"{stage} calls": each.calls, f"{stage} USD": each.usd}
    return found


def health(side: GoldenSide) -> dict[str, float | None]:
    """Return the figures of the judge's health by their path in the locks. The mapping is empty for a set that was
    read from files.
    """
    return dict(_health(side.manifest)) if side.manifest else {}


def _health(manifest: RunManifest) -> Iterator[tuple[str, float | None]]:
    for stage, lock in manifest.stages.items():
        if lock.health is None:
            continue
        for place, value in leaves(lock.health.model_dump(mode="json")):
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield ".".join((stage, *map(str, place))), float(value)


RATES: Mapping[str, tuple[str, str]] = {
    "judge.noise": ("grades that simulated noise changed", "grades with a label"),
    "judge.canaries.passed": ("canaries passed", "canaries"),
    "judge.cascade.asked": ("passages graded by the good judge", "passages of the cascade"),
    "judge.cascade.overruled": (
        "cheap grades that the good judge changed",
        "cheap grades with a grade of the good judge",
    ),
    "judge.cascade.missed": ("high grades in the random sample", "passages of the random sample"),
    "rank.first": ("batches won by the passage shown first", "batches ordered"),
    "rank.flips": ("pairs that changed order when shown again", "pairs shown again"),
    "rank.cycles": ("cyclic triples", "triples"),
    "rank.invalid": ("batches without an order", "batches requested"),
}
FIGURE_LABELS: Mapping[str, str] = {
    "judge.depth.stop_after": "consecutive low grades that stop judging a query",
    "judge.depth.asked": "judgments requested",
    "judge.depth.saved": "judgments saved by early stopping",
    "judge.depth.stopped": "queries whose judging stopped early",
    "judge.samples.asked": "grades of each passage",
    "judge.samples.judged": "passages judged at least once",
    "judge.samples.passages": "passages with several grades",
    "judge.samples.unanimous": "share of the passages with several grades whose grades are all equal",
    "judge.samples.exact": "share of the pairs of grades of a passage that are equal",
    "judge.samples.kappa": "kappa of the judge with itself",
    "judge.place.grades": "change of a grade if the passage is first in a call (position effect)",
    "judge.place.questions": "queries with data on position",
    "judge.samples.company.grades": "change of a grade if the mean grade of its group is one higher (context effect)",
    "judge.samples.company.questions": "queries with data on the context effect",
    "judge.cascade.by_rule": "passages sent to the good judge by their cheap grade",
    "judge.cascade.by_chance": "passages sent to the good judge at random",
    "judge.cascade.unseen.share": "estimated share of high grades that the good judge did not see",
    "judge.cascade.lost": "passages for which a judge of the cascade failed",
    "judge.cascade.ask_from": "lowest cheap grade that is sent to the good judge",
    "judge.people.kappa": "kappa with human labels",
    "judge.people.grades": "grades compared with human labels",
    "judge.people.questions": "queries with grades compared with human labels",
    "judge.people.by_people": "human grades in the set",
    "judge.silent": "passages on which the judge abstained",
    "judge.replaced": "answers with invalid characters",
    "rank.fair_first": "share of batches won by the first shown passage under an unbiased judge",
    "rank.sharpness": "sharpness of the judge",
    "rank.echo": "test-retest correlation of the judge's errors",
    "rank.position_bias": "position bias: gain by being shown first rather than last, in grades",
    "rank.expected_inversions": "expected discordant pairs in a top",
}
GOOD_JUDGE_GRADES = {str(number): f"the good judge's {number + 1}" for number in range(5)}
FIGURE_LABEL_PATTERNS: Mapping[str, Mapping[str, str]] = {
    r"judge\.panel\.members\.(.+)": {"mean": "mean grade", "given": "grades given", "missing": "grades missing"},
    r"judge\.panel\.agreement\.(.+)": {"pairs": "passages", "exact": "equal grades: share", "kappa": "kappa"},
    r"judge\.cascade\.grades\.(.+)": {"given": "passages", "agree": "share on which the good judge agrees"},
    r"judge\.cascade\.grades\.(.+)\.by_rule": GOOD_JUDGE_GRADES,
    r"judge\.cascade\.grades\.(.+)\.by_chance": GOOD_JUDGE_GRADES,
    r"judge\.canaries\.kinds\.(.+)": {"rate": "passed: share", "count": "passed", "total": "asked"},
    r"judge\.canaries\.company\.(.+)": {"grades": "change of a grade", "questions": "queries"},
}
HEADS = (
    "{} of the panel",
    "pair {} of the panel",
    "cheap grade {}",
    "cheap grade {}, by rule",
    "cheap grade {}, at random",
    "canaries of kind {}",
    "context effect of kind {}",
)
SOURCES = "judge.sources."


def health_words(place: str) -> str:
    """Return the name of the figure with this path in the locks. For an unknown figure, return the path with spaces
    instead of dots.
    """
    if place.startswith(SOURCES):
        return f"grades by {place.removeprefix(SOURCES)}"
    return next(_label_candidates(place), place.replace(".", " "))


def _label_candidates(place: str) -> Iterator[str]:
    if place in FIGURE_LABELS:
        yield FIGURE_LABELS[place]
    rest, _, last = place.rpartition(".")
    if rest in RATES:
        count, total = RATES[rest]
        yield {"rate": f"{count}: share", "count": count, "total": total}.get(last, place)
    for head, (pattern, words) in zip(HEADS, FIGURE_LABEL_PATTERNS.items(), strict=True):
        match = re.fullmatch(pattern, rest)
        if match is not None and last in words:
            yield f"{head.format(match[1])}: {words[last]}"


MAX_MOVERS = 5  # maximum number of queries that are listed for a changed verdict
OPPOSITE: Mapping[Verdict, Verdict] = {"better": "worse", "worse": "better"}


@dataclass(frozen=True)
class ScoreColumn:
    """Values of all systems on one measure, scored with one of the sets.

    Attributes:
        qids: query ids.
        values: values of each system, shape (queries,); NaN if the measure is not defined.
        higher: whether higher values are better.
        ends: bounds of the difference for each pair of systems that unjudged passages could affect, negated if lower is
            better.
        why: for each of these pairs, a text with the unjudged share of the tops.
    """

    qids: tuple[str, ...]
    values: Mapping[str, Floats]
    higher: bool
    ends: Mapping[tuple[str, str], DifferenceBounds] = field(default_factory=dict)
    why: Mapping[tuple[str, str], str] = field(default_factory=dict)


def decisions_part(
    old: Mapping[str, ScoreColumn],
    new: Mapping[str, ScoreColumn],
    *,
    confidence: float,
    seed: int,
    notes: Sequence[str] = (),
) -> DecisionsPart:
    """Return the scores of all systems and the verdicts on every pair of them, on every measure. Both sides must have
    the same measures and systems.

    The p values of a measure are corrected for the number of pairs (Holm).
    """
    systems = tuple(next(iter(old.values())).values) if old else ()
    verdicts = [each for measure in old for each in _verdicts(measure, old[measure], new[measure], confidence, seed)]
    return DecisionsPart(
        measures=tuple(old),
        systems=systems,
        scores=tuple(_score(name, measure, old[measure], new[measure]) for measure in old for name in systems),
        verdicts=tuple(sorted(verdicts, key=lambda each: (not each.reversed, not each.flipped))),
        confidence=confidence,
        notes=tuple(notes),
    )


def _verdicts(measure: str, old: ScoreColumn, new: ScoreColumn, confidence: float, seed: int) -> list[VerdictPart]:
    before, after = (compare_pairs(side, confidence=confidence, seed=seed) for side in (old, new))
    parts = [_verdict(pair, measure, (before[pair], after[pair]), (old, new)) for pair in before]
    return [
        part.model_copy(update={"moved_by": _movers(old, new, part.first, part.second)}) if part.flipped else part
        for part in parts
    ]


def _movers(old: ScoreColumn, new: ScoreColumn, first: str, second: str) -> tuple[MovePart, ...]:
    """Return the queries that moved the difference most, in the direction in which the mean difference moved."""
    sides = [
        dict(zip(side.qids, (side.values[first] - side.values[second]).tolist(), strict=True)) for side in (old, new)
    ]
    both = [qid for qid in sides[0] if np.isfinite(sides[0][qid]) and np.isfinite(sides[1].get(qid, np.nan))]
    moves = {qid: sides[1][qid] - sides[0][qid] for qid in both}
    way = np.sign(sum(moves.values()))
    most = sorted((qid for qid in both if moves[qid] * way > 0), key=lambda qid: -abs(moves[qid]))[:MAX_MOVERS]
    return tuple(MovePart(qid=qid, old=sides[0][qid], new=sides[1][qid]) for qid in most)


def compare_pairs(column: ScoreColumn, *, confidence: float, seed: int) -> dict[tuple[str, str], Comparison]:
    """Return the comparison of every pair of systems, with Holm's correction over all pairs. If a difference is
    positive, the first system of the pair is better.
    """
    sign = 1.0 if column.higher else -1.0
    pairs = list(combinations(column.values, 2))
    if not pairs:
        return {}
    rows = {str(place): sign * (column.values[one] - column.values[two]) for place, (one, two) in enumerate(pairs)}
    none = np.zeros(len(next(iter(rows.values()))))
    ends = {str(place): column.ends[pair] for place, pair in enumerate(pairs) if pair in column.ends}
    found = compare_many(none, rows, seed=seed, alpha=1.0 - confidence, tests=("randomisation",), ends=ends)
    return {pair: found[str(place)] for place, pair in enumerate(pairs)}


def _verdict(
    pair: tuple[str, str],
    measure: str,
    compared_: tuple[Comparison, Comparison],
    sides: tuple[ScoreColumn, ScoreColumn],
) -> VerdictPart:
    (before, after), sign = compared_, 1.0 if sides[0].higher else -1.0
    whys = [column.why.get(pair) if each.verdict == "unjudged" else None
            for each, column in zip(compared_, sides, strict=True)]  # fmt: skip
    return VerdictPart(
        first=pair[0],
        second=pair[1],
        measure=measure,
        old=before.verdict,
        new=after.verdict,
        old_difference=_difference(before, sign),
        new_difference=_difference(after, sign),
        flipped=before.verdict != after.verdict,
        reversed=OPPOSITE.get(before.verdict) == after.verdict,
        old_unjudged=whys[0],
        new_unjudged=whys[1],
    )


def _difference(found: Comparison, sign: float) -> EstimatePart:
    low, high = sorted((sign * found.difference.low, sign * found.difference.high))
    return EstimatePart(
        value=finite_or_none(sign * found.difference.mean), low=finite_or_none(low), high=finite_or_none(high)
    )


def _score(name: str, measure: str, old: ScoreColumn, new: ScoreColumn) -> ScoreDiffPart:
    sides = [column.values[name] for column in (old, new)]
    counts = [int(np.isfinite(values).sum()) for values in sides]
    means = [
        finite_or_none(float(np.nanmean(values))) if count else None
        for values, count in zip(sides, counts, strict=True)
    ]
    return ScoreDiffPart(
        system=name, measure=measure, old=means[0], new=means[1], old_queries=counts[0], new_queries=counts[1]
    )


VALUE: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
LOCATIONS = {"workspace"}  # The location of a run does not affect its results.
REPORTED_ELSEWHERE = {"config", "inputs"}  # components whose differences are reported as settings or at another stage


def settings(old: RunManifest, new: RunManifest) -> tuple[SettingDiffPart, ...]:
    """Return every setting that differs, whether or not it affects results. The location of the run is ignored."""
    before, after = ({key: value for key, value in side.config.items() if key not in LOCATIONS} for side in (old, new))
    return tuple(SettingDiffPart(**_values(found)) for found in differences(by_name(before), by_name(after)))


def by_name(value: object) -> object:
    """Return the tree with lists of adapters as mappings by name or type, so that an added adapter does not shift the
    others.

    Other lists become mappings by index. This also applies if an entry has neither a name nor a type, or if two entries
    have the same.
    """
    if isinstance(value, Mapping):
        return {key: by_name(entry) for key, entry in value.items()}
    if not isinstance(value, list):
        return value
    names = [_label(entry) for entry in value]
    keys = names if all(names) and len(set(names)) == len(names) else map(str, range(len(value)))
    return {key: by_name(entry) for key, entry in zip(keys, value, strict=True)} or value


def _label(entry: object) -> str:
    found = as_object(entry)
    return as_text(found.get("name")) or as_text(found.get("type")) or ""


def stage_input_diffs(
    old: RunManifest, new: RunManifest, told: Iterable[SettingDiffPart]
) -> tuple[StageInputDiffPart, ...]:
    """Return the inputs that differ and are not settings (code, prompts, corpus, models, packages), for each stage that
    both runs have finished.

    Args:
        told: the settings that differ. They are omitted here, because adapters repeat their settings in their
            components.
    """
    known = {_sign(part) for part in told}
    parts = [
        StageInputDiffPart(stage=stage, **_values(found))
        for stage in old.stages
        if stage in new.stages
        for found in differences(by_name(_causes(old, stage)), by_name(_causes(new, stage)))
    ]
    return tuple(part for part in parts if _sign(part) not in known)


def _causes(manifest: RunManifest, stage: str) -> Mapping[str, object]:
    return {key: value for key, value in manifest.stages[stage].components.items() if key not in REPORTED_ELSEWHERE}


def _sign(part: SettingDiffPart) -> tuple[str, str]:
    """Return a key by which equal differences are found: the last part of the name, and the values."""
    return part.name.rpartition(".")[2], canonical_json([part.old, part.new])


def _values(found: ComponentChanged) -> dict[str, JsonValue]:
    old, new = (None if side is ABSENT else VALUE.validate_python(side) for side in (found.old, found.new))
    change = "added" if found.old is ABSENT else "removed" if found.new is ABSENT else "changed"
    return {"name": found.component, "change": change, "old": old, "new": new}


INPUTS = ("corpus", "queries")  # Sections of a configuration whose effect depends on the content of their files.
OF_CODE = {"version", "identity", "code", "engine", "fusion"}  # components without a corresponding setting
SETTING_PLACES = {
    "judge": "judge.judge",
    "group": "judge.judge",
    "embedder": "embed.embedder",
    "rewriter": "embed.rewrite",
}
PROMPTS = {  # the settings that contain the prompt, for a component `prompt`, which is a hash
    ("judge", "judge"): ("judge.prompt",),
    ("judge", "group"): ("judge.group_prompt",),
    ("rank", "judge"): ("rank.prompt",),
    ("embed", "rewriter"): ("embed.rewrite.prompt",),
}


class RunSetting(SettingDiffPart):
    """A setting that differs between two runs."""

    counts: bool = Field(description="whether it affects results; for a file, whether its content differs")


class SpentPart(Frozen):
    """Calls and cost of a stage, or of all stages, over all invocations of a run."""

    calls: int
    usd: float


class StageDiffPart(Frozen):
    """Comparison of one stage of two runs."""

    stage: str
    result: Literal["same", "other", "one only"] = Field(
        description="`same` if both runs wrote identical files, else `other`; `one only` if one run has not finished "
        "the stage"
    )
    reasons: tuple[str, ...] = Field(description="sentences on the inputs of the stage that differ")
    first: SpentPart
    second: SpentPart


class RunsReport(Frozen):
    """Content of compare.json: the comparison of two runs."""

    v: Literal[1] = 1
    raggs: str = __version__
    first: str = Field(description="path of the run directory")
    second: str
    settings: tuple[RunSetting, ...]
    made: tuple[StageInputDiffPart, ...] = Field(
        description="inputs that differ and are not settings: code, prompts, models, corpus"
    )
    stages: tuple[StageDiffPart, ...]
    total: tuple[SpentPart, SpentPart]


def runs_report(
    places: tuple[str, str], manifests: tuple[RunManifest, RunManifest], spent: tuple[LedgerTotals, LedgerTotals]
) -> RunsReport:
    """Compare the manifests and ledgers of two runs of the same pipeline."""
    one, two = manifests
    told = settings(one, two)
    counting = set(_counting(one, two))
    stages = dict.fromkeys([*one.stages, *two.stages])
    return RunsReport(
        first=places[0],
        second=places[1],
        settings=tuple(RunSetting(**part.__dict__, counts=_counts(part.name, counting)) for part in told),
        made=stage_input_diffs(one, two, told),
        stages=tuple(_stage(name, manifests, spent) for name in stages),
        total=(_spent_part(spent[0].total), _spent_part(spent[1].total)),
    )


def _counting(one: RunManifest, two: RunManifest) -> Iterator[str]:
    """Yield the paths of the differing settings that affect results, and of sections whose files differ in content.

    For a stage that both runs finished, its components show which settings affect results. For any other stage, these
    are all settings that are not an `Effort`.
    """
    order = [name for name in load_pipeline(one.pipeline).order if name in one.config or name in two.config]
    undone = [name for name in order if name not in one.stages or name not in two.stages]
    for stage in order:
        if stage not in undone:
            yield from _by_components(stage, *(side.stages[stage].components for side in (one, two)))
            continue
        sections = [side.config.get(stage) for side in (one, two)]
        if None in sections:
            yield stage  # Only one of the runs has this section.
        else:
            first, second = (by_name(_causes_in(one.pipeline, stage, section)) for section in sections)
            found = differences(first, second)
            yield from (f"{stage}.{each.component}" for each in found)
    if undone:
        yield from INPUTS
        yield from (f"llm.{each.component}" for each in differences(_of_models(one), _of_models(two)))


def _of_models(manifest: RunManifest) -> object:
    """Return the settings of `llm` that can change an answer."""
    section = as_object(manifest.config.get("llm"))
    try:
        return LLMSettings.model_validate(section).causes_for(as_object(section.get("models")))
    except ValidationError:
        return section


def _by_components(stage: str, first: Mapping[str, object], second: Mapping[str, object]) -> Iterator[str]:
    """Yield the paths of the settings that correspond to the differing components of a stage."""
    for each in differences(by_name(first), by_name(second)):
        part, _, rest = each.component.partition(".")
        _, by_model, sent = each.component.partition(".llm.")
        leaf = each.component.rpartition(".")[2]
        if part == "config":
            yield f"{stage}.{rest}" if rest else stage
        elif part in INPUTS:
            yield part
        elif by_model:
            yield f"llm.{sent}"
        elif part == "prices":
            yield "llm.prices"
            yield from (f"llm.models.{model}.prices" for model in _models_of(rest))
        elif leaf == "prompt":
            yield from PROMPTS.get((stage, part), (f"{stage}.prompt",))
        elif leaf not in OF_CODE:
            place = SETTING_PLACES.get(part) or (
                f"retrieve.retrievers.{part.partition(' ')[2]}" if " " in part else part
            )
            yield f"{place}.{rest}" if rest else place
            yield f"{place}.path"  # a file is compared by content, for which components use different names


def _models_of(place: str) -> Iterator[str]:
    """Yield the name of the model in a path below the component `prices`."""
    found = place.removeprefix("models.").rpartition(".price")[0]
    if found:
        yield found


def _causes_in(pipeline: str, stage: str, section: object) -> object:
    """Return the settings of a stage that can change its result. Return all settings if this version of raggs cannot
    validate them.
    """
    try:
        return counts_by_value(load_pipeline(pipeline).stage(stage).Config.model_validate(section))
    except (ValidationError, RaggsError, OSError):
        return section


def _counts(name: str, counting: set[str]) -> bool:
    """Return whether a setting, its parent or one of its children is in `counting`."""
    parts = name.split(".")
    inside = any(".".join(parts[:count]) in counting for count in range(1, len(parts) + 1))
    return inside or any(place.startswith(f"{name}.") for place in counting)


def _stage(
    name: str, manifests: tuple[RunManifest, RunManifest], spent: tuple[LedgerTotals, LedgerTotals]
) -> StageDiffPart:
    one, two = (side.stages.get(name) for side in manifests)
    costs = [_spent_part(side.stage.get(name, LedgerSum())) for side in spent]
    if one is None or two is None:
        return StageDiffPart(stage=name, result="one only", reasons=(), first=costs[0], second=costs[1])
    alike = {file: out.sha256 for file, out in one.outputs.items()} == {f: out.sha256 for f, out in two.outputs.items()}
    return StageDiffPart(
        stage=name,
        result="same" if alike else "other",
        reasons=tuple(_reasons(one.components, two.components)),
        first=costs[0],
        second=costs[1],
    )


def _reasons(one: Mapping[str, object], two: Mapping[str, object]) -> Iterator[str]:
    """Yield a sentence for each difference. A difference is reported only once, although adapters repeat their
    settings in their components.
    """
    told: set[tuple[str, str, str]] = set()
    for found in differences(by_name(one), by_name(two)):
        sign = found.component.rpartition(".")[2], repr(found.old), repr(found.new)
        if sign not in told:
            yield str(found)
        told.add(sign)


def _spent_part(found: LedgerSum) -> SpentPart:
    return SpentPart(calls=found.calls, usd=found.usd)
