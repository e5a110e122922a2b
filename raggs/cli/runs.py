"""`raggs run`, `status`, `why` and `cost`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import (
    AllowMixed,
    Details,
    Json,
    MaxCalls,
    MaxUsd,
    MaybeConfig,
    Overrides,
    Quiet,
    RunFile,
    RunFolder,
    SameConfig,
    Summary,
    Yes,
    find_config,
)
from raggs.cli.plain_text import agree, say, say_json

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from raggs.app.run import RunForecast
    from raggs.cli.options import RunFlags
    from raggs.config.load import LoadedConfig
    from raggs.llm.budget import BudgetSpent
    from raggs.runs.manifests.costs import LedgerSum, LedgerTotals, RunCost
    from raggs.runs.partial import ResumedRun
    from raggs.runs.plan import Selection
    from raggs.runs.runner import PipelineResult, Runner

IN_PART = 7
ALLOW_MIXED_KEY = "llm.allow_mixed"
REMEDY = "name one: raggs run --config raggs.yaml; raggs init DIR creates one"


def run(
    file: RunFile = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="STAGE", help="First stage to run; earlier stages must be up to date."),
    ] = None,
    stop: Annotated[str | None, typer.Option("--to", metavar="STAGE", help="Last stage to run.")] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="STAGE", help="Run only this stage.")] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            metavar="QID",
            help="Run only this query, in a separate run directory unless --run-id names one. Repeatable.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Run the selected stages again without confirmation; replaces results and reuses cached answers.",
        ),
    ] = False,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial",
            help="Do not resume a stopped stage: run the later stages for the queries that it has finished.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print calls, tokens and cost by stage; call no model and run no stage.")
    ] = False,
    human_first: Annotated[
        bool,
        typer.Option(
            "--human-first",
            help="Use human labels instead of the judge's grades if a passage has one (judge.human_first).",
        ),
    ] = False,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id", metavar="NAME", help="Name of the run directory [default: `name` in the configuration]."
        ),
    ] = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    allow_mixed: AllowMixed = False,
    show: Annotated[int, typer.Option("--show", metavar="N", min=0, help="Number of queries in the table.")] = 5,
    summary: Summary = False,
    details: Details = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Build a golden set, or resume a run that was stopped.

    Stages whose inputs and settings did not change are skipped.

    \b
    Examples:
      raggs run --config raggs.yaml
      raggs run --config raggs.yaml --dry-run
      raggs run --config raggs.yaml --from judge --set judge.samples=3
      raggs run --config raggs.yaml --query q12
    """
    from raggs.app.addresses import permit
    from raggs.app.run import forecast, name_of_part, open_runner, run_folder, stages_of
    from raggs.base.errors import UsageError
    from raggs.base.judge_health import GATE_FAILED_TEXT
    from raggs.cli import render
    from raggs.cli.options import RunFlags, approver
    from raggs.config.load import load_config
    from raggs.llm.budget import BudgetSpent
    from raggs.runs.manifests.costs import failed_judge_gates
    from raggs.runs.plan import select
    from raggs.stages import GOLDEN

    config = find_config(file, config, "raggs.yaml", REMEDY)
    if partial and (start or only or force or dry_run):
        raise UsageError("--partial can only be combined with --to", remedy="omit the other flags")
    select(GOLDEN, start, stop, only)  # reports wrong stage names before any file is opened
    flags: dict[str, object] = {
        "budget.max_usd": max_usd,
        "budget.max_calls": max_calls,
        ALLOW_MIXED_KEY: allow_mixed or None,
    }
    flags |= {"judge.human_first": human_first or None, "query_ids": query or None}
    settings = (*(overrides or ()), *(f"{name}={dumps(flag)}" for name, flag in flags.items() if flag is not None))
    loaded = load_config(config, settings)
    run_id = run_id or name_of_part(loaded.run)
    selection = select(stages_of(loaded.run), start, stop, only, force, discards_edits=yes)
    permit(loaded.run, () if dry_run else selection.stages, approver(yes, quiet))
    if dry_run:
        with open_runner(loaded, run_id=run_id) as runner:
            render.dry_run(forecast(runner, selection), loaded.run.budget.max_usd, as_json, loaded.run.llm)
        return
    asks = not yes and not quiet and sys.stdin.isatty() and sys.stderr.isatty()
    asked = RunFlags(config, settings, run_id, start, stop, only)
    if partial:
        from raggs.cli.render import part_summary

        part = _run_part(loaded, selection, asked, shows=not (quiet or as_json))
        part_summary(part, asked, as_json=as_json, quiet=quiet)
        return
    shows = not (quiet or as_json)
    try:
        result = _run_asking(loaded, selection, asked, asks=asks, sure=yes or force, shows=shows, hears=not quiet)
    except BudgetSpent as error:
        if as_json:
            from raggs.cli.render import spent_json

            say_json(spent_json(run_folder(loaded.run, run_id), error))
        raise
    if as_json:
        say_json(render.run_json(result))
    elif not quiet:
        render.run_summary(result, asked, show, details)
    if summary:
        _summarise(result)
    _say_how_to_keep_labels_first(config, human_first and not quiet)
    if result.failed:
        say(f"raggs: finished with failures: {render.failures(result)}", err=True)
    if below := "; ".join(failed_judge_gates(result.manifest)):
        say(f"raggs: {GATE_FAILED_TEXT}: {below}", err=True)
    if result.failed or below:
        raise typer.Exit(IN_PART)


