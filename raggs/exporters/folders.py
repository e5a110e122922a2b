"""The folder of an export: nothing of others is written over unasked, and what cannot be exported leaves no trace.

An export into the folder of an earlier one of the same format replaces it. While one is being written, a mark stands in
the folder, so that a killed one can be made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from raggs.atomic import disk
from raggs.errors import UsageError
from raggs.exporters.base import Exporter
from raggs.golden.scales import stated_format

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
