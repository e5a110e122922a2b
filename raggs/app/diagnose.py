"""Diagnose: why retrieval fails, by one kind of small controlled probes, from a typed request to a typed result.

A diagnosis whose causes have not changed is read, not measured. Whatever was measured or paid for is kept, so that who
interrupts one goes on with it by the same command.

What is to be diagnosed, typed and checked, before anything is opened: the kind, its settings, and what was named.

All kinds of diagnosis at once: what each asks, whether it can run with what is named, and those that are free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from raggs.app.addresses import Approve, approve_nothing, permit, permit_parts
from raggs.app.run import AnyConfig, run_folder
from raggs.base.document import ReportDocument, Summary
from raggs.base.errors import RaggsError, UsageError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import first_fault
from raggs.chunking.models import parse_spec, spec_name, split_names
from raggs.config.load import LoadedConfig, load_config
from raggs.config.models import RunConfig
from raggs.config.source import refuse_stored
from raggs.diagnosis import FOLDER, REGISTRY
from raggs.diagnosis.base import (
    INPUT_NAMES,
    Bench,
    Diagnosis,
    DiagnosisFindings,
    DiagnosisInputs,
    found_in,
    hedged,
    kind_of,
    lay_out,
    summarise,
)
from raggs.diagnosis.models import DiagnosisReport
from raggs.diagnosis.store import DiagnosisStore
from raggs.llm import BudgetSettings, LLMSettings
from raggs.llm.ledger import LEDGER_FILE as LEDGER
from raggs.llm.prices import require_keys
from raggs.parts import embedders, rerankers
from raggs.parts.embedders import EmbedderConfig
from raggs.parts.rerankers import RerankerConfig
from raggs.parts.retrievers.reranked import RerankedConfig
from raggs.parts.workspace import Workspace
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.runs.forecast import lines_of
from raggs.runs.manifests.models import CostEstimate
from raggs.runs.manifests.store import RunStore
from raggs.sweeps.world import llm_of

__all__ = [
    "CAP",
    "DiagnoseRequest",
    "DiagnosisForecast",
    "DiagnosisResult",
    "diagnose",
    "forecast_diagnosis",
    "opened_inputs",
    "run_diagnosis",
]

CAP = 5.0  # USD, where no configuration names a budget
DEFAULT_EMBEDDER = "wordllama"


@dataclass(frozen=True)
class DiagnoseRequest:
    """What to diagnose.

    Attributes:
        kind: as `raggs list diagnoses` has it.
        config: of a run: a loaded configuration, a mapping, or the path of its file; None without one.
        settings: of the kind; those that are left out are its defaults.
        golden: a run directory, or labels; None for what the configuration's own run has made, if anything.
        embedders, rerankers: as on the command line, ``onnx:models/minilm``; empty for those of the configuration, and
            without these for wordllama and no reranker.
        out: where reports go; None for the run's folder, where there is one, else ``diagnose`` here.
        seed: of all that is drawn.
        allow_mixed: whether it goes on when a provider answers with another snapshot of a model than before.
        max_usd: what all diagnoses may cost that go to one folder; None for the configuration's budget, else `CAP`.
    """

    kind: str
    config: AnyConfig | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    golden: Path | None = None
    embedders: Sequence[str] = ()
    rerankers: Sequence[str] = ()
    out: Path | None = None
    seed: int = 0
    max_usd: float | None = None
    allow_mixed: bool = False

    @cached_property
    def run(self) -> RunConfig | None:
        """The configuration of the run, checked.

        Raises:
            RaggsError: it is missing or malformed.
        """
        config = self.config
        if config is None or isinstance(config, RunConfig):
            return config
        return config.run if isinstance(config, LoadedConfig) else load_config(config).run

    @cached_property
    def diagnosis(self) -> Diagnosis[DiagnosisFindings]:
        """The kind with its settings.

        Raises:
            UsageError: there is no such kind or setting, or a value does not fit.
        """
        kind = REGISTRY.load(self.kind)
        try:
            return kind(kind.Config.model_validate({"type": self.kind, **self.settings}))
        except ValidationError as error:
            raise UsageError(
                f"{self.kind}: {first_fault(error)}", remedy=f"see raggs diagnose {self.kind} --help"
            ) from error

    @cached_property
    def given(self) -> DiagnosisInputs:
        """What was named, checked but not opened.

        Raises:
            UsageError: a name stands for no embedder or reranker.
        """
        run = self.run
        own = None if run is None else run_folder(run)
        return DiagnosisInputs(run, self.golden, own, self._embedders(), self._rerankers(), self.seed)

    @cached_property
    def folder(self) -> Path:
        """Where reports go."""
        if self.out is not None:
            return self.out
        runs = [self.golden, None if self.run is None else run_folder(self.run)]
        made = next((run for run in runs if run is not None and RunStore(run).exists), None)
        return Path(FOLDER) if made is None else made / FOLDER

    @property
    def llm(self) -> LLMSettings:
        """How language models are called: as the configuration says, else as the run did that made the golden set."""
        stored = None if self.golden is None or self.run is not None else llm_of(self.golden)
        found = stored or LLMSettings() if self.run is None else self.run.llm
        return found.mixing() if self.allow_mixed else found

    @property
    def budget(self) -> BudgetSettings:
        """What may be spent."""
        budget = BudgetSettings(max_usd=CAP) if self.run is None else self.run.budget
        return budget if self.max_usd is None else budget.model_copy(update={"max_usd": self.max_usd})

    @property
    def workspace(self) -> Path:
        """Below which the caches lie: the run's, where there is one."""
        if self.run is not None:
            return self.run.workspace
        of_run = self.golden is not None and RunStore(self.golden).exists
        return self.golden.parent if self.golden is not None and of_run else self.folder

    def permit(self, approve: Approve = approve_nothing) -> None:
        """See to it that no key goes to an address that is new; those of a part's own word are the user's.

        Raises:
            PrerequisiteError: one would (see `raggs.app.addresses`).
        """
        parts = [*self.given.embedders.values(), *self.given.rerankers.values(), self.diagnosis.config]
        permit_parts(self.llm, parts, approve)
        if self.run is not None:
            permit(self.run, self.diagnosis.STAGES, approve)

    def _embedders(self) -> dict[str, EmbedderConfig]:
        own = None if self.run is None else self.run.embed.embedder
        if not self.embedders and own is not None:
            return {spec_name(own): own}
        names = split_names(self.embedders or (DEFAULT_EMBEDDER,), "embedder", "see: raggs list embedders")
        return {name: parse_spec(name, embedders.REGISTRY, EmbedderConfig) for name in names}

    def _rerankers(self) -> dict[str, RerankerConfig]:
        if self.rerankers:
            names = split_names(self.rerankers, "reranker", "see: raggs list rerankers")
            return {name: parse_spec(name, rerankers.REGISTRY, RerankerConfig) for name in names}
        specs = () if self.run is None else self.run.retrieve.retrievers
        found = [spec.by for spec in specs if isinstance(spec, RerankedConfig)]
        return {spec_name(spec): spec for spec in found}


