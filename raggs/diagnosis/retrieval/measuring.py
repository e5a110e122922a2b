"""Findings and measurements of the diagnosis of retrieval. An undefined number is null.

Each system is scored once. The result is its values of the measure, and the quantities that rules use, per query. A
system is a run file, a retriever of the golden set's run, or the values of an earlier `raggs eval`. Such values contain
no lists, so the only rules that apply to them are those on changes against the baseline.

Each rule for lists is a row of a table: its conditions, its sentence, and the recommended change. Quantities are means
over queries: losses in units of the measure, shares of ranks or of relevant passages, changes against the baseline,
and logarithmic length ratios in doublings. To add a rule, add a row with quantities that `measure_lists` returns.

Queries and their relevant passages are read from the golden set, and from its corpus if given. Word frequencies are
counted over at most `SAMPLE` passages, spread evenly over the corpus. Without a corpus, they are counted over the
pooled passages that have texts. If the corpus is on a server, only the passages that are needed are fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from raggs.base.arrays import Floats
from raggs.base.document import Cell, Column, NumberForm, bounded, p_value
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.files import hash_file
from raggs.base.languages import detect_language, names_in
from raggs.base.text import did_you_mean, plural, shorten
from raggs.base.types import Number
from raggs.diagnosis.base import Bench, DiagnosisFindings
from raggs.evaluation.gates import read_report
from raggs.evaluation.messages import KNOBS, LOSSES
from raggs.evaluation.models import EvalReport, ReportPart
from raggs.evaluation.study import ScoringSettings, Study, foreign_lists_warning, judges_both, study_systems
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.questions import GoldenQuestions
from raggs.golden.runs import RunGolden
from raggs.golden.sources import NamedSystem, lists_in, open_systems, split_name
from raggs.golden.views import PassageView, QuestionView
from raggs.metrics.bottleneck import found_by, loss_ladder, steady
from raggs.metrics.columns import GradeScale
from raggs.metrics.hits import Hits
from raggs.metrics.names import MeasureSpec, parse_measure, parse_measures
from raggs.parts.indexes.lexical import words_of
from raggs.parts.indexes.passages import Passages
from raggs.parts.workspace import place_of
from raggs.stats.question_filters import WordWeights
from raggs.stats.retrieval_traits import (
    AnsweredQuery,
    Quantities,
    RelevantPassage,
    TraitRule,
    copies_at,
    found_alone,
    missed_length,
)
from raggs.sweeps.world import refuse_foreign

DOUBT = "?"
WIDTH = 70  # maximum characters of a query in a table


class RetrievalSystemPart(ReportPart):
    """Results of one system on the selected measure."""

    name: Annotated[str, Column("system")]
    mean: Annotated[Number, Column("{measure}", "score", bounds=("low", "high"))]
    low: Number = Field(description="bound of the 95% interval over queries (bootstrap)")
    high: Number
    questions: int = Field(description="number of queries for which the metric is defined")
    failing: int = Field(description="number of queries that score below `failing_below`")
    failing_low: float = Field(description="bound of Wilson's interval of the share that fails")
    failing_high: float

    @property
    def failures(self) -> Annotated[str, Column("below {failing}")]:
        """Number of failing queries, and the interval of their share."""
        return f"{self.failing} of {self.questions} [{self.failing_low:.0%}, {self.failing_high:.0%}]"


class TraitPart(ReportPart):
    """Comparison of the queries that have a trait with the queries that do not, for one system."""

    system: Annotated[str, Column("system")]
    kind: str = Field(description="kind of the property: numbers, length, language, section, ...")
    name: Annotated[str, Column("queries that …")] = Field(
        description="property as a verb phrase, such as: contain a number"
    )
    having: int
    lacking: int
    having_mean: float
    lacking_mean: float
    difference: Annotated[float, Column("difference", "signed", bounds=("low", "high"), mark="doubt")]
    low: float = Field(description="bound of the 95% interval of the difference (bootstrap within both groups)")
    high: float
    effect: Annotated[Number, Column("effect size", "signed", bounds=("effect_low", "effect_high"))] = Field(
        description="the difference in standard deviations within the groups (Cohen's d)"
    )
    effect_low: Number
    effect_high: Number
    p: float = Field(description="two-sided p-value of a permutation test")
    corrected: Annotated[float, Column("p (Holm)", text=p_value)] = Field(
        description="p-value with Holm correction over all properties and systems"
    )
    clear: bool = Field(description="whether the corrected p-value is below 0.05 and the interval excludes 0")
    knob: str = Field(description="recommended change for these queries")
    examples: tuple[str, ...] = Field(description="ids of the lowest-scoring queries with this property")

    @property
    def held(self) -> Annotated[str, Column("with")]:
        """Mean score and number of the queries with the trait."""
        return f"{self.having_mean:z.4f} ({self.having})"

    @property
    def lacked(self) -> Annotated[str, Column("without")]:
        """Mean score and number of the queries without the trait."""
        return f"{self.lacking_mean:z.4f} ({self.lacking})"

    @property
    def worst(self) -> Annotated[str, Column("worst")]:
        """Up to three ids of the examples."""
        return ", ".join(self.examples[:3])

    @property
    def doubt(self) -> str:
        """Mark after a difference that is not significant."""
        return "" if self.clear else DOUBT


class UndeterminedTraitPart(ReportPart):
    """A trait that cannot be tested because too few queries have it, or too few lack it."""

    name: str
    having: int
    lacking: int


class EvidencePart(ReportPart):
    """Mean over queries of a quantity that a rule uses."""

    quantity: str
    mean: float
    low: float = Field(description="bound of the 95% interval, simultaneous for all quantities of a rule")
    high: float
    questions: int

    def cell(self, form: NumberForm = "score") -> Cell:
        """Return the table cell: the mean with its interval."""
        return bounded(self.mean, self.low, self.high, form)


class FindingPart(ReportPart):
    """Result of a rule whose conditions are met, for one system or a pair of systems."""

    rule: str
    about: str = Field(description="a system, or a system compared with another")
    sentence: str
    knob: str
    evidence: tuple[EvidencePart, ...]


class FailingQuestionPart(ReportPart):
    """A query on which the best system fails."""

    qid: Annotated[str, Column("query")]
    text: str
    values: Annotated[Mapping[str, Number], Column("{key}", "score")] = Field(description="by system")
    traits: tuple[str, ...] = Field(description="kinds of properties that the query has")

    @property
    def shared(self) -> Annotated[str, Column("properties")]:
        """Kinds of the query's traits, as text."""
        return ", ".join(self.traits)

    @property
    def shortened(self) -> Annotated[str, Column("text")]:
        """Text of the query, shortened for a table."""
        return shorten(self.text, WIDTH)


