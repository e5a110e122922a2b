"""The `raggs` command and its table of subcommands.

Each subcommand is a function in a module of this package, which is imported when the command is called, and imports
what it needs when it runs: `raggs --help` loads neither numpy nor a provider.

The commands by their names; each is imported and its options are read when somebody asks for it.

So a command pays for itself alone: `raggs init` knows no option of `raggs eval`, and only `raggs --help` imports all.

Variables that stand for options: ``RAGGS_RUN_MAX_USD=5`` is ``raggs run --max-usd 5``.

One rule names them all, ``RAGGS_<COMMAND>_<OPTION>`` by the option's long name, so that no list of them is needed: the
help of a command says the rule in its last line.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command, get_group

from raggs.base import __version__
from raggs.cli.boundary import BoundaryGroup, PlainCommand
from raggs.cli.options import Quiet

VARIABLE_HINT = "Each option can be set by a variable, too: {}_<OPTION>."


def name_variables(command: TyperCommand, words: tuple[str, ...]) -> None:
    """Give each option of a command its variable, and the command the line that says so.

    Args:
        words: by which the command is called, the program's name first.
    """
    prefix = "_".join(words).upper()
    command.epilog = VARIABLE_HINT.format(prefix)
    for option in command.params:
        if isinstance(option, TyperOption):
            long = max(option.opts, key=len).lstrip("-")
            option.envvar = f"{prefix}_{long.replace('-', '_').upper()}"
            option.show_envvar = False


Target = str  # "module:function", the module in this package
Command = TyperCommand | TyperGroup


@dataclass(frozen=True)
class CommandGroup:
    """Commands below a word of their own, such as ``config show``.

    Attributes:
        help: what `raggs --help` says of them.
        commands: each command's function by its name.
        usual: the command that is meant where none is named; None: the help is shown.
        hidden: whether `raggs --help` is silent of it: another word for what it shows already.
    """

    help: str
    commands: Mapping[str, Target]
    usual: str | None = None
    hidden: bool = False


class UsualGroup(TyperGroup):
    """A group of commands of which one need not be named: ``raggs questions docs``."""

    usual = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in that is meant; help is that of the usual one."""
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else [self.usual, *args])


class Commands(UserDict[str, Any]):
    """A table of commands that makes each at its first use.

    Args:
        table: what stands behind each name, in the order of the help.
        words: those before the names, in the names of variables.
    """

    def __init__(self, table: Mapping[str, Target | CommandGroup], words: tuple[str, ...] = ("RAGGS",)) -> None:
        super().__init__(table)
        self._words = words

    def __getitem__(self, name: str) -> Command:
        found: Target | CommandGroup | Command = super().__getitem__(name)
        if isinstance(found, Target):
            found = _command(name, found, self._words)
        elif isinstance(found, CommandGroup):
            found = _group(name, found, self._words)
        self.data[name] = found
        return found


def _command(name: str, target: Target, words: tuple[str, ...]) -> Command:
    module, _, function = target.partition(":")
    does = _with_quiet(getattr(import_module(f"raggs.cli.{module}"), function))
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=PlainCommand)(does)
    made = get_command(alone)
    if not isinstance(made, TyperCommand):  # as typer has it of a single command
        raise TypeError(type(made).__name__)
    name_variables(made, (*words, name))
    return made


def _with_quiet(does: Callable[..., None]) -> Callable[..., None]:
    """Return the command with `--quiet`, which `raggs.cli.plain_text` obeys if the command itself does not know of
    it.
    """
    known = signature(does, eval_str=True).parameters
    if "quiet" in known:
        return does

    @wraps(does)
    def command(quiet: bool = False, **given: object) -> None:
        does(**given)

    quiet = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    options = [known[name].replace(kind=Parameter.KEYWORD_ONLY) for name in known]
    place = next((at for at, option in enumerate(options) if option.name == "debug"), len(options))
    command.__dict__["__signature__"] = Signature([*options[:place], quiet, *options[place:]])
    return command


