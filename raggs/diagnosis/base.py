"""What a diagnosis is: a question about retrieval, small controlled probes, findings with intervals, and a verdict.

A kind measures once and draws from what it found alone: `sections` and `plots` compute nothing that the findings do
not hold, and look at nothing else. It asks no model in `check` and `forecast`.

What a diagnosis works with: embedders, rerankers, a golden set, questions, passages, each opened at first use.

Whatever is missing is one sentence that says how to name it. Nothing here knows what is measured.

A diagnosis as a document: the verdict first, then the kind's own sections, drawn of the findings alone.

How every kind says its verdict: at most two sentences, what was found and what is to be done first.

All other figures stand in the tables beneath. Where a claim rests on few, the verdict says so before anything else; no
kind has words of its own for that.
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
from raggs.diagnosis.models import DiagnosisReport
from raggs.evaluation.models import ReportPart
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.sources import open_golden
from raggs.llm.rehearsal import DryRunLLM
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.indexes.passages import Passages, PassageStore
from raggs.parts.rerankers import Reranker, RerankerConfig
from raggs.parts.workspace import Workspace, open_queries, place_of
from raggs.runs.forecast import RERANK, count_reranking
from raggs.stages.embed import quotes_folded
from raggs.stats.resampling import MIN_CLAIM_QUERIES
from raggs.sweeps.world import corpus_of, refuse_foreign

Need = Literal["run", "golden", "corpus", "embedder", "reranker"]
SECTIONS = ("embed", "retrieve", "merge", "judge", "rank")  # of a run, that say what it does
REMEDIES: Mapping[Need, str] = {
    "run": "pass a run's configuration: --config raggs.yaml",
    "golden": "pass one: --golden RUN|FILE (raggs run creates a golden set)",
    "corpus": "pass --config raggs.yaml or a run directory: --golden RUN",
    "embedder": "pass one, e.g. --embedder wordllama (raggs list embedders)",
    "reranker": "pass one, e.g. --reranker onnx:models/minilm (raggs list rerankers)",
}


@dataclass(frozen=True)
class DiagnosisInputs:
    """What was named, checked but not opened.

    Attributes:
        run: the run's configuration.
        golden: the golden set's place as the user named it; `own`: where the run's own would lie.
        embedders, rerankers: by the names that tables give them.
        seed: of all that is drawn.
    """

    run: RunConfig | None = None
    golden: Path | None = None
    own: Path | None = None
    embedders: Mapping[str, EmbedderConfig] = field(default_factory=dict)
    rerankers: Mapping[str, RerankerConfig] = field(default_factory=dict)
    seed: int = 0


class Bench:
    """See the module.

    Args:
        given: what was named.
        workspace: makes the parts; closed by whoever made it.
        rehearsal: language models that only remember, in place of the workspace's own, for a forecast.
    """

    def __init__(self, given: DiagnosisInputs, workspace: Workspace, rehearsal: DryRunLLM | None = None) -> None:
        self.given, self.workspace, self.hear = given, workspace, workspace.hear
        self.run, self.seed = given.run, given.seed
        self.rehearsal = rehearsal

    # --- parts ---

    @cached_property
    def embedders(self) -> Mapping[str, Embedder]:
        """The embedders by name, in the order in which they were named; their models are loaded at first use."""
        return {name: self.workspace.embedder(spec, self.rehearsal) for name, spec in self.given.embedders.items()}

    @cached_property
    def rerankers(self) -> Mapping[str, Reranker]:
        """The rerankers by name; none where none is named."""
        return {name: self.workspace.reranker(spec, self.rehearsal) for name, spec in self.given.rerankers.items()}

    # --- what is asked, and of what ---

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
        """Its grades.

        Raises:
            NotFoundError, DataError: as `golden`, or there are no grades.
        """
        return self.golden.judgments()

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """The questions by id, sorted: those of the golden set, or those of the run.

        Raises:
            NotFoundError: labels alone hold no questions, and no run is named.
        """
        if not self._questions:
            raise NotFoundError("no queries found", remedy=REMEDIES["golden"])
        return self._questions

    @cached_property
    def corpus(self) -> AdapterConfig:
        """The settings of the corpus.

        Raises:
            PrerequisiteError: nobody says where it is.
            DataError: the golden set says it wrongly.
        """
        found = self._corpus
        if found is None:
            raise PrerequisiteError("no corpus found", remedy=REMEDIES["corpus"])
        return found

    @cached_property
    def passages(self) -> Passages:
        """All passages, known to be those that the golden set is about, where there is one.

        Raises:
            PrerequisiteError, DataError: there are none, or they are not.
        """
        found = self.workspace.corpus(self.corpus).passages(whole=True)
        if self._golden is not None:
            refuse_foreign(found, self.judgments, self._golden.source, place_of(self.corpus))
        return found

    def store(self, instead: str) -> PassageStore:
        """The passages on this disk. `instead`: what to name where they are read on a server.

        Raises:
            UsageError: they are.
        """
        if not isinstance(self.passages, PassageStore):
            raise UsageError(
                "the corpus is an index on a server, and this diagnosis reads local files",
                remedy=f"pass a corpus of files, or {instead}",
            )
        return self.passages

    # --- what was named, and what it depends on ---

    def has(self, need: Need) -> bool:
        """Whether it is there, as far as is known without reading it."""
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
        """Refuse where something is not there.

        Raises:
            PrerequisiteError: with the way to name it.
            NotFoundError, DataError: it is named, and cannot be opened.
        """
        for need in needs:
            if not self.has(need):
                article = "an" if need[0] in "ae" else "a"
                raise PrerequisiteError(f"this diagnosis needs {article} {INPUT_NAMES[need]}", remedy=REMEDIES[need])

    def causes(self, need: Need) -> object:
        """What of it can change a finding; None where it is not there."""
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
        """Rows of this kind and these causes, as they were kept, or as they are made now and kept.

        Args:
            causes: all that can change a row, as plain JSON: the kind's name, settings, seed, `causes` of parts.
            model: of a row.
            make: gives the rows.
        """
        return self.workspace.cache.at("diagnoses").get(causes, model, make)

    # --- what would be asked ---

    @property
    def counting(self) -> DryRunLLM:
        """The models of a bench that rehearses."""
        if self.rehearsal is None:
            raise TypeError("the models of this bench are not rehearsed")
        return self.rehearsal

    def count_vectors(self, queries: Sequence[str], *, stored: bool = False) -> None:
        """Count what paid embedders are asked for some questions and for all passages.

        Args:
            stored: whether vectors of passages that runs have stored are read.
        """
        for embedder in (each for each in self.embedders.values() if each.models):
            passages, begun = self.passages, 0
            if stored and isinstance(passages, PassageStore):
                begun = self.workspace.vectors_begun(passages, embedder)
            embedder.embed(passages.sample(len(passages))[begun:])
            embedder.embed_queries(list(queries))

    def count_reranking(self, queries: Sequence[str], candidates: int, times: int | None = None) -> None:
        """Count what paid rerankers are asked for some questions, or for `times` such questions."""
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
            return None  # not made yet
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


VERDICTS = 3  # version of the words of all kinds, which reports hold
Time = Literal["seconds", "a minute", "minutes"]


def from_word(registry: Registry[Adapter], kind: type[AdapterConfig]) -> BeforeValidator:
    """A word of the command line is the settings that it stands for."""
    return BeforeValidator(lambda value: parse_spec(value, registry, kind) if isinstance(value, str) else value)


class DiagnosisConfig(AdapterConfig):
    """What every kind's settings derive from; each has a default and a description."""


