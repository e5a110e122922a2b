"""`raggs diagnose KIND`: the flags that all kinds share, and how their result is shown.

Kinds have their commands in `raggs.cli.diagnoses`.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.chunks import IN_PART, show_costs
from raggs.cli.options import AllowMixed, DryRun, Json, Overrides, Quiet, Yes, enough, grouped
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.app.diagnose import DiagnoseRequest, DiagnosisResult, DiagnosisRounds
    from raggs.llm import BudgetSpent

RunConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="A run's YAML file: its corpus, questions and parts."),
]
Golden = Annotated[
    Path | None,
    typer.Option("--golden", "-g", metavar="RUN|FILE", help="A run directory, or labels; the run's own if left out."),
]
Embedders = Annotated[
    list[str] | None,
    typer.Option("--embedder", metavar="LIST", help="type:path or model:key=value; else the run's, or wordllama."),
]
Rerankers = Annotated[
    list[str] | None,
    typer.Option("--reranker", metavar="LIST", help="type:path or model:key=value; the run's if left out."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Where reports go; diagnose/ in the run's folder, or here."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of all that is drawn.")]
MaxUsd = Annotated[
    float | None,
    typer.Option("--max-usd", metavar="USD", min=0, help="What all that goes to --out may cost; 5 without --config."),
]


@dataclass(frozen=True)
class DiagnosisFlags:
    """What every kind is told."""

    config: RunConfigFile = None
    overrides: Overrides = None
    golden: Golden = None
    embedder: Embedders = None
    reranker: Rerankers = None
    out: Out = None
    seed: Seed = 0
    max_usd: MaxUsd = None
    allow_mixed: AllowMixed = False
    dry_run: DryRun = False
    as_json: Json = False
    quiet: Quiet = False
    yes: Yes = False

    def request(self, kind: str, settings: dict[str, object]) -> DiagnoseRequest:
        """What is to be diagnosed; settings that are None are left out."""
        from raggs.app.diagnose import DiagnoseRequest
        from raggs.config.load import load_config

        return DiagnoseRequest(
            kind,
            None if self.config is None else load_config(self.config, self.overrides or ()),
            {name: value for name, value in settings.items() if value is not None},
            golden=self.golden,
            embedders=self.embedder or (),
            rerankers=self.reranker or (),
            out=self.out,
            seed=self.seed,
            max_usd=self.max_usd,
            allow_mixed=self.allow_mixed,
        )


def run_kind(kind: str, shared: DiagnosisFlags, **settings: object) -> None:
    """Diagnose and show, or only say what that would cost."""
    from raggs.app.diagnose import forecast_diagnosis, run_diagnosis
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.llm import BudgetSpent
    from raggs.runs.events import silent

    request = shared.request(kind, settings)
    if shared.dry_run:
        expected = forecast_diagnosis(request)
        above = "\n".join(expected.what) or None
        cap = request.budget.max_usd
        show_costs(expected.estimates, cap, as_json=shared.as_json, above=above, about=expected.about, llm=request.llm)
        return
    display = listener(shared.quiet or shared.as_json)
    try:
        with display or nullcontext():
            result = run_diagnosis(request, display or silent, approver(shared.yes, shared.quiet))
    except BudgetSpent as error:
        error.remedy = _going_on(error, request)
        raise
    if shared.as_json:
        say_json(result.report.model_dump_json(indent=2))
    elif not shared.quiet:
        _show(result)


def _going_on(error: BudgetSpent, request: DiagnoseRequest) -> str:
    """How to go on under a budget that suffices for what is left to do."""
    from raggs.app.chunks import total
    from raggs.app.diagnose import forecast_diagnosis

    if error.cap.per_invocation:
        return "what was paid is cached, to go on: the same command"
    left = forecast_diagnosis(request).estimates
    value = enough(error.cap, total(each.usd for each in left) if error.cap.money else sum(each.calls for each in left))
    flag = f"--max-usd {value}" if error.cap.setting == "max_usd" else f"--set budget.{error.cap.setting}={value}"
    return f"what was paid is cached, to go on: the same command with {flag}"


def _show(result: DiagnosisResult) -> None:
    from raggs.cli.documents import show_sweep
    from raggs.cli.screen import open_console

    show_sweep(result.document, open_console())
    for file in result.files:
        say(f"{'unchanged: ' if result.unchanged else ''}{file}")


@grouped
def kinds(
    shared: DiagnosisFlags,
    kind: Annotated[str | None, typer.Argument(metavar="KIND", help="A kind that a package adds.")] = None,
    debug: Debug = False,
) -> None:
    """List the kinds of diagnosis: what each asks and needs, and whether it can run.

    What is named counts: --config, --golden, --embedder, --reranker. A kind that pays nobody is free.

    \b
    Examples:
      raggs diagnose
      raggs diagnose list --config raggs.yaml
    """
    from raggs.app.diagnose import lines, outlooks
    from raggs.cli.screen import hanging
    from raggs.diagnosis import REGISTRY
    from raggs.runs.manifests.store import dump_json

    if kind is not None:
        REGISTRY.load(kind)  # a name that nobody has is told
        run_kind(kind, shared)
        return
    found = outlooks(shared.request("", {}))
    if shared.as_json:
        say_json(dump_json({each.name: {**asdict(each), "ready": each.ready} for each in found}))
    else:
        for begin, text in lines(found):
            say(hanging(begin, text))


@grouped
def all_(
    shared: DiagnosisFlags,
    quick: Annotated[bool, typer.Option("--quick", help="Only the kinds that take seconds.")] = False,
    debug: Debug = False,
) -> None:
    """Run every kind that can run and pays nobody.

    What one kind cannot do stops no other; why one was left out is said at the end.

    \b
    Examples:
      raggs diagnose all --quick
      raggs diagnose all --config raggs.yaml --out diagnose
    """
    from raggs.app.diagnose import diagnose_all, outlooks
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.runs.events import silent
    from raggs.runs.manifests.store import dump_json

    request = shared.request("", {})
    if shared.dry_run:
        free = [each.name for each in outlooks(request) if not each.hindrance(quick=quick)]
        say_json(dump_json(free)) if shared.as_json else say(f"would run: {', '.join(free) or 'none'}")
        return
    display = listener(shared.quiet or shared.as_json)
    with display or nullcontext():
        found = diagnose_all(request, display or silent, approver(shared.yes, shared.quiet), quick=quick)
    if shared.as_json:
        reports = {each.report.kind: each.report.model_dump(mode="json") for each in found.done}
        say_json(dump_json({"done": reports, "skipped": found.skipped, "failed": found.failed}))
    elif not shared.quiet:
        _show_all(found)
    for name, why in found.failed.items():
        say(f"raggs: {name}: {why}", err=True)
    if found.failed:
        raise typer.Exit(IN_PART)


def _show_all(found: DiagnosisRounds) -> None:
    from raggs.cli.screen import hanging

    for each in found.done:
        say(hanging(f"{each.report.kind}: ", each.verdict))
        say(f"  {'unchanged: ' if each.unchanged else ''}{each.files[0]}")
    for name, why in found.skipped.items():
        say(hanging(f"{name}: left out: ", why))
