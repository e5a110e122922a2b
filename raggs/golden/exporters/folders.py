"""The folder of an export: nothing of others is written over unasked, and what cannot be exported leaves no trace.

An export into the folder of an earlier one of the same format replaces it. While one is being written, a mark stands in
the folder, so that a killed one can be made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from raggs.base.atomic import disk
from raggs.base.errors import UsageError
from raggs.base.inputs import read_lines
from raggs.base.jsontypes import as_object, as_text
from raggs.golden.exporters.base import Exporter
from raggs.parts.readers.scales import read_sidecar, stated_format

MARK = ".raggs-export"  # holds the name of the format that is being written


@contextmanager
def claimed(folder: Path, kind: type[Exporter], *, force: bool = False) -> Iterator[None]:
    """Keep a folder for an export while it is written.

    Args:
        force: whether it may hold other things, of which those with the names of the export's files are replaced.

    Raises:
        UsageError: it holds something else than an export of this format.
        ProviderError: it cannot be written.
    """
    if not force:
        _check(folder, kind)
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    mark = folder / MARK
    try:
        with disk(folder, "export to another folder"):
            folder.mkdir(parents=True, exist_ok=True)
            mark.write_text(kind.FORMAT)
        yield
    except BaseException:
        _unmark(mark)
        for each in made:
            with suppress(OSError):
                each.rmdir()
        raise
    _unmark(mark)


def remove_other_split(folder: Path, kind: type[Exporter], labels: str) -> None:
    """Take away the labels of another split that the last export wrote here, or tools would find both.

    Args:
        labels: what this one writes, relative to the folder.

    Raises:
        ProviderError: they cannot be removed.
    """
    meta = read_sidecar(folder / kind.SIDECAR)
    old = as_text(meta.get("labels")) or labels
    path, rows = folder / old, as_object(as_object(meta.get("files")).get(old)).get("rows")
    known = old != labels and PurePosixPath(old).parts[:-1] == PurePosixPath(kind.LABELS).parts[:-1]
    if known and path.is_file() and not path.is_symlink():
        found = sum(1 for _ in read_lines(path)) - (path.suffix == ".tsv")  # a table has a header
        if found == rows:
            with disk(path, "export to another folder", "cannot be removed"):
                path.unlink()


def _unmark(mark: Path) -> None:
    with suppress(OSError):
        mark.unlink()


def _check(folder: Path, kind: type[Exporter]) -> None:
    with suppress(OSError):  # what is no folder is said when it is written to
        mark = folder / MARK
        other = any(path.name != MARK for path in folder.iterdir())
        begun = mark.is_file() and mark.read_text() == kind.FORMAT
        if other and not begun and stated_format(folder / kind.SIDECAR) not in ("", kind.FORMAT):
            format_ = kind.FORMAT or kind.__name__
            raise UsageError(
                f"{folder} exists and holds something else than a {format_} export",
                remedy="name another --out, or pass --force to write into it",
            )
