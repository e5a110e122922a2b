"""`raggs diagnose KIND`: the flags that all kinds share, and how their result is shown.

A kind's command takes `DiagnosisFlags`, its own typed flags, and hands both on:

    @grouped
    def names(shared: DiagnosisFlags, runs: Annotated[int | None, typer.Option(...)] = None, debug: Debug = False):
        run_kind("names", shared, runs=runs)

A flag that is left out is None, and the kind's own default holds: no default is written here.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.cutting import show_costs
from raggs.cli.options import DryRun, Json, Overrides, Quiet, Yes
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.app.diagnose import Diagnosed, DiagnoseRequest

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
        )


def run_kind(kind: str, shared: DiagnosisFlags, **settings: object) -> None:
    """Diagnose and show, or only say what that would cost."""
    from raggs.app.diagnose import forecast_diagnosis, run_diagnosis
    from raggs.cli.addresses import approver
    from raggs.cli.progress import listener
    from raggs.pipeline.events import silent

    request = shared.request(kind, settings)
    if shared.dry_run:
        expected = forecast_diagnosis(request)
        above = "\n".join(expected.what) or None
        show_costs(expected.estimates, request.budget.max_usd, as_json=shared.as_json, above=above)
        return
    display = listener(shared.quiet or shared.as_json)
    with display or nullcontext():
        result = run_diagnosis(request, display or silent, approver(shared.yes, shared.quiet))
    if shared.as_json:
        say_json(result.report.model_dump_json(indent=2))
    elif not shared.quiet:
        _show(result)


def _show(result: Diagnosed) -> None:
    from raggs.cli.screen import open_console
    from raggs.cli.sweepviews import show_sweep

    show_sweep(result.document, open_console())
    for file in result.files:
        say(f"{'unchanged: ' if result.unchanged else ''}{file}")


def list_(as_json: Json = False, debug: Debug = False) -> None:
    """List the kinds of diagnosis, each with the question that it answers.

    \b
    Examples:
      raggs diagnose
      raggs diagnose list --json
    """
    from raggs.app.diagnose import titles
    from raggs.cli.screen import hanging
    from raggs.manifests.store import dump_json

    found = titles()
    if as_json:
        say_json(dump_json(found))
        return
    width = max(map(len, found), default=0)
    for name, title in found.items():
        say(hanging(f"  {name:<{width}}  ", title))
