"""`raggs questions`: questions made of documents, with the excerpts that answer them."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import AllowMixed, Json, MaxCalls, MaxUsd, Overrides, Quiet, Yes
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.app.questions import Made
    from raggs.cli.again import Asked
    from raggs.config.load import LoadedConfig
    from raggs.llm import BudgetSpent
    from raggs.runs.pipeline.runner import Runner

IN_PART = 7


def make(
    documents: Annotated[
        Path | None, typer.Argument(metavar="DOCS", help="A folder of documents; or say --config.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="The YAML file whose corpus is asked about; raggs.yaml."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where the questions go: .jsonl, .yaml or .csv."),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", "-n", metavar="N", min=1, help="Questions to ask for.")] = None,
    asker: Annotated[
        str | None,
        typer.Option("--asker", metavar="ASKER", help="Who asks: extractive, litellm:MODEL, ...; raggs list askers."),
    ] = None,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print calls, tokens and USD; no model is asked, nothing runs.")
    ] = False,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    allow_mixed: AllowMixed = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Ask no more: use what a run that was stopped has asked.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that this run has not written.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Make questions of documents, each with the excerpts that answer it.

    Windows are drawn from all parts of the documents, the asker makes a question of each, excerpts that do not stand
    there word for word take their question with them, and so do duplicates. Without --asker questions are made by
    rule, offline, to try the tool. With DOCS a configuration is written beside the questions: raggs run goes on.
    Logs of users become questions by raggs questions import; raggs questions calibrate finds thresholds.

    \b
    Examples:
      raggs questions docs --out questions.jsonl
      raggs questions docs --asker litellm:openai/gpt-5-mini --n 200 --dry-run
      raggs questions make --config raggs.yaml --max-usd 2
    """
    from raggs.app.addresses import permit
    from raggs.app.docsconfig import config_for, says_otherwise
    from raggs.app.questions import open_questions, output_of
    from raggs.app.run import forecast
    from raggs.base.errors import PartialError
    from raggs.cli import render
    from raggs.cli.addresses import approver
    from raggs.cli.again import Asked
    from raggs.cli.options import meant
    from raggs.config.load import load_config
    from raggs.runs.pipeline.plan import Selection
    from raggs.stages.questions import QUESTIONS

    written, wanted = False, (*(overrides or ()), *_settings(n, asker))
    if documents is not None:
        config, written = config_for(documents, config, out, wanted, writes=not dry_run)
    config = meant(None, config, "raggs.yaml", "name a folder of documents: raggs questions docs")
    settings = (*wanted, *_caps(max_usd, max_calls), *(("llm.allow_mixed=true",) if allow_mixed else ()))
    loaded = load_config(config, settings)
    target = output_of(loaded.run, out)
    permit(loaded.run, () if dry_run else QUESTIONS.order, approver(yes, quiet))
    if dry_run:
        with open_questions(loaded) as runner:
            expected = forecast(runner, Selection(QUESTIONS.order))
            render.dry_run(expected, loaded.run.budget.max_usd, as_json, loaded.run.llm)
        return
    asked = Asked(config, settings, verb="questions")
    asks = not (yes or quiet or partial) and sys.stdin.isatty() and sys.stderr.isatty()
    flags = Flags(partial=partial, force=force, asks=asks, shows=not (quiet or as_json), sure=yes)
    made = _make(loaded, target, asked, flags)
    if as_json:
        say_json(made_json(made))
    elif not quiet:
        _tell(made, asked, loaded, config if written else None)
        if not written and documents is not None and says_otherwise(config, loaded.run):
            kept = ", ".join(setting.replace("=", ": ", 1) for setting in wanted)
            say(f"note: {config} says otherwise, so going on by it makes other questions; put there: {kept}")
    if made.stopped is not None:
        raise made.stopped
    if not made.kept:
        raise PartialError("no question is left", where=made.run.folder, remedy="see why: filter.jsonl, ask.jsonl")


def _caps(max_usd: float | None, max_calls: int | None) -> list[str]:
    """What this call may spend, as settings."""
    caps = {"budget.max_usd": max_usd, "budget.max_calls": max_calls}
    return [f"{name}={value}" for name, value in caps.items() if value is not None]


def _settings(n: int | None, asker: str | None) -> list[str]:
    """What is asked, as settings."""
    from raggs.app.docsconfig import asker_setting

    found = [] if n is None else [f"questions.sample.n={n}"]
    return found if asker is None else [*found, f"questions.ask.asker={asker_setting(asker)}"]


