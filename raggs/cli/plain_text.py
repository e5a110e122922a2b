"""Plain text on the screen, where there is no table: what others wrote never commands the terminal.

Titles, paths, a provider's words: nothing in a command's output is printed but through here or `raggs.cli.screen`.

Every command takes `-q`, which means the same everywhere: texts for people on stdout, progress and notes are not
printed. JSON, files, a prompt's page, the address of a server, warnings, errors and exit codes stay.

What GitHub shows of a job: the summary of a step, and errors as annotations with their file and line.

Annotations are lines of a form that GitHub's runner alone reads, so they are written only where it runs: to stderr,
which it reads as it does stdout. What comes from others is escaped: it ends no line and opens no property.
"""

from __future__ import annotations

import os
from pathlib import Path

import typer

from raggs.base.errors import GateError, RaggsError, UsageError
from raggs.base.secrets import mask
from raggs.base.text import COMMANDS, escape_controls

QUIET_HELP = "Print no texts, progress or notes; JSON, files, warnings and errors stay."


class _OutputState:
    quiet = False


def be_quiet(value: bool) -> bool:
    """Print no texts for people from now on if `value`; the callback of `--quiet`."""
    _OutputState.quiet = _OutputState.quiet or value
    return value


def end_quiet() -> None:
    """Print again: a new command begins."""
    _OutputState.quiet = False


def is_quiet() -> bool:
    """Return whether the command that runs was called with `--quiet`."""
    return _OutputState.quiet


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Print a text for people to stdout, unless `--quiet` is set; or an error or a warning to stderr (`err`)."""
    if err or not _OutputState.quiet:
        typer.echo(escape_controls(mask(text)), err=err, nl=nl)


def say_note(text: str) -> None:
    """Print to stderr what is worth knowing and not wrong, unless `--quiet` is set."""
    if not _OutputState.quiet:
        say(text, err=True)


def say_page(text: str) -> None:
    """Print to stdout a document that goes into a file, as it is."""
    typer.echo(escape_controls(mask(text)), nl=False)


def say_json(text: str) -> None:
    """Print JSON; what would command a terminal stands in it as JSON's own escapes."""
    # JSON of raggs has no such character but within its strings.
    typer.echo(COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def say_secret(text: str) -> None:
    """Print to stdout what holds a secret that is meant for whoever reads it, unmasked."""
    typer.echo(escape_controls(text))


def agree(question: str, default: bool = False, err: bool = True) -> bool:
    """Ask for yes or no."""
    return typer.confirm(escape_controls(question), default=default, err=err)


def prompt_user(question: str, err: bool = True) -> str:
    """Ask for a word; what was typed, as it was typed, and nothing for the enter key alone."""
    return str(typer.prompt(escape_controls(question), default="", show_default=False, err=err))


SUMMARY = "GITHUB_STEP_SUMMARY"
MAX_SUMMARY_BYTES = 1_000_000  # bytes; GitHub shows no summary of more than 1 MiB
SUMMARY_CUT = "\n\n… the rest is left out: a summary has its limit\n"


def annotate(error: RaggsError) -> None:
    """An annotation for an error, one for each gate that is not met; nothing outside of GitHub's runner."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    gate = error if isinstance(error, GateError) else None
    place = {"file": gate.file if gate else error.where, "line": error.line, "title": "raggs"}
    known = ",".join(f"{name}={_property(str(value))}" for name, value in place.items() if value is not None)
    said = gate.failed if gate else (error.message,)
    remedy = f" — {error.remedy}" if error.remedy else ""
    for sentence in said:
        say(f"::error {known}::{_data(sentence + remedy)}", err=True)


def append_summary(text: str) -> None:
    """Append Markdown to the summary of the step.

    Raises:
        UsageError: there is none, or it cannot be written.
    """
    name = os.environ.get(SUMMARY)
    if not name:
        raise UsageError(
            f"--summary appends to the file that ${SUMMARY} names", remedy="set it, or leave out --summary"
        )
    try:
        with Path(name).open("ab") as file:
            room = MAX_SUMMARY_BYTES - file.tell()
            data = mask(text).encode() + b"\n"
            file.write(data if len(data) <= room else _fit_lines(data, room))
    except OSError as error:
        raise UsageError(
            f"${SUMMARY}: {error.strerror}", where=name, remedy="name a file that can be written"
        ) from error


def _fit_lines(data: bytes, room: int) -> bytes:
    """As many whole lines as there is room for, and that some are missing."""
    kept = data[: max(0, room - len(SUMMARY_CUT.encode()))].rpartition(b"\n")[0]
    return kept + SUMMARY_CUT.encode() if kept else b""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
