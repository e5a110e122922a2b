"""Options that several commands share, groups of options, confirmations, and commands that resume a run.

Typer needs a function with one parameter per option. `with_option_groups` creates such a function from one whose
parameters are frozen dataclasses, each with a group of options.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from raggs.base.files import relative_to_cwd
from raggs.cli.plain_text import QUIET_HELP, agree, be_quiet, say

if TYPE_CHECKING:
    from raggs.app.addresses import Approve, Destination
    from raggs.llm.budget import BudgetCap

CommandFunction = Callable[..., None]
ConfigFile = Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Configuration file of the run.")]
MaybeConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Configuration file to compare with [default: the settings of the last run].",
    ),
]
CheckedConfig = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Configuration file whose inputs and servers are also checked."
    ),
]
RunFile = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="Configuration file of the run [default: raggs.yaml].")
]
SameConfig = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Path to the configuration file (alternative to the FILE argument)."
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a setting, e.g. budget.max_usd=2 (raggs explain KEY). Repeatable."
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, e.g. runs/demo.")]
Summary = Annotated[bool, typer.Option("--summary", help="Append the result as Markdown to $GITHUB_STEP_SUMMARY.")]
Confidence = Annotated[
    float,
    typer.Option("--confidence", metavar="P", min=0.5, max=0.999, help="Confidence level of intervals and tests."),
]
Details = Annotated[bool, typer.Option("--details", help="Print all sections, definitions and notes.")]
Precision = Annotated[
    int, typer.Option("--precision", metavar="N", min=1, max=10, help="Number of decimals of scores on the screen.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ExportFolder = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder to write to.")]
IntoOthers = Annotated[bool, typer.Option("--force", help="Write into a folder that contains other files.")]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print calls, tokens and cost; call no paid model and write only caches."),
]
MaxUsd = Annotated[
    float | None,
    typer.Option(
        "--max-usd",
        metavar="USD",
        min=0,
        help="Cap in USD for the whole run, over all invocations [default: budget.max_usd, 5 if not set].",
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        "--max-calls",
        metavar="N",
        min=0,
        help="Maximum calls of the whole run, over all invocations [default: budget.max_calls, 20,000 if not set].",
    ),
]
AllowMixed = Annotated[
    bool,
    typer.Option(
        "--allow-mixed",
        help="Continue if the provider answers with another model version than before (llm.allow_mixed).",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Random seed of the bootstrap.")]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="Column of a table for a role, e.g. grade=score. Needed if the column is ambiguous. Repeatable.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=QUIET_HELP, callback=be_quiet, is_eager=True)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Run without confirmation.")]


def find_config(file: Path | None, config: Path | None, usual: str, remedy: str) -> Path:
    """Return the configuration file: the argument, the option, or the file `usual` in the working directory.

    Raises:
        UsageError: two files are given, or there is none. The error has the `remedy`.
    """
    from raggs.base.errors import UsageError

    if file is not None and config is not None:
        raise UsageError(f"two configurations: {file} and {config}", remedy="give one")
    here = Path(usual)
    found = file or config or (here if here.is_file() else None)
    if found is None:
        raise UsageError("no configuration", remedy=remedy)
    return found


def with_option_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with one option per field of the dataclasses that `function` takes.

    Other parameters of `function` stay options. No name may occur in two groups.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}

    @wraps(function)
    def command(**given: object) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**made, **given)

    single = signature(function).parameters
    parameters = [
        option
        for name in single
        for option in (
            _options(groups[name])
            if name in groups
            else [Parameter(name, Parameter.KEYWORD_ONLY, default=single[name].default, annotation=hints[name])]
        )
    ]
    command.__dict__["__signature__"] = Signature(parameters)
    return command


def with_help_sections(sections: Mapping[str, Sequence[str]]) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that divides the options in the help of a command into sections.

    Args:
        sections: names of parameters by title of the section; ``help`` stands for the option ``--help``.
    """

    def mark(function: CommandFunction) -> CommandFunction:
        function.__dict__["help_sections"] = sections
        return function

    return mark


def _options(group: type) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


def approver(yes: bool, quiet: bool = False) -> Approve:
    """Return a function that prompts the user on a terminal to approve new addresses; `yes` approves all.

    New addresses are printed before they are used, except if `yes` and `quiet` are both set.
    """

    def ask(new: Sequence[Destination]) -> bool:
        from raggs.app.addresses import settings_file, trust_hosts

        asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
        if asks or (yes and not quiet):
            for found in new:
                say(str(found), err=True)
        if not asks:
            return yes
        if not agree(
            f"Send the keys to these addresses, now and in future (stored in {settings_file()})?",
            default=False,
            err=True,
        ):
            return False
        trust_hosts([found.host for found in new])
        return True

    return ask


@dataclass(frozen=True)
class RunFlags:
    """Options of `raggs run` (or of the command `verb`) that select a run and its stages."""

    config: Path
    overrides: Sequence[str] = ()
    run_id: str | None = None
    start: str | None = None
    stop: str | None = None
    only: str | None = None
    verb: str = "run"

    def command(self, settings: Mapping[str, str] | None = None) -> str:
        """Return the command that these options form, with some settings changed."""
        changed = settings or {}
        kept = [text for text in self.overrides if text.partition("=")[0].strip() not in changed]
        named = {"--run-id": self.run_id, "--from": self.start, "--to": self.stop, "--only": self.only}
        words = ["raggs", self.verb, "--config", str(self.config)]
        for flag, value in named.items():
            words += [flag, value] if value else []
        for override in (*kept, *(f"{name}={value}" for name, value in changed.items())):
            words += ["--set", override]
        return shlex.join(words)

    def going_on(self) -> str:
        """Return the command that runs all stages of the same run."""
        return replace(self, start=None, stop=None, only=None).command()


def sufficient_cap(cap: BudgetCap, left: float | None) -> str:
    """Return a cap in USD or calls that covers what is spent and what remains; twice the limit if the rest is
    unknown.
    """
    most = 2 * cap.limit if left is None else cap.spent + left
    return f"{math.ceil(100 * most) / 100 or 0.01:.2f}" if cap.money else str(math.ceil(most))


def typed(path: Path) -> str:
    """Return a path as text for a command. A path inside the working directory is relative."""
    found = str(relative_to_cwd(path))
    return shlex.quote(str(path) if found.startswith("-") else found)
