"""Arguments that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.plain import QUIET_HELP, be_quiet

ConfigFile = Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="The run's YAML file.")]
MaybeConfig = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Compare with this YAML file instead of the last run's settings."
    ),
]
CheckedConfig = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Check also what this YAML file asks for."),
]
GivenConfig = Annotated[
    Path | None, typer.Argument(metavar="CONFIG", help="The run's YAML file; raggs.yaml, if it is here.")
]
RunFile = Annotated[Path | None, typer.Argument(metavar="FILE", help="The run's YAML file; raggs.yaml, if it is here.")]
SameConfig = Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="The same as an option.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a setting (raggs explain KEY), e.g. rank.max_calls=40. Repeatable."
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, e.g. runs/demo.")]
Summary = Annotated[bool, typer.Option("--summary", help="Append the result as Markdown to $GITHUB_STEP_SUMMARY.")]
Confidence = Annotated[
    float, typer.Option("--confidence", metavar="P", min=0.5, max=0.999, help="Of the intervals and tests.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ExportFolder = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to write to.")]
IntoOthers = Annotated[bool, typer.Option("--force", help="Write into a folder that holds other things.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print calls, tokens and USD; no model is asked, nothing is written.")
]
MaxUsd = Annotated[
    float | None,
    typer.Option("--max-usd", metavar="USD", min=0, help="What the whole run may spend; as budget.max_usd."),
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", metavar="N", min=0, help="Calls the whole run may make; as budget.max_calls."),
]
AllowMixed = Annotated[
    bool,
    typer.Option(
        "--allow-mixed",
        help="Go on when a provider answers with another snapshot of a model than before; as llm.allow_mixed.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the bootstrap.")]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="Column of a table to read, e.g. grade=score. Needed if two columns mean the same. Repeatable.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=QUIET_HELP, callback=be_quiet, is_eager=True)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def meant(file: Path | None, config: Path | None, usual: str, remedy: str) -> Path:
    """The configuration, however it was named: as an argument, as an option, or by lying here under its `usual` name.

    Raises:
        UsageError: two are named, or none; with the `remedy`.
    """
    from raggs.base.errors import UsageError

    if file is not None and config is not None:
        raise UsageError(f"two configurations: {file} and {config}", remedy="name one")
    here = Path(usual)
    found = file or config or (here if here.is_file() else None)
    if found is None:
        raise UsageError("no configuration", remedy=remedy)
    return found
