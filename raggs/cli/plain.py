"""Plain text on the screen, where there is no table: what others wrote never commands the terminal.

Titles, paths, a provider's words: nothing in a command's output is printed but through here or `raggs.cli.screen`.

Every command takes `-q`, which means the same everywhere: texts for people on stdout, progress and notes are not
printed. JSON, files, a prompt's page, the address of a server, warnings, errors and exit codes stay.
"""

from __future__ import annotations

import typer

from raggs.base.secrets import mask
from raggs.base.text import COMMANDS, visible

QUIET_HELP = "Print no texts, progress or notes; JSON, files, warnings and errors stay."


class _State:
    quiet = False


def be_quiet(value: bool) -> bool:
    """Print no texts for people from now on if `value`; the callback of `--quiet`."""
    _State.quiet = _State.quiet or value
    return value


def end_quiet() -> None:
    """Print again: a new command begins."""
    _State.quiet = False


def is_quiet() -> bool:
    """Return whether the command that runs was called with `--quiet`."""
    return _State.quiet


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Print a text for people to stdout, unless `--quiet` is set; or an error or a warning to stderr (`err`)."""
    if err or not _State.quiet:
        typer.echo(visible(mask(text)), err=err, nl=nl)


def say_note(text: str) -> None:
    """Print to stderr what is worth knowing and not wrong, unless `--quiet` is set."""
    if not _State.quiet:
        say(text, err=True)


def say_page(text: str) -> None:
    """Print to stdout a document that goes into a file, as it is."""
    typer.echo(visible(mask(text)), nl=False)


def say_json(text: str) -> None:
    """Print JSON; what would command a terminal stands in it as JSON's own escapes."""
    # JSON of raggs has no such character but within its strings.
    typer.echo(COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def say_secret(text: str) -> None:
    """Print to stdout what holds a secret that is meant for whoever reads it, unmasked."""
    typer.echo(visible(text))


def agree(question: str, default: bool = False, err: bool = True) -> bool:
    """Ask for yes or no."""
    return typer.confirm(visible(question), default=default, err=err)


def ask(question: str, err: bool = True) -> str:
    """Ask for a word; what was typed, as it was typed, and nothing for the enter key alone."""
    return str(typer.prompt(visible(question), default="", show_default=False, err=err))
