"""Diagnose: why retrieval fails, by one kind of small controlled probes, from a typed request to a typed result.

A diagnosis whose causes have not changed is read, not measured. Whatever was measured or paid for is kept, so that who
interrupts one goes on with it by the same command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raggs.app.addresses import Approve, nobody
from raggs.app.beside import beside, in_loop
from raggs.app.diagnoserequest import CAP, DiagnoseRequest
from raggs.app.run import AnyConfig
from raggs.base.hashing import hash_value
from raggs.config.environment import refuse_stored
from raggs.diagnosis.base import Diagnosis, Forecast, Found
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.layout import found_in, lay_out
from raggs.diagnosis.models import DiagnosisReport
from raggs.diagnosis.store import DiagnosisStore
from raggs.diagnosis.verdicts import hedged
from raggs.evaluation.document import Document
from raggs.llm.credentials import require_keys
from raggs.llm.ledger import FILE as LEDGER
from raggs.parts.workshop import Workshop
from raggs.runs.pipeline.events import Listener, silent

__all__ = [
    "CAP",
    "DiagnoseRequest",
    "Diagnosed",
    "Forecast",
    "diagnose",
    "forecast_diagnosis",
    "opened",
    "run_diagnosis",
]


@dataclass(frozen=True)
class Diagnosed:
    """What was found, where it lies, and whether anything was done for it."""

    report: DiagnosisReport
    found: Found
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
    def document(self) -> Document:
        """The verdict, sentences and tables."""
        return lay_out(self.report)

    def _repr_html_(self) -> str:
        from raggs.evaluation.markup import fragment

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
    listen: Listener = silent,
    approve: Approve = nobody,
    **settings: object,
) -> Diagnosed:
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


def run_diagnosis(request: DiagnoseRequest, listen: Listener = silent, approve: Approve = nobody) -> Diagnosed:
    """The same of a request."""
    if in_loop():
        return beside(lambda hear: run_diagnosis(request, hear, approve), listen)
    request.permit(approve)
    kind, store = request.diagnosis, DiagnosisStore(request.folder, request.kind)
    refuse_stored(kind.config.model_dump(mode="json"))
    with opened(request, listen) as bench:
        bench.require(kind.needs)
        kind.check(bench)
        causes = hash_value(kind.causes(bench))
        if (report := store.unchanged(causes, bench.workshop.notify)) is not None:
            return _result(report, store, unchanged=True)
        _require_keys(kind, bench)
        with store.hold():
            bench.workshop.ledger.turn_to(store.folder / LEDGER, f"diagnose {request.kind}")
            report = store.keep(_report(kind, bench, causes))
    return _result(report, store, unchanged=False)


def forecast_diagnosis(request: DiagnoseRequest) -> Forecast:
    """What `run_diagnosis` would do and cost. Nobody is asked, nothing is measured or written.

    Raises:
        RaggsError: as `run_diagnosis`, for what can be known before.
    """
    if in_loop():
        return beside(lambda _: forecast_diagnosis(request), silent)
    kind, store = request.diagnosis, DiagnosisStore(request.folder, request.kind)
    with opened(request, silent, rehearses=True) as bench:
        bench.require(kind.needs)
        kind.check(bench)
        if store.unchanged(hash_value(kind.causes(bench))) is not None:
            return Forecast((f"nothing: {store.path} is of the same causes",))
        return kind.forecast(bench)


@contextmanager
def opened(request: DiagnoseRequest, listen: Listener, *, rehearses: bool = False) -> Iterator[Bench]:
    """The bench of a request, closed at the end of the block.

    Args:
        rehearses: whether its embedders and rerankers only remember what was paid for, and ask nobody.
    """
    workshop = Workshop(request.workspace, request.llm, request.budget, hear=listen)
    rehearsal = workshop.rehearsal() if rehearses else None
    try:
        yield Bench(request.given, workshop, listen, rehearsal)
    finally:
        if rehearsal is not None:
            workshop.loop.run(rehearsal.close())
        workshop.close()


def _require_keys(kind: Diagnosis[Found], bench: Bench) -> None:
    """Find a missing key before the work, unless what was answered before may do."""
    answers = bench.workshop.places.llm
    if not (answers.is_dir() and any(answers.iterdir())):
        require_keys(kind.models(bench), bench.workshop.llm.settings)


def _report(kind: Diagnosis[Found], bench: Bench, causes: str) -> DiagnosisReport:
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


def _result(report: DiagnosisReport, store: DiagnosisStore, *, unchanged: bool) -> Diagnosed:
    return Diagnosed(report, found_in(report, store.path), store.folder, store.files, unchanged)