class RetrievalFindings(DiagnosisFindings):
    """Findings of the diagnosis of retrieval."""

    measure: str
    failing_below: float
    questions: int
    systems: tuple[RetrievalSystemPart, ...] = Field(description="systems, best first")
    traits: tuple[TraitPart, ...] = Field(description="comparisons by system, largest loss first")
    untold: tuple[UndeterminedTraitPart, ...]
    findings: tuple[FindingPart, ...]
    worst: tuple[FailingQuestionPart, ...] = Field(description="queries on which the best system fails, worst first")
    words: str = Field(description="texts in which word frequencies were counted; empty if there are none")
    notes: tuple[str, ...] = ()


LOSS_QUANTITIES = tuple(f"loss: {loss}" for loss in LOSSES)
COPIES, DOUBLINGS, OTHER_ONLY_SHARE = "share of copies", "doublings of length", "share found only by the second"
NDCG, RECALL, DEEP = "change of nDCG", "change of recall", "change of recall in the pool"

MIN_LOSS = 0.05  # in units of the measure; smaller losses give no finding
COPIED = 0.03  # minimum share of the ranks up to the cutoff
LONGER = 0.1  # in doublings: 0.1 doublings are 7% longer
MIN_OTHER_ONLY_SHARE = 0.05  # share of the relevant passages
MIN_RECALL_CHANGE = -0.02  # smaller decreases of recall are ignored

RERANKER = (
    "check the reranker: its model, its input texts (truncated, without titles), and whether its scores are sorted "
    "in the right direction"
)

