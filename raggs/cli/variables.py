"""Variables that stand for options: ``RAGGS_RUN_MAX_USD=5`` is ``raggs run --max-usd 5``.

One rule names them all, ``RAGGS_<COMMAND>_<OPTION>`` by the option's long name, so that no list of them is needed: the
help of a command says the rule in its last line.
"""

from __future__ import annotations

from typer.core import TyperCommand, TyperGroup, TyperOption

RULE = "Each option can be set by a variable, too: {}_<OPTION>."


def name_variables(group: TyperGroup, words: tuple[str, ...] = ("RAGGS",)) -> None:
    """Give each option of each command below `group` its variable, and each command the line that says so."""
    for name, command in group.commands.items():
        path = (*words, name.upper())
        if isinstance(command, TyperGroup):
            name_variables(command, path)
        elif isinstance(command, TyperCommand):
            _name(command, "_".join(path))


def _name(command: TyperCommand, prefix: str) -> None:
    command.epilog = RULE.format(prefix)
    for option in command.params:
        if isinstance(option, TyperOption):
            long = max(option.opts, key=len).lstrip("-")
            option.envvar = f"{prefix}_{long.replace('-', '_').upper()}"
            option.show_envvar = False