def _say_how_to_keep_labels_first(config: Path, by_flag: bool) -> None:
    if by_flag:
        say(f"note: to use human labels first in every run, set human_first: true under judge: in {config}", err=True)


def _summarise(result: PipelineResult) -> None:
    from raggs.app.run_layout import lay_out_run
    from raggs.base.document import markdown
    from raggs.cli.plain_text import append_summary

    append_summary(markdown(lay_out_run(result)))


def _run_asking(
    loaded: LoadedConfig, selection: Selection, asked: RunFlags, *, asks: bool, sure: bool, shows: bool, hears: bool
) -> PipelineResult:
    """Call `_run`; if the model version differs from earlier answers, prompt the user whether to continue."""
    from raggs.base.errors import SnapshotError
    from raggs.config.load import load_config

    try:
        return _run(loaded, selection, asked, asks=asks, sure=sure, shows=shows, hears=hears)
    except SnapshotError as error:
        if not (asks and agree(f"{error.message}. Continue with both?", default=False, err=True)):
            raise
    again = replace(asked, overrides=(*asked.overrides, f"{ALLOW_MIXED_KEY}=true"))
    return _run(
        load_config(asked.config, again.overrides), selection, again, asks=False, sure=True, shows=shows, hears=hears
    )


def _run(
    loaded: LoadedConfig, selection: Selection, asked: RunFlags, *, asks: bool, sure: bool, shows: bool, hears: bool
) -> PipelineResult:
    from raggs.app.run import forecast, open_runner, stages_of
    from raggs.cli.progress import listener
    from raggs.llm.budget import BudgetSpent
    from raggs.runs.events import ignore_event
    from raggs.runs.partial import run_within_budget

    display = listener(not shows, stages_of(loaded.run))
    with open_runner(loaded, run_id=asked.run_id, listen=display or ignore_event) as runner:
        runner.keep_edits(selection)
        _keep_what_was_paid(runner, selection, asks=asks, sure=sure, hears=hears)
        if asks:
            confirm_cost(forecast(runner, selection), loaded.run.budget.max_usd)
        try:
            with display or nullcontext():
                return run_within_budget(runner, selection)
        except BudgetSpent as error:
            _tell_how_to_go_on(error, runner, selection, asked)
            raise


def _run_part(loaded: LoadedConfig, selection: Selection, asked: RunFlags, *, shows: bool) -> ResumedRun:
    from raggs.app.run import open_runner, stages_of
    from raggs.cli.progress import listener
    from raggs.llm.budget import BudgetSpent
    from raggs.runs.events import ignore_event
    from raggs.runs.partial import part_within_budget

    display = listener(not shows, stages_of(loaded.run))
    with open_runner(loaded, run_id=asked.run_id, listen=display or ignore_event) as runner:
        try:
            with display or nullcontext():
                return part_within_budget(runner, selection)
        except BudgetSpent as error:
            _tell_how_to_go_on(error, runner, selection, asked)
            raise


