"""Which files of a folder are documents, and which are left out and why.

Hidden files and folders (a leading dot) are left alone, whatever the patterns say, and links to folders are not
followed. Without patterns every file counts that a reader takes; with patterns the files that fit one, whatever their
suffix. What is left out is counted by reason and suffix, with the first few names: a line, however large the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from raggs import documents
from raggs.documents.base import DocumentReader
from raggs.documents.plain import TextReader
from raggs.errors import DataError, NotFoundError
from raggs.text import plural

NAMED = 3  # of the files that are left out for one reason
GROUPS = 8  # reasons and suffixes that are told apart
UNREAD = "no reader"


@dataclass(frozen=True)
class Skipped:
    """A file or folder that is left out; `reason`: why, in a few words."""

    name: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """The files of a folder by their paths below it, in the order of these.

    Attributes:
        files: that are documents.
        skipped: what is left out.
    """

    files: tuple[tuple[str, Path], ...]
    skipped: tuple[Skipped, ...]


def reader_of(path: Path) -> DocumentReader:
    """Who reads a file, by its suffix; a file of any other suffix is plain text.

    Raises:
        PrerequisiteError: a package offers the reader, and it cannot be loaded.
    """
    suffix = _suffix(path)
    return documents.REGISTRY.load(suffix)() if suffix in documents.REGISTRY else TextReader()


def list_files(root: Path, patterns: Sequence[str] | None, exclude: Sequence[str] = ()) -> Listing:
    """What of a folder is read.

    Args:
        patterns: which files count; None: those that a reader takes.
        exclude: which do not, all the same.

    Raises:
        NotFoundError: the folder is not there.
        DataError: no file fits.
    """
    if not root.is_dir():
        problem = "is a file, not a folder" if root.exists() else "no such folder"
        raise NotFoundError(problem, where=root, remedy="check corpus.path")
    skipped: list[Skipped] = []
    there = list(_walk(root, skipped))
    fitting = there if patterns is None else _fitting(root, patterns)
    files = {name: path for name, path in fitting if not _reason(name, path, exclude, known=patterns is None)}
    left = [(name, path) for name, path in there if name not in files]
    known = patterns is None
    skipped += [Skipped(name, _reason(name, path, exclude, known=known) or "fits no pattern") for name, path in left]
    if not files:
        wanted = " or ".join(patterns or (f"*.{suffix}" for suffix in documents.REGISTRY))
        told = f"; {tell(skipped)}" if skipped else ""
        remedy = "check corpus.path and corpus.patterns"
        raise DataError(f"the folder holds no file that fits {wanted}{told}", where=root, remedy=remedy)
    return Listing(tuple(sorted(files.items())), tuple(sorted(skipped, key=lambda each: each.name)))


def tell(skipped: Sequence[Skipped]) -> str:
    """What is left out, as a sentence: 'left out 3 files: 2 .docx (no reader: a.docx, b.docx), 1 hidden (.env)'."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in skipped:
        suffix = _suffix(Path(each.name))
        kind = f".{suffix}" if suffix else "without suffix"
        if each.name.endswith("/") or each.reason == "hidden":
            kind = ""
        groups.setdefault((kind, each.reason), []).append(each.name)
    most = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    shown = [_group(kind, reason, names) for (kind, reason), names in most[:GROUPS]]
    if rest := sum(len(names) for _, names in most[GROUPS:]):
        shown.append(f"{rest:,} of other kinds")
    folders = sum(each.name.endswith("/") for each in skipped)
    counts = [(len(skipped) - folders, "file"), (folders, "folder")]
    what = " and ".join(plural(count, noun) for count, noun in counts if count)
    return f"left out {what}: {', '.join(shown)}"


def _group(kind: str, reason: str, names: Sequence[str]) -> str:
    named = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    return f"{len(names):,} {kind} ({reason}: {named})" if kind else f"{len(names):,} {reason} ({named})"


def _fitting(root: Path, patterns: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """What fits a pattern and is not hidden, by its path below the folder."""
    for path in {path for pattern in patterns for path in root.rglob(pattern)}:
        name = path.relative_to(root)
        if not any(part.startswith(".") for part in name.parts):
            yield name.as_posix(), path


def _reason(name: str, path: Path, exclude: Sequence[str], *, known: bool) -> str:
    """Why a file that would count is left out; empty for one that counts. `known`: it needs a reader."""
    if not path.is_file():
        return "no file"
    if any(_fits(name, pattern) for pattern in exclude):
        return "excluded"
    return _unread(path) if known else ""


def _unread(path: Path) -> str:
    """Why nobody reads a file; empty where somebody does."""
    return (reader_of(path).missing() or "") if _suffix(path) in documents.REGISTRY else UNREAD


def _fits(name: str, pattern: str) -> bool:
    """Whether a path below the folder fits a pattern, at any depth; a folder stands for all in it."""
    parts, wanted = PurePath(name).parts, PurePath(pattern).parts
    return any(
        all(fnmatchcase(part, each) for part, each in zip(parts[at:], wanted, strict=False))
        for at in range(len(parts) - len(wanted) + 1)
    )


def _walk(root: Path, skipped: list[Skipped]) -> Iterator[tuple[str, Path]]:
    """Every file below a folder; what is hidden or behind a link is noted instead."""
    for folder, inner, names in os.walk(root):
        here = Path(folder).relative_to(root)
        for name in list(inner):
            hidden = name.startswith(".")
            if hidden or (Path(folder) / name).is_symlink():
                inner.remove(name)
                skipped.append(Skipped(f"{(here / name).as_posix()}/", "hidden" if hidden else "link to a folder"))
        for name in names:
            path = here / name
            if name.startswith("."):
                skipped.append(Skipped(path.as_posix(), "hidden"))
            else:
                yield path.as_posix(), root / path


def _suffix(path: Path) -> str:
    return path.suffix.removeprefix(".").lower()
