"""Open the golden set (run directory, folder of files, or file of labels) or the system output that a path refers to.

`open_systems` reads the systems given with `--run`. A path is a run file, or a run directory with its retrievers and
their fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

from raggs.base.artifacts import MergeRecord, RetrieveRecord
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.base.types import as_object
from raggs.golden.base import FUSION_NAME, LISTS, RUNS, GoldenSet
from raggs.golden.files import FileGolden, LinesGolden, labels_in
from raggs.golden.judgments import UNKNOWN_ORIGIN, DataOrigin, origin_of
from raggs.golden.places import Projection
from raggs.metrics.columns import Run
from raggs.parts.file_shapes import sidecar
from raggs.parts.run_files import read_run

LINES = "jsonl"  # the export format that contains all parts of a golden set


def open_golden(path: Path | str, columns: ColumnNames = NO_COLUMNS) -> GoldenSet:
    """Open a golden set: a run directory, a folder in the BEIR layout, or labels (TREC, BEIR, CSV, ranx JSON, JSON
    lines).

    The labels in a file are only read when they are needed.

    Args:
        path: path of the set.
        columns: mapping of roles to the names of columns in a table of labels: ``{"grade": "score"}``.

    Raises:
        NotFoundError: the folder contains neither a run nor labels.
        DataError: the run's manifest is damaged, the run makes no golden set, or the folder has several files of
            labels.
    """
    path = Path(path)
    if not path.is_dir():
        return _of_labels(path, columns=columns)
    from raggs.golden.runs import RunGolden  # imported lazily: files need no manifests
    from raggs.runs.manifests.open_run import open_run
    from raggs.runs.manifests.store import RunStore  # imported lazily: files need no manifests

    if RunStore(path).exists:
        return RunGolden(open_run(path))
    if files := labels_in(path):
        return _of_labels(*files, path.resolve().name, columns)
    raise NotFoundError(
        "no run here, and no file of labels", where=path, remedy="name a run or labels, not training data"
    )


def _of_labels(
    labels: Path, questions: Path | None = None, folder: str = "", columns: ColumnNames = NO_COLUMNS
) -> FileGolden:
    """Return a file of labels as a golden set. Exports of a run as JSON lines are read with all their parts.

    Args:
        folder: name of the folder that the user gave. It names the set, because files in many folders have the same
            name.
    """
    meta = sidecar(labels)
    whole = as_object(meta.get("imported")).get("format", LINES) == LINES
    kind = LinesGolden if meta.get("format") == LINES and whole else FileGolden
    return kind(labels, questions, folder, columns)


@dataclass(frozen=True)
class NamedSystem:
    """The lists of a system, and its name in reports.

    Attributes:
        name: name in reports.
        source: path of the file, run directory or search settings, or a description of a function or of lists in
            memory.
        run: the lists.
        origin: origin of the lists.
        derived: whether the system is the fusion of the other systems of a run.
        projection: the golden set, projected to the system's corpus; None if both have the same corpus.
    """

    name: str
    source: str
    run: Run
    origin: DataOrigin = UNKNOWN_ORIGIN
    derived: bool = False
    projection: Projection | None = None


SEARCH_FILES = (".yaml", ".yml")  # suffixes of files with the settings of a retriever that raggs queries


def open_systems(
    specs: list[str], columns: ColumnNames = NO_COLUMNS, search: Callable[[str, Path], NamedSystem] | None = None
) -> Iterator[NamedSystem]:
    """Yield the systems that ``[NAME=]PATH`` specifications refer to. For a run directory, these are its retrievers and
    their fusion.

    Args:
        specs: the specifications.
        columns: names of columns, as in `--column`.
        search: searches the system with the settings in a YAML file and returns its lists; arguments: the name, which
            may be empty, and the file. None if systems cannot be searched.

    Raises:
        UsageError: two systems have the same name.
        NotFoundError, DataError: a file cannot be read.
    """
    taken: set[str] = set()
    for spec in specs:
        name, path = split_name(spec)
        for system in (
            [search(name, path)] if search and path.suffix in SEARCH_FILES else _read_systems(name, path, columns)
        ):
            if system.name in taken:
                raise UsageError(f"two systems have the name {system.name}", remedy=f"rename one: --run NAME={path}")
            taken.add(system.name)
            yield system


def _read_systems(name: str, path: Path, columns: ColumnNames) -> Iterator[NamedSystem]:
    folder, origin = path.is_dir(), _origin(path)
    for own, run in retrievers_of(path) if folder else [(_stem(path), read_run(path, columns))]:
        label = f"{name}.{own}" if name and folder else name or own
        yield NamedSystem(label, str(path), run, origin, folder and own == FUSION_NAME)


def split_name(spec: str) -> tuple[str, Path]:
    """Return the name and the path in ``[NAME=]PATH``. The name is empty if it is omitted."""
    name, _, place = ("", "", spec) if Path(spec).exists() else spec.partition("=")
    return (name, Path(place)) if place else ("", Path(spec))


def retrievers_of(folder: Path) -> Iterator[tuple[str, Run]]:
    """Yield name and lists of each retriever of a run directory or of an export with lists. If there are several
    retrievers, their fusion is included.

    Raises:
        NotFoundError: the folder is not a run directory, or its stages have not run.
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
    """Yield name and lists of each retriever, and of the fusion if there are several retrievers.

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
    """Return the paths of the systems' lists in the folder of an export, sorted by name."""
    return sorted(path for ending in LISTS for path in (folder / RUNS).glob(f"*{ending}"))


def _origin(path: Path) -> DataOrigin:
    if not path.is_dir():
        return UNKNOWN_ORIGIN

    from raggs.runs.manifests.store import RunStore  # imported lazily: files need no manifests

    store = RunStore(path)
    return origin_of(store.manifest()) if store.exists else UNKNOWN_ORIGIN


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name
