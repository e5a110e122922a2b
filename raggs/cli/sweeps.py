"""`raggs sweep`: compare retrieval configurations and recommend one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.eval_options import ScaleText
from raggs.cli.options import AllowMixed, Details, Json, Overrides, Precision, Quiet, Summary, Yes, find_config, typed
from raggs.cli.plain_text import say, say_json

if TYPE_CHECKING:
    from raggs.app.sweep import SweepResult
    from raggs.llm import LLMSettings
    from raggs.sweeps.models import SweepPlan

IN_PART = 7
REMEDY = "name one: raggs sweep --config sweep.yaml; see raggs sweep --help"
DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s)?")


def sweep(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Configuration file of the sweep [default: sweep.yaml in the working directory]."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Path to the configuration file (alternative to the FILE argument)."
        ),
    ] = None,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print systems, calls, tokens and USD without searching or calling a model."),
    ] = False,
    slo: Annotated[
        str | None,
        typer.Option(
            "--slo",
            metavar="TIME",
            help="Re-select from existing measurements: maximum p95 latency, e.g. 350ms or 0.5s.",
        ),
    ] = None,
    max_usd_per_1k: Annotated[
        float | None,
        typer.Option(
            "--max-usd-per-1k",
            metavar="USD",
            min=0,
            help="Re-select from existing measurements: maximum cost of 1,000 queries in USD.",
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            "--target",
            metavar="SCORE",
            help="Re-select from existing measurements: minimum mean of the primary measure.",
        ),
    ] = None,
    scale: ScaleText = None,
    judge_holes: Annotated[
        bool,
        typer.Option(
            "--judge-holes", help="Grade unjudged passages in the tops of the systems with the judge of the golden run."
        ),
    ] = False,
    max_usd: Annotated[
        float | None,
        typer.Option(
            "--max-usd",
            metavar="USD",
            min=0,
            help="Budget of the whole sweep in USD [default: budget.max_usd, 5 if not set].",
        ),
    ] = None,
    allow_mixed: AllowMixed = False,
    details: Details = False,
    precision: Precision = 3,
    summary: Summary = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Compare retrieval systems and recommend one.

    Systems are compared by quality, latency and cost.

    Each part (vectors, index, lists, reranked lists) is made once for all systems that share it. With --slo,
    --max-usd-per-1k or --target, raggs selects again from the existing measurements; nothing is run.

    \b
    Examples:
      raggs sweep --config sweep.yaml --dry-run
      raggs sweep --config sweep.yaml
      raggs sweep --config sweep.yaml --slo 350ms --max-usd-per-1k 2
      raggs sweep --config sweep.yaml --judge-holes --max-usd 2
    """
    from raggs.app.sweep import choose_again, load_sweep, plan_sweep
    from raggs.app.sweep import judge_holes as ask_judge
    from raggs.app.sweep import sweep as run_sweep
    from raggs.cli.eval_options import parse_scale
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.runs.events import ignore_event

    limits = {"latency_ms": None if slo is None else _ms(slo), "usd_per_1k": max_usd_per_1k, "quality": target}
    set_ = [f"limits.{name}={value}" for name, value in limits.items() if value is not None]
    again = bool(set_)
    set_ += [] if scale is None else ["scale={}-{}".format(*parse_scale(scale))]
    set_ += [] if max_usd is None else [f"budget.max_usd={max_usd}"]
    set_ += ["llm.allow_mixed=true"] if allow_mixed else []
    config_file = find_config(file, config, "sweep.yaml", REMEDY)
    loaded = load_sweep(config_file, (*(overrides or ()), *set_))
    display = listener(quiet or as_json)
    if dry_run:
        _show_plan(plan_sweep(loaded), as_json, loaded.llm)
        return
    with display or nullcontext():
        if again:
            result = choose_again(loaded, display or ignore_event)
        else:
            approve = approver(yes, quiet)
            result = run_sweep(loaded, listen=display or ignore_event, approve=approve, config_file=config_file)
            if judge_holes and (asked := ask_judge(loaded, display or ignore_event, approve)).graded:
                result = run_sweep(loaded, listen=display or ignore_event, approve=approve, config_file=config_file)
    if as_json:
        say_json(result.report.model_dump_json(indent=2))
    elif not quiet:
        _show(
            result, shlex.join([str(config_file), *_setting_flags(overrides, scale)]), details=details, digits=precision
        )
    if summary:
        _summarise(result)
    if judge_holes and not quiet:
        say(str(asked), err=True)
    settings = _setting_flags(overrides, scale)
    settings += [] if max_usd is None or judge_holes else ["--max-usd", "USD"]
    again_with = shlex.join(["raggs", "sweep", "--config", str(config_file), *settings])
    _say_lost(result, again_with)
    if judge_holes and asked.stopped:
        say(f"next: {again_with} --judge-holes --max-usd USD", err=True)
        raise typer.Exit(IN_PART)


def _setting_flags(overrides: Sequence[str] | None, scale: str | None) -> list[str]:
    """Return the options that change settings of the file, as command-line arguments."""
    found = [word for override in overrides or () for word in ("--set", override)]
    return found + ([] if scale is None else ["--scale", scale])


def _say_lost(result: SweepResult, again: str) -> None:
    """Report unfinished systems by cause with the command that resumes; exit with 7 if there are any."""
    lost: dict[str, list[str]] = {}
    for row in result.report.systems:
        if row.failed:
            lost.setdefault(row.failed, []).append(row.name)
    for cause, names in lost.items():
        say(f"raggs: partly finished, without {', '.join(names)}: {cause}", err=True)
    if lost:
        say(f"next: {again}", err=True)
        raise typer.Exit(IN_PART)


def _summarise(result: SweepResult) -> None:
    from raggs.base.document import markdown
    from raggs.cli.plain_text import append_summary
    from raggs.sweeps.layout import lay_out

    append_summary(markdown(lay_out(result.report)))


def _show(result: SweepResult, config: str, *, details: bool, digits: int) -> None:
    """Print the summary of a sweep; with `details`, print all sections instead."""
    from raggs.cli.documents import show_summary, show_sweep
    from raggs.cli.screen import open_console
    from raggs.sweeps.layout import lay_out
    from raggs.sweeps.summary import summarise_sweep

    summary = summarise_sweep(result.report, config, typed(result.folder))
    if details:
        show_sweep(lay_out(result.report, config=config), open_console())
    else:
        show_summary(summary, open_console(), digits)
    say(f"{'unchanged: ' if result.unchanged else ''}{typed(result.folder / 'sweep.md')}")


def _show_plan(plan: SweepPlan, as_json: bool, llm: LLMSettings) -> None:
    from raggs.cli.documents import show_sweep
    from raggs.cli.render import targets_in_words, targets_json
    from raggs.cli.screen import open_console
    from raggs.runs.manifests.store import dump_json
    from raggs.sweeps.layout import lay_out_plan

    models = [line.model for line in plan.paid]
    if as_json:
        say_json(dump_json({**plan.model_dump(mode="json"), "targets": targets_json(models, llm)}))
        return
    show_sweep(lay_out_plan(plan), open_console())
    for sentence in targets_in_words(models, llm):
        say(sentence)


def _ms(text: str) -> float:
    """Return the milliseconds of a duration; a number without a unit is in milliseconds."""
    from raggs.base.errors import UsageError

    found = DURATION.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--slo {text} is not a duration", remedy="write 350ms or 0.5s")
    return float(found["number"]) * (1000 if found["unit"] == "s" else 1)
