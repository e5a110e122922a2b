"""Starter project: a commented configuration, a small corpus and questions, which run offline."""

from __future__ import annotations

from pathlib import Path

from raggs.base.errors import UsageError
from raggs.base.files import make_folder, write_atomic

STARTER = Path(__file__).parent / "starter"


def make_starter(folder: Path, *, force: bool = False) -> list[Path]:
    """Create a starter project in `folder`, which is created if missing.

    Args:
        force: whether to overwrite files of the same names.

    Returns:
        Paths of the files.

    Raises:
        UsageError: a file of the same name exists.
        ProviderError: the folder cannot be written.
    """
    files = sorted(path for path in STARTER.iterdir() if path.is_file())
    taken = [file.name for file in files if (folder / file.name).exists()]
    if taken and not force:
        raise UsageError(
            f"{', '.join(taken)} already exists here", where=folder, remedy="choose another folder, or pass --force"
        )
    make_folder(folder)
    for file in files:
        write_atomic(folder / file.name, file.read_bytes(), durable=False)
    return [folder / file.name for file in files]
