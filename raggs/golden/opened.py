"""What a path names as a golden set: a run directory of raggs, a folder of files, or one file of labels."""

from __future__ import annotations

from pathlib import Path

from raggs.base.jsontypes import as_object
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.golden.base import GoldenSet
from raggs.golden.files import FileGolden, labels_in
from raggs.golden.lines import LinesGolden
from raggs.parts.readers.scales import sidecar

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
    from raggs.runs.manifests.opened import open_run
    from raggs.runs.manifests.store import RunStore

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
