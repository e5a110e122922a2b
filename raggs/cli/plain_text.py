"""Print plain text without tables. Terminal control sequences in the text are escaped.

Commands print results through this module or `raggs.cli.screen`, because titles, paths and provider messages are
untrusted.

Every command has the option `-q`. It suppresses progress, notes, and any text on stdout that is meant for reading.
JSON, files, the text of a prompt, the address of a server, warnings on stderr, errors and exit codes are not affected.

On GitHub Actions, this module also writes the step summary, and errors as annotations with file and line. Annotations
are printed to stderr. They are printed only on GitHub's runner, because no other program interprets them. Text in
annotations is escaped, so that it cannot end the line or add a property.
"""

from __future__ import annotations

import os
from pathlib import Path

import typer

from raggs.base.errors import GateError, RaggsError, UsageError
from raggs.base.secrets import mask
from raggs.base.text import COMMANDS, escape_controls

QUIET_HELP = "Suppress texts, progress and notes; JSON and errors are still printed."


class _OutputState:
    quiet = False


def be_quiet(value: bool) -> bool:
    """Suppress texts for people if `value` is true. This is the callback of `--quiet`."""
    _OutputState.quiet = _OutputState.quiet or value
    return value


def end_quiet() -> None:
    """Reset `--quiet` at the start of a new command."""
    _OutputState.quiet = False


def is_quiet() -> bool:
    """Return whether the current command was called with `--quiet`."""
    return _OutputState.quiet


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Print a text to stdout, or to stderr with `err`. With `--quiet`, nothing is printed to stdout."""
    if err or not _OutputState.quiet:
        typer.echo(escape_controls(mask(text)), err=err, nl=nl)


def say_note(text: str) -> None:
    """Print a note to stderr, unless `--quiet` is set. A note is neither a warning nor an error."""
    if not _OutputState.quiet:
        say(text, err=True)


def say_page(text: str) -> None:
    """Print a document to stdout without a trailing newline, even with `--quiet`."""
    typer.echo(escape_controls(mask(text)), nl=False)


def say_json(text: str) -> None:
    """Print JSON with terminal control characters as JSON escapes."""
    # In raggs' JSON, such characters occur only inside strings.
    typer.echo(COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def say_secret(text: str) -> None:
    """Print a text to stdout without masking, because the user needs the secret in it."""
    typer.echo(escape_controls(text))


def agree(question: str, default: bool = False, err: bool = True) -> bool:
    """Prompt for yes or no."""
    return typer.confirm(escape_controls(question), default=default, err=err)


def prompt_user(question: str, err: bool = True) -> str:
    """Prompt for a text and return it unchanged; an empty text if only Enter was pressed."""
    return str(typer.prompt(escape_controls(question), default="", show_default=False, err=err))


SUMMARY = "GITHUB_STEP_SUMMARY"
MAX_SUMMARY_BYTES = 1_000_000  # bytes; GitHub rejects summaries of more than 1 MiB
SUMMARY_CUT = "\n\n… truncated: the summary has reached its size limit\n"


def annotate(error: RaggsError) -> None:
    """Print an annotation for an error; for failed gates, print one per gate. Do nothing outside GitHub's runner."""
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
    """Add Markdown to GitHub's step summary.

    Raises:
        UsageError: the environment variable with the path is not set, or the file cannot be written.
    """
    name = os.environ.get(SUMMARY)
    if not name:
        raise UsageError(
            f"--summary needs the environment variable {SUMMARY}", remedy="set the variable, or omit --summary"
        )
    try:
        with Path(name).open("ab") as file:
            room = MAX_SUMMARY_BYTES - file.tell()
            data = mask(text).encode() + b"\n"
            file.write(data if len(data) <= room else _fit_lines(data, room))
    except OSError as error:
        raise UsageError(f"${SUMMARY}: {error.strerror}", where=name, remedy="set it to a writable file") from error


def _fit_lines(data: bytes, room: int) -> bytes:
    """Return the complete lines that fit into `room` bytes, followed by a note that the summary is truncated."""
    kept = data[: max(0, room - len(SUMMARY_CUT.encode()))].rpartition(b"\n")[0]
    return kept + SUMMARY_CUT.encode() if kept else b""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