class DiagnosisFindings(ReportPart):
    """What a kind found. A number that is not defined is null."""

    verdict: str = Field(description="result and first action; at most two sentences")
    passed: bool | None = Field(description="whether the limits are met; null: no limit, or undecided")


P = TypeVar("P", bound=DiagnosisFindings)


class Diagnosis(Adapter, ABC, Generic[P]):
    """One kind. Built as ``cls(config)``; the first line of its docstring is its line in `raggs list diagnoses`.

    Attributes:
        Result: what it finds; read again from its file.
        TITLE: the question that it answers.
        EXAMPLES: what follows its name in examples of its command, whose help is the docstring.
        NEEDS: what it cannot do without, TAKES: what it uses where it is there. Both are causes of its findings.
        STAGES: of a run, whose models it asks; none of a kind that asks nobody but embedders and rerankers.
        TIME: how long it takes with embedders of this machine.
        OVER: what its intervals are over, in the singular.
        PASSAGES: whether texts of passages stand in its tables, which a report without texts leaves out.
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
        """All that can change what is found; findings of equal causes are read, not made again."""
        parts: Causes = {need: bench.causes(need) for need in (*self.needs, *self.TAKES)}
        return {"kind": self.own_causes(), "verdicts": VERDICTS, "seed": bench.seed, **parts}

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it cannot do without, with its settings."""
        return self.NEEDS

    def models(self, bench: Bench) -> tuple[str, ...]:
        """The models that it would pay: those of the embedders and rerankers that it uses, and what a kind adds."""
        used = {*self.needs, *self.TAKES}
        asked = [each.models for each in bench.embedders.values() if "embedder" in used]
        asked += [each.models for each in bench.rerankers.values() if "reranker" in used]
        return tuple(dict.fromkeys(model for models in asked for model in models))

    def check(self, bench: Bench) -> None:
        """Refuse what can be refused before the work; what it NEEDS is there already.

        Raises:
            RaggsError: with a remedy.
        """
        return

    @abstractmethod
    def forecast(self, bench: Bench) -> tuple[str, ...]:
        """What `measure` would do, in sentences, on a bench that rehearses: its models count what they are asked.

        Raises:
            RaggsError: as `check`.
        """

    @abstractmethod
    def measure(self, bench: Bench) -> P:
        """Do the work. What costs more than a second goes through `bench.kept`, so that a kill costs a part.

        Raises:
            RaggsError: an input is not what it should be, or a model failed.
        """

    @abstractmethod
    def rests_on(self, found: P) -> int:
        """How many questions, or whatever its intervals are `OVER`, the verdict rests on."""

    @abstractmethod
    def sections(self, found: P) -> tuple[Section, ...]:
        """Sentences and tables with intervals, the most important first; from `found` alone."""

    def main_table(self, found: P) -> Table | None:
        """Return the table that is printed below the verdict; by default the first one of `sections`."""
        return next((each.table for each in self.sections(found) if each.table is not None), None)

    def outcome(self, found: P) -> str:
        """Return "pass" or "fail" if there is a limit, else "measured"."""
        return "measured" if found.passed is None else "pass" if found.passed else "fail"

    def files(self, found: P) -> Mapping[str, str]:
        """Other files by name, such as a configuration to go on with; from `found` alone."""
        return {}

    def plots(self, found: P) -> Mapping[str, str]:
        """SVG by name, drawn by `raggs.evaluation.svg` from `found` alone; files are ``<kind>-<name>.svg``."""
        return {}