@dataclass(frozen=True)
class DiagnosisResult:
    """What was found, where it lies, and whether anything was done for it."""

    report: DiagnosisReport
    found: DiagnosisFindings
    folder: Path
    files: tuple[Path, ...]
    unchanged: bool

    @property
    def verdict(self) -> str:
        """What was found and what is to be done first: at most two sentences."""
        return self.found.verdict

    @property
    def passed(self) -> bool | None:
        """Whether it holds what was asked of it; None where nothing was, or who knows."""
        return self.found.passed

    @property
    def document(self) -> ReportDocument:
        """The verdict, sentences and tables."""
        return lay_out(self.report)

    @property
    def outcome(self) -> str:
        """ "pass", "fail", or "measured" if the kind has no limit."""
        return kind_of(self.report.kind).outcome(self.found)

    @property
    def summary(self) -> Summary:
        """The verdict, its most important table and what it is based on."""
        found = {file.suffix: file for file in self.files}
        summary = summarise(self.report, found.get(".md"))
        return replace(summary, next=f"raggs run --config {found['.yaml']}") if ".yaml" in found else summary

    def _repr_html_(self) -> str:
        from raggs.base.document import fragment

        return fragment(self.document)


def diagnose(
    kind: str,
    config: AnyConfig | None = None,
    *,
    golden: Path | str | None = None,
    embedders: Sequence[str] = (),
    rerankers: Sequence[str] = (),
    out: Path | str | None = None,
    seed: int = 0,
    max_usd: float | None = None,
    listen: Listener = ignore_event,
    approve: Approve = approve_nothing,
    **settings: object,
) -> DiagnosisResult:
    """Diagnose one kind; see `DiagnoseRequest`. Works in notebooks too: ``diagnose("names", embedders=["wordllama"])``.

    Args:
        settings: of the kind.
        listen: hears how far the work is.
        approve: says whether a key may go to an address that is new (see `raggs.app.addresses`).

    Raises:
        RaggsError: see `raggs.base.errors`; whatever was measured or paid for is kept.
    """
    request = DiagnoseRequest(
        kind,
        config,
        settings,
        golden=None if golden is None else Path(golden),
        embedders=embedders,
        rerankers=rerankers,
        out=None if out is None else Path(out),
        seed=seed,
        max_usd=max_usd,
    )
    return run_diagnosis(request, listen, approve)