OF_ONE: tuple[TraitRule, ...] = (
    TraitRule(
        "candidates",
        "many relevant passages are not among its candidates",
        KNOBS[1],
        above={LOSS_QUANTITIES[1]: MIN_LOSS},
        beside=(LOSS_QUANTITIES[2],),
    ),
    TraitRule(
        "order",
        "it ranks relevant candidates too low",
        KNOBS[2],
        above={LOSS_QUANTITIES[2]: MIN_LOSS},
        beside=(LOSS_QUANTITIES[1],),
    ),
    TraitRule(
        "nobody", "many relevant passages are found by no system", KNOBS[0], above={LOSS_QUANTITIES[0]: MIN_LOSS}
    ),
    TraitRule("holes", "many of its top passages are not judged", KNOBS[3], above={LOSS_QUANTITIES[3]: MIN_LOSS}),
    TraitRule(
        "copies",
        "near-duplicates fill its top",
        "remove near-duplicates before the cutoff, or reduce the overlap of chunks",
        above={COPIES: COPIED},
    ),
    TraitRule(
        "long passages",
        "the relevant passages that it misses are longer than those it finds",
        "shorter chunks (raggs chunks eval), or an embedder or reranker with a longer input",
        above={DOUBLINGS: LONGER},
    ),
    TraitRule(
        "short passages",
        "the relevant passages that it misses are shorter than those it finds",
        "larger chunks, or chunks that carry their titles and sections (breadcrumbs)",
        below={DOUBLINGS: -LONGER},
    ),
)

OF_TWO: tuple[TraitRule, ...] = (
    TraitRule(
        "hybridise",
        "the second system finds relevant passages that the first misses",
        "fuse both (RRF)",
        above={OTHER_ONLY_SHARE: MIN_OTHER_ONLY_SHARE},
    ),
)

BASELINE_RULES: tuple[TraitRule, ...] = (
    TraitRule(
        "reranker",
        "nDCG is lower than the baseline's, but recall is not: relevant passages are found, but ranked lower",
        RERANKER,
        below={NDCG: 0.0},
        above={RECALL: MIN_RECALL_CHANGE},
        beside=(DEEP,),
    ),
    TraitRule(
        "reranker past the cutoff",
        "recall is lower than the baseline's at the cutoff, but not among all candidates: "
        "relevant passages are ranked too low",
        RERANKER,
        below={RECALL: 0.0},
        above={DEEP: MIN_RECALL_CHANGE},
        beside=(NDCG,),
    ),
    TraitRule(
        "coverage",
        "recall among all candidates is lower than the baseline's: fewer relevant passages are found",
        KNOBS[1],
        below={DEEP: 0.0},
        beside=(RECALL, NDCG),
    ),
)


USUAL_K = 10
LISTS = ("retrieve.jsonl", "merge.jsonl")  # files of a run that contain the lists of its retrievers


@dataclass(frozen=True)
class RetrievalOptions:
    """Options of the measurement.

    Attributes:
        measure: measure that defines which queries fail; higher values are better.
        pool: number of first passages of a list that count as a system's candidates.
        baseline: name of the system that the other systems are compared with; None for the first system.
        seed: random seed of the intervals.
    """

    measure: MeasureSpec
    pool: int
    baseline: str | None
    seed: int

    @property
    def k(self) -> int:
        """Cutoff of the measure, or 10 if it has none."""
        return self.measure.measure.k or USUAL_K

    @property
    def deep(self) -> str:
        """Name of recall over all candidates of a system."""
        return f"recall@{max(self.pool, self.k)}"


@dataclass(frozen=True)
class RetrievalMeasurements:
    """Measurements of all systems.

    Attributes:
        qids: ids of the queries, sorted.
        values: values of the measure by system, shape (queries,).
        one, two, against: quantities that the rules use: by system, by pair of systems, and by system against the
            baseline.
        notes: notes for the reader.
        strange: a message for each system whose lists contain hardly any judged passages; rules are not applied to such
            a system.
    """

    qids: tuple[str, ...]
    values: Mapping[str, Floats]
    one: Mapping[str, Quantities] = field(default_factory=dict)
    two: Mapping[str, Quantities] = field(default_factory=dict)
    against: Mapping[str, Quantities] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    strange: Mapping[str, str] = field(default_factory=dict)


