"""Generate docs/reference/commands.md: each command with its help, its options in a table.

Used by docs/generate.py. What is said of a command stands in its docstring, of an option in its declaration.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

from typer.main import get_command

from raggs.cli.app import app

HEAD = """# Commands

Each command explains itself with `--help`, and takes `--debug` for the stack trace of an error. Each option
has a variable: `RAGGS_RUN_MAX_USD=5` is `raggs run --max-usd 5`. Exit codes: 0 ok, 2 usage, 3 prerequisite missing,
4 not found, 5 invalid config or data, 6 provider or runtime failure, 7 finished in part, or below a gate.

Each command takes `-q` (`--quiet`), with one meaning: no texts for people, no progress and no notes are printed. What
`--json` prints stays, and so do written files, warnings, errors and exit codes. Output that is made for a file or a
browser stays, too: `raggs schema`, `raggs prompts show`, and the address that `raggs review serve` prints."""
COMMON = {"debug", "quiet", "help"}  # of every command


def commands() -> str:
    """The whole page."""
    return "\n\n".join([HEAD, *_sections("raggs", get_command(app))]) + "\n"


def _sections(words: str, command: Any) -> Iterator[str]:
    """Of a command, or of those below a group, in the order of the help."""
    for name in getattr(command, "commands", {}):
        each = command.commands[name]
        if each.hidden:
            continue
        if hasattr(each, "commands"):
            yield from _sections(f"{words} {name}", each)
        else:
            yield "\n\n".join(filter(None, (f"## {words} {name}", *_help(each.help or ""), _table(each.params))))


def _help(text: str) -> Iterator[str]:
    """Paragraphs, and examples as a block of code."""
    said, _, examples = inspect.cleandoc(text).partition("\b\n")
    yield re.sub(r"(?<!\n)\n(?!\n)", " ", said.strip()).replace("<", "&lt;")
    lines = examples.partition("\n")[2]
    if lines:
        yield f"```\n{inspect.cleandoc(lines)}\n```"


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
    """What an option without a name for its value takes: one of a few words."""
    described = getattr(param, "type_descriptor", None)  # newer typer; click's parameters have a type
    return "/".join(get_args(described.annotation) if described else param.type.choices)


def _meaning(param: Any) -> str:
    usual = param.default
    told = usual not in (None, False, (), "", True) and not callable(usual)
    text = (param.help or "") + (f" Default: `{getattr(usual, 'value', usual)}`." if told else "")
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;") + (" Required." if param.required else "")