def _group(name: str, found: CommandGroup, words: tuple[str, ...]) -> Command:
    shows, kind = found.usual is None, TyperGroup if found.usual is None else UsualGroup
    made = get_group(typer.Typer(name=name, cls=kind, help=found.help, no_args_is_help=shows, rich_markup_mode=None))
    if isinstance(made, UsualGroup) and found.usual is not None:
        made.usual = found.usual
    made.hidden = found.hidden
    made.commands = Commands(found.commands, (*words, name))
    return made


HELP = """
Golden sets for retrieval-augmented generation: graded, ranked, audited, and paid for once.

\b
  raggs init demo
  raggs run --config demo/raggs.yaml         a first run, offline
  raggs run --config raggs.yaml --dry-run    its price, without spending
  raggs status demo/runs/demo                where it stands, what is next
"""

COMMANDS: dict[str, str | CommandGroup] = {
    "init": "housekeeping:init",
    "index": "housekeeping:index",
    "run": "runs:run",
    "status": "runs:status",
    "why": "runs:why",
    "show": "show:show",
    "cost": "runs:cost",
    "audit": "housekeeping:audit",
    "keygen": "housekeeping:keygen",
    "export": "export:export",
    "import": "export:import_",
    "eval": "evals:eval_",
    "diff": "evals:diff",
    "compare": "evals:compare",
    "sweep": "sweeps:sweep",
    "diagnose": CommandGroup(
        "Say why retrieval fails, by small probes.",
        {
            "list": "diagnoses:kinds",
            "all": "diagnoses:all_",
            "names": "diagnoses:names",
            "precision": "diagnoses:precision",
            "noise": "diagnoses:noise",
            "judge": "diagnoses:judge",
            "depth": "diagnoses:depth",
            "retrieval": "diagnoses:retrieval",
            "index": "diagnoses:index",
        },
        usual="list",
    ),
    "report": "export:report",
    "validate": "housekeeping:validate",
    "doctor": "housekeeping:doctor",
    "list": "export:list_",
    "explain": "show:explain",
    "schema": "export:schema",
    "config": CommandGroup("Look at a configuration.", {"show": "housekeeping:show"}),
    "prompts": CommandGroup(
        "Read the prompts that come with raggs.", {"list": "show:list_", "show": "show:show_prompt"}
    ),
    "chunks": CommandGroup(
        "Compare ways of cutting documents, look at one, or make one.",
        {"eval": "chunks:eval_", "make": "chunks:make", "place": "chunks:place", "show": "chunks:show"},
    ),
    "review": CommandGroup(
        "People's word on passages: give it, and see where it stands.",
        {
            "plan": "reviews:plan",
            "serve": "reviews:serve",
            "set": "reviews:set_",
            "status": "reviews:status",
            "import": "reviews:import_",
            "export": "reviews:export",
        },
    ),
    "reviews": CommandGroup(
        "People's word as files.", {"import": "reviews:import_", "export": "reviews:export"}, hidden=True
    ),
    "judge": CommandGroup(
        "A judge, held against people or against another judge.",
        {"check": "reviews:check", "compare": "reviews:compare"},
    ),
    "questions": CommandGroup(
        "Make questions of documents or logs, or find their thresholds.",
        {"make": "questions:make", "import": "questions:import_", "calibrate": "questions:calibrate"},
        usual="make",
    ),
    "cache": CommandGroup(
        "Look at the caches of a workspace, or empty them.",
        {"stats": "housekeeping:cache_stats", "clear": "housekeeping:cache_clear"},
    ),
}


class Root(BoundaryGroup):
    """The command `raggs`, with the table above."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = Commands(COMMANDS)


app = typer.Typer(
    name="raggs",
    help=HELP,
    cls=Root,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="A variable stands for each option: RAGGS_<COMMAND>_<OPTION>, such as RAGGS_RUN_MAX_USD=5.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"raggs {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of raggs itself; see HELP."""
