"""`raggs diff` and `raggs compare`: two golden sets and what they do to decisions; two runs and their settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from raggs.cli.boundary import Debug
from raggs.cli.evalflags import Measures
from raggs.cli.options import Confidence, Json, Seed, Summary
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from rich.console import Console

    from raggs.evaluation.diffs.models import DiffReport

OldSet = Annotated[Path, typer.Argument(metavar="OLD", help="A run directory, an export, or a file of labels.")]
NewSet = Annotated[Path, typer.Argument(metavar="NEW", help="The set that is to take its place.")]
Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        "-r",
        metavar="[NAME=]FILE|RUN",
        help="A system that is scored under both. [default: the runs' retrievers]",
    ),
]
OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write diff.json and diff.md there.")
]
FailOnFlip = Annotated[bool, typer.Option("--fail-on-flip", help="Exit with 7 where a verdict flips.")]


def diff(
    old: OldSet,
    new: NewSet,
    run: Systems = None,
    measures: Measures = None,
    out: OutFolder = None,
    fail_on_flip: FailOnFlip = False,
    confidence: Confidence = 0.95,
    seed: Seed = 1,
    summary: Summary = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two golden sets, and what each says of systems.

    Verdicts that flip come first; then questions, passages, grades and orders that moved,
    and whether by more than the stated doubt explains. A difference is no failure: exit code 0.

    \b
    Examples:
      raggs diff runs/before runs/after
      raggs diff old/qrels.txt runs/after -r bm25.trec -r new=dense.trec.gz
      raggs diff runs/before runs/after --fail-on-flip --out diff
    """
    from raggs.app.diff import DiffRequest
    from raggs.app.diff import diff as compared
    from raggs.app.difflayout import diff_json, lay_out_diff, write_diff
    from raggs.base.errors import PartialError
    from raggs.base.text import plural
    from raggs.cli.evaltexts import finite
    from raggs.cli.github import append_summary
    from raggs.cli.screen import open_console
    from raggs.evaluation.writers import markdown
    from raggs.metrics.names import split_names

    names = tuple(split_names(measures or ""))
    sure = finite("--confidence", confidence)
    found = compared(DiffRequest(old, new, tuple(run or ()), names, sure, seed))
    files = [] if out is None else write_diff(found, out)
    if as_json:
        say_json(diff_json(found))
    else:
        show(found, files, open_console())
    if summary:
        append_summary(markdown(lay_out_diff(found)))
    if fail_on_flip and found.decisions and (flips := found.decisions.flips):
        told = f"{plural(len(flips), 'verdict')} of {len(found.decisions.verdicts)} flip"
        raise PartialError(told, where=new)


def show(found: DiffReport, files: list[Path], screen: Console) -> None:
    """Print a comparison; nothing is computed here."""
    from raggs.app.difflayout import lay_out_diff
    from raggs.base.text import visible
    from raggs.cli.screen import hanging
    from raggs.cli.sweepviews import show_sweep

    document = lay_out_diff(found)
    for warning in document.warnings:
        screen.print(Text(hanging("warning: ", visible(warning), screen), style="bold yellow"), soft_wrap=True)
    show_sweep(document, screen)
    for file in files:
        say(str(file))


def compare(
    run: Annotated[Path, typer.Argument(metavar="RUN_A", help="A run directory.")],
    other: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another one.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two runs' settings, and what each cost.

    Setting by setting, with those that can change results first; stage by stage, whether the results
    are the same bytes, why not, and what they cost. raggs diff compares what the sets say.

    \b
    Example:
      raggs compare runs/before runs/after
    """
    from raggs.app.compare import compare_runs, lay_out_runs
    from raggs.cli.screen import open_console
    from raggs.cli.sweepviews import show_sweep

    found = compare_runs(run, other)
    if as_json:
        say_json(found.model_dump_json(indent=2))
    else:
        show_sweep(lay_out_runs(found), open_console())
