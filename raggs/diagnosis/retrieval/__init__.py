"""Diagnosis `retrieval`: which queries of a golden set fail, and what they have in common.

`measuring` scores the systems, reads the queries, and contains the rules. A rule has conditions, a sentence, and a
recommended change. This module contains the diagnosis, the comparison of query properties (traits), tables and plots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from raggs.base.document import Legend, Section, Table, table_of
from raggs.base.errors import UsageError
from raggs.base.settings import Causes, Flag, InputPath
from raggs.base.text import plural
from raggs.base.types import finite_or_none
from raggs.diagnosis.base import Bench, Diagnosis, DiagnosisConfig, some_of, verdict_sentences
from raggs.diagnosis.models import KeyFigure, NextAction
from raggs.diagnosis.retrieval.measuring import (
    BASELINE_RULES,
    DOUBT,
    OF_ONE,
    OF_TWO,
    EvidencePart,
    FailingQuestionPart,
    FindingPart,
    QuestionFacts,
    RetrievalFindings,
    RetrievalMeasurements,
    RetrievalOptions,
    RetrievalSystemPart,
    TraitPart,
    UndeterminedTraitPart,
    check_there,
    digests,
    lists_of,
    measure_lists,
    read_questions,
    read_values,
    usual_measure,
)
from raggs.evaluation.svg import ForestRow, forest
from raggs.golden.judgments import Judgments
from raggs.metrics.names import parse_measure
from raggs.stats.agreement import wilson
from raggs.stats.comparison import contrasts
from raggs.stats.intervals import bootstrap_mean
from raggs.stats.retrieval_traits import MIN_SIDE_QUESTIONS, AnsweredQuery, Trait, findings, traits_of

MAX_SHOWN_TRAITS = 8  # maximum number of traits shown per system
PLOTTED = 16


def _showing_findings(found: RetrievalFindings) -> Section:
    if not found.findings:
        return Section("Findings", ("no significant cause found", *found.notes))
    sentences = tuple(f"{part.about}: {part.sentence}. To do: {part.knob}" for part in found.findings)
    rows = (
        ("" if at else part.about, "" if at else part.rule, each.quantity, each.cell("signed"))
        for part in found.findings
        for at, each in enumerate(part.evidence)
    )
    terms = (Legend("[ ]", "simultaneous 95% interval over queries (bootstrap) for all quantities of a rule"),)
    table = Table.of(("about", "rule", "evidence", "mean"), rows)
    return Section("Findings", (*sentences, *found.notes), table, (), terms)


def _certainty_key(part: TraitPart) -> tuple[bool, float]:
    """Return a key that sorts significant traits first, and then by size of the effect."""
    return not part.clear, -abs(part.effect or 0.0)


def _showing_traits(found: RetrievalFindings) -> Section:
    shown = [
        part
        for system in found.systems
        for part in sorted((part for part in found.traits if part.system == system.name), key=_certainty_key)[
            :MAX_SHOWN_TRAITS
        ]
    ]
    clear = [part for part in found.traits if part.clear]
    sentences = [
        f"{part.system}: queries that {part.name} score lower. To do: {part.knob}"
        if part.difference < 0
        else f"{part.system}: queries that {part.name} score higher"
        for part in clear
    ]
    sentences += [] if clear else ["no property of queries has a significant effect"]
    if found.untold:
        names = ", ".join(part.name for part in found.untold)
        sentences.append(f"not tested, because too few queries have or lack the property: queries that {names}")
    if found.words:
        sentences.append(f"word frequencies are from {found.words}")
    terms = [Legend("[ ]", "95% confidence interval over queries (bootstrap within both groups)")]
    terms += (
        [Legend(DOUBT, "not significant after correction for the number of properties")]
        if len(clear) < len(shown)
        else []
    )
    table = table_of(shown, "system", "name", "held", "lacked", "difference", "effect", "corrected", "worst")
    title = f"Properties of queries and their effect on {found.measure}"
    return Section(title, tuple(sentences), table, (), tuple(terms))


def _questions(found: RetrievalFindings) -> Section:
    if not found.worst:
        return Section("Queries that fail", (f"no query scores below {found.failing_below:g}",))
    values = [("values", part.name) for part in found.systems]
    said = f"{plural(len(found.worst), 'query')} with the lowest scores of {found.systems[0].name}"
    return Section("Queries that fail", (said,), table_of(found.worst, "qid", *values, "shared", "shortened"))


OWN_CORPUS = NextAction(text="pass run files over the golden set's corpus: --run NAME=FILE")
EXAMPLES = 5  # maximum number of example queries per trait
MAX_WORST_QUESTIONS = 20  # maximum number of failing queries shown


def put_together(
    measured: RetrievalMeasurements, known: QuestionFacts, asked: RetrievalOptions, failing: float
) -> RetrievalFindings:
    """Return all findings: systems, traits, results of the rules, and failing queries."""
    questions = [known.asked.get(qid, AnsweredQuery("")) for qid in measured.qids]
    traits = traits_of(questions, known.weights)
    systems = _systems(measured, asked.seed, failing)
    parts = tuple(part for system in systems for part in _traits(system.name, measured, traits, asked.seed))
    found = tuple(_findings(measured, asked.seed))
    return RetrievalFindings(
        verdict=_verdict(systems, parts, asked.measure.name, failing)
        if systems[0].name not in measured.strange
        else measured.strange[systems[0].name],
        passed=None,
        measure=asked.measure.name,
        failing_below=failing,
        questions=len(measured.qids),
        systems=systems,
        traits=parts,
        untold=tuple(
            UndeterminedTraitPart(name=t.name, having=t.having, lacking=t.lacking) for t in traits if not t.told
        ),
        findings=found,
        worst=tuple(_worst(measured, systems[0].name, questions, traits, failing)),
        words=known.words,
        notes=(*measured.notes, *measured.strange.values()),
    )


def _systems(measured: RetrievalMeasurements, seed: int, failing: float) -> tuple[RetrievalSystemPart, ...]:
    parts = []
    for name, values in measured.values.items():
        found, below = bootstrap_mean(values, seed=seed), int((values < failing).sum())
        low, high = wilson(below, found.count)
        part = RetrievalSystemPart(
            name=name,
            mean=finite_or_none(found.mean),
            low=finite_or_none(found.low),
            high=finite_or_none(found.high),
            questions=found.count,
            failing=below,
            failing_low=low,
            failing_high=high,
        )
        parts.append(part)
    return tuple(sorted(parts, key=lambda part: -(part.mean or 0.0)))


def _traits(system: str, measured: RetrievalMeasurements, traits: Sequence[Trait], seed: int) -> Iterator[TraitPart]:
    """Yield the traits that enough queries have and enough lack, sorted by difference, the largest loss first."""
    values = measured.values[system]
    defined = np.isfinite(values)
    told = [
        each for each in traits if min((each.values[defined] == side).sum() for side in (0, 1)) >= MIN_SIDE_QUESTIONS
    ]
    rows = np.array([trait.values for trait in told]).reshape(len(told), len(values))
    contrasted = contrasts(values, rows, seed=seed, family=len(measured.values))
    worst = np.argsort(values, kind="stable").tolist()
    for trait, found in sorted(zip(told, contrasted, strict=True), key=lambda pair: pair[1].difference):
        held = (trait.values == 1) & defined
        yield TraitPart(
            system=system,
            kind=trait.kind,
            name=trait.name,
            having=found.having,
            lacking=found.lacking,
            having_mean=found.having_mean,
            lacking_mean=found.lacking_mean,
            difference=found.difference,
            low=found.low,
            high=found.high,
            effect=finite_or_none(found.effect),
            effect_low=finite_or_none(found.effect_low),
            effect_high=finite_or_none(found.effect_high),
            p=found.p,
            corrected=found.corrected,
            clear=found.clear,
            knob=trait.knob,
            examples=tuple([measured.qids[at] for at in worst if held[at]][:EXAMPLES]),
        )


def _findings(measured: RetrievalMeasurements, seed: int) -> Iterator[FindingPart]:
    tables = ((BASELINE_RULES, measured.against), (OF_ONE, measured.one), (OF_TWO, measured.two))
    for found in (found for rules, quantities in tables for found in findings(rules, quantities, seed=seed)):
        yield FindingPart(
            rule=found.rule.name,
            about=found.about,
            sentence=found.rule.sentence,
            knob=found.rule.knob,
            evidence=tuple(
                EvidencePart(quantity=each.quantity, mean=each.mean, low=each.low, high=each.high, questions=each.count)
                for each in found.evidence
            ),
        )


def _worst(
    measured: RetrievalMeasurements,
    system: str,
    questions: Sequence[AnsweredQuery],
    traits: Sequence[Trait],
    failing: float,
) -> Iterator[FailingQuestionPart]:
    values = measured.values[system]
    order = [at for at in np.argsort(values, kind="stable").tolist() if values[at] < failing]
    for at in order[:MAX_WORST_QUESTIONS]:
        yield FailingQuestionPart(
            qid=measured.qids[at],
            text=questions[at].text,
            values={name: finite_or_none(float(column[at])) for name, column in measured.values.items()},
            traits=tuple(dict.fromkeys(trait.kind for trait in traits if trait.values[at] == 1)),
        )


def _failing_traits(best: RetrievalSystemPart, traits: Sequence[TraitPart]) -> list[TraitPart]:
    return [part for part in traits if part.system == best.name and part.clear and part.difference < 0]


def _verdict(systems: Sequence[RetrievalSystemPart], traits: Sequence[TraitPart], measure: str, failing: float) -> str:
    """Return how many queries of the best system fail, and which queries fail most."""
    best = systems[0]
    told = f"{best.name}: {best.failing} of {plural(best.questions, 'query')} fail{'s' * (best.failing == 1)} "
    told += f"({measure} below {failing:g})"
    shared = [f"{part.name} ({part.difference:+.2f})" for part in _failing_traits(best, traits)]
    told += f"; queries score lower if they {some_of(shared)}" if shared else "; no common property is significant"
    return verdict_sentences(told)


class RetrievalConfig(DiagnosisConfig):
    """Settings of the diagnosis `retrieval`."""

    type: Literal["retrieval"] = "retrieval"
    runs: Annotated[tuple[str, ...], Flag(("--run", "-r"), "[NAME=]PATH")] = Field(
        (), description="systems as run files, [NAME=]PATH; default: the golden set's retrievers"
    )
    values: Annotated[InputPath | None, Flag(value="FILE")] = Field(
        None, description="file eval.json of an earlier raggs eval, instead of run files"
    )
    measure: Annotated[str | None, Flag(("--measure", "-m"))] = Field(
        None, description="metric that defines failure; default: ra_nwg@10, or ndcg@10 if grades are not 1 to 5"
    )
    baseline: str | None = Field(None, description="baseline system; default: the first system")
    pool: int = Field(50, ge=1, description="number of candidates per query and system")
    failing: float = Field(0.5, gt=0, le=1, description="value of the metric below which a query fails")
    relevant_from: Annotated[int | None, Flag(("--binary-at",))] = Field(
        None, description="lowest grade that counts as relevant; default: as in the golden set"
    )


class RetrievalDiagnosis(Diagnosis[RetrievalFindings]):
    """Show which queries fail, what they have in common, and what to change."""

    Config = RetrievalConfig
    Result = RetrievalFindings
    TITLE = "Which queries fail, what do they have in common, and what can be changed?"
    EXAMPLES = (
        "--golden runs/demo",
        "-g qrels.txt -c raggs.yaml -r a.trec -r b.trec",
    )
    NEEDS = ("golden",)
    TIME = "seconds"
    config: RetrievalConfig

    def causes(self, bench: Bench) -> Causes:
        """Return everything that can change the findings, including the lists of the systems and the corpus."""
        systems = None if self.config.values else digests(lists_of(bench.golden, self.config.runs))
        corpus = bench.workspace.corpus(bench.corpus).key if bench.has("corpus") else None
        return {**super().causes(bench), "systems": systems, "passages": corpus}

    def check(self, bench: Bench) -> None:
        """Check that the measure exists, that higher values of it are better, and that the systems exist.

        Raises:
            UsageError, NotFoundError: a check failed; the error contains a remedy.
        """
        measure = self._asked(bench).measure
        if not measure.higher:
            raise UsageError(
                f"{measure.name}: lower values of this metric are better",
                remedy="pass a metric for which higher values are better: --measure ndcg@10",
            )
        if self.config.values and self.config.runs:
            raise UsageError("--values already contains the systems", remedy="omit --run")
        if not self.config.values:
            check_there(lists_of(bench.golden, self.config.runs))

    def forecast(self, bench: Bench) -> tuple[str, ...]:
        return ("existing lists or values are analysed; no model is called",)

    def measure(self, bench: Bench) -> RetrievalFindings:
        """Score the systems, read the queries, and compare the queries with and without each trait."""
        asked, judgments = self._asked(bench), self._judgments(bench)
        known = read_questions(bench, judgments.qrels.scale.relevant)
        if self.config.values is not None:
            measured = read_values(self.config.values, judgments, asked)
        else:
            specs = lists_of(bench.golden, self.config.runs)
            measured = measure_lists(judgments, specs, asked, known.letters)
        return put_together(measured, known, asked, self.config.failing)

    def decision_effect(self, found: RetrievalFindings) -> str:
        return "Unchanged: this diagnosis explains the losses of each system and what to improve next."

    def action(self, found: RetrievalFindings) -> NextAction | None:
        best = found.systems[0]
        if any(note in found.verdict for note in found.notes):
            return OWN_CORPUS
        if first := next(iter(sorted(found.findings, key=lambda part: part.about != best.name)), None):
            text = f"{first.knob.partition(';')[0]} (for {first.about}, {first.sentence})"
            return NextAction(text=text, tentative=True)
        if clear := _failing_traits(best, found.traits):
            return NextAction(text=clear[0].knob.partition(";")[0], tentative=True)
        return NextAction(text="read the failing queries", in_details=True) if best.failing else None

    def rests_on(self, found: RetrievalFindings) -> int:
        return found.systems[0].questions

    def sections(self, found: RetrievalFindings) -> tuple[Section, ...]:
        """Return the tables: findings, traits, systems, queries."""
        systems = Section("Systems", (), self.main_table(found))
        return (_showing_findings(found), _showing_traits(found), systems, _questions(found))

    def key_figure(self, found: RetrievalFindings) -> KeyFigure | None:
        """Return the share of queries on which the best system fails."""
        best = found.systems[0]
        label = f"of queries fail with {best.name} ({found.measure} below {found.failing_below:g})"
        share = best.failing / best.questions if best.questions else None
        return KeyFigure.of(label, (share, best.failing_low, best.failing_high), ".1%")

    def main_table(self, found: RetrievalFindings) -> Table | None:
        """Return each system's mean and number of failing queries."""
        failing = f"{found.failing_below:g}"
        return table_of(found.systems, "name", "mean", "failures", measure=found.measure, failing=failing)

    def plots(self, found: RetrievalFindings) -> Mapping[str, str]:
        """Return one plot per system that has traits, with the effects of at most `PLOTTED` of them."""
        drawn = {}
        for position, system in enumerate(found.systems, start=1):
            parts = [part for part in found.traits if part.system == system.name]
            kept = sorted(sorted(parts, key=_certainty_key)[:PLOTTED], key=lambda part: part.difference)
            rows = [ForestRow(part.name, part.difference, part.low, part.high, part.clear) for part in kept]
            if rows:
                drawn["traits" if position == 1 else f"traits-{position}"] = forest(
                    f"Which queries are hard for {system.name}? Queries that …",
                    rows,
                    f"{found.measure} of these queries minus {found.measure} of the others",
                    changes=True,
                    zero="no difference",
                    sides=("harder", "easier"),
                )
        return drawn

    def _judgments(self, bench: Bench) -> Judgments:
        return (
            bench.judgments
            if self.config.relevant_from is None
            else bench.judgments.on_scale(self.config.relevant_from)
        )

    def _asked(self, bench: Bench) -> RetrievalOptions:
        name = self.config.measure or usual_measure(self._judgments(bench).qrels.scale)
        return RetrievalOptions(parse_measure(name), self.config.pool, self.config.baseline, bench.seed)
