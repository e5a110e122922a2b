"""What a path names as a golden set: a run directory of raggs, a folder of files, or one file of labels."""

from __future__ import annotations

from pathlib import Path

from raggs.golden.base import GoldenSet
from raggs.golden.files import FileGolden, folder_of_files


def open_golden(path: Path | str) -> GoldenSet:
    """Open a golden set: a run directory, a folder in the layout of BEIR, or labels (TREC, BEIR, CSV, ranx JSON).

    Files of labels are opened when they are read.

    Raises:
        NotFoundError: the folder holds neither a run nor labels.
        DataError: the run's manifest is damaged.
    """
    path = Path(path)
    if not path.is_dir():
        return FileGolden(path)
    from raggs.golden.runs import RunGolden  # late: files need no manifests
    from raggs.manifests.opened import open_run
    from raggs.manifests.store import RunStore

    files = None if RunStore(path).exists else folder_of_files(path)
    return files or RunGolden(open_run(path))