def _keep_what_was_paid(runner: Runner, selection: Selection, *, asks: bool, sure: bool, hears: bool) -> None:
    """Confirm that paid results are replaced because a setting changed. With `sure`, only print what is replaced.

    Raises:
        UsageError: the user declines, or no confirmation is possible (`asks` is false).
    """
    from raggs.app.forecast import losses
    from raggs.base.errors import UsageError

    if not (found := losses(runner, selection)):
        return
    told = "; ".join(map(str, found))
    if sure:
        if hears:
            say(f"note: {told}; the old answers stay cached", err=True)
        return
    if not (asks and agree(f"{told}. The old answers stay cached. Continue?", default=False, err=True)):
        remedy = "pass --yes to replace them (the old answers stay cached), or --run-id NAME to keep both"
        raise UsageError(told, where=runner.store.folder, remedy=remedy)


def _tell_how_to_go_on(error: BudgetSpent, runner: Runner, selection: Selection, asked: RunFlags) -> None:
    """Extend the error with the remaining work and the command that resumes with a sufficient budget."""
    from raggs.app.run import forecast
    from raggs.cli.options import sufficient_cap

    expected, cap = forecast(runner, selection), error.cap
    calls, usd = sum(line.calls for line in expected.running), expected.usd
    money = "at an unknown price" if usd is None else f"at an estimated {usd:.2f} USD"
    error.message += f"; remaining: up to {calls:,} calls {money}"
    value = sufficient_cap(cap, usd if cap.money else calls)
    again = asked.command({} if cap.per_invocation else {f"budget.{cap.setting}": value})
    error.remedy = f"paid answers are cached; to resume: {again}"


def confirm_cost(expected: RunForecast, cap: float | None) -> None:
    """Print what a paid run may cost and ask for confirmation. If no call is paid, do nothing.

    Raises:
        UsageError: the user declines.
    """
    from raggs.base.errors import UsageError

    paid = [line for line in expected.running if line.usd != 0 and line.calls]
    if not paid:
        return
    calls, usd = sum(line.calls for line in paid), sum(line.usd or 0.0 for line in paid)
    price = "at an unknown price" if any(line.usd is None for line in paid) else f"about ${usd:,.2f}"
    models = " and ".join(dict.fromkeys(line.who for line in paid))
    limit = "no cap" if cap is None else f"cap ${cap:,.2f}"
    if not agree(f"Up to {calls:,} calls to {models}, {price} ({limit}). Continue?", default=True, err=True):
        raise UsageError("nothing was run", remedy="pass --yes to run without confirmation")


