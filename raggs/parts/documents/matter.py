"""Front matter: what a document says about itself at its top, in YAML between ``---`` or TOML between ``+++``.

A document that merely begins with a rule has none: front matter is closed by a line of its own and is a mapping.
What is closed and looks like one, but cannot be read, is taken for front matter all the same, and `warning` says why:
it is no part of the text, whatever is wrong with it. It is read with the limits of `raggs.base.plainyaml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time

from raggs.base.errors import DataError
from raggs.base.jsontypes import Json
from raggs.base.plainyaml import MOST_DEPTH, MOST_DIGITS, load_plain
from raggs.base.text import shorten

OPENINGS = (b"---", b"+++")
MOST = 1 << 16  # characters in which front matter ends
OPEN = re.compile(r"(---|\+\+\+)[ \t]*(\r?\n|\r)")
CLOSE = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r|\Z)", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\r|\Z)", re.MULTILINE),
}
KEYED = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?[\r\n]+)*[\"']?\w[\w .-]*[\"']?[ \t]*[:=]")  # comments, then a key


@dataclass(frozen=True)
class Matter:
    """What a document says about itself.

    Attributes:
        end: the first character after it; 0 where there is none.
        title: its title, on one line; empty where it has none.
        metadata: all else.
        warning: why it could not be read; `line`: in which line that shows.
    """

    end: int = 0
    title: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    warning: str = ""
    line: int = 0


def split_matter(text: str) -> Matter:
    """The front matter of a text."""
    opened = OPEN.match(text)
    closed = None if opened is None else CLOSE[opened[1]].search(text, opened.end(), opened.end() + MOST)
    if opened is None or closed is None:
        return Matter()
    inner = text[opened.end() : closed.start()]
    try:
        found = _plain(load_plain(inner)) if opened[1] == "---" else _toml(inner)
    except DataError as error:
        if not KEYED.match(inner):
            return Matter()
        return Matter(closed.end(), warning=error.message, line=1 + (error.line or 1))
    if not isinstance(found, dict):
        return Matter()
    title = found.get("title")
    named = isinstance(title, str | int | float) and not isinstance(title, bool)
    rest = {key: value for key, value in found.items() if not (named and key == "title")}
    return Matter(closed.end(), " ".join(str(title).split()) if named else "", rest)


def _toml(text: str) -> Json:
    """
    Raises:
        DataError: it is not TOML, or beyond the limits.
    """
    try:
        return _plain(tomllib.loads(text.replace("\r\n", "\n")))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:  # ValueError: a number of 5,000 digits
        said = "nested too deep" if isinstance(error, RecursionError) else shorten(str(error), 160)
        line = re.search(r"at line (\d+)", str(error))
        raise DataError(f"not valid TOML ({said})", line=int(line[1]) if line else None) from error


def _plain(value: object, depth: int = 0) -> Json:
    """A value of YAML or TOML as JSON has it; a time and what is no finite number as they are written."""
    if depth > MOST_DEPTH:
        raise ValueError(f"nested more than {MOST_DEPTH} levels deep")
    if isinstance(value, dict):
        return {str(key): _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**MOST_DIGITS:
        raise ValueError(f"a number of more than {MOST_DIGITS} digits")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and value - value != 0:  # JSON knows neither
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None
