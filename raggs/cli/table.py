"""The commands by their names; each is imported and its options are read when somebody asks for it.

So a command pays for itself alone: `raggs init` knows no option of `raggs eval`, and only `raggs --help` imports all.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from raggs.cli.options import Quiet
from raggs.cli.values import PlainCommand
from raggs.cli.variables import name_variables

Target = str  # "module:function", the module in this package
Command = TyperCommand | TyperGroup


@dataclass(frozen=True)
class Group:
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

    def __init__(self, table: Mapping[str, Target | Group], words: tuple[str, ...] = ("RAGGS",)) -> None:
        super().__init__(table)
        self._words = words

    def __getitem__(self, name: str) -> Command:
        found: Target | Group | Command = super().__getitem__(name)
        if isinstance(found, Target):
            found = _command(name, found, self._words)
        elif isinstance(found, Group):
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
    """Return the command with `--quiet`, which `raggs.cli.plain` obeys if the command itself does not know of it."""
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


def _group(name: str, found: Group, words: tuple[str, ...]) -> Command:
    shows, kind = found.usual is None, TyperGroup if found.usual is None else UsualGroup
    made = get_group(typer.Typer(name=name, cls=kind, help=found.help, no_args_is_help=shows, rich_markup_mode=None))
    if isinstance(made, UsualGroup) and found.usual is not None:
        made.usual = found.usual
    made.hidden = found.hidden
    made.commands = Commands(found.commands, (*words, name))
    return made
