"""Open what a path refers to: a golden set (run directory, folder of files, or file of labels) or the output of a
system.

`open_systems` reads the systems of `--run`: a run file, or the retrievers of a run directory and their fusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

from raggs.base.artifacts import MergeRecord, RetrieveRecord
from raggs.base.errors import DataError, UsageError
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.base.types import as_object
from raggs.golden.base import FUSION_NAME, LISTS, RUNS, GoldenSet
from raggs.golden.files import FileGolden, LinesGolden, labels_in
from raggs.golden.judgments import UNKNOWN_ORIGIN, DataOrigin, origin_of
from raggs.golden.places import Projection
from raggs.metrics.columns import Run
from raggs.parts.file_shapes import sidecar
from raggs.parts.run_files import read_run

LINES = "jsonl"  # the export format that holds everything


def open_golden(path: Path | str, columns: ColumnNames = NO_COLUMNS) -> GoldenSet:
    """Open a golden set: a run directory, a folder in the BEIR layout, or labels (TREC, BEIR, CSV, ranx JSON).

    Files of labels are opened only when they are read.

    Args:
        path: path of the set.
        columns: names of columns in a table of labels, by role: ``{"grade": "score"}``.

    Raises:
        NotFoundError: the folder contains neither a run nor labels.
        DataError: the run's manifest is damaged.
    """
    path = Path(path)
    if not path.is_dir():
        return _of_labels(path, columns=columns)
    from raggs.golden.runs import RunGolden  # imported lazily: files need no manifests
    from raggs.runs.manifests.open_run import open_run
    from raggs.runs.manifests.store import RunStore  # imported lazily: files need no manifests

    files = None if RunStore(path).exists else labels_in(path)
    return _of_labels(*files, path.resolve().name, columns) if files else RunGolden(open_run(path))


def _of_labels(
    labels: Path, questions: Path | None = None, folder: str = "", columns: ColumnNames = NO_COLUMNS
) -> FileGolden:
    """Return a file of labels as a golden set. A complete export of raggs is read with all its parts.

    Args:
        labels: the file of labels.
        questions: the file of queries.
        folder: name of the folder that the user gave, because files in many folders have the same name.
        columns: names of columns.
    """
    meta = sidecar(labels)
    whole = as_object(meta.get("imported")).get("format", LINES) == LINES
    kind = LinesGolden if meta.get("format") == LINES and whole else FileGolden
    return kind(labels, questions, folder, columns)


@dataclass(frozen=True)
class NamedSystem:
    """A system's lists with its name in reports.

    Attributes:
        name, source, run: its name, the file or run directory, and its lists.
        origin: origin of the lists.
        derived: whether it is made from the other systems of the same run.
        projection: the golden set projected to the system's corpus; None if both have the same corpus.
    """

    name: str
    source: str
    run: Run
    origin: DataOrigin = UNKNOWN_ORIGIN
    derived: bool = False
    projection: Projection | None = None


def open_systems(specs: list[str], columns: ColumnNames = NO_COLUMNS) -> Iterator[NamedSystem]:
    """Yield the systems of ``[NAME=]PATH`` specifications. A run directory contains its retrievers and their fusion.

    Args:
        specs: the specifications.
        columns: names of columns, as in `--column`.

    Raises:
        UsageError: two systems have the same name.
        NotFoundError, DataError: a file cannot be read.
    """
    taken: set[str] = set()
    for spec in specs:
        name, path = split_name(spec)
        folder = path.is_dir()
        origin = _origin(path)
        for own, run in retrievers_of(path) if folder else [(_stem(path), read_run(path, columns))]:
            label = f"{name}.{own}" if name and folder else name or own
            if label in taken:
                raise UsageError(f"two systems have the name {label}", remedy=f"rename one: --run NAME={path}")
            taken.add(label)
            yield NamedSystem(label, str(path), run, origin, folder and own == FUSION_NAME)


def split_name(spec: str) -> tuple[str, Path]:
    """Return the name (empty for none) and the path in ``[NAME=]PATH``."""
    name, _, place = ("", "", spec) if Path(spec).exists() else spec.partition("=")
    return (name, Path(place)) if place else ("", Path(spec))


def retrievers_of(folder: Path) -> Iterator[tuple[str, Run]]:
    """Yield the retrievers of a run directory, or of an export with lists, and their fusion if there are several.

    Raises:
        NotFoundError: the folder is not a run, or its stages have not run.
        DataError: nothing was retrieved.
    """
    from raggs.base.artifacts import MergeRecord, RetrieveRecord  # imported lazily: files need no manifests
    from raggs.runs.manifests.open_run import open_run

    exported = lists_in(folder)
    from raggs.runs.manifests.store import RunStore  # imported lazily: files need no manifests

    if exported and not RunStore(folder).exists:
        yield from ((unquote(path.stem), read_run(path)) for path in exported)
        return
    opened = open_run(folder)
    found = lists_of_records(opened.typed("retrieve", RetrieveRecord), opened.typed("merge", MergeRecord))
    if (first := next(found, None)) is None:
        raise DataError("contains no retrieved lists", where=folder, remedy="run raggs run --config CONFIG")
    yield first
    yield from found


def lists_of_records(retrieved: Iterable[RetrieveRecord], merged: Iterable[MergeRecord]) -> Iterator[tuple[str, Run]]:
    """Yield the lists of each retriever from its records, and their fusion if there are several.

    Args:
        retrieved: records of retrieve.jsonl.
        merged: records of merge.jsonl, sorted by query; read only if there are several retrievers.
    """
    rows: dict[str, list[tuple[str, str, float]]] = {}
    for record in retrieved:
        rows.setdefault(record.retriever, []).append((record.qid, record.doc_id, record.score))
    for name, columns in sorted(rows.items()):
        qids, docs, scores = zip(*columns, strict=True)
        yield name, Run.from_columns(qids, docs, scores)
    if len(rows) > 1:
        fused = groupby(merged, key=lambda record: record.qid)
        yield FUSION_NAME, Run.of({qid: {record.doc_id: record.score for record in records} for qid, records in fused})


def lists_in(folder: Path) -> list[Path]:
    """Return the lists in the folder of an export, sorted by name."""
    return sorted(path for ending in LISTS for path in (folder / RUNS).glob(f"*{ending}"))


def _origin(path: Path) -> DataOrigin:
    if not path.is_dir():
        return UNKNOWN_ORIGIN

    from raggs.runs.manifests.store import RunStore  # imported lazily: files need no manifests

    store = RunStore(path)
    return origin_of(store.manifest()) if store.exists else UNKNOWN_ORIGIN


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name
