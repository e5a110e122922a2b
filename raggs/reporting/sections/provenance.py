"""The sections on provenance and on the golden set.

Provenance: fingerprints, prompts, models, seeds, versions, and the command that reproduces the report.

Golden set: label mix, pools, contributions of retrievers, near-duplicates, languages, tokens, agreement, cost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

from pydantic import Field

from raggs.base import __version__
from raggs.base.document import Column, Section, Table, shade_pairs, table_of
from raggs.base.errors import RaggsError
from raggs.base.text import plural
from raggs.base.types import as_object
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.prompts import Prompt, PromptUse, load_prompt
from raggs.reporting.base import JudgeValidation, ReportFacts, ReportSection
from raggs.reporting.figures import BarSegment, stacked
from raggs.reporting.sections.decision import NextStep, human_agreement_check
from raggs.reporting.surveying import LabelMix, PoolSurvey, QuerySpread, labels_of, languages_of
from raggs.runs.manifests.costs import LedgerTotals
from raggs.runs.manifests.models import RunManifest, StageLock
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.store import content_hash, dump_json

# For each stage: setting of the prompt, component with its hash, and use of the prompt.
PROMPTS: Mapping[str, tuple[tuple[str, str, PromptUse], ...]] = {
    "judge": (("prompt", "judge", "grade"), ("group_prompt", "group", "grades")),
    "rank": (("prompt", "judge", "order"),),
}


HASH = re.compile(r"(?<![0-9a-f])[0-9a-f]{32,64}(?![0-9a-f])")


class NamedFact(ReportPart):
    """A named fact."""

    name: str
    text: str

    @property
    def short(self) -> str:
        """The text with the first 12 digits of each hash."""
        return HASH.sub(lambda found: f"{found[0][:12]}…", self.text)


class PromptText(ReportPart):
    """One language of a prompt, as sent to the model."""

    name: str
    language: str
    system: str
    user: str


class PromptPart(ReportPart):
    """The prompt of a stage that calls a model."""

    stage: str
    name: str
    fault: str = Field(description="why the prompt is not shown; empty if it is")
    texts: tuple[PromptText, ...]


class StageLockPart(ReportPart):
    """The lock of a stage."""

    stage: str
    facts: tuple[NamedFact, ...]
    components: str = Field(description="everything that affects the result, as JSON")


class ProvenancePart(ReportPart):
    """Data of the section; `config` is the effective configuration as JSON, empty for a file of labels."""

    headline: str
    command: str
    facts: tuple[NamedFact, ...]
    stages: tuple[StageLockPart, ...]
    prompts: tuple[PromptPart, ...]
    config: str


class ProvenanceSection(ReportSection):
    """Which inputs does each number depend on, and how is it reproduced?"""

    NAME = "provenance"
    TITLE = "Provenance"

    def data(self, facts: ReportFacts) -> ProvenancePart:
        """Return the data of the section; every report has one."""
        manifest = None if facts.run is None else facts.run.manifest
        locks = {} if manifest is None else manifest.stages
        return ProvenancePart(
            headline=_provenance_headline(facts),
            command=facts.command,
            facts=tuple(_facts(facts)),
            stages=tuple(_stage(name, lock) for name, lock in locks.items()),
            prompts=tuple(_prompts(manifest)) if manifest else (),
            config=dump_json(manifest.config) if manifest else "",
        )


def _provenance_headline(facts: ReportFacts) -> str:
    """Return sentences on how to repeat the report and on the models that were called."""
    repeated = "You can create this report again with one command."
    if facts.run is None:
        return repeated
    models = ", ".join(filter(None, facts.costs.model))
    return f"{repeated} {f'Models called for the golden set: {models}' if models else 'No paid model was called'}."


def _facts(facts: ReportFacts) -> Iterator[NamedFact]:
    yield NamedFact(name="this file", text=f"created by raggs {__version__}")
    yield NamedFact(name="golden set", text=facts.golden.source)
    if facts.run is not None:
        yield from _of_run(facts.run)
    if facts.report is not None:
        yield from _of_report(facts.report)
    for sweep in (each.report for each in facts.sweeps):
        text = f"raggs {sweep.raggs}, judgments {sweep.golden.digest}, seed {sweep.seed}"
        yield NamedFact(name=f"sweep {sweep.name}", text=text)


def _minute(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _of_run(run: OpenedRun) -> Iterator[NamedFact]:
    manifest = run.manifest
    yield NamedFact(name="run", text=f"{manifest.name}, {_minute(manifest.created)}, raggs {manifest.raggs}")
    yield NamedFact(name="manifest, SHA-256", text=content_hash(run.store.content()))
    if manifest.config_file:
        yield NamedFact(name="configuration", text=str(run.config_file))
    if manifest.skipped_files:
        yield NamedFact(name="corpus", text=manifest.skipped_files)


def _of_report(report: EvalReport) -> Iterator[NamedFact]:
    yield NamedFact(name="judgments, SHA-256", text=report.golden.digest)
    if report.golden.version is not None:
        yield NamedFact(name="version of the golden set", text=str(report.golden.version))
    yield NamedFact(
        name="evaluation",
        text=f"raggs {report.raggs}, ties as {report.ties}, seed {report.seed}, {report.confidence:.0%} intervals"
        + (", condensed lists" if report.condensed else ""),
    )
    for system in report.systems:
        yield NamedFact(name=system.name, text=system.source)


def _stage(name: str, lock: StageLock) -> StageLockPart:
    found = [
        NamedFact(name="fingerprint", text=lock.fingerprint),
        NamedFact(name="ended", text=_minute(lock.ended)),
        *([NamedFact(name="judge", text=lock.judge)] if lock.judge else []),
        *(NamedFact(name=file, text=f"{each.sha256}, {each.rows:,} lines") for file, each in lock.outputs.items()),
        NamedFact(name="versions", text=", ".join(f"{key} {value}" for key, value in lock.versions.items() if value)),
    ]
    return StageLockPart(stage=name, facts=tuple(found), components=dump_json(lock.components))


# --- prompts --------------------------------------------------------------------------------------------------


def _prompts(manifest: RunManifest) -> Iterator[PromptPart]:
    """Yield the prompts whose hashes the locks of the judge and rank stages contain."""
    for stage, prompts in PROMPTS.items():
        lock = manifest.stages.get(stage)
        for setting, component, use in prompts:
            sent = set() if lock is None else set(_hashes(lock.components.get(component)))
            name = as_object(manifest.config.get(stage)).get(setting)
            if sent and isinstance(name, str):
                yield _prompt(stage, name, use, sent)


def _prompt(stage: str, name: str, use: PromptUse, sent: set[str]) -> PromptPart:
    try:
        found = load_prompt(name, use)
    except RaggsError as error:
        return PromptPart(stage=stage, name=name, fault=f"cannot be read here: {error.message}", texts=())
    fault = "" if found.sha256 in sent else "the text has changed since it was sent"
    return PromptPart(stage=stage, name=name, fault=fault, texts=() if fault else tuple(_texts(found)))


def _texts(prompt: Prompt) -> Iterator[PromptText]:
    for language, part in prompt.templates.items():
        yield PromptText(name=prompt.name, language=language, system=part.system, user=part.user)


def _hashes(causes: object) -> Iterator[str]:
    """Yield the prompt hashes in the causes of a judge, including those of its members."""
    if isinstance(causes, list | tuple):
        for each in causes:
            yield from _hashes(each)
    for name, value in as_object(causes).items():
        if name == "prompt" and isinstance(value, str):
            yield value
        else:
            yield from _hashes(value)


HEAD = ("over queries", "median", "mean", "least", "most")
SHADES = 5


class GoldenSectionPart(ReportPart):
    """Data of the section.

    Attributes:
        answer: whether the labels can be used; empty if the judge was not compared with human labels.
        unchecked: sentence on why the judge was not compared with human labels; empty if it was.
        step: command that collects more human labels, if `answer` is not conclusive; otherwise None.
        headline: size of the set, and how rare relevant passages are; empty without labels.
        mix: shares of the grades, best first.
        shades: colour class of each segment.
        sections: tables on queries and passages, which are folded.
        agreement: tables on the judge and the annotators, which are folded.
        matrix: by grade of the judge and human grade, the number of labels and its class; empty without labels.
        distances: the numbers of labels by distance of the two grades, in words.
    """

    answer: str
    unchecked: str
    step: NextStep | None
    headline: str
    mix: tuple[BarSegment, ...]
    shades: Mapping[str, str]
    sections: tuple[Section, ...]
    agreement: tuple[Section, ...]
    matrix: tuple[tuple[tuple[int, str], ...], ...]
    distances: str


class GoldenSection(ReportSection):
    """What does the golden set contain, how rare are relevant passages, and which retrievers found them?"""

    NAME = "golden"
    TITLE = "Golden set"

    def data(self, facts: ReportFacts) -> GoldenSectionPart | None:
        """Return the data of the section; None if only queries are known."""
        judgments = facts.judgments
        labels = None if judgments is None else labels_of(judgments)
        parts = [_labels(labels)] if labels else []
        if facts.run is not None:
            pools = facts.pools
            parts.append(chain(_pools(pools) if pools else (), _languages(languages_of(facts.run)), _cost(facts.costs)))
        found, agreement = tuple(chain.from_iterable(parts)), tuple[Section, ...]()
        if facts.people.document is not None:
            document = facts.people.document
            tables = (each for each in document.sections if not each.title.startswith("Grades: judge in rows"))
            agreement = (replace(document.scores, title="Is the judge valid?"), *tables)
        if not found and not agreement:
            return None
        mix = _mix(labels, unused=facts.run is not None) if labels else ()
        scale = None if judgments is None else judgments.qrels.scale
        shades = {} if labels is None or scale is None else _shades(labels, scale.low, scale.high)
        relevant = None if scale is None else scale.relevant
        people = human_agreement_check(facts)
        return GoldenSectionPart(
            answer=_usable(facts.people),
            unchecked="" if facts.people.trust else f"{people.said[0][:1].upper()}{people.said[0][1:]}.",
            step=people.step,
            headline=_headline(labels, relevant) if labels and relevant is not None else "",
            mix=mix,
            shades=shades,
            sections=found,
            agreement=agreement,
            matrix=tuple(tuple(zip(*rows, strict=True)) for rows in zip(counts, shade_pairs(counts), strict=True))
            if (counts := facts.people.grades)
            else (),
            distances=_distances(counts),
        )


def _distances(counts: Sequence[Sequence[int]]) -> str:
    """Return the numbers of labels by distance of the two grades, as a sentence each."""
    apart: Counter[int] = Counter()
    for row, line in enumerate(counts):
        for column, count in enumerate(line):
            apart[min(2, abs(row - column))] += count
    same = f"{apart[0]} of {plural(apart.total(), 'label')} ({apart[0] / max(1, apart.total()):.0%})"
    return f"Same grade: {same}. One grade apart: {apart[1]}. Further apart: {apart[2]}."


def _usable(people: JudgeValidation) -> str:
    """Return whether the labels can be used to compare systems; empty if that was not tested."""
    if not people.trust:
        return ""
    first = people.trust[0]
    match first.answer:
        case "yes":
            return f"You can use this set for {first.use}: the judge agrees with the human labels."
        case "no":
            return f"Do not use this set for {first.use}: the judge disagrees with the human labels."
        case _:
            needed = "" if first.more is None else plural(first.more, "more human label")
            more = f": about {needed} needed to check the judge" if needed else ""
            return f"Not yet known whether you can use this set for {first.use}{more}."


def _headline(labels: LabelMix, relevant: int) -> str:
    """Return how many queries and labels there are, and the share of relevant labels."""
    total = sum(labels.grades.values())
    if not total or not labels.queries:
        return f"{plural(labels.queries, 'query')} without labels."
    highest = max(labels.grades)
    named = f"{relevant} or {highest}" if highest == relevant + 1 else f"grade {relevant} or more"
    share = sum(count for grade, count in labels.grades.items() if grade >= relevant) / total
    each = f"{total / labels.queries:,.0f} labels each{' on average' if total % labels.queries else ''}"
    return f"{plural(labels.queries, 'query')} with {each}; {share:.0%} of labels are relevant ({named})."


def _mix(labels: LabelMix, *, unused: bool) -> tuple[BarSegment, ...]:
    """Return the shares of the grades, best first; without `unused`, from the best grade that a label has."""
    total = sum(labels.grades.values())
    if not total:
        return ()
    best = max(grade for grade, n in labels.grades.items() if n)
    found = [
        (f"grade {g}", float(n), f"{n:,} ({n / total:.0%})") for g, n in labels.grades.items() if unused or g <= best
    ]
    return stacked(found[:SHADES], float(total))


def _shades(labels: LabelMix, low: int, high: int) -> dict[str, str]:
    """Return the class of each grade's colour, g1 to g5: that of the grade itself on the scale 1 to 5."""
    step = (SHADES - 1) / max(1, high - low)
    return {f"grade {grade}": f"g{1 + round((grade - low) * step)}" for grade in labels.grades}


