"""The caches of a workspace: what each holds, and how to empty it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from raggs.base.errors import UsageError
from raggs.base.text import did_you_mean
from raggs.llm.cache import DATABASE, cache_stats, clear_cache
from raggs.parts.indexes.places import NOTES, Places

OTHER = "other"
LEFT = "left by earlier versions of raggs; nothing reads it"


@dataclass(frozen=True)
class CachePart:
    """One cache: its entries (answers, or files), how many others cannot be used, and its size on the disk."""

    name: str
    entries: int
    bytes: int
    note: str
    damaged: int = 0


def survey(workspace: Path) -> list[CachePart]:
    """Every cache of a workspace; those that are not there have no entries.

    Raises:
        UsageError: the workspace, or a cache in it, is no folder.
    """
    places = _places(workspace)
    parts = [_part(name, [places.folder(name)], note) for name, note in NOTES.items()]
    strangers = _strangers(places)
    return [*parts, _part(OTHER, strangers, LEFT)] if strangers else parts


def clear(workspace: Path, what: str) -> list[str]:
    """Empty one cache, or all of them.

    Returns:
        The names of those that held something.

    Raises:
        UsageError: no such cache, a link leads to it, or the workspace is no folder; then nothing is cleared.
    """
    known = (*NOTES, OTHER)
    if what != "all" and what not in known:
        raise UsageError(f"there is no cache {what!r}", remedy=did_you_mean(what, (*known, "all")))
    places, names = _places(workspace), known if what == "all" else (what,)
    for name in names:
        for folder in _folders(places, name):
            _stay(workspace, folder)
    return [name for name in names if _clear(places, name)]


def _places(workspace: Path) -> Places:
    """Where the caches of a workspace lie."""
    places = Places.of(workspace)
    for path in (workspace, places.root, *(places.folder(name) for name in NOTES)):
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is not a folder", remedy="name the folder that holds the runs: --workspace")
    return places


def _clear(places: Places, name: str) -> bool:
    held = [folder for folder in _folders(places, name) if folder.is_dir()]
    for folder in held:
        if name == "llm":
            clear_cache(folder)
        else:
            shutil.rmtree(folder)
    return bool(held)


def _folders(places: Places, name: str) -> list[Path]:
    return _strangers(places) if name == OTHER else [places.folder(name)]


def _stay(workspace: Path, folder: Path) -> None:
    """Refuse a cache that a link puts elsewhere: what lies there may be somebody else's."""
    for path in (folder, folder / DATABASE):
        there = path.resolve()
        if path.exists() and (folder.is_symlink() or not there.is_relative_to(workspace.resolve())):
            raise UsageError(
                f"{path} is a link to {there}; nothing was cleared", remedy="clear it there, or remove the link"
            )


def _strangers(places: Places) -> list[Path]:
    """Folders beside the caches that are none of them."""
    if not places.root.is_dir():
        return []
    return sorted(path for path in places.root.iterdir() if path.is_dir() and path.name not in NOTES)


def _part(name: str, folders: list[Path], note: str) -> CachePart:
    files = [path for folder in folders if folder.is_dir() for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    if name not in ("llm", "rerank") or not (files or (folders[0] / DATABASE).exists()):
        return CachePart(name, len(files), size, note)
    found = cache_stats(folders[0])
    return CachePart(name, found.entries, size, note, found.damaged)
