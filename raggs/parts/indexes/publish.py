"""Files and folders that other libraries write, made to appear whole or not at all.

`raggs.base.atomic` hands out an open file; a database or an index needs a path. The rule is the same: build beside
the target, flush to the disk, rename. A kill leaves the old target or the new one, and at worst a leftover
whose name begins with `PREFIX`, which nobody ever opens.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raggs.base.atomic import sync_folder

PREFIX = "building-"


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """A folder to build in; what the block puts at the yielded path inside it becomes `target`.

    The yielded path does not exist yet, so it may become a file or a folder. A folder replaces nothing: when
    another process has published the same target in the meantime, that one stays, since equal names in a cache
    mean equal content.

    Raises:
        OSError: the disk is full, or the folder may not be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=PREFIX, dir=target.parent))
    try:
        product = workshop / target.name
        yield product
        for file in [product] if product.is_file() else sorted(product.iterdir()):
            _flush(file)
        if product.is_file() or not target.exists():
            product.replace(target)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _flush(file: Path) -> None:
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
