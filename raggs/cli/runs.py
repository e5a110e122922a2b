"""`raggs run`, `status`, `why` and `audit`: the life of a run."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import ConfigFile, Json, MaybeConfig, Overrides, RunFolder, Yes

IN_PART = 7


def run(
    config: ConfigFile,
    overrides: Overrides = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="STAGE", help="Begin at this stage; earlier ones must be up to date."),
    ] = None,
    stop: Annotated[str | None, typer.Option("--to", metavar="STAGE", help="End after this stage.")] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="STAGE", help="This stage alone.")] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Run the chosen stages even where nothing changed (paid answers stay cached)."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print calls, tokens and USD by stage; no model is asked, nothing runs.")
    ] = False,
    run_id: Annotated[
        str | None, typer.Option("--run-id", metavar="NAME", help="Another name for the run directory.")
    ] = None,
    show: Annotated[int, typer.Option("--show", metavar="N", help="Queries in the final table.")] = 5,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Build a golden set, or go on with one.

    What has not changed is not done again.

    \b
    Examples:
      raggs run --config raggs.yaml
      raggs run --config raggs.yaml --dry-run
      raggs run --config raggs.yaml --from judge --set judge.samples=3
    """
    from raggs.cli import render
    from raggs.cli.progress import listener
    from raggs.config.api import open_runner
    from raggs.config.load import load_config
    from raggs.pipeline.events import silent
    from raggs.pipeline.plan import select

    selection = select(start, stop, only, force)
    loaded = load_config(config, overrides or ())
    if dry_run:
        _dry_run(loaded, selection, run_id, as_json)
        return
    display = listener(quiet or as_json)
    with open_runner(loaded, run_id=run_id, listen=display or silent) as runner:
        if not yes and not quiet and sys.stdin.isatty() and sys.stderr.isatty():
            _confirm(loaded.run, runner, selection)
        with display or nullcontext():
            result = runner.run(selection)
    if as_json:
        typer.echo(render.run_json(result))
    elif not quiet:
        render.run_summary(result, config, show)
    if result.failed:
        typer.echo(f"raggs: finished in part: {render.failures(result)}", err=True)
        raise typer.Exit(IN_PART)


def _confirm(config: Any, runner: Any, selection: Any) -> None:
    """On a terminal, tell what a paid run may cost before it costs anything."""
    from raggs.config.estimate import estimate
    from raggs.errors import UsageError

    running = [name for name, reasons in runner.plan(selection).items() if reasons]
    paid = [line for line in estimate(config, runner) if line.stage in running and line.usd != 0]
    if not paid:
        return
    calls, usd = sum(line.calls for line in paid), sum(line.usd or 0.0 for line in paid)
    cap = "no cap" if config.budget.max_usd is None else f"it stops at ${config.budget.max_usd:,.2f}"
    if not typer.confirm(
        f"Up to {calls:,} calls of {paid[0].who}, some ${usd:,.2f} ({cap}). Go on?", default=True, err=True
    ):
        raise UsageError("nothing was run", remedy="pass --yes to run without asking")


def _dry_run(loaded: Any, selection: Any, run_id: str | None, as_json: bool) -> None:
    from raggs.cli import render
    from raggs.config.api import open_runner
    from raggs.config.estimate import estimate

    with open_runner(loaded, run_id=run_id) as runner:
        plan = runner.plan(selection)
        lines = estimate(loaded.run, runner)
    render.dry_run(plan, lines, loaded.run, as_json)


def status(
    run: RunFolder, config: MaybeConfig = None, overrides: Overrides = None, as_json: Json = False, debug: Debug = False
) -> None:
    """Show where a run stands.

    Each stage, what would run again and why, what it cost, and the next command.

    \b
    Example:
      raggs status runs/demo
    """
    from raggs.cli import render

    manifest, plan = _plan(run, config, overrides)
    render.status(run, manifest, plan, config or manifest.config_file, as_json)


def why(
    run: RunFolder,
    stage: Annotated[
        str | None, typer.Argument(metavar="[STAGE]", help="embed, retrieve, merge, judge, prune or rank.")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="QID", help="Explain the final order of this query instead.")
    ] = None,
    config: MaybeConfig = None,
    overrides: Overrides = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Explain why a stage would run again, or an order.

    For a stage: what changed, and what its last result was made from. For a query: who beat whom, when each pair
    was locked, and what remains unsure.

    \b
    Examples:
      raggs why runs/demo judge --config raggs.yaml
      raggs why runs/demo --query q12
    """
    from raggs.cli import explaining
    from raggs.errors import UsageError
    from raggs.manifests.explain import explain
    from raggs.manifests.opened import open_run
    from raggs.pipeline.plan import select

    if (stage is None) == (query is None):
        raise UsageError("why needs a STAGE or --query", remedy="for example: raggs why runs/demo --query q12")
    if query is not None:
        opened = open_run(run)
        explaining.order(opened, explain(opened, query), as_json)
        return
    select(only=stage)
    manifest, plan = _plan(run, config, overrides)
    explaining.rerun(str(stage), manifest, plan[str(stage)], as_json)


def _plan(run: Path, config: Path | None, overrides: list[str] | None) -> tuple[Any, Any]:
    """The manifest of a run, and why each stage would run under the given (or the last) configuration."""
    from raggs.config.api import open_runner
    from raggs.config.load import load_config
    from raggs.config.models import RunConfig
    from raggs.errors import UsageError
    from raggs.manifests.opened import open_run
    from raggs.manifests.store import RunStore
    from raggs.pipeline.plan import Selection

    manifest = open_run(run).manifest
    if overrides and config is None:
        raise UsageError("--set needs --config", remedy="name the YAML file that it overrides")
    chosen = load_config(config, overrides or ()).run if config else RunConfig.model_validate(manifest.config)
    with open_runner(chosen) as runner:
        runner.store = RunStore(run)
        return manifest, runner.plan(Selection())


def audit(run: RunFolder, as_json: Json = False, debug: Debug = False) -> None:
    """Check that a run is what it says.

    Hashes, records, and everything that can be derived again: the first lie is named by file and line.

    \b
    Example:
      raggs audit runs/demo
    """
    from raggs.errors import AuditError
    from raggs.manifests.audit import audit as findings_of
    from raggs.manifests.opened import open_run
    from raggs.manifests.store import dump_json
    from raggs.text import plural

    opened = open_run(run)
    findings = list(findings_of(opened))
    if as_json:
        rows = [{"file": finding.file, "line": finding.line, "message": finding.message} for finding in findings]
        typer.echo(dump_json({"run": str(run), "ok": not findings, "findings": rows}))
    else:
        for finding in findings:
            typer.echo(str(finding))
    if findings:
        raise AuditError(
            f"{plural(len(findings), 'finding')}", where=run, remedy="run again to restore what was changed"
        )
    if not as_json:
        records = plural(
            sum(out.rows for lock in opened.manifest.stages.values() for out in lock.outputs.values()), "record"
        )
        typer.echo(f"{run}: {records} checked; merge, judge, prune and rank derived again: all as the manifest says")