def usual_measure(scale: GradeScale) -> str:
    """Return the default measure for a scale of grades."""
    return f"ra_nwg@{USUAL_K}" if scale.golden else f"ndcg@{USUAL_K}"


def lists_of(golden: GoldenSet, runs: Sequence[str]) -> list[str]:
    """Return the systems as `[NAME=]PATH`. If none are given, return the run directory of the golden set, which
    contains the lists of its retrievers.

    Raises:
        UsageError: no system is given, and the golden set contains only labels.
    """
    if runs or isinstance(golden, RunGolden):
        return list(runs) or [golden.source]
    raise UsageError(f"{golden.source} contains labels but no ranked lists", remedy="pass run files: --run NAME=FILE")


def check_there(specs: Sequence[str]) -> None:
    """Check that the files of systems exist.

    Raises:
        NotFoundError: a file is missing.
    """
    for _, path in map(split_name, specs):
        if not path.exists():
            raise NotFoundError("no such file", where=path, remedy="pass a run file: --run NAME=FILE")


def digests(specs: Sequence[str]) -> dict[str, object]:
    """Return hashes of each system's files that can change the findings."""
    found: dict[str, object] = {}
    for spec in specs:
        name, path = split_name(spec)
        files = [path] if not path.is_dir() else [*filter(Path.is_file, map(path.joinpath, LISTS)), *lists_in(path)]
        found[name or path.name] = {file.name: hash_file(file) for file in files}
    return found


def measure_lists(
    judgments: Judgments, specs: Sequence[str], asked: RetrievalOptions, letters: Mapping[str, int]
) -> RetrievalMeasurements:
    """Score the systems, and compute the quantities of their lists that the rules use.

    Args:
        judgments: the judgments.
        specs: the systems as `[NAME=]PATH`.
        asked: options of the measurement.
        letters: length of passages in characters; passages of unknown length are missing.

    Raises:
        UsageError, NotFoundError, DataError: a system cannot be read, or is for other queries or passages.
    """
    systems = list(open_systems(list(specs)))
    scored = dict.fromkeys((asked.measure.name, f"ndcg@{asked.k}", f"recall@{asked.k}", asked.deep))
    study = study_systems(
        judgments, systems, ScoringSettings(parse_measures(list(scored)), (asked.k,), seed=asked.seed)
    )
    docs = judgments.qrels.docs
    lengths = np.array([letters.get(docs.text(row)) for row in range(len(docs))], dtype=np.float64)
    losing = asked.measure if steady(asked.measure) else parse_measure(f"ndcg@{asked.k}")
    base = baseline_of(tuple(study.values), asked.baseline)
    columns = {name: found.column for name, found in study.values.items()}
    strange = {
        name: said for name, hits in study.hits.items() if (said := foreign_lists_warning(judgments.source, name, hits))
    }
    near = [name for name in columns if name not in strange]
    changes = {name: _changes(columns[name], columns[base], asked) for name in near if name != base and base in near}
    return RetrievalMeasurements(
        qids=judgments.qrels.qids,
        values={name: column(asked.measure.name) for name, column in columns.items()},
        one={name: _of_one(study, study.hits[name], losing, asked, lengths) for name in near},
        two=dict(_of_two(study, [system for system in systems if system.name in near], asked)),
        against=_changes_by_name(changes, base),
        strange=strange,
    )


def read_values(file: Path, judgments: Judgments, asked: RetrievalOptions) -> RetrievalMeasurements:
    """Return the values of an earlier evaluation.

    Raises:
        DataError: the evaluation used other judgments, or does not contain the measure.
    """
    report = read_report(file)
    if report.golden.digest != judgments.digest:
        raise DataError(
            "was scored against another golden set", where=file, remedy="run raggs eval again and pass its result"
        )
    if asked.measure.name not in report.measures:
        remedy = did_you_mean(asked.measure.name, report.measures)
        raise DataError(f"does not contain {asked.measure.name}", where=file, remedy=remedy)
    qids, systems = judgments.qrels.qids, tuple(report.per_query)
    base = baseline_of(systems, asked.baseline)
    columns = {name: partial(_column, report, qids, name) for name in systems}
    changes = {name: _changes(columns[name], columns[base], asked) for name in systems if name != base}
    return RetrievalMeasurements(
        qids=qids,
        values={name: column(asked.measure.name) for name, column in columns.items()},
        against=_changes_by_name(changes, base),
        notes=("these values are from an earlier evaluation; to find causes, pass the run files",),
    )


