"""Files that exporters write: lines streamed into a file that appears whole, and the sidecar that says whence.

Formats of the field have no room for comments (many readers split every line on its columns), so a golden set's
provenance stands in a `.meta.json` beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import jsonlines

from raggs.artifacts import MAX_GRADE, MIN_GRADE
from raggs.atomic import atomic_writer, disk, remove_leftovers
from raggs.golden.base import GoldenSet

SCALE = {
    "minimum": MIN_GRADE,
    "maximum": MAX_GRADE,
    "meaning": "utility for answering the query; 1 = not relevant, 5 = answers it",
    "note": "grade 1 is a judgment, not relevance: give binary measures a threshold, as in P(rel=3)@10",
}

LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write `lines` (each without its end) to `path`, whole or not at all, and count them.

    Folders are made where missing.

    Raises:
        ProviderError: the disk refuses.
    """
    count = 0
    with _whole(path) as file:
        for line in lines:
            file.write(line.encode() + b"\n")
            count += 1
    return count


def write_objects(path: Path, objects: Iterable[Mapping[str, object]]) -> int:
    """Write one JSON object a line to `path`, as `write_lines` writes lines, and count them.

    Raises:
        ProviderError: the disk refuses.
    """
    count = 0
    with _whole(path) as file, object_writer(file) as writer:
        for count, each in enumerate(objects, start=1):  # noqa: B007 - how many there were
            writer.write(each)
    return count


def object_writer(file: IO[bytes]) -> jsonlines.Writer:
    """Writes objects to an open file, keys in the order given, also for readers that split at Unicode's line ends."""
    return jsonlines.Writer(file, dumps=_dump)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).translate(LINE_ENDS)


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    with disk(path, "export to another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, path.name)  # of an export that was killed
        with atomic_writer(path) as file:
            yield file


def write_meta(path: Path, golden: GoldenSet, facts: Mapping[str, object]) -> None:
    """Write the sidecar: `facts` about the export, the scale of the grades, and the set's provenance."""
    provenance = golden.provenance and golden.provenance.model_dump(mode="json")
    meta = {"name": golden.name, **facts, "grades": SCALE, "provenance": provenance}
    write_lines(path, [json.dumps(meta, indent=2, ensure_ascii=False)])