DIAGNOSE_AGAIN_REMEDY = "run raggs diagnose again to replace it"


def kind_of(name: str) -> Diagnosis[DiagnosisFindings]:
    """A kind with the settings that it has by itself: enough to draw its findings.

    Raises:
        UsageError: there is none of this name.
    """
    kind = REGISTRY.load(name)
    return kind(kind.Config.model_validate({"type": name}))


def found_in(report: DiagnosisReport, where: Path | None = None) -> DiagnosisFindings:
    """The kind's findings, read from its report.

    Raises:
        UsageError: there is no such kind any more.
        DataError: they are of another form than this version's.
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
    """Whether texts of passages stand in its tables."""
    return REGISTRY.load(report.kind).PASSAGES


def lay_out(report: DiagnosisReport) -> ReportDocument:
    """The document of a report.

    Raises:
        UsageError, DataError: as `found_in`.
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
    """SVG files by name.

    Raises:
        UsageError, DataError: as `found_in`.
    """
    drawn = kind_of(report.kind).plots(found_in(report))
    return {f"{report.kind}-{name}.svg": svg for name, svg in drawn.items()}


def other_files(report: DiagnosisReport) -> Mapping[str, str]:
    """Other files by name.

    Raises:
        UsageError, DataError: as `found_in`.
    """
    return kind_of(report.kind).files(found_in(report))


def page(report: DiagnosisReport, drawn: Mapping[str, str]) -> str:
    """The same as Markdown, with its plots."""
    figures = [f"![{name.removesuffix('.svg')}]({name})" for name in drawn]
    text = markdown(lay_out(report), glossary=False)
    return "\n".join([text.rstrip("\n"), *(["", *figures] if figures else [])]) + "\n"


MAX_NAMED_ITEMS = 2  # of many things alike, that a verdict names


def verdict_sentences(found: str, then: str = "") -> str:
    """One sentence, or two: what was found, and what to do first."""
    return " ".join(f"{each}." for each in (found, then) if each)


def capital(text: str) -> str:
    """With a capital where a sentence begins."""
    return f"{text[:1].upper()}{text[1:]}"


def join_with_and(words: Iterable[str]) -> str:
    """``a, b and c``."""
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last


def some_of(words: Sequence[str]) -> str:
    """The first of them; the others are counted: ``a, b and 3 more``."""
    more = [f"{len(words) - MAX_NAMED_ITEMS} more"] if len(words) > MAX_NAMED_ITEMS else []
    return join_with_and([*words[:MAX_NAMED_ITEMS], *more])


def hedged(kind: Diagnosis[P], found: P) -> P:
    """The findings, whose verdict says where it rests on fewer questions than a claim can bear."""
    count = kind.rests_on(found)
    if count >= MIN_CLAIM_QUERIES:
        return found
    few = f"Preliminary ({plural(count, kind.OVER)}, at least {MIN_CLAIM_QUERIES} needed)"
    return found.model_copy(update={"verdict": f"{few}: {found.verdict}"})
