"""Diagnoses: measure with small controlled probes why retrieval fails.

If the causes of a diagnosis have not changed, its stored result is returned without measuring again. Paid answers are
cached. To continue an interrupted diagnosis, run the same command again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shlex import quote

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
    complete_verdict,
    found_in,
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
from raggs.parts.embedders import EmbedderConfig, default_embedder
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

CAP = 5.0  # USD, if no configuration sets a budget


@dataclass(frozen=True)
class DiagnoseRequest:
    """Request for a diagnosis.

    Attributes:
        kind: a name from `raggs list diagnoses`.
        config: configuration of a run: loaded, a mapping, or the path of its file; None for no run.
        settings: settings of the kind; omitted settings have their defaults.
        golden: run directory or file of labels; None for the golden set of the configured run, if it exists.
        embedders, rerankers: parts in the syntax of the command line, e.g. ``onnx:models/minilm``. If empty, the parts
            of the configuration are used; without a configuration, the default embedder and no reranker.
        out: folder for the reports; None for ``diagnose`` in the run directory, or in the working directory if there is
            no run.
        seed: random seed.
        allow_mixed: whether to continue if a provider answers with another snapshot of a model than before.
        max_usd: budget in USD for all diagnoses written to one folder; None for the budget of the configuration, or
            `CAP` if there is no configuration.
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
        """Validated configuration of the run; None for no run.

        Raises:
            RaggsError: it is missing or malformed.
        """
        config = self.config
        if config is None or isinstance(config, RunConfig):
            return config
        return config.run if isinstance(config, LoadedConfig) else load_config(config).run

    @cached_property
    def diagnosis(self) -> Diagnosis[DiagnosisFindings]:
        """Kind of diagnosis with its settings.

        Raises:
            UsageError: the kind or a setting does not exist, or a value is invalid.
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
        """Inputs of the diagnosis, checked but not opened.

        Raises:
            UsageError: an embedder or reranker does not exist.
        """
        run = self.run
        own = None if run is None else run_folder(run)
        return DiagnosisInputs(run, self.golden, own, self._embedders(), self._rerankers(), self.seed)

    @cached_property
    def folder(self) -> Path:
        """Folder for the reports."""
        if self.out is not None:
            return self.out
        runs = [self.golden, None if self.run is None else run_folder(self.run)]
        made = next((run for run in runs if run is not None and RunStore(run).exists), None)
        return Path(FOLDER) if made is None else made / FOLDER

    @property
    def llm(self) -> LLMSettings:
        """Settings of model calls: from the configuration, or else from the run that produced the golden set; the
        defaults if there is neither.
        """
        stored = None if self.golden is None or self.run is not None else llm_of(self.golden)
        found = stored or LLMSettings() if self.run is None else self.run.llm
        return found.mixing() if self.allow_mixed else found

    @property
    def budget(self) -> BudgetSettings:
        """Budget of the configuration, or `CAP` without a configuration; `max_usd` overrides the limit in USD."""
        budget = BudgetSettings(max_usd=CAP) if self.run is None else self.run.budget
        return budget if self.max_usd is None else budget.model_copy(update={"max_usd": self.max_usd})

    @property
    def workspace(self) -> Path:
        """Folder with the caches: the workspace of the configured run, or else the folder that contains the run given
        as golden set. Without a run, it is the folder of the reports.
        """
        if self.run is not None:
            return self.run.workspace
        of_run = self.golden is not None and RunStore(self.golden).exists
        return self.golden.parent if self.golden is not None and of_run else self.folder

    def permit(self, approve: Approve = approve_nothing) -> None:
        """Check that no API key is sent to a new address. Addresses in embedders and rerankers that the user typed are
        allowed.

        Raises:
            PrerequisiteError: a key would be sent to a new address (see `raggs.app.addresses`).
        """
        parts = [*self.given.embedders.values(), *self.given.rerankers.values(), self.diagnosis.config]
        permit_parts(self.llm, parts, approve)
        if self.run is not None:
            permit(self.run, self.diagnosis.STAGES, approve)

    def _embedders(self) -> dict[str, EmbedderConfig]:
        own = None if self.run is None else self.run.embed.embedder
        if not self.embedders and own is not None:
            return {spec_name(own): own}
        names = split_names(self.embedders or (default_embedder()["type"],), "embedder", "see: raggs list embedders")
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
    """Result of a diagnosis.

    Attributes:
        report: the stored report.
        found: findings, as the kind's class.
        folder, files: folder of the reports, and their files.
        unchanged: whether a stored result was reused.
        run: run directory that the reports are part of; None if they are in another folder.
    """

    report: DiagnosisReport
    found: DiagnosisFindings
    folder: Path
    files: tuple[Path, ...]
    unchanged: bool
    run: Path | None = None

    @property
    def verdict(self) -> str:
        """Result and recommended action, in at most two sentences."""
        return self.found.verdict

    @property
    def passed(self) -> bool | None:
        """Whether the limits of the diagnosis are met; None if there is no limit, or if the result is inconclusive."""
        return self.found.passed

    @property
    def document(self) -> ReportDocument:
        """Report document: verdict, sentences and tables."""
        return lay_out(self.report)

    @property
    def outcome(self) -> str:
        """ "pass" or "fail"; "measured" if the kind has no limit, or if the result is inconclusive."""
        return kind_of(self.report.kind).outcome(self.found)

    @property
    def summary(self) -> Summary:
        """Default output: verdict, main table, and the data that it is based on."""
        found = {file.suffix: file for file in self.files}
        summary = summarise(self.report, found.get(".md"))
        if ".yaml" in found:
            return replace(summary, next=f"raggs run --config {quote(str(found['.yaml']))}")
        return summary if self.run is None else replace(summary, next=f"raggs report {quote(str(self.run))}")

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
    """Run one diagnosis, e.g. ``diagnose("names", embedders=["wordllama"])``. This also works in notebooks.

    The other arguments are attributes of `DiagnoseRequest`.

    Args:
        settings: settings of the kind.
        listen: progress callback.
        approve: decides whether an API key may be sent to a new address (see `raggs.app.addresses`).

    Raises:
        RaggsError: see `raggs.base.errors`. Paid answers so far are cached.
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
    """Run the diagnosis of a request; see `diagnose`."""
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
    """Forecast of a diagnosis: its work in sentences, and one estimate per model and task."""

    what: tuple[str, ...]
    estimates: tuple[CostEstimate, ...] = ()
    about: str = "upper bound: later calls depend on earlier answers"


