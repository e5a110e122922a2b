"""Base class of diagnoses, their inputs, and their reports.

A diagnosis answers one question about retrieval by small controlled probes. It returns findings with intervals and a
verdict. `measure` makes all measurements. `sections` and `plots` use only its findings. `check` and `forecast` call no
paid model.

`Bench` gives a diagnosis its embedders, rerankers, golden set, queries and passages. Each input is opened at first
use. If an input is missing, the error states how to provide it.

A report shows the verdict first, then the sections of the kind. A verdict usually has one or two sentences: the
finding and, if there is one, the most important action. All other figures are in the tables. If there are too few
queries for a conclusion, the verdict states that first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.document import ReportDocument, Section, Summary, Table, markdown
from raggs.base.errors import DataError, NotFoundError, PrerequisiteError, UsageError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import M
from raggs.base.registry import Registry
from raggs.base.settings import Causes, causes_of
from raggs.base.text import FOLDING, plural
from raggs.chunking.models import parse_spec
from raggs.config.models import RunConfig
from raggs.diagnosis import REGISTRY
from raggs.diagnosis.models import DiagnosisReport, KeyFigure, NextAction
from raggs.evaluation.models import ReportPart
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.sources import open_golden
from raggs.llm.rehearsal import DryRunLLM
from raggs.parts import embedders
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.indexes.passages import Passages, PassageStore
from raggs.parts.rerankers import Reranker, RerankerConfig
from raggs.parts.workspace import Workspace, open_queries, place_of
from raggs.runs.forecast import RERANK, count_reranking
from raggs.stages.embed import quotes_folded
from raggs.stats.resampling import MIN_CLAIM_QUERIES
from raggs.sweeps.world import corpus_of, refuse_foreign

Need = Literal["run", "golden", "corpus", "embedder", "reranker"]
# sections of a run's configuration that findings may depend on
SECTIONS = ("embed", "retrieve", "merge", "judge", "rank")
REMEDIES: Mapping[Need, str] = {
    "run": "pass a run's configuration: --config raggs.yaml",
    "golden": "pass a golden set: --golden RUN|FILE (raggs run creates one)",
    "corpus": "pass --config raggs.yaml or a run directory: --golden RUN",
    "embedder": "pass an embedder, e.g. --embedder wordllama (raggs list embedders shows all)",
    "reranker": "pass a reranker, e.g. --reranker onnx:models/minilm (raggs list rerankers shows all)",
}


@dataclass(frozen=True)
class DiagnosisInputs:
    """The inputs of a diagnosis. They are validated, but not opened yet.

    Attributes:
        run: configuration of the run.
        golden: path of the golden set as given by the user.
        own: path of the run's own golden set.
        embedders, rerankers: configurations by name; tables show these names.
        seed: random seed.
    """

    run: RunConfig | None = None
    golden: Path | None = None
    own: Path | None = None
    embedders: Mapping[str, EmbedderConfig] = field(default_factory=dict)
    rerankers: Mapping[str, RerankerConfig] = field(default_factory=dict)
    seed: int = 0


class Bench:
    """Access to the inputs of a diagnosis.

    Args:
        given: the inputs.
        workspace: creates embedders, rerankers and corpus. The caller closes the workspace.
        rehearsal: dry-run models, which replace the workspace's models in a forecast; None when measuring.
    """

    def __init__(self, given: DiagnosisInputs, workspace: Workspace, rehearsal: DryRunLLM | None = None) -> None:
        self.given, self.workspace, self.hear = given, workspace, workspace.hear
        self.run, self.seed = given.run, given.seed
        self.rehearsal = rehearsal

    # --- parts ---

    @cached_property
    def embedders(self) -> Mapping[str, Embedder]:
        """Embedders by name, in the given order; models are loaded at first use.

        If no corpus is known, embedders that must be fitted are returned unfitted.
        """
        specs, corpus = self.given.embedders, None
        if any(embedders.REGISTRY.of(spec).NEEDS_FIT for spec in specs.values()) and self._corpus is not None:
            corpus = self.workspace.corpus(self._corpus)
        return {name: self.workspace.embedder(spec, self.rehearsal, corpus) for name, spec in specs.items()}

    @cached_property
    def rerankers(self) -> Mapping[str, Reranker]:
        """Rerankers by name; empty if none is given."""
        return {name: self.workspace.reranker(spec, self.rehearsal) for name, spec in self.given.rerankers.items()}

    # --- golden set, queries and corpus ---

    @cached_property
    def golden(self) -> GoldenSet:
        """The golden set.

        Raises:
            NotFoundError: there is none.
            DataError: it is damaged.
        """
        found = self._golden
        if found is None:
            raise NotFoundError("no golden set found", remedy=REMEDIES["golden"])
        return found

    @cached_property
    def judgments(self) -> Judgments:
        """Judgments of the golden set.

        Raises:
            NotFoundError, DataError: as for `golden`, or no passage has a grade.
        """
        return self.golden.judgments()

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """Queries by id, sorted: those of the golden set if it has any, otherwise those of the run.

        Raises:
            NotFoundError: the labels contain no queries, and no run is given.
        """
        if not self._questions:
            raise NotFoundError("no queries found", remedy=REMEDIES["golden"])
        return self._questions

    @cached_property
    def corpus(self) -> AdapterConfig:
        """Configuration of the corpus.

        Raises:
            PrerequisiteError: no input specifies a corpus.
            DataError: the golden set's corpus is not valid.
        """
        found = self._corpus
        if found is None:
            raise PrerequisiteError("no corpus found", remedy=REMEDIES["corpus"])
        return found

    @cached_property
    def passages(self) -> Passages:
        """All passages of the corpus. If there is a golden set, raggs checks that it was made from this corpus.

        Raises:
            PrerequisiteError, DataError: the corpus is missing, or is not the one of the golden set.
        """
        found = self.workspace.corpus(self.corpus).passages(whole=True)
        if self._golden is not None:
            refuse_foreign(found, self.judgments, self._golden.source, place_of(self.corpus))
        return found

    def store(self, instead: str) -> PassageStore:
        """Return the passages, if they are stored locally.

        Args:
            instead: alternative input for the error message.

        Raises:
            UsageError: the corpus is on a server.
        """
        if not isinstance(self.passages, PassageStore):
            raise UsageError(
                "the corpus is an index on a server, but this diagnosis needs a corpus of local files",
                remedy=f"pass a corpus of files, or {instead}",
            )
        return self.passages

    # --- available inputs and their causes ---

    def has(self, need: Need) -> bool:
        """Return whether an input is available. If the need is "golden", the golden set is opened to find out."""
        match need:
            case "run":
                return self.run is not None
            case "golden":
                return self._golden is not None
            case "corpus":
                return self._corpus is not None
            case "embedder":
                return bool(self.given.embedders)
            case "reranker":
                return bool(self.given.rerankers)

    def require(self, needs: Iterable[Need]) -> None:
        """Check that inputs are available.

        Raises:
            PrerequisiteError: an input is missing. The remedy states how to provide it.
            NotFoundError, DataError: an input was given, but cannot be opened.
        """
        for need in needs:
            if not self.has(need):
                article = "an" if need[0] in "ae" else "a"
                raise PrerequisiteError(f"this diagnosis needs {article} {INPUT_NAMES[need]}", remedy=REMEDIES[need])

    def causes(self, need: Need) -> object:
        """Return everything about an input that can change a finding; None if it is not available."""
        if not self.has(need):
            return None
        match need:
            case "run":
                tree = {name: getattr(self.run, name) for name in SECTIONS}
                return {name: causes_of(section) for name, section in tree.items() if section is not None}
            case "golden":
                digest = self.judgments.digest
                asked = [query.model_dump(mode="json") for query in self._questions.values()]
                return {"judgments": digest, "queries": hash_value(asked), **quotes_folded(self._questions.values())}
            case "corpus":
                content = self.passages.content_hash
                return [content, FOLDING] if self.passages.folded else content
            case "embedder":
                return {name: embedder.causes() for name, embedder in self.embedders.items()}
            case "reranker":
                folds = any(reranker.reader.FOLDS for reranker in self.rerankers.values())
                read = folds and (
                    quotes_folded(self._questions.values()) or (self.has("corpus") and self.passages.folded)
                )
                found = {name: reranker.causes() for name, reranker in self.rerankers.items()}
                return {**found, "quotes": FOLDING} if read else found

    def kept(self, causes: object, model: type[M], make: Callable[[], Iterable[M]]) -> list[M]:
        """Return the rows that are stored for `causes`. If there are none, create and store them.

        Args:
            causes: everything that can change a row, as plain JSON: the kind's name, settings, seed, `causes` of parts.
            model: class of a row.
            make: creates the rows.
        """
        return self.workspace.cache.at("diagnoses").get(causes, model, make)

    # --- forecast ---

    @property
    def counting(self) -> DryRunLLM:
        """The dry-run models of a forecast."""
        if self.rehearsal is None:
            raise TypeError("this bench has no dry-run models")
        return self.rehearsal

    def count_vectors(self, queries: Sequence[str], *, stored: bool = False) -> None:
        """Count the calls of paid embedders for these queries and for all passages.

        Args:
            queries: texts of the queries.
            stored: whether stored vectors are reused. If so, passages that already have a vector are not counted.
        """
        for embedder in (each for each in self.embedders.values() if each.models):
            passages, begun = self.passages, 0
            if stored and isinstance(passages, PassageStore):
                begun = self.workspace.vectors_begun(passages, embedder)
            embedder.embed(passages.sample(len(passages))[begun:])
            embedder.embed_queries(list(queries))

    def count_reranking(self, queries: Sequence[str], candidates: int, times: int | None = None) -> None:
        """Count the calls of paid rerankers for these queries. If `times` is given, count the calls for that many
        similar queries.
        """
        self.counting.turn_to(RERANK)
        for reranker in (each for each in self.rerankers.values() if each.models):
            count_reranking(
                self.workspace.loop, self.counting, reranker, queries, self.passages, candidates, times=times
            )
        self.counting.turn_to("")

    # --- opened once ---

    @cached_property
    def _golden(self) -> GoldenSet | None:
        if self.given.golden is not None:
            return open_golden(self.given.golden)
        if self.given.own is None:
            return None
        try:
            found = open_golden(self.given.own)
            found.judgments()
        except NotFoundError:
            return None  # not created yet
        return found

    @cached_property
    def _questions(self) -> Mapping[str, Query]:
        found = {} if self._golden is None else {query.qid: query for query in self._golden.queries()}
        if not found and self.run is not None:
            found = dict(open_queries(self.run.queries, self.hear))
        return dict(sorted(found.items()))

    @cached_property
    def _corpus(self) -> AdapterConfig | None:
        if self.run is not None:
            return self.run.corpus
        return None if self.given.golden is None else corpus_of(self.given.golden)


INPUT_NAMES: Mapping[Need, str] = {
    "run": "run's configuration",
    "golden": "golden set",
    "corpus": "corpus",
    "embedder": "embedder",
    "reranker": "reranker",
}


VERDICTS = 5  # increased if the wording of verdicts changes, because reports contain verdicts
Time = Literal["seconds", "a minute", "minutes"]


def from_word(registry: Registry[Adapter], kind: type[AdapterConfig]) -> BeforeValidator:
    """Return a validator that parses a command-line argument into a configuration."""
    return BeforeValidator(lambda value: parse_spec(value, registry, kind) if isinstance(value, str) else value)


class DiagnosisConfig(AdapterConfig):
    """Base class of the settings of a diagnosis. Each setting has a default and a description."""


class DiagnosisFindings(ReportPart):
    """Base class of the findings of a diagnosis. An undefined number is null."""

    verdict: str = Field(description="result and, if there is one, the most important action")
    passed: bool | None = Field(
        description="whether the limits are met; null if there is no limit, or if the result is inconclusive"
    )


P = TypeVar("P", bound=DiagnosisFindings)


class Diagnosis(Adapter, ABC, Generic[P]):
    """Base class of diagnoses. raggs creates a diagnosis as ``cls(config)``. `raggs list diagnoses` shows the first
    line of the subclass's docstring.

    Attributes:
        Result: class of the findings, also used to read them from the report.
        TITLE: the question that the diagnosis answers.
        EXAMPLES: arguments of the example commands in the help.
        NEEDS, TAKES: required and optional inputs. Findings may depend on any of them.
        STAGES: stages of a run whose models are called; empty if only embedders and rerankers are called.
        TIME: approximate duration with local embedders.
        OVER: unit that is resampled for the intervals, in the singular.
        PASSAGES: whether its tables contain passage texts. If they do, an HTML report without texts omits the
            diagnosis.
    """

    Config: ClassVar[type[AdapterConfig]] = DiagnosisConfig
    Result: ClassVar[type[DiagnosisFindings]] = DiagnosisFindings
    TITLE: ClassVar[str]
    EXAMPLES: ClassVar[tuple[str, ...]] = ("",)
    NEEDS: ClassVar[tuple[Need, ...]] = ()
    TAKES: ClassVar[tuple[Need, ...]] = ()
    STAGES: ClassVar[tuple[str, ...]] = ()
    TIME: ClassVar[Time] = "a minute"
    OVER: ClassVar[str] = "query"
    PASSAGES: ClassVar[bool] = False

    def __init__(self, config: AdapterConfig) -> None:
        self.config = config

    def causes(self, bench: Bench) -> Causes:
        """Return everything that can change the findings. If it is unchanged, stored findings are read instead of
        measured again.
        """
        parts: Causes = {need: bench.causes(need) for need in (*self.needs, *self.TAKES)}
        return {"kind": self.own_causes(), "verdicts": VERDICTS, "seed": bench.seed, **parts}

    @property
    def needs(self) -> tuple[Need, ...]:
        """Required inputs with these settings."""
        return self.NEEDS

    def models(self, bench: Bench) -> tuple[str, ...]:
        """Return the paid models: those of the embedders and rerankers that are used. A kind may add others."""
        used = {*self.needs, *self.TAKES}
        asked = [each.models for each in bench.embedders.values() if "embedder" in used]
        asked += [each.models for each in bench.rerankers.values() if "reranker" in used]
        return tuple(dict.fromkeys(model for models in asked for model in models))

    def check(self, bench: Bench) -> None:
        """Check everything that can be checked before the work. When this is called, the inputs in `needs` are
        available.

        Raises:
            RaggsError: something is not valid. The error has a remedy.
        """
        return

    @abstractmethod
    def forecast(self, bench: Bench) -> tuple[str, ...]:
        """Describe what `measure` will do, and count its calls with the dry-run models of the bench.

        Raises:
            RaggsError: as for `check`.
        """

    @abstractmethod
    def measure(self, bench: Bench) -> P:
        """Measure and return the findings.

        Work that takes more than a second must use `bench.kept`, so that an interrupted diagnosis can be resumed.

        Raises:
            RaggsError: an input is not valid, or a model failed.
        """

    @abstractmethod
    def rests_on(self, found: P) -> int:
        """Return the number of queries (or other unit, see `OVER`) that the verdict is based on."""

    @abstractmethod
    def sections(self, found: P) -> tuple[Section, ...]:
        """Return sentences and tables with intervals, the most important first. Use only `found`."""

    def main_table(self, found: P) -> Table | None:
        """Return the table that is printed below the verdict; by default the first one of `sections`."""
        return next((each.table for each in self.sections(found) if each.table is not None), None)

    def key_figure(self, found: P) -> KeyFigure | None:
        """Return the number that the verdict is based on, with its interval; None if there is none."""
        return None

    def decision_effect(self, found: P) -> str:
        """Return in one sentence whether the findings can change which system is better; empty if that is unknown."""
        return ""

    def action(self, found: P) -> NextAction | None:
        """Return the most important action; None if there is none."""
        return None

    def is_conclusive(self, found: P) -> bool:
        """Return whether the verdict is based on enough queries, and meets or does not meet its limits clearly."""
        return self.rests_on(found) >= MIN_CLAIM_QUERIES

    def outcome(self, found: P) -> str:
        """Return "pass" or "fail"; "measured" if there is no limit, or if the result is inconclusive."""
        return "measured" if found.passed is None else "pass" if found.passed else "fail"

    def files(self, found: P) -> Mapping[str, str]:
        """Return other files by name, such as a configuration to use next. Use only `found`."""
        return {}

    def plots(self, found: P) -> Mapping[str, str]:
        """Return SVG plots by name, drawn with `raggs.evaluation.svg` from `found` only; files are
        ``<kind>-<name>.svg``.
        """
        return {}


DIAGNOSE_AGAIN_REMEDY = "run raggs diagnose again to replace it"


def kind_of(name: str) -> Diagnosis[DiagnosisFindings]:
    """Return a diagnosis with default settings, which is enough to display stored findings.

    Raises:
        UsageError: unknown kind.
    """
    kind = REGISTRY.load(name)
    return kind(kind.Config.model_validate({"type": name}))


def found_in(report: DiagnosisReport, where: Path | None = None) -> DiagnosisFindings:
    """Return the findings of a report, as an object of the class for its kind.

    Raises:
        UsageError: this version of raggs has no such kind of diagnosis.
        DataError: the findings have another format than this version's.
    """
    try:
        return REGISTRY.load(report.kind).Result.model_validate(report.found)
    except ValidationError as error:
        raise DataError(
            f"the findings of {report.kind} have another format than this version's",
            where=where,
            remedy=DIAGNOSE_AGAIN_REMEDY,
        ) from error


def shows_passages(report: DiagnosisReport) -> bool:
    """Return whether the tables of a report contain passage texts."""
    return REGISTRY.load(report.kind).PASSAGES


def lay_out(report: DiagnosisReport) -> ReportDocument:
    """Convert a report to a document with sections and tables.

    Raises:
        UsageError, DataError: as for `found_in`.
    """
    found = found_in(report)
    return ReportDocument(
        title=report.title,
        scores=Section("Verdict", (found.verdict,)),
        sections=kind_of(report.kind).sections(found),
        notes=tuple(f"{what}: {', '.join(names)}" for what, names in report.subject.items() if names),
    )


MAX_SUMMARY_ROWS = 10


def summarise(report: DiagnosisReport, page: Path | None = None) -> Summary:
    """Return what the command prints by default.

    Args:
        page: the Markdown page with all tables.

    Raises:
        UsageError, DataError: as `found_in`.
    """
    kind, found = kind_of(report.kind), found_in(report)
    table = kind.main_table(found)
    more = 0 if table is None else max(0, len(table.rows) - MAX_SUMMARY_ROWS)
    if table is not None:
        table = Table(table.head, table.rows[:MAX_SUMMARY_ROWS])
    basis = [f"Based on {plural(kind.rests_on(found), kind.OVER)}"]
    basis += [f"{what}: {', '.join(names)}" for what, names in report.subject.items() if names]
    rows = f"{more} more rows, " if more else ""
    where = "" if page is None else f"; the same as a page with plots: {page}"
    return Summary(
        headline=(f"{report.kind}: {kind.outcome(found)}. {found.verdict}",),
        table=table,
        trust=("; ".join(basis) + ".",),
        details=f"--details: {rows}all tables and their definitions{where}",
    )


def plots(report: DiagnosisReport) -> dict[str, str]:
    """Return the plots of a report as SVG, by file name.

    Raises:
        UsageError, DataError: as for `found_in`.
    """
    drawn = kind_of(report.kind).plots(found_in(report))
    return {f"{report.kind}-{name}.svg": svg for name, svg in drawn.items()}


def other_files(report: DiagnosisReport) -> Mapping[str, str]:
    """Return the other files of a report by name.

    Raises:
        UsageError, DataError: as for `found_in`.
    """
    return kind_of(report.kind).files(found_in(report))


def page(report: DiagnosisReport, drawn: Mapping[str, str]) -> str:
    """Return the report as Markdown, with its plots."""
    figures = [f"![{name.removesuffix('.svg')}]({name})" for name in drawn]
    text = markdown(lay_out(report), glossary=False)
    return "\n".join([text.rstrip("\n"), *(["", *figures] if figures else [])]) + "\n"


MAX_NAMED_ITEMS = 2  # maximum number of items in one list of a verdict


def verdict_sentences(*findings: str) -> str:
    """Return the findings that are not empty as sentences."""
    return " ".join(f"{each}." for each in findings if each)


def capital(text: str) -> str:
    """Return the text with its first letter capitalised."""
    return f"{text[:1].upper()}{text[1:]}"


def join_with_and(words: Iterable[str]) -> str:
    """Return the words joined as ``a, b and c``."""
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last


def some_of(words: Sequence[str]) -> str:
    """Return the first words, and the number of the others: ``a, b and 3 more``."""
    more = [f"{len(words) - MAX_NAMED_ITEMS} more"] if len(words) > MAX_NAMED_ITEMS else []
    return join_with_and([*words[:MAX_NAMED_ITEMS], *more])


def complete_verdict(kind: Diagnosis[P], found: P) -> P:
    """Return the findings with the action at the end of the verdict. If there are too few queries for a conclusion,
    the verdict states that first.
    """
    count, action = kind.rests_on(found), kind.action(found)
    verdict = found.verdict if action is None else f"{found.verdict} {action.sentence}"
    if count < MIN_CLAIM_QUERIES:
        verdict = f"Preliminary ({plural(count, kind.OVER)}, at least {MIN_CLAIM_QUERIES} needed): {verdict}"
    return found.model_copy(update={"verdict": verdict})
