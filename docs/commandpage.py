"""Generate docs/reference/commands.md: the help of each command and a table of its options.

Used by docs/generate.py. The texts come from the docstrings of the commands and the declarations of their options.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_args

from typer.main import get_command

from raggs.cli.app import app

HEAD = """# Command line

The commands with their arguments and options, as in `raggs COMMAND --help`. Every command also takes these
options:

- `--debug` prints the stack trace of an error.
- `-q`, `--quiet` prints no text, progress or notes. The output of `--json`, written files, warnings, errors and exit
  codes stay the same. So does output that is meant for a file or a browser: `raggs schema`, `raggs prompts show`, and
  the address printed by `raggs review serve`.

You can also set each option by an environment variable: `RAGGS_RUN_MAX_USD=5` is the same as `raggs run --max-usd 5`.
[Exit codes and environment variables](exit-codes.md) lists the rest."""
COMMON = {"debug", "quiet", "help"}  # described once, in HEAD


def commands() -> str:
    """Return the page."""
    return "\n\n".join([HEAD, *_sections("raggs", get_command(app))]) + "\n"


def _sections(words: str, command: Any) -> Iterator[str]:
    """Yield the section of each command below a group, in the order of the help."""
    for name in getattr(command, "commands", {}):
        each = command.commands[name]
        if each.hidden:
            continue
        if hasattr(each, "commands"):
            yield from _sections(f"{words} {name}", each)
        else:
            yield "\n\n".join(filter(None, (f"## {words} {name}", *_help(each.help or ""), _table(each.params))))


def _help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; blocks that keep their lines become code below their introduction."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        plain = paragraph.removeprefix("\b\n")
        if plain == paragraph:
            yield _prose(paragraph)
            continue
        lines = plain.splitlines()
        code = next((number for number, line in enumerate(lines) if line.startswith(" ")), len(lines))
        yield _prose("\n".join(lines[:code]))
        if block := inspect.cleandoc("\n" + "\n".join(lines[code:])):
            yield f"```\n{block}\n```"


def _prose(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


def _table(params: list[Any]) -> str:
    rows = [_row(each) for each in params if each.name not in COMMON and not getattr(each, "hidden", False)]
    return "\n".join(["| argument or option | meaning |", "|---|---|", *rows]) if rows else ""


def _row(param: Any) -> str:
    argument = param.param_type_name == "argument"
    value = param.metavar or ("" if getattr(param, "is_flag", False) else _choices(param))
    spelled = [param.metavar or param.name.upper()] if argument else [*param.opts, *param.secondary_opts]
    written = ", ".join(f"`{each}`" for each in spelled) + ("" if argument or not value else f" `{value}`")
    return f"| {written.replace('|', '&#124;')} | {_meaning(param)} |"


def _choices(param: Any) -> str:
    """Return the choices of an option, separated by slashes."""
    described = getattr(param, "type_descriptor", None)  # newer typer; click's parameters have a type
    return "/".join(get_args(described.annotation) if described else param.type.choices)


def _meaning(param: Any) -> str:
    usual = param.default
    told = usual not in (None, False, (), "", True) and not callable(usual)
    text = (param.help or "") + (f" Default: `{getattr(usual, 'value', usual)}`." if told else "")
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;") + (" Required." if param.required else "")