def forecast_diagnosis(request: DiagnoseRequest) -> DiagnosisForecast:
    """Return the work and cost of `run_diagnosis`. No paid model is called, and only caches are written.

    Raises:
        RaggsError: see `run_diagnosis`; only errors that are known before any work.
    """
    if in_loop():
        return run_in_thread(lambda _: forecast_diagnosis(request), ignore_event)
    kind, store = request.diagnosis, DiagnosisStore(request.folder, request.kind)
    with opened_inputs(request, ignore_event, rehearses=True) as bench:
        bench.require(kind.needs)
        kind.check(bench)
        if store.unchanged(hash_value(kind.causes(bench))) is not None:
            return DiagnosisForecast((f"nothing to do: {store.path} is up to date",))
        return DiagnosisForecast(kind.forecast(bench), tuple(lines_of(bench.counting)))


@contextmanager
def opened_inputs(request: DiagnoseRequest, listen: Listener, *, rehearses: bool = False) -> Iterator[Bench]:
    """Yield the opened inputs of a request, and close them at the end of the block.

    Args:
        request: the request.
        listen: progress callback.
        rehearses: whether embedders and rerankers only use cached results, without model calls.
    """
    with (
        Workspace(request.workspace, request.llm, request.budget, hear=listen) as workspace,
        workspace.rehearsal() if rehearses else nullcontext() as rehearsal,
    ):
        yield Bench(request.given, workspace, rehearsal)