def run_diagnosis(
    request: DiagnoseRequest, listen: Listener = ignore_event, approve: Approve = approve_nothing
) -> DiagnosisResult:
    """The same of a request."""
    if in_loop():
        return run_in_thread(lambda hear: run_diagnosis(request, hear, approve), listen)
    request.permit(approve)
    kind, store = request.diagnosis, DiagnosisStore(request.folder, request.kind)
    refuse_stored(kind.config.model_dump(mode="json"))
    with opened_inputs(request, listen) as bench:
        bench.require(kind.needs)
        kind.check(bench)
        causes = hash_value(kind.causes(bench))
        if (report := store.unchanged(causes, bench.workspace.notify)) is not None:
            return _result(report, store, unchanged=True)
        _require_keys(kind, bench)
        with store.hold():
            bench.workspace.ledger.turn_to(store.folder / LEDGER, f"diagnose {request.kind}")
            report = store.keep(_report(kind, bench, causes))
    return _result(report, store, unchanged=False)


@dataclass(frozen=True)
class DiagnosisForecast:
    """What a diagnosis would do, in sentences, and a line for each model and task that would be paid for."""

    what: tuple[str, ...]
    estimates: tuple[CostEstimate, ...] = ()
    about: str = "at most so many: what is asked later depends on the answers"


def forecast_diagnosis(request: DiagnoseRequest) -> DiagnosisForecast:
    """What `run_diagnosis` would do and cost. Nobody is asked, nothing is measured or written.

    Raises:
        RaggsError: as `run_diagnosis`, for what can be known before.
    """
    if in_loop():
        return run_in_thread(lambda _: forecast_diagnosis(request), ignore_event)
    kind, store = request.diagnosis, DiagnosisStore(request.folder, request.kind)
    with opened_inputs(request, ignore_event, rehearses=True) as bench:
        bench.require(kind.needs)
        kind.check(bench)
        if store.unchanged(hash_value(kind.causes(bench))) is not None:
            return DiagnosisForecast((f"nothing: {store.path} is of the same causes",))
        return DiagnosisForecast(kind.forecast(bench), tuple(lines_of(bench.counting)))


@contextmanager
def opened_inputs(request: DiagnoseRequest, listen: Listener, *, rehearses: bool = False) -> Iterator[Bench]:
    """The bench of a request, closed at the end of the block.

    Args:
        rehearses: whether its embedders and rerankers only remember what was paid for, and ask nobody.
    """
    with (
        Workspace(request.workspace, request.llm, request.budget, hear=listen) as workspace,
        workspace.rehearsal() if rehearses else nullcontext() as rehearsal,
    ):
        yield Bench(request.given, workspace, rehearsal)


def _require_keys(kind: Diagnosis[DiagnosisFindings], bench: Bench) -> None:
    """Find a missing key before the work, unless what was answered before may do."""
    if not bench.workspace.has_answers:
        require_keys(kind.models(bench), bench.workspace.settings)


def _report(kind: Diagnosis[DiagnosisFindings], bench: Bench, causes: str) -> DiagnosisReport:
    looks_at = {*kind.needs, *kind.TAKES}
    judged = "golden" in looks_at and bench.has("golden")
    found = hedged(kind, kind.measure(bench))
    return DiagnosisReport(
        kind=kind.config.type,
        title=kind.TITLE,
        seed=bench.seed,
        settings=kind.config.model_dump(mode="json", exclude={"type"}),
        subject={
            "embedders": tuple(bench.given.embedders) if "embedder" in looks_at else (),
            "rerankers": tuple(bench.given.rerankers) if "reranker" in looks_at else (),
            "golden": (bench.golden.name,) if judged else (),
        },
        golden=bench.judgments.digest if judged else None,
        causes=causes,
        found=found.model_dump(mode="json"),
        files={},
    )


