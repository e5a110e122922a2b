"""Files that exporters write: lines streamed into files that appear whole.

Formats of the field have no room for comments (many readers split every line on its columns), so a golden set's
provenance stands in a `.meta.json` beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import jsonlines

from raggs.base.atomic import atomic_writer, disk, remove_leftovers
from raggs.parts.queries.writing import LINE_ENDS


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


def write_routed_lines(lines: Iterable[tuple[Path, str]]) -> dict[Path, int]:
    """Write each line to its own path, as `write_lines` does, and count those of each; paths sorted.

    Raises:
        ProviderError: the disk refuses.
    """
    counts: dict[Path, int] = {}
    files: dict[Path, IO[bytes]] = {}
    with ExitStack() as stack:
        for path, line in lines:
            if path not in files:
                files[path] = stack.enter_context(_whole(path))
            files[path].write(line.encode() + b"\n")
            counts[path] = counts.get(path, 0) + 1
    return dict(sorted(counts.items()))


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


def write_list(path: Path, objects: Iterable[Mapping[str, object]]) -> int:
    """Write objects to `path` as one list of JSON, one a line, as `write_lines` writes lines, and count them.

    Raises:
        ProviderError: the disk refuses.
    """
    count = 0
    with _whole(path) as file:
        file.write(b"[")
        for count, each in enumerate(objects, start=1):
            file.write((",\n" if count > 1 else "\n").encode() + _dump(each).encode())
        file.write(b"\n]\n")
    return count


def object_writer(file: IO[bytes]) -> jsonlines.Writer:
    """Writes objects to an open file, keys in the order given, also for readers that split at Unicode's line ends."""
    return jsonlines.Writer(file, dumps=_dump)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).translate(LINE_ENDS)


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        with disk(path, "export to another folder"):
            path.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(path.parent, path.name)  # of an export that was killed
            with atomic_writer(path) as file:
                yield file
    except BaseException:
        for folder in made:  # what was refused leaves no empty folder
            with suppress(OSError):
                folder.rmdir()
        raise


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write one indented JSON object to `path`, as `write_lines` writes lines.

    Raises:
        ProviderError: the disk refuses.
    """
    write_lines(path, [json.dumps(value, indent=2, ensure_ascii=False)])