def _require_keys(kind: Diagnosis[DiagnosisFindings], bench: Bench) -> None:
    """Raise an error if an API key is missing, unless answers are cached: the cached ones may suffice."""
    if not bench.workspace.has_answers:
        require_keys(kind.models(bench), bench.workspace.settings)


def _report(kind: Diagnosis[DiagnosisFindings], bench: Bench, causes: str) -> DiagnosisReport:
    looks_at = {*kind.needs, *kind.TAKES}
    judged = "golden" in looks_at and bench.has("golden")
    found = complete_verdict(kind, kind.measure(bench))
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
    run = store.folder.parent if RunStore(store.folder.parent).exists else None
    return DiagnosisResult(report, found_in(report, store.path), store.folder, store.files, unchanged, run)


QUICK = "seconds"


@dataclass(frozen=True)
class DiagnosisOverview:
    """Overview of a kind of diagnosis.

    Attributes:
        name, title: name of the kind, and the question that it answers.
        needs, takes: required and optional inputs.
        lacks: reason why the diagnosis cannot run with the given inputs, and the remedy; empty if it can run.
        time: run time with local embedders.
        models: paid models that the diagnosis would call.
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
        """Whether the diagnosis can run with the given inputs."""
        return not self.lacks

    def hindrance(self, *, quick: bool) -> str:
        """Return the reason why `diagnose_all` skips this diagnosis; empty if the diagnosis runs."""
        alone = f"raggs diagnose {self.name}"
        if self.lacks or self.models:
            return self.lacks or f"calls paid models ({', '.join(self.models)}); to run it: {alone}"
        return f"takes {self.time}; to run it: {alone}" if quick and self.time != QUICK else ""

    @property
    def price(self) -> str:
        """ "paid" or "free"."""
        return "paid" if self.models else "free"


@dataclass(frozen=True)
class DiagnosisRounds:
    """Results of finished diagnoses, and the reasons for skipped and failed diagnoses by kind."""

    done: tuple[DiagnosisResult, ...]
    skipped: dict[str, str]
    failed: dict[str, str]


def outlooks(request: DiagnoseRequest) -> tuple[DiagnosisOverview, ...]:
    """Return an overview of every kind for the inputs of a request; its own kind is ignored. No model is called.

    Raises:
        RaggsError: an input cannot be opened.
    """
    if in_loop():
        return run_in_thread(lambda _: outlooks(request), ignore_event)
    with opened_inputs(request, ignore_event) as bench:
        if request.golden is not None:
            _ = bench.judgments  # reports an invalid golden set once, not once per kind
        return tuple(_outlook(name, request, bench) for name in REGISTRY)


def _outlook(name: str, request: DiagnoseRequest, bench: Bench) -> DiagnosisOverview:
    try:
        kind = replace(request, kind=name, settings={}).diagnosis
    except RaggsError as error:  # the package that provides the kind is broken
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
    """Run each diagnosis that can run and calls no paid model. A failing diagnosis does not stop the others.

    Args:
        request: the request; its kind and settings are ignored.
        listen: progress callback.
        approve: decides whether an API key may be sent to a new address (see `raggs.app.addresses`).
        quick: whether to run only kinds that take seconds.

    Raises:
        RaggsError: an input cannot be opened.
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
    """Yield the lines of the list of kinds: the fixed columns, then the text that may be wrapped."""
    width = max((len(each.name) for each in found), default=0)
    for each in found:
        state = "ready" if each.ready else "lacks"
        yield f"  {each.name:<{width}}  {state:<5}  {each.time:<8}  {each.price:<4}  ", each.title
        words = [f"needs {', '.join(each.needs)}"] if each.needs else []
        words += [f"optional: {', '.join(each.takes)}"] if each.takes else []
        if words:
            yield f"  {'':<{width}}  ", "; ".join(words)
        if each.lacks:
            yield f"  {'':<{width}}  ", each.lacks
