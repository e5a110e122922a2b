"""The caches of a workspace: what each holds, and how to empty it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from raggs.config.compose import CACHE
from raggs.errors import UsageError
from raggs.llm.cache import cache_stats, clear_cache
from raggs.text import nearest

PARTS = {
    "llm": "paid answers: clearing them means paying again",
    "corpora": "passages as read; made again from the corpus",
    "vectors": "embeddings of passages; made again by the embedder",
    "bm25": "lexical indexes; made again from the passages",
}


@dataclass(frozen=True)
class Part:
    """One cache: its entries (answers, or files) and its size on the disk."""

    name: str
    entries: int
    bytes: int
    note: str


def survey(workspace: Path) -> list[Part]:
    """Every cache of a workspace; those that are not there have no entries."""
    return [_part(workspace / CACHE / name, name, note) for name, note in PARTS.items()]


def _part(folder: Path, name: str, note: str) -> Part:
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    entries = cache_stats(folder).entries if name == "llm" and files else len(files)
    return Part(name, entries, sum(path.stat().st_size for path in files), note)


def clear(workspace: Path, what: str) -> list[str]:
    """Empty one cache, or all of them.

    Returns:
        The names of those that held something.

    Raises:
        UsageError: no such cache.
    """
    if what != "all" and what not in PARTS:
        close = nearest(what, PARTS)
        hint = f"did you mean {close!r}? " if close else ""
        raise UsageError(f"there is no cache {what!r}", remedy=f"{hint}known: {', '.join(PARTS)}, all")
    cleared = []
    for name in PARTS if what == "all" else (what,):
        folder = workspace / CACHE / name
        if not folder.is_dir():
            continue
        if name == "llm":
            clear_cache(folder)
        else:
            shutil.rmtree(folder)
        cleared.append(name)
    return cleared
