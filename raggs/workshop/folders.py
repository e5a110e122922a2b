"""Folders of a workspace, made where they are missing."""

from __future__ import annotations

from pathlib import Path

from raggs.atomic import disk


def make_folder(path: Path) -> None:
    """Make a folder and its parents.

    Raises:
        ProviderError: the place cannot be written.
    """
    with disk(path, "choose another workspace"):
        path.mkdir(parents=True, exist_ok=True)
