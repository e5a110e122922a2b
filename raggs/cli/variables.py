"""Variables that stand for options: ``RAGGS_RUN_MAX_USD=5`` is ``raggs run --max-usd 5``.

One rule names them all, ``RAGGS_<COMMAND>_<OPTION>`` by the option's long name, so that no list of them is needed: the
help of a command says the rule in its last line.
"""

from __future__ import annotations

from typer.core import TyperCommand, TyperOption

RULE = "Each option can be set by a variable, too: {}_<OPTION>."


def name_variables(command: TyperCommand, words: tuple[str, ...]) -> None:
    """Give each option of a command its variable, and the command the line that says so.

    Args:
        words: by which the command is called, the program's name first.
    """
    prefix = "_".join(words).upper()
    command.epilog = RULE.format(prefix)
    for option in command.params:
        if isinstance(option, TyperOption):
            long = max(option.opts, key=len).lstrip("-")
            option.envvar = f"{prefix}_{long.replace('-', '_').upper()}"
            option.show_envvar = False