def baseline_of(systems: Sequence[str], named: str | None) -> str:
    """Return the name of the system that the other systems are compared with.

    Raises:
        UsageError: no system has this name.
    """
    if named is not None and named not in systems:
        raise UsageError(f"no system has the name {named}", remedy=did_you_mean(named, systems))
    return named or systems[0]


MeasureValues = Callable[[str], Floats]
"""Returns a system's values of a measure, one per query; NaN if undefined."""


def _of_one(study: Study, hits: Hits, losing: MeasureSpec, asked: RetrievalOptions, lengths: Floats) -> Quantities:
    several = len(study.hits) > 1
    found = found_by(study.hits.values(), max(asked.pool, asked.k)) if several else None
    losses = loss_ladder(hits, losing, found, pool=asked.pool).losses.T
    lost = dict(zip(LOSS_QUANTITIES, losses, strict=True))
    if not several:
        del lost[LOSS_QUANTITIES[0]]  # with a single system, this loss equals the loss of its candidates
    if not judges_both(hits.qrels):
        del lost[LOSS_QUANTITIES[3]]  # if all labels are relevant, passages without a label are not relevant
    return {
        **lost,
        COPIES: copies_at(hits, asked.k),
        DOUBLINGS: missed_length(hits, lengths, asked.pool),
    }


def _of_two(study: Study, systems: Sequence[NamedSystem], asked: RetrievalOptions) -> Iterator[tuple[str, Quantities]]:
    """Yield the quantities of each ordered pair of systems, without fusions of other systems."""
    names = [system.name for system in systems if not system.derived]
    for name in names:
        for other in names:
            if name != other:
                alone = found_alone(study.hits[other], study.hits[name], asked.pool)
                yield f"{name} beside {other}", {OTHER_ONLY_SHARE: alone}


def _changes(system: MeasureValues, baseline: MeasureValues, asked: RetrievalOptions) -> Quantities:
    names = {NDCG: f"ndcg@{asked.k}", RECALL: f"recall@{asked.k}", DEEP: asked.deep}
    return {quantity: system(measure) - baseline(measure) for quantity, measure in names.items()}


def _changes_by_name(changes: Mapping[str, Quantities], base: str) -> dict[str, Quantities]:
    return {f"{name} against {base}": change for name, change in changes.items()}


def _column(report: EvalReport, qids: Sequence[str], system: str, measure: str) -> Floats:
    values = report.per_query[system].get(measure, {})
    return np.array([values.get(qid) for qid in qids], dtype=np.float64)


SAMPLE = 10_000  # maximum number of passages whose words are counted
ANSWERS = 20  # maximum number of relevant passages that are used per query, the best first
TITLE_SEPARATOR = " > "  # separates the titles of a section path


@dataclass(frozen=True)
class QuestionFacts:
    """Properties of the queries.

    Attributes:
        asked: each query with its relevant passages, by id.
        letters: length of passages in characters.
        weights: document frequencies of words.
        words: description of the texts in which words were counted; empty if there are none.
    """

    asked: Mapping[str, AnsweredQuery]
    letters: Mapping[str, int]
    weights: WordWeights
    words: str


