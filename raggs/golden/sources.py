"""What a path names as a golden set: a run directory of raggs, a folder of files, or one file of labels.

What `--run` names: what a system returned, from a file or from a run directory's retrievers and their fusion.
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

LINES = "jsonl"  # the format of exports that hold everything


def open_golden(path: Path | str, columns: ColumnNames = NO_COLUMNS) -> GoldenSet:
    """Open a golden set: a run directory, a folder in the layout of BEIR, or labels (TREC, BEIR, CSV, ranx JSON).

    Files of labels are opened when they are read.

    Args:
        path: of the set.
        columns: which column of a table of labels is which, by role: ``{"grade": "score"}``.

    Raises:
        NotFoundError: the folder holds neither a run nor labels.
        DataError: the run's manifest is damaged.
    """
    path = Path(path)
    if not path.is_dir():
        return _of_labels(path, columns=columns)
    from raggs.golden.runs import RunGolden  # late: files need no manifests
    from raggs.runs.manifests.open_run import open_run
    from raggs.runs.manifests.store import RunStore  # late: files need no manifests

    files = None if RunStore(path).exists else labels_in(path)
    return _of_labels(*files, path.resolve().name, columns) if files else RunGolden(open_run(path))


def _of_labels(
    labels: Path, questions: Path | None = None, folder: str = "", columns: ColumnNames = NO_COLUMNS
) -> FileGolden:
    """A file of labels; one that holds everything, as raggs wrote it, with all that it says.

    Args:
        folder: the name of the folder that was named instead, since files in many are called alike.
    """
    meta = sidecar(labels)
    whole = as_object(meta.get("imported")).get("format", LINES) == LINES
    kind = LinesGolden if meta.get("format") == LINES and whole else FileGolden
    return kind(labels, questions, folder, columns)


@dataclass(frozen=True)
class NamedSystem:
    """A run with the name that reports give it.

    Attributes:
        name, source, run: its name, the file or run directory, and its lists.
        origin: what is known of whence they are.
        derived: whether they are made of the other systems of the same run.
        projection: the golden set on the passages of the system's corpus; None where it is of that corpus.
    """

    name: str
    source: str
    run: Run
    origin: DataOrigin = UNKNOWN_ORIGIN
    derived: bool = False
    projection: Projection | None = None


def open_systems(specs: list[str], columns: ColumnNames = NO_COLUMNS) -> Iterator[NamedSystem]:
    """The systems that ``[NAME=]PATH`` specifications name; a run directory holds its retrievers and their fusion.

    Args:
        specs: of the systems.
        columns: which column of a table is which, as `--column` says.

    Raises:
        UsageError: two systems of one name.
        NotFoundError, DataError: as the readers.
    """
    taken: set[str] = set()
    for spec in specs:
        name, path = split_name(spec)
        folder = path.is_dir()
        origin = _origin(path)
        for own, run in retrievers_of(path) if folder else [(_stem(path), read_run(path, columns))]:
            label = f"{name}.{own}" if name and folder else name or own
            if label in taken:
                raise UsageError(f"two systems are called {label}", remedy=f"name one: --run NAME={path}")
            taken.add(label)
            yield NamedSystem(label, str(path), run, origin, folder and own == FUSION_NAME)


def split_name(spec: str) -> tuple[str, Path]:
    """The name, empty for none, and the path that ``[NAME=]PATH`` says."""
    name, _, place = ("", "", spec) if Path(spec).exists() else spec.partition("=")
    return (name, Path(place)) if place else ("", Path(spec))


def retrievers_of(folder: Path) -> Iterator[tuple[str, Run]]:
    """The retrievers of a run directory, or of an export that has lists, and their fusion where there are several.

    Raises:
        NotFoundError: no run, or its stages have not run.
        DataError: nothing was retrieved.
    """
    from raggs.base.artifacts import MergeRecord, RetrieveRecord  # late: files need no manifests
    from raggs.runs.manifests.open_run import open_run

    exported = lists_in(folder)
    from raggs.runs.manifests.store import RunStore  # late: files need no manifests

    if exported and not RunStore(folder).exists:
        yield from ((unquote(path.stem), read_run(path)) for path in exported)
        return
    opened = open_run(folder)
    found = lists_of_records(opened.typed("retrieve", RetrieveRecord), opened.typed("merge", MergeRecord))
    if (first := next(found, None)) is None:
        raise DataError("holds nothing that was retrieved", where=folder, remedy="raggs run --config CONFIG")
    yield first
    yield from found


def lists_of_records(retrieved: Iterable[RetrieveRecord], merged: Iterable[MergeRecord]) -> Iterator[tuple[str, Run]]:
    """The lists of each retriever by its records, and their fusion where there are several.

    Args:
        retrieved: of retrieve.jsonl.
        merged: of merge.jsonl, sorted by query; read only where there are several retrievers.
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
    """The lists that an export keeps in its folder, sorted by name."""
    return sorted(path for ending in LISTS for path in (folder / RUNS).glob(f"*{ending}"))


def _origin(path: Path) -> DataOrigin:
    if not path.is_dir():
        return UNKNOWN_ORIGIN

    from raggs.runs.manifests.store import RunStore  # late: files need no manifests

    store = RunStore(path)
    return origin_of(store.manifest()) if store.exists else UNKNOWN_ORIGIN


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name
