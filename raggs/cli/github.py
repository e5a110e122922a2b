"""What GitHub shows of a job: the summary of a step, and errors as annotations with their file and line.

Annotations are lines of a form that GitHub's runner alone reads, so they are written only where it runs: to stderr,
which it reads as it does stdout. What comes from others is escaped: it ends no line and opens no property.
"""

from __future__ import annotations

import os
from pathlib import Path

from raggs.base.errors import GateError, RaggsError, UsageError
from raggs.base.secrets import mask
from raggs.cli.plain import say

SUMMARY = "GITHUB_STEP_SUMMARY"
MOST = 1_000_000  # bytes; GitHub shows no summary of more than 1 MiB
CUT = "\n\n… the rest is left out: a summary has its limit\n"


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
            room = MOST - file.tell()
            data = mask(text).encode() + b"\n"
            file.write(data if len(data) <= room else _cut(data, room))
    except OSError as error:
        raise UsageError(
            f"${SUMMARY}: {error.strerror}", where=name, remedy="name a file that can be written"
        ) from error


def _cut(data: bytes, room: int) -> bytes:
    """As many whole lines as there is room for, and that some are missing."""
    kept = data[: max(0, room - len(CUT.encode()))].rpartition(b"\n")[0]
    return kept + CUT.encode() if kept else b""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