def read_questions(bench: Bench, relevant: int) -> QuestionFacts:
    """Return the properties of the queries.

    Args:
        bench: gives access to the golden set and the corpus.
        relevant: lowest relevant grade.

    Raises:
        RaggsError: the golden set or the corpus cannot be read.
    """
    golden, corpus = bench.golden, None
    if bench.has("corpus"):
        corpus = bench.workspace.corpus(bench.corpus).passages(whole=False)
        refuse_foreign(corpus, bench.judgments, golden.source, place_of(bench.corpus))
    views = _with_question_texts(list(GoldenQuestions(golden, ())), bench)
    if corpus is not None:
        views = _with_texts(views, relevant, corpus)
    letters = {each.doc_id: len(each.text) for view in views for each in view.passages if each.text}
    of_run = isinstance(golden, RunGolden)
    asked = {view.qid: _answered_query(view, relevant, of_run) for view in views}
    weights, words = _weights(views, corpus)
    # a word missing from the sample is treated as rare, not as absent from the corpus
    if corpus is not None and len(corpus) > SAMPLE:
        held = {word: 1 for each in asked.values() for word in each.words}
        weights = replace(weights, holding={**held, **weights.holding})
    return QuestionFacts(asked, letters, weights, words)


def _with_question_texts(views: list[QuestionView], bench: Bench) -> list[QuestionView]:
    """Return the queries, with texts from the configured queries if the golden set contains none.

    If a query has no text, traits of its wording are unknown.
    """
    if all(view.text for view in views):
        return views
    try:
        queries = bench.queries
    except NotFoundError:
        return views
    found = [(view, queries.get(view.qid)) for view in views]
    return [
        view if view.text or query is None else replace(view, text=query.text, language=query.language or "")
        for view, query in found
    ]


def _best_passages(view: QuestionView, relevant: int) -> list[PassageView]:
    """Return the relevant passages that are used: those with the highest grades, at most `ANSWERS`."""
    found = [each for each in view.passages if each.grade is not None and each.grade >= relevant]
    return sorted(found, key=lambda each: -(each.grade or 0))[:ANSWERS]


def _with_texts(views: Iterable[QuestionView], relevant: int, corpus: Passages) -> list[QuestionView]:
    """Return the queries, with texts of relevant passages from the corpus if the golden set contains none."""
    kept = list(views)
    wanted = {each.doc_id for view in kept for each in _best_passages(view, relevant) if not each.text}
    texts = corpus.get(sorted(wanted)) if wanted else {}

    def filled(view: PassageView) -> PassageView:
        found = texts.get(view.doc_id)
        return view if found is None else replace(view, title=found.title, text=found.text)

    return [replace(view, passages=tuple(map(filled, view.passages))) for view in kept]


def _answered_query(view: QuestionView, relevant: int, of_run: bool) -> AnsweredQuery:
    language = view.language or detect_language(view.text, "")
    twins = {each.duplicate_of or "" for each in view.passages}
    best = _best_passages(view, relevant)
    answers = []
    for each in best:
        section = each.title.split(TITLE_SEPARATOR)[0].strip() if TITLE_SEPARATOR in each.title else ""
        answer = RelevantPassage(section=section, twin=each.duplicate_of is not None or each.doc_id in twins)
        if each.text:
            spoken = detect_language(each.text, "")
            words = frozenset(words_of(_content(each), spoken))
            answer = replace(answer, language=spoken, letters=len(each.text), words=words)
        answers.append(answer)
    count = sum(each.grade is not None and each.grade >= relevant for each in view.passages)
    return AnsweredQuery(
        text=view.text,
        language=language,
        words=frozenset(words_of(view.text, language)),
        names=len(names_in(view.text, language)),
        rewritten=bool(view.rewrite) if of_run else None,
        relevant=count,
        answers=tuple(answers),
    )


def _weights(views: Iterable[QuestionView], corpus: Passages | None) -> tuple[WordWeights, str]:
    if corpus is not None:
        count = min(SAMPLE, len(corpus))
        of = f"{count:,} of {len(corpus):,} passages" if count < len(corpus) else plural(count, "passage")
        return WordWeights.of(map(_content_words, corpus.sample(SAMPLE))), f"{of} of the corpus"
    texts = {each.doc_id: _content(each) for view in views for each in view.passages if each.text}
    return WordWeights.of(
        map(_content_words, texts.values())
    ), f"{plural(len(texts), 'pooled passage')}" if texts else ""


def _content(view: PassageView) -> str:
    return f"{view.title}\n{view.text}"


def _content_words(text: str) -> list[str]:
    return words_of(text, detect_language(text, ""))
