"""Which files of a folder are documents, and which are left out and why.

Hidden files and folders (a leading dot) are left alone, whatever the patterns say. Symbolic links are not followed
unless the settings say so; then a link that leads back to a folder above it is left out. Without patterns every file
counts that a reader takes; with patterns the files that fit one, whatever their suffix. What is left out is counted by
reason and suffix, with the first few names: a line, however large the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from raggs.base.errors import DataError, NotFoundError
from raggs.base.inputs import unreadable
from raggs.base.text import plural
from raggs.parts import documents
from raggs.parts.documents.base import DocumentReader
from raggs.parts.documents.plain import TextReader

NAMED = 3  # of the files that are left out for one reason
GROUPS = 8  # reasons and suffixes that are told apart
UNREAD = "no reader"
FOLDER = "folder"
HIDDEN, LINK, LOOP, BROKEN = "hidden", "symlink", "symlink to a folder above it", "broken symlink"
FOLLOW = "set corpus.follow_symlinks: true to read what symlinks point to"


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
        closed: folders that cannot be listed, by their paths below it, and why.
    """

    files: tuple[tuple[str, Path], ...]
    skipped: tuple[Skipped, ...]
    closed: tuple[Skipped, ...] = ()


def reader_of(path: Path) -> DocumentReader:
    """Who reads a file, by its suffix; a file of any other suffix is plain text.

    Raises:
        PrerequisiteError: a package offers the reader, and it cannot be loaded.
    """
    suffix = _suffix(path)
    return documents.REGISTRY.load(suffix)() if suffix in documents.REGISTRY else TextReader()


def list_files(
    root: Path, patterns: Sequence[str] | None, exclude: Sequence[str] = (), *, follow_symlinks: bool = False
) -> Listing:
    """What of a folder is read.

    Args:
        patterns: which files count; None: those that a reader takes.
        exclude: which do not, all the same.
        follow_symlinks: whether symbolic links count as what they point to.

    Raises:
        NotFoundError: the folder is not there.
        DataError: no file fits.
    """
    if not root.is_dir():
        problem = "is a file, not a folder" if root.exists() else "no such folder"
        raise NotFoundError(problem, where=root, remedy="check corpus.path")
    skipped: list[Skipped] = []
    closed: list[Skipped] = []
    there = list(_walk(root, skipped, closed, follow_symlinks=follow_symlinks))
    fitting = there if patterns is None else [each for each in there if _fits_one(each[0], patterns)]
    files = {name: path for name, path in fitting if not _reason(name, path, exclude, known=patterns is None)}
    left = [(name, path) for name, path in there if name not in files]
    known = patterns is None
    skipped += [Skipped(name, _reason(name, path, exclude, known=known) or "fits no pattern") for name, path in left]
    if not files and not closed:
        wanted = " or ".join(patterns or (f"*.{suffix}" for suffix in documents.REGISTRY))
        told = f"; {tell(skipped)}" if skipped else ""
        remedy = "check corpus.path and corpus.patterns"
        raise DataError(f"the folder holds no file that fits {wanted}{told}", where=root, remedy=remedy)
    return Listing(tuple(sorted(files.items())), tuple(sorted(skipped, key=lambda each: each.name)), tuple(closed))


def tell(skipped: Sequence[Skipped]) -> str:
    """What is left out, as a sentence: 'left out 3 files: 2 .docx (no reader: a.docx, b.docx), 1 hidden (.env)'."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in skipped:
        suffix = _suffix(Path(each.name))
        kind = f".{suffix}" if suffix else "without suffix"
        if each.reason == HIDDEN:
            kind = ""
        elif each.name.endswith("/"):
            kind = FOLDER
        groups.setdefault((kind, each.reason), []).append(each.name)
    most = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    shown = [_group(kind, reason, names) for (kind, reason), names in most[:GROUPS]]
    if rest := sum(len(names) for _, names in most[GROUPS:]):
        shown.append(f"{rest:,} of other kinds")
    folders = sum(each.name.endswith("/") for each in skipped)
    counts = [(len(skipped) - folders, "file"), (folders, "folder")]
    what = " and ".join(plural(count, noun) for count, noun in counts if count)
    more = f"; {FOLLOW}" if any(each.reason == LINK for each in skipped) else ""
    return f"left out {what}: {', '.join(shown)}{more}"


def _group(kind: str, reason: str, names: Sequence[str]) -> str:
    named = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    count = plural(len(names), kind) if kind == FOLDER else f"{len(names):,} {kind or reason}"
    return f"{count} ({reason}: {named})" if kind else f"{count} ({named})"


def _fits_one(name: str, patterns: Sequence[str]) -> bool:
    """Whether a path below the folder fits a pattern, at any depth; ``**`` stands for any number of folders."""
    return any(_matches(PurePath(name).parts, ("**", *PurePath(pattern).parts)) for pattern in patterns)


def _matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_matches(parts[at:], wanted[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])


def _reason(name: str, path: Path, exclude: Sequence[str], *, known: bool) -> str:
    """Why a file that would count is left out; empty for one that counts. `known`: it needs a reader."""
    try:
        if not path.is_file():
            return BROKEN if path.is_symlink() else "no file"
    except OSError:
        return ""  # reading it will tell why it cannot be read
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


def _walk(
    root: Path, skipped: list[Skipped], closed: list[Skipped], *, follow_symlinks: bool
) -> Iterator[tuple[str, Path]]:
    """Every file below a folder; what is hidden, behind a link or closed is noted instead.

    Raises:
        NotFoundError: the folder itself cannot be listed.
    """

    def refused(error: OSError) -> None:
        folder = Path(error.filename or root)
        if folder == root:
            raise unreadable(error, root) from error
        closed.append(Skipped(f"{folder.relative_to(root).as_posix()}/", error.strerror or str(error)))

    above = {str(root): frozenset({os.path.realpath(root)})}  # of each folder, the folders that lead to it
    for folder, inner, names in os.walk(str(root), onerror=refused, followlinks=follow_symlinks):
        here, led = Path(folder).relative_to(root), above.pop(folder, frozenset())
        for name in sorted(inner):
            path, reason = Path(folder) / name, ""
            if name.startswith("."):
                reason = HIDDEN
            elif not follow_symlinks:
                reason = LINK if path.is_symlink() else ""
            elif (real := os.path.realpath(path)) in led:
                reason = LOOP
            else:
                above[str(path)] = led | {real}
            if reason:
                inner.remove(name)
                skipped.append(Skipped(f"{(here / name).as_posix()}/", reason))
        for name in names:
            file = here / name
            if name.startswith("."):
                skipped.append(Skipped(file.as_posix(), HIDDEN))
            elif not follow_symlinks and (root / file).is_symlink():
                skipped.append(Skipped(file.as_posix(), LINK))
            else:
                yield file.as_posix(), root / file


def _suffix(path: Path) -> str:
    return path.suffix.removeprefix(".").lower()
