"""`raggs update`: a new version of a golden set for changed documents and queries."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import AllowMixed, Details, Json, MaxCalls, MaxUsd, Overrides, Quiet, RunFolder, Summary, Yes
from raggs.cli.plain_text import say, say_json

if TYPE_CHECKING:
    from raggs.app.update import Update, UpdatePlan
    from raggs.config.load import LoadedConfig
    from raggs.runs.runner import PipelineResult

IN_PART = 7


def update(
    run: RunFolder,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Configuration with the new documents [default: raggs.yaml]."
        ),
    ] = None,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the plan only; call no paid model and write only caches."),
    ] = False,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id", metavar="NAME", help="Name of the new run directory [default: RUN with the next number]."
        ),
    ] = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    allow_mixed: AllowMixed = False,
    summary: Summary = False,
    details: Details = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Update a golden set after documents or queries have changed.

    Labels of unchanged and moved passages are carried over into a new run directory. Only new passages, and passages
    whose label may differ, are judged. The plan is printed first. To resume a stopped update, run the same command
    again.

    \b
    Examples:
      raggs update runs/demo --config raggs.yaml --dry-run
      raggs update runs/demo --config raggs.yaml --max-usd 2
      raggs update runs/demo.2 --config raggs.yaml --run-id may
    """
    from raggs.app.addresses import permit
    from raggs.app.run import stages_of
    from raggs.app.update import planned
    from raggs.app.update_layout import plan_json
    from raggs.cli.options import approver, find_config
    from raggs.cli.progress import listener
    from raggs.config.load import load_config
    from raggs.runs.events import ignore_event
    from raggs.runs.manifests.store import dump_json

    file = find_config(None, config, "raggs.yaml", "name one: raggs update RUN --config raggs.yaml")
    flags = {"budget.max_usd": max_usd, "budget.max_calls": max_calls, "llm.allow_mixed": allow_mixed or None}
    settings = (*(overrides or ()), *(f"{name}={dumps(flag)}" for name, flag in flags.items() if flag is not None))
    loaded = load_config(file, settings)
    permit(loaded.run, () if dry_run else stages_of(loaded.run).order, approver(yes, quiet))
    display = listener(quiet or as_json, stages_of(loaded.run))
    command = _command(run, file, overrides or (), run_id)
    with planned(run, loaded, run_id=run_id, dry_run=dry_run, listen=display or ignore_event) as found:
        if dry_run and as_json:
            say_json(dump_json(plan_json(found.plan)))
        elif not as_json and not quiet:
            _show_plan(found.plan, command if dry_run else "", details=details)
        if dry_run:
            return
        _confirm(found, loaded, asks=not yes and not quiet and sys.stdin.isatty() and sys.stderr.isatty())
        with display or nullcontext():
            result = found.run()
        _show_result(found.plan, result, command, as_json=as_json, quiet=quiet, summary=summary)
    if result.failed:
        raise typer.Exit(IN_PART)


def _command(run: Path, config: Path, overrides: list[str] | tuple[str, ...], run_id: str | None) -> str:
    words = ["raggs", "update", str(run), "--config", str(config)]
    for override in overrides:
        words += ["--set", override]
    return shlex.join([*words, *(["--run-id", run_id] if run_id else [])])


def _show_plan(plan: UpdatePlan, command: str, *, details: bool) -> None:
    from raggs.app.update_layout import plan_details, summarise_plan
    from raggs.cli.documents import show_details
    from raggs.cli.screen import open_console

    console = open_console()

    def rest() -> None:
        for line in plan_details(plan):
            console.print(line, soft_wrap=not console.is_terminal)

    show_details(summarise_plan(plan, command), console, details, rest)


def _confirm(found: Update, loaded: LoadedConfig, *, asks: bool) -> None:
    from raggs.cli.runs import confirm_cost

    if asks:
        confirm_cost(found.plan.forecast, loaded.run.budget.max_usd)


def _show_result(
    plan: UpdatePlan, result: PipelineResult, command: str, *, as_json: bool, quiet: bool, summary: bool
) -> None:
    from raggs.app.run_layout import lay_out_run
    from raggs.app.update_layout import diff_command, plan_json, version_sentences
    from raggs.base.document import Summary as Output
    from raggs.base.document import markdown
    from raggs.cli import render
    from raggs.cli.documents import show_summary
    from raggs.cli.plain_text import append_summary
    from raggs.cli.screen import open_console
    from raggs.runs.manifests.store import dump_json

    manifest = result.manifest
    if as_json:
        facts = {"plan": plan_json(plan), "version": manifest.version}
        lineage = None if manifest.lineage is None else manifest.lineage.model_dump(mode="json")
        say_json(dump_json({**facts, "lineage": lineage, "failed": result.failed, "run": str(plan.folder)}))
    elif not quiet and manifest.lineage is not None:
        said = tuple(version_sentences(manifest.lineage, manifest.version))
        following = command if result.failed else diff_command(plan)
        show_summary(Output(said, next=following), open_console())
    if summary:
        append_summary(markdown(lay_out_run(result)))
    if result.failed:
        say(f"raggs: finished with failures: {render.failures(result)}", err=True)