def status(
    run: RunFolder,
    config: MaybeConfig = None,
    overrides: Overrides = None,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show whether a run is complete and usable.

    Prints the state of each stage, why it would run again, its cost, and the next command. Only the run directory is
    read; with --config, the corpus, queries and settings are compared too.

    \b
    Example:
      raggs status runs/demo
    """
    from raggs.app.status import status as status_of
    from raggs.cli import render

    render.status(status_of(run, config, overrides or ()), as_json, details)


def why(
    run: RunFolder,
    stage: Annotated[
        str | None,
        typer.Argument(
            metavar="STAGE",
            help="Stage: embed, retrieve, merge, judge, prune or rank, or a stage of raggs questions.",
        ),
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="QID", help="Explain the order of this query instead of a stage.")
    ] = None,
    config: MaybeConfig = None,
    overrides: Overrides = None,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Explain why a stage would run again, or a query's order.

    For a stage, prints what changed. For a query, prints the score of the first passages, the comparisons won and lost,
    and the uncertainty of the ranks. With --details, also prints the inputs of the stage, or all passages and the
    locked pairs of the query.

    \b
    Examples:
      raggs why runs/demo judge --config raggs.yaml
      raggs why runs/demo --query q12
    """
    from raggs.app.status import stage_status
    from raggs.base.errors import UsageError
    from raggs.cli import render
    from raggs.runs.manifests.explain import explain
    from raggs.runs.manifests.open_run import open_run

    if query is not None and stage is None:
        opened = open_run(run)
        render.show_order(opened, explain(opened, query), as_json, details)
    elif stage is not None and query is None:
        render.rerun(stage_status(run, stage, config, overrides or ()), as_json, details)
    else:
        raise UsageError("why needs a STAGE or --query", remedy="e.g. raggs why runs/demo --query q12")


def cost(
    run: RunFolder,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, help="Number of most expensive queries, with --details.")
    ] = 5,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what a run has cost.

    Sums the calls of all invocations: cost paid, cost saved by cached answers, and the estimate of the dry run. The
    default table is by stage; --details adds models, queries, tokens and latency. Only the run directory is read.

    \b
    Example:
      raggs cost runs/demo
    """
    from raggs.runs.manifests.costs import cost as cost_of
    from raggs.runs.manifests.store import dump_json

    found = cost_of(run)
    if not as_json:
        _print(run, found, top, details)
        return
    told = {
        name: {key: _plain_sums(entry) for key, entry in sums.items()} for name, sums in _tables(found.spent).items()
    }
    estimated = [line.model_dump() for line in found.estimates]
    total = _plain_sums(found.spent.total)
    say_json(dump_json({"run": str(run), "total": total, **told, "estimates": estimated}))


def _tables(found: LedgerTotals) -> dict[str, Mapping[str, LedgerSum]]:
    return {"stage": found.stage, "model": found.model, "query": found.query}


def _plain_sums(found: LedgerSum) -> dict[str, int | float]:
    return found.model_dump(exclude={"repaired"})  # not recorded in the ledger


def _print(run: Path, cost: RunCost, top: int, details: bool) -> None:
    from raggs.base.types import as_object
    from raggs.cli.documents import show_details
    from raggs.cli.screen import open_console
    from raggs.cli.summaries import summarise_cost
    from raggs.runs.manifests.open_run import open_run

    screen, cap = open_console(), as_object(open_run(run).manifest.config.get("budget")).get("max_usd")
    summary = summarise_cost(cost, float(cap) if isinstance(cap, int | float) else None)
    show_details(summary, screen, details, lambda: _print_details(screen, cost, top))


def _print_details(screen: Console, cost: RunCost, top: int) -> None:
    from raggs.cli.screen import table

    found = cost.spent
    queries = dict(sorted(found.query.items(), key=lambda item: (-item[1].usd, item[0]))[:top])
    for title, sums in (("stage", found.stage), ("model", found.model), ("query", queries)):
        if sums:
            rows = table(title, *COLUMNS)
            for name, entry in sums.items():
                rows.add_row(name or "(several)", *_cells(entry))
            screen.print(rows)
            screen.print()
    if len(found.query) > len(queries):
        screen.print(f"… and {len(found.query) - len(queries):,} more queries: --json prints all")
    if cost.estimated_usd is not None:
        likely = "" if cost.expected_usd is None else f"expected ${cost.expected_usd:,.4f}, maximum "
        screen.print(f"estimate of the dry run, without a cache: {likely}${cost.estimated_usd:,.4f}")
    if found.total.unknown:
        screen.print(found.total.possibly_billed, style="yellow", soft_wrap=not screen.is_terminal)
    if told := _remembered(found):
        screen.print(told)


def _remembered(found: LedgerTotals) -> str:
    """Return the tokens that providers read from their prompt caches, and the discount; empty if there were none."""
    total = found.total
    if not (total.cached_tokens or total.discount_usd):
        return ""
    shares = ", ".join(
        f"{name} {each.cached_tokens / each.prompt_tokens:.0%}"
        for name, each in found.stage.items()
        if each.cached_tokens
    )
    worth = f"${abs(total.discount_usd):,.4f} {'saved' if total.discount_usd >= 0 else 'paid for writing the cache'}"
    return f"{total.cached_tokens:,} prompt tokens were cached by the provider ({shares or 'none'}): {worth}"


COLUMNS = ("calls", "cached", "failed", "tokens in", "tokens out", "mean s", "USD", "saved USD")


def _cells(entry: LedgerSum | None) -> tuple[str, ...]:
    if entry is None:
        return ("",) * len(COLUMNS)
    return (
        f"{entry.calls:,}",
        f"{entry.cached:,}",
        f"{entry.failed:,}" if entry.failed else "",
        f"{entry.prompt_tokens:,}",
        f"{entry.completion_tokens:,}",
        f"{entry.mean_s:.2f}",
        f"{entry.usd:,.4f}",
        f"{entry.saved_usd:,.4f}",
    )