def _result(report: DiagnosisReport, store: DiagnosisStore, *, unchanged: bool) -> DiagnosisResult:
    return DiagnosisResult(report, found_in(report, store.path), store.folder, store.files, unchanged)


QUICK = "seconds"


@dataclass(frozen=True)
class DiagnosisOverview:
    """One kind, and what stands between it and its findings.

    Attributes:
        name, title: of the kind, and the question that it answers.
        needs, takes: what it cannot do without, and what it uses where it is there.
        lacks: why it cannot run with what is named, and what helps; empty where it can.
        time: how long it takes with embedders of this machine.
        models: that it would pay.
    """

    name: str
    title: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    lacks: str = ""
    time: str = ""
    models: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether it can run as things are."""
        return not self.lacks

    def hindrance(self, *, quick: bool) -> str:
        """Why it is not among all kinds that are run at once; empty where it is."""
        alone = f"raggs diagnose {self.name}"
        if self.lacks or self.models:
            return self.lacks or f"would pay {', '.join(self.models)}: {alone}"
        return f"takes {self.time}: {alone}" if quick and self.time != QUICK else ""

    @property
    def price(self) -> str:
        """In words."""
        return "paid" if self.models else "free"


@dataclass(frozen=True)
class DiagnosisRounds:
    """What became of all kinds: those that ran, and by kind why others did not, or could not go on."""

    done: tuple[DiagnosisResult, ...]
    skipped: dict[str, str]
    failed: dict[str, str]


def outlooks(request: DiagnoseRequest) -> tuple[DiagnosisOverview, ...]:
    """Every kind, looked at with what a request names; its own kind does not matter. Nobody is asked.

    Raises:
        RaggsError: what is named cannot be opened.
    """
    if in_loop():
        return run_in_thread(lambda _: outlooks(request), ignore_event)
    with opened_inputs(request, ignore_event) as bench:
        if request.golden is not None:
            _ = bench.judgments  # told once, not for each kind
        return tuple(_outlook(name, request, bench) for name in REGISTRY)


def _outlook(name: str, request: DiagnoseRequest, bench: Bench) -> DiagnosisOverview:
    try:
        kind = replace(request, kind=name, settings={}).diagnosis
    except RaggsError as error:  # a package that offers it is broken
        return DiagnosisOverview(name, "", lacks=str(error))
    lacks, models = "", tuple[str, ...]()
    try:
        bench.require(kind.needs)
        models = kind.models(bench)
        kind.check(bench)
    except RaggsError as error:
        lacks = str(error)
    needs, takes = (tuple(INPUT_NAMES[need] for need in each) for each in (kind.NEEDS, kind.TAKES))
    return DiagnosisOverview(name, kind.TITLE, needs, takes, lacks, kind.TIME, models)


def diagnose_all(
    request: DiagnoseRequest,
    listen: Listener = ignore_event,
    approve: Approve = approve_nothing,
    *,
    quick: bool = False,
) -> DiagnosisRounds:
    """Run each kind that can run and pays nobody, one after the other; what one cannot do stops no other.

    Args:
        quick: whether only those run that take seconds.

    Raises:
        RaggsError: what is named cannot be opened.
    """
    if in_loop():
        return run_in_thread(lambda hear: diagnose_all(request, hear, approve, quick=quick), listen)
    done, skipped, failed = list[DiagnosisResult](), dict[str, str](), dict[str, str]()
    for each in outlooks(request):
        if why := each.hindrance(quick=quick):
            skipped[each.name] = why
            continue
        try:
            done.append(run_diagnosis(replace(request, kind=each.name, settings={}), listen, approve))
        except RaggsError as error:
            failed[each.name] = str(error)
    return DiagnosisRounds(tuple(done), skipped, failed)


def lines(found: tuple[DiagnosisOverview, ...]) -> Iterator[tuple[str, str]]:
    """For people: what stands before a text, and the text, a few lines a kind."""
    width = max((len(each.name) for each in found), default=0)
    for each in found:
        state = "ready" if each.ready else "lacks"
        yield f"  {each.name:<{width}}  {state:<5}  {each.time:<8}  {each.price:<4}  ", each.title
        words = [f"needs {', '.join(each.needs)}"] if each.needs else []
        words += [f"uses, where it is there: {', '.join(each.takes)}"] if each.takes else []
        if words:
            yield f"  {'':<{width}}  ", "; ".join(words)
        if each.lacks:
            yield f"  {'':<{width}}  ", each.lacks
