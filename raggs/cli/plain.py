"""Plain text on the screen, where there is no table: what others wrote never commands the terminal.

Titles, paths, a provider's words: nothing in a command's output is printed but through here or `raggs.cli.screen`.
"""

from __future__ import annotations

import typer

from raggs.secrets import mask
from raggs.text import COMMANDS, visible


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Print a text for people, to stdout or stderr."""
    typer.echo(visible(mask(text)), err=err, nl=nl)


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