@dataclass(frozen=True)
class Flags:
    """How the work is done. `asks`: whether a user is there who can be asked; `shows`: who sees how far it is.

    `sure`: whether artifacts that were edited by hand may be replaced.
    """

    partial: bool
    force: bool
    asks: bool
    shows: bool
    sure: bool


def _make(loaded: LoadedConfig, target: Path, asked: Asked, flags: Flags) -> Made:
    from raggs.app.questions import check_free, make_questions, open_questions
    from raggs.app.run import forecast
    from raggs.cli.progress import listener
    from raggs.cli.runs import confirm_cost
    from raggs.llm import BudgetSpent
    from raggs.runs.pipeline.events import silent
    from raggs.runs.pipeline.plan import Selection

    display = listener(not flags.shows)
    with open_questions(loaded, listen=display or silent) as runner:
        check_free(runner.store, target, force=flags.force)
        if flags.asks:
            confirm_cost(forecast(runner, Selection(runner.pipeline.order)), loaded.run.budget.max_usd)
        try:
            with display or nullcontext():
                made = make_questions(
                    runner, target, partial=flags.partial, force=flags.force, discard_edits=flags.sure
                )
        except BudgetSpent as error:
            _tell_how_to_go_on(error, runner, asked)
            raise
        if made.stopped is not None:
            _tell_how_to_go_on(made.stopped, runner, asked)
        return made


def _tell_how_to_go_on(error: BudgetSpent, runner: Runner, asked: Asked) -> None:
    """Put into the error the command that goes on under a budget that suffices."""
    from raggs.app.run import forecast
    from raggs.runs.pipeline.plan import Selection

    expected, cap = forecast(runner, Selection(runner.pipeline.order)), error.cap
    usd, calls = expected.usd, sum(line.calls for line in expected.running)
    left = usd if cap.money else calls
    enough = 2 * cap.limit if left is None else cap.spent + left
    value = f"{math.ceil(100 * enough) / 100 or 0.01:.2f}" if cap.money else str(math.ceil(enough))
    again = asked.command({} if cap.per_invocation else {f"budget.{cap.setting}": value})
    error.remedy = f"what was paid is cached, to go on: {again}"


def made_json(made: Made) -> str:
    """What came of it, for pipes."""
    from raggs.runs.manifests.store import dump_json

    return dump_json(
        {
            "run": str(made.run.folder),
            "files": [str(file) for file in made.files],
            "asked": made.asked,
            "short": made.short,
            "kept": made.kept,
            "rejected": made.rejected,
            "types": made.kinds,
            "splits": made.parts,
            "difficulty": made.difficulties,
            "leakage": None if not made.leakage.count else made.leakage.mean,
            "asker": made.asker,
            "made": made.note,
            "usd": made.usd,
            "usd_each": made.usd_each,
            "stopped": None if made.stopped is None else str(made.stopped),
        }
    )


def _tell(made: Made, asked: Asked, loaded: LoadedConfig, written: Path | None) -> None:
    """What came of it, and what is next."""
    from raggs.base.text import plural

    say(f"{plural(made.kept, 'question')} of {made.asked:,} kept, {made.note} ({made.asker})")
    if made.short:
        say(made.short)
    if made.rejected:
        told = {reason: f" ({made.why[reason]})" if reason in made.why else "" for reason in made.rejected}
        say("gone: " + ", ".join(f"{count:,} {reason}{told[reason]}" for reason, count in made.rejected.items()))
    if made.kinds:
        say("types: " + ", ".join(f"{count:,} {kind}" for kind, count in made.kinds.items()))
    if made.difficulties:
        counts = ", ".join(f"{count:,} {level}" for level, count in made.difficulties.items())
        say(f"difficulty, by {plural(made.systems, 'system')}: {counts}")
    if made.kept:
        say("split: " + ", ".join(f"{count:,} {part}" for part, count in made.parts.items()))
    if made.leakage.warning:
        say(made.leakage.warning)
    if made.usd:
        each = "" if made.usd_each is None else f", ${made.usd_each:,.4f} a question kept"
        say(f"${made.usd:,.4f} spent{each}")
    if made.files and {"duplicate", "off the question"} & made.rejected.keys():
        say(f"by thresholds, which belong to the embedder; to look at pairs: raggs questions calibrate {made.files[0]}")
    if made.files:
        say("questions: " + ", ".join(map(str, made.files)))
    if written is not None:
        say(f"configuration: {written}")
    say(f"run: {made.run.folder}")
    if made.kept:
        say(f"next: {replace(asked, verb='run', overrides=()).command()}")
