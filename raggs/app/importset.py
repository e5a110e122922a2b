"""From another tool's files to a golden set of raggs, and word of what came through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.golden import importers
from raggs.golden.exporters.base import ExportOptions
from raggs.golden.exporters.folders import claimed
from raggs.golden.exporters.jsonl import JsonlExporter
from raggs.golden.importers.base import Importer
from raggs.golden.parts import PARTS, Part, Stock, contents_of
from raggs.parts.readers.scales import stated_labels, stated_name
from raggs.runs.manifests.store import RunStore

Came = Literal["whole", "changed", "partly", "lost", "read"]


@dataclass(frozen=True)
class Through:
    """What became of one part of a set.

    Attributes:
        part, what: its name, and what it is in words.
        came: whole: as it was before the export; changed: as much, but other; partly: less; lost: nothing; read: nobody
            says what there was.
        count: what was read, in items of `raggs.golden.parts`.
        before: what there was; None where nobody says.
    """

    part: Part
    what: str
    came: Came
    count: int
    before: int | None

    @property
    def counted(self) -> str:
        """How much came; of how much, where it is not the same."""
        return f"{self.count:,}" if self.before in (None, self.count) else f"{self.count:,} of {self.before:,}"


@dataclass(frozen=True)
class Imported:
    """What an import wrote.

    Attributes:
        format: in which the set was read.
        files: all of them.
        through: what there is, and what there was and is no more.
        notes: sentences about what does not fit together, or was not read.
    """

    format: str
    files: tuple[Path, ...]
    through: tuple[Through, ...]
    notes: tuple[str, ...] = ()


def import_set(
    path: Path,
    format_: str | None,
    folder: Path,
    *,
    split: str | None = None,
    columns: ColumnNames = NO_COLUMNS,
    force: bool = False,
) -> Imported:
    """Read a golden set in another's format, and write it into `folder` as JSON lines, which hold everything.

    Args:
        path: a folder, or a file of labels.
        format_: None: as the sidecar of an export says.
        split: the part of the data to read, in formats with parts; if left out, `test`, or the only one.
        columns: by role, the name of its column, e.g. ``{"grade": "score"}``.
        force: whether the folder may hold other things.

    Raises:
        UsageError: an unknown format, none that could be told, or a folder that holds something else; a split or a
            role that the format does not have.
        NotFoundError, DataError: as `Importer.read`; the set has no labels.
        PrerequisiteError: a package is missing.
    """
    if not path.exists():
        raise NotFoundError("no such file or folder", where=path, remedy="check the path")
    name = _format(path, format_)
    importer = importers.REGISTRY.load(name)
    _check_options(name, importer, split, columns)
    golden = importer(split, columns).read(path)
    contents = contents_of(golden)
    if not contents["grades"].count:
        raise DataError("holds no grades", where=path, remedy="check the file of labels")
    through = _through(contents, golden.stated)
    facts = {"imported": {"format": name, "through": [vars(each) for each in through]}}
    passages = golden.corpus() if golden.corpus else None
    with claimed(folder, JsonlExporter, force=force):
        exporter = JsonlExporter(ExportOptions(corpus=passages, contents=contents, facts=facts))
        files = exporter.write(golden, folder)
    return Imported(name, tuple(files), through, golden.notes)


def _check_options(name: str, importer: type[Importer], split: str | None, columns: ColumnNames) -> None:
    if split is not None and not importer.SPLITS:
        parted = ", ".join(each for each in importers.REGISTRY if importers.REGISTRY.load(each).SPLITS)
        raise UsageError(f"the format {name} has no splits", remedy=f"leave --split out; {parted} have them")
    for role in columns:
        if role not in importer.ROLES:
            known = ", ".join(importer.ROLES)
            remedy = f"roles: {known}" if known else "leave --column out"
            raise UsageError(f"--column: the format {name} has no column for {role}", remedy=remedy)


def _format(path: Path, asked: str | None) -> str:
    """The format that is asked for, or that of the export; they are the same where both are known."""
    found = stated_name((stated_labels(path) or path) if path.is_dir() else path)
    if asked is not None:
        if found in importers.REGISTRY and asked in importers.REGISTRY and found != asked:
            remedy = f"--format {found}, or leave it out"
            raise UsageError(f"{path} is an export to {found}, not to {asked}", remedy=remedy)
        return asked
    if found:
        return found
    if RunStore(path).exists:
        raise UsageError(f"{path} is a run of raggs", remedy=f"raggs export {path} writes its set for other tools")
    known = ", ".join(importers.REGISTRY)
    raise UsageError(f"{path} does not say of which format it is", remedy=f"name it by --format: {known}")


def _through(contents: Mapping[Part, Stock], stated: Mapping[Part, Stock]) -> tuple[Through, ...]:
    parts = [part for part in PARTS if contents[part].count or (part in stated and stated[part].count)]
    return tuple(_part(part, contents[part], stated.get(part, Stock()) if stated else None) for part in parts)


def _part(part: Part, now: Stock, before: Stock | None) -> Through:
    if before is None:
        came: Came = "read"
    elif now == before:
        came = "whole"
    elif not now.count:
        came = "lost"
    else:
        came = "partly" if now.count < before.count else "changed"
    return Through(part, PARTS[part], came, now.count, None if before is None else before.count)
