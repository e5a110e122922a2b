"""The `raggs` command and its table of subcommands.

Each subcommand is a function in a module of this package. The module is imported when the command is called or its
help line is printed. The function imports what it needs when it runs. So `raggs --help` imports neither numpy nor a
provider.

Every option can also be set by an environment variable: ``RAGGS_RUN_MAX_USD=5`` has the effect of
``raggs run --max-usd 5``. The name is ``RAGGS_<COMMAND>_<OPTION>``, with the long name of the option. The last line of
each command's help states the rule.
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

VARIABLE_HINT = "Environment variables for the options: {}_<OPTION>."


def name_variables(command: TyperCommand, words: tuple[str, ...]) -> None:
    """Set the environment variable of each option of a command, and the line of the help that states their names.

    Args:
        words: name of the program, then the words of the command.
    """
    prefix = "_".join(words).upper()
    command.epilog = VARIABLE_HINT.format(prefix)
    for option in command.params:
        if isinstance(option, TyperOption):
            long = max(option.opts, key=len).lstrip("-")
            option.envvar = f"{prefix}_{long.replace('-', '_').upper()}"
            option.show_envvar = False


Target = str  # "module:function" in this package
Command = TyperCommand | TyperGroup


@dataclass(frozen=True)
class CommandGroup:
    """Commands with a common first word, such as ``config show``.

    Attributes:
        help: description in `raggs --help`.
        commands: functions by command name.
        usual: the command to run if none is named; None to print the help instead.
        hidden: whether `raggs --help` omits the group because it duplicates another one.
    """

    help: str
    commands: Mapping[str, Target]
    usual: str | None = None
    hidden: bool = False


class UsualGroup(TyperGroup):
    """Group with a default command, which need not be named: ``raggs questions docs``."""

    usual = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the default command if no command is named."""
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else [self.usual, *args])


class Commands(UserDict[str, Any]):
    """Table of commands; each is created when it is first used.

    Args:
        table: function or group by name, in the order of the help.
        words: name of the program and of the group, from which names of environment variables are formed.
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
    if not isinstance(made, TyperCommand):  # typer makes a single command
        raise TypeError(type(made).__name__)
    name_variables(made, (*words, name))
    return made


def _with_quiet(does: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the option `--quiet`, which `raggs.cli.plain_text` handles."""
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
Build golden sets for retrieval-augmented generation: graded, ranked and audited.

\b
  raggs init demo
  raggs run --config demo/raggs.yaml         a first run, offline
  raggs run --config raggs.yaml --dry-run    estimated cost, without calls
  raggs status demo/runs/demo                state of a run and next step
"""

COMMANDS: dict[str, str | CommandGroup] = {
    "init": "housekeeping:init",
    "index": "housekeeping:index",
    "run": "runs:run",
    "update": "updates:update",
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
        "Find out why retrieval fails.",
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
    "config": CommandGroup("Show a configuration.", {"show": "housekeeping:show"}),
    "prompts": CommandGroup("List and print the prompts of raggs.", {"list": "show:list_", "show": "show:show_prompt"}),
    "chunks": CommandGroup(
        "Compare, show and create chunkings of documents.",
        {"eval": "chunks:eval_", "make": "chunks:make", "place": "chunks:place", "show": "chunks:show"},
    ),
    "review": CommandGroup(
        "Collect, import and export human labels.",
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
        "Import and export human labels.", {"import": "reviews:import_", "export": "reviews:export"}, hidden=True
    ),
    "judge": CommandGroup(
        "Validate, compare, calibrate or monitor judges.",
        {
            "check": "reviews:check",
            "compare": "reviews:compare",
            "bench": "judges:bench",
            "calibrate": "judges:calibrate",
            "drift": "judges:drift",
        },
    ),
    "questions": CommandGroup(
        "Generate queries from documents, or import them from logs.",
        {
            "make": "questions:make",
            "import": "user_queries:import_",
            "gaps": "user_queries:gaps",
            "evidence": "questions:evidence",
            "calibrate": "questions:calibrate",
        },
        usual="make",
    ),
    "cache": CommandGroup(
        "Show or clear the caches of a workspace.",
        {"stats": "housekeeping:cache_stats", "clear": "housekeeping:cache_clear"},
    ),
}


class Root(BoundaryGroup):
    """The command `raggs` with all subcommands."""

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
    epilog="Environment variables for all options: RAGGS_<COMMAND>_<OPTION>, e.g. RAGGS_RUN_MAX_USD=5.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"raggs {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Handle the options of `raggs` itself."""