def _labels(labels: LabelMix) -> Iterator[Section]:
    share = ("relevant share of judged passages", *(f"{each:.1%}" for each in _figures(labels.prevalence)))
    none = f"{plural(labels.without, 'query')} without a relevant passage"
    said = (f"{none}: their recall is always 0",) if labels.without else ()
    yield Section("Labels per query", said, Table.of(HEAD, [*map(_row, labels.spreads), share]))


def _row(spread: QuerySpread) -> tuple[str, ...]:
    return spread.name, *(f"{each:,.1f}" if each < 100 else f"{each:,.0f}" for each in _figures(spread))


def _figures(spread: QuerySpread) -> tuple[float, ...]:
    return spread.median, spread.mean, spread.least, spread.most


def _pools(pools: PoolSurvey) -> Iterator[Section]:
    rows = [_row(pools.depth), *([_row(pools.tokens)] if pools.tokens else [])]
    repeated = f"{plural(pools.duplicates, 'near-duplicate')} ({pools.duplicates / pools.passages:.1%})"
    said = [f"{plural(pools.passages, 'passage')} in the pools, {pools.distinct:,} of them distinct; {repeated}"]
    if pools.tokens:
        said.append(f"tokens: {plural(pools.sampled, 'passage')} sampled (cl100k)")
    yield Section("Pool sizes", tuple(said), Table.of(("", *HEAD[1:]), rows))
    found = ("name", "passages", "alone", "relevant", "share")
    yield Section("Contributions of retrievers", table=table_of(pools.sources, *found))
    if pools.overlap:
        shared = ((f"{a} and {b}", f"{share:.0%}") for (a, b), share in pools.overlap.items())
        table = Table.of(("retrievers", "found by both, of all found by either"), shared)
        yield Section("Overlap of retrievers", table=table)


def _languages(languages: Mapping[str, int]) -> Iterator[Section]:
    if languages:
        listed = ", ".join(f"{name or 'unknown'} {count:,}" for name, count in languages.items())
        yield Section("Languages of the queries", (listed,))


def _cost(found: LedgerTotals) -> Iterator[Section]:
    if found.stage:
        spent = ("calls", "cached", "failed", "prompt_tokens", "completion_tokens", "usd", "saved_usd")
        rows = [*found.stage.items(), ("all", found.total)]
        yield Section("Cost by stage", table=table_of(rows, (Column("stage"), lambda name, _: name), *spent))
