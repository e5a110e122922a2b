"""A folder of documents, which are split into passages by the configured chunker, or by headings and paragraphs.

A passage's id consists of the file's path below the folder and the number of the passage in the file. White space,
unprintable characters and ``%`` in the path are percent-encoded, so that ids are unique. The span satisfies
``text == source[start:end]``, in characters of the text that the file's reader returns (see `raggs.parts.documents`).
For plain text, Markdown and rst, this is the file's content. With ``breadcrumb: text``, the path of headings is
prepended to the passage's text. Front matter is in no passage.

Without a configured chunker, Markdown, HTML and rst are split at their headings. Plain text and PDF have no headings,
so whole paragraphs are packed. By default, a passage's title is the path of headings above it, starting with the title
in the front matter. If both are missing, it is the page title of an HTML file, or the file's path below the folder.

Selection of files: hidden files and folders (leading dot) are always skipped. Symbolic links are skipped by default. If
the settings allow them, raggs follows them, except links back to a parent folder. Without patterns, all files with a
reader are selected; with patterns, all matching files of any suffix. Excluded files are skipped in both cases. Skipped
files are counted by reason and suffix, and the message names only a few of each kind.
"""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Literal, Self
from urllib.parse import quote, unquote

from pydantic import AfterValidator, Field, model_validator

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage, Span
from raggs.base.errors import DataError, NotFoundError, RaggsError
from raggs.base.files import read_whole, unreadable
from raggs.base.hashing import hash_value
from raggs.base.registry import installed
from raggs.base.settings import AddedLater, Causes, SourcePath
from raggs.base.text import plural, shorten
from raggs.parts import documents
from raggs.parts.chunkers import Chunk, Chunker, ChunkerConfig, Document
from raggs.parts.chunkers.markdown import MarkdownChunker, Outline
from raggs.parts.chunkers.paid import PaidChunker
from raggs.parts.chunkers.paragraphs import ParagraphsChunker, has_long_runs, heading_of
from raggs.parts.chunkers.sizes import trim_range
from raggs.parts.corpora import (
    DEFAULT_MAX_WORDS,
    MAX_LISTED_PASSAGES,
    ChunkerSpec,
    CutCorpus,
    EmptyPassage,
    hash_source,
    refuse_two_sizes,
)
from raggs.parts.documents import DocumentContent, DocumentReader, TextReader

MAX_NAMED_FILES = 3  # skipped files that a message names per reason
GROUPS = 8  # combinations of reason and suffix that a message lists
NO_READER_REASON = "no reader"
FOLDER = "folder"
HIDDEN, LINK, SYMLINK_LOOP_REASON, BROKEN_SYMLINK_REASON = (
    "hidden",
    "symlink",
    "symlink to a folder above it",
    "broken symlink",
)
FOLLOW = "to follow symlinks, set corpus.follow_symlinks: true"


@dataclass(frozen=True)
class SkippedFile:
    """A skipped file or folder; `reason` is a few words."""

    name: str
    reason: str


@dataclass(frozen=True)
class FolderListing:
    """The files of a folder, sorted by their paths below it.

    Attributes:
        files: documents to read: relative path and full path.
        skipped: files and folders that are not read.
        closed: folders that cannot be listed: relative path, and the error as the reason.
    """

    files: tuple[tuple[str, Path], ...]
    skipped: tuple[SkippedFile, ...]
    closed: tuple[SkippedFile, ...] = ()


def reader_of(path: Path) -> DocumentReader:
    """Return the reader of a file, by its suffix; files with an unknown suffix are plain text.

    Raises:
        PrerequisiteError: the reader's package cannot be loaded.
    """
    suffix = _suffix(path)
    return documents.REGISTRY.load(suffix)() if suffix in documents.REGISTRY else TextReader()


def list_files(
    root: Path, patterns: Sequence[str] | None, exclude: Sequence[str] = (), *, follow_symlinks: bool = False
) -> FolderListing:
    """Return the documents in a folder, and the files that are skipped.

    Args:
        patterns: files to select; None: all files with a reader.
        exclude: files to skip even if they match `patterns`.
        follow_symlinks: whether symbolic links are followed.

    Raises:
        NotFoundError: the folder does not exist or cannot be listed.
        DataError: no file matches, and all folders below can be listed.
    """
    if not root.is_dir():
        problem = "is a file, not a folder" if root.exists() else "no such folder"
        raise NotFoundError(problem, where=root, remedy="check corpus.path")
    skipped: list[SkippedFile] = []
    closed: list[SkippedFile] = []
    there = list(_walk_files(root, skipped, closed, follow_symlinks=follow_symlinks))
    fitting = there if patterns is None else [each for each in there if _fits_one(each[0], patterns)]
    files = {name: path for name, path in fitting if not _reason(name, path, exclude, known=patterns is None)}
    left = [(name, path) for name, path in there if name not in files]
    known = patterns is None
    skipped += [
        SkippedFile(name, _reason(name, path, exclude, known=known) or "matches no pattern") for name, path in left
    ]
    if not files and not closed:
        wanted = " or ".join(patterns or (f"*.{suffix}" for suffix in documents.REGISTRY))
        told = f"; {describe_skipped(skipped)}" if skipped else ""
        remedy = "check corpus.path and corpus.patterns"
        raise DataError(f"no file of the folder matches {wanted}{told}", where=root, remedy=remedy)
    return FolderListing(
        tuple(sorted(files.items())), tuple(sorted(skipped, key=lambda each: each.name)), tuple(closed)
    )


def describe_skipped(skipped: Sequence[SkippedFile]) -> str:
    """Return a sentence such as 'skipped 3 files: 2 .docx (no reader: a.docx, b.docx), 1 hidden (.env)'."""
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
        shown.append(f"{rest:,} others")
    folders = sum(each.name.endswith("/") for each in skipped)
    counts = [(len(skipped) - folders, "file"), (folders, "folder")]
    what = " and ".join(plural(count, noun) for count, noun in counts if count)
    more = f"; {FOLLOW}" if any(each.reason == LINK for each in skipped) else ""
    return f"skipped {what}: {', '.join(shown)}{more}"


def _group(kind: str, reason: str, names: Sequence[str]) -> str:
    named = ", ".join(names[:MAX_NAMED_FILES]) + (", …" if len(names) > MAX_NAMED_FILES else "")
    count = plural(len(names), kind) if kind == FOLDER else f"{len(names):,} {kind or reason}"
    return f"{count} ({reason}: {named})" if kind else f"{count} ({named})"


def _fits_one(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a relative path or its end matches a pattern; ``**`` matches any number of folders."""
    return any(_matches(PurePath(name).parts, ("**", *PurePath(pattern).parts)) for pattern in patterns)


def _matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_matches(parts[at:], wanted[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])


def _reason(name: str, path: Path, exclude: Sequence[str], *, known: bool) -> str:
    """Return why a file is skipped; empty if it is read. `known`: skip files that no reader can read."""
    try:
        if not path.is_file():
            return BROKEN_SYMLINK_REASON if path.is_symlink() else "no file"
    except OSError:
        return ""  # the error is reported when the file is read
    if any(_fits_pattern(name, pattern) for pattern in exclude):
        return "excluded"
    return _reader_problem(path) if known else ""


def _reader_problem(path: Path) -> str:
    """Return why no reader can read a file; empty if a reader can."""
    return (reader_of(path).missing() or "") if _suffix(path) in documents.REGISTRY else NO_READER_REASON


def _fits_pattern(name: str, pattern: str) -> bool:
    """Return whether a part of a relative path matches a pattern; a folder that matches includes all its files.

    As in `_fits_one`, ``**`` matches any number of folders.
    """
    return _matches(PurePath(name).parts, ("**", *PurePath(pattern).parts, "**"))


def _walk_files(
    root: Path, skipped: list[SkippedFile], closed: list[SkippedFile], *, follow_symlinks: bool
) -> Iterator[tuple[str, Path]]:
    """Yield every file below a folder.

    Hidden entries, links that are not followed, and folders that cannot be listed are added to the lists instead.

    Raises:
        NotFoundError: the folder itself cannot be listed.
    """

    def refused(error: OSError) -> None:
        folder = Path(error.filename or root)
        if folder == root:
            raise unreadable(error, root) from error
        closed.append(SkippedFile(f"{folder.relative_to(root).as_posix()}/", error.strerror or str(error)))

    # for each folder, the real paths of the folders above it and its own, to detect links that lead back
    above = {str(root): frozenset({os.path.realpath(root)})}
    for folder, inner, names in os.walk(str(root), onerror=refused, followlinks=follow_symlinks):
        here, led = Path(folder).relative_to(root), above.pop(folder, frozenset())
        for name in sorted(inner):
            path, reason = Path(folder) / name, ""
            if name.startswith("."):
                reason = HIDDEN
            elif not follow_symlinks:
                reason = LINK if path.is_symlink() else ""
            elif (real := os.path.realpath(path)) in led:
                reason = SYMLINK_LOOP_REASON
            else:
                above[str(path)] = led | {real}
            if reason:
                inner.remove(name)
                skipped.append(SkippedFile(f"{(here / name).as_posix()}/", reason))
        for name in names:
            file = here / name
            if name.startswith("."):
                skipped.append(SkippedFile(file.as_posix(), HIDDEN))
            elif not follow_symlinks and (root / file).is_symlink():
                skipped.append(SkippedFile(file.as_posix(), LINK))
            else:
                yield file.as_posix(), root / file


def _suffix(path: Path) -> str:
    return path.suffix.removeprefix(".").lower()


def _relative(pattern: str) -> str:
    path = PurePath(pattern)
    if not path.parts or path.is_absolute() or any("**" in part and part != "**" for part in path.parts):
        raise ValueError(f"{pattern!r} is not a file name pattern such as *.md")
    return pattern


Pattern = Annotated[str, AfterValidator(_relative)]
Breadcrumb = Literal["title", "text", "none"]
PATH_SEPARATOR = " > "
# default patterns before the readers of other formats existed; kept so that fingerprints stay the same
EARLIER_PATTERNS = ("*.txt", "*.md")
MAX_TITLE_CHARS = 200  # maximum characters of a heading in a title; every passage of the section repeats the heading
MAX_PATH_CHARS = 1000  # maximum characters of a path of headings
OMITTED = "…"
MAX_LISTED_FAULTS = 10  # unreadable files that a message lists
SKIP = "set corpus.unreadable: skip"
TOKENS_PER_WORD = 4 / 3  # cl100k tokens in English
# lines that earlier versions took for headings in plain text
HEADING = re.compile(rb"^(?:#{1,6}\s+\S|([=*#~^\"-])\1{2,})", re.MULTILINE)


class FolderConfig(AdapterConfig):
    type: Literal["folder"] = "folder"
    path: SourcePath = Field(description="path of the folder")
    patterns: tuple[Pattern, ...] | None = Field(
        None,
        min_length=1,
        description="patterns of files to read, at any depth; null: all types in raggs list documents",
    )
    exclude: AddedLater[tuple[Pattern, ...]] = Field((), description="patterns of files and folders to skip")
    max_words: int = Field(
        DEFAULT_MAX_WORDS,
        ge=20,
        description="maximum words per passage if no chunker is set (Markdown, HTML, rst: 4 tokens per 3 words)",
    )
    chunker: AddedLater[ChunkerSpec | None] = Field(
        None,
        description="chunker of all files; null: the chunker markdown for Markdown, HTML and rst, "
        "and whole paragraphs of up to `max_words` words for other files",
    )
    unreadable: AddedLater[Literal["stop", "skip"]] = Field(
        "stop",
        description="if files cannot be read (not UTF-8, damaged PDF, no permission): stop with a list"
        " of them, or skip them (counted in the run's status, report and manifest)",
    )
    follow_symlinks: AddedLater[bool] = Field(False, description="follow symbolic links to files and folders")
    breadcrumb: AddedLater[Breadcrumb | None] = Field(
        None,
        description="position of a passage's path of headings (Guide > Install > Linux): in its title, before its "
        f"text, or none; null: title. Headings are truncated to {MAX_TITLE_CHARS} characters",
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        refuse_two_sizes(self.chunker, self.max_words)
        return self

    def recut(self, chunker: ChunkerConfig) -> FolderConfig:
        """Return the settings of the same folder with another chunker."""
        return self.model_copy(update={"chunker": chunker, "max_words": DEFAULT_MAX_WORDS})


class FolderCorpus(CutCorpus):
    """Text, Markdown, rst, HTML and PDF files of a folder, split into passages."""

    Config = FolderConfig
    config: FolderConfig

    def __init__(self, config: AdapterConfig) -> None:
        super().__init__(config)
        self._warnings: list[str] = []
        self._cut_titles: dict[str, None] = {}  # files with truncated titles, in order
        self._faults: list[str] = []  # unreadable files, each with its error

    @property
    def place(self) -> Path:
        return self.config.path

    @property
    def named(self) -> ChunkerConfig | None:
        return self.config.chunker

    def source_hash(self) -> str:
        """Return a hash of the selected files: path, content hash and markers of each file, None for an unreadable
        file.

        Raises:
            NotFoundError, DataError: see `_read` and `_listing`.
        """
        listing, rows = self._listing(), list[list[str | None]]()
        for name, path in listing.files:
            try:
                rows.append([file_id(name), hash_source(path), *self._marks(path)])
            except (DataError, NotFoundError):
                rows.append([file_id(name), None])
        rows += [[file_id(folder.name), None] for folder in listing.closed]
        if self.config.unreadable == "stop" and any(None in row for row in rows):
            for _ in self._read():  # raises an error that lists all unreadable files
                pass
        return hash_value(rows)

    def _marks(self, path: Path) -> Iterator[str]:
        """Yield markers for changes of the readers since earlier versions that affect the passages of this file."""
        reader = reader_of(path)
        yield from reader.marks(path)
        plain, named = isinstance(reader, TextReader), self.config.chunker
        if not (isinstance(named, ParagraphsChunker.Config) if named else plain) or reader.EXTRACTS:
            return
        data = read_whole(path)
        text = data.decode("utf-8-sig", "replace")
        if plain and named is None and self.config.breadcrumb is None and HEADING.search(data) and heading_of(text):
            yield "no headings"
        if has_long_runs(text):
            yield "long runs cut"

    def causes(self) -> Causes:
        """Return the causes of the corpus, its chunkers, and the readers that affect texts or breadcrumbs."""
        found = {**self.own_causes(), **({"patterns": list(EARLIER_PATTERNS)} if self.config.patterns is None else {})}
        readers = self._readers()
        headed = any(reader.HEADINGS for reader in readers.values())
        if self.config.chunker is not None:
            found["chunker"] = self._chunker.causes()
        elif headed:
            found["chunker by headings"] = self._by_headings.causes()
        named = self.config.chunker is not None or self.config.breadcrumb is not None
        if self._crumbs != "none" and (headed or named):
            found["markdown"] = installed("markdown-it-py")
        changing = {suffix: reader.causes() for suffix, reader in readers.items() if reader.EXTRACTS or reader.SECTIONS}
        return {**found, "readers": changing} if changing else found

    def outside(self) -> list[str]:
        """Return a sentence on skipped files, by reason; empty if there are none."""
        return [describe_skipped(skipped)] if (skipped := self._listing().skipped) else []

    def notes(self) -> list[str]:
        """Return remarks on unreadable and empty files, unparsed front matter and truncated titles."""
        found = []
        if self._faults:
            found.append(f"{plural(len(self._faults), 'unreadable file')} skipped: {_list_faults(self._faults)}")
        if self.left_out:
            named = ", ".join(each.doc_id for each in self.left_out[:MAX_LISTED_PASSAGES])
            more = ", …" if len(self.left_out) > MAX_LISTED_PASSAGES else ""
            found.append(f"{plural(len(self.left_out), 'file')} without text skipped: {named}{more}")
        if self._warnings:
            more = (
                f"; and {len(self._warnings) - MAX_LISTED_PASSAGES:,} more"
                if len(self._warnings) > MAX_LISTED_PASSAGES
                else ""
            )
            found.append(f"unparsed front matter skipped: {'; '.join(self._warnings[:MAX_LISTED_PASSAGES])}{more}")
        if self._cut_titles:
            named = ", ".join([*self._cut_titles][:MAX_LISTED_PASSAGES]) + (
                ", …" if len(self._cut_titles) > MAX_LISTED_PASSAGES else ""
            )
            many = plural(len(self._cut_titles), "file")
            limits = f"{MAX_TITLE_CHARS} characters per heading, {MAX_PATH_CHARS:,} per path"
            found.append(f"headings of {many} truncated or omitted in titles ({limits}): {named}")
        return found

    def passages(self) -> Iterator[Passage]:
        """Yield the passages, sorted by file path, each with its span (see `Corpus.passages`)."""
        # a paid chunker's boundaries are read from a cache
        self.cutting_s = None if isinstance(self._chunker, PaidChunker) else 0.0
        for source, reading in self._read():
            number = 0
            for number, passage in enumerate(self._cut(reading, source), start=1):  # noqa: B007
                yield passage
            if not number:
                self.left_out.append(EmptyPassage(source, 1))

    def documents(self) -> Iterator[Document]:
        """Yield each readable file as a whole (see `CutCorpus.documents`)."""
        for source, reading in self._read():
            document = _document(reading, source)
            if not document.body.text.strip():
                self.left_out.append(EmptyPassage(source, 1))
            yield document

    def _read(self) -> Iterator[tuple[str, DocumentContent]]:
        """Yield the readable files; with `unreadable: stop`, only those before the first unreadable one.

        Raises:
            NotFoundError, DataError: a file is unreadable and `unreadable` is `stop`; the error lists all such files.
        """
        self.left_out.clear()
        self.unreadable.clear()
        self._faults.clear()
        self._warnings.clear()
        self._cut_titles.clear()
        listing, first, stops = self._listing(), None, self.config.unreadable == "stop"
        for folder in listing.closed:
            self._skip(file_id(folder.name), DataError(folder.reason))
        for name, path in listing.files:
            source = file_id(name)
            try:
                reading = reader_of(path).read(path)
            except (DataError, NotFoundError) as error:
                first = first or error
                self._skip(source, error)
                continue
            if reading.warning:
                self._warnings.append(f"{source}:{reading.line}: {reading.warning}")
            if not (stops and self._faults):  # after an error, the remaining files are only checked
                yield source, reading
        if stops and self._faults:
            raise self._unreadable(first)

    def _skip(self, source: str, error: RaggsError) -> None:
        self.unreadable.append(source)
        self._faults.append(f"{source}{'' if error.line is None else f':{error.line}'} ({error.message})")

    def _unreadable(self, first: RaggsError | None) -> RaggsError:
        """Return the error for the unreadable files; if there is only one, the error of this file."""
        if first is not None and len(self._faults) == 1:
            first.remedy = f"{first.remedy}; or {SKIP}" if first.remedy else SKIP
            return first
        said = f"{plural(len(self._faults), 'file')} cannot be read: {_list_faults(self._faults)}"
        return DataError(said, where=self.place, remedy=f"repair them, exclude them with corpus.exclude, or {SKIP}")

    def _cut(self, reading: DocumentContent, source: str) -> Iterator[Passage]:
        """Yield the passages of one file."""
        text, titles = reading.text, self._titles(reading, source)
        chunker = self._by_headings if self.named is None and reading.blocks is not None else self._chunker
        for number, chunk in enumerate(self._timed(chunker, _document(reading, source)), start=1):
            start, end = trim_range(text, (chunk.start, chunk.end))
            crumb = titles(start, end)
            above = f"{crumb}\n\n" if self._crumbs == "text" else ""
            page = {"page": bisect_right(reading.pages, start)} if reading.pages else {}
            yield Passage(
                doc_id=f"{source}#{number}",
                title=crumb if self._crumbs == "title" else "",
                text=above + text[start:end],
                span=Span(source=source, start=start, end=end),
                metadata={**page, **reading.metadata},
            )

    def _timed(self, chunker: Chunker, document: Document) -> Iterator[Chunk]:
        """Yield the chunks of a document, and add the chunker's time to `cutting_s`."""
        chunks = chunker.chunk(document)
        while True:
            began = time.perf_counter()
            chunk = next(chunks, None)
            if self.cutting_s is not None:
                self.cutting_s += time.perf_counter() - began
            if chunk is None:
                return
            yield chunk

    def _titles(self, reading: DocumentContent, source: str) -> Callable[[int, int], str]:
        """Return a function from a span to its title: the path of headings, or the document's name if there is no path.

        Titles are empty with ``breadcrumb: none``.
        """
        if self._crumbs == "none":
            return lambda *_: ""
        root = self._title(reading.title, source)
        name = root or self._title(reading.name, source) or source
        if reading.blocks is None:
            return lambda *_: name
        headed = (replace(block, title=self._title(block.title, source)) for block in reading.blocks())
        outline, begin = Outline(headed), reading.begin

        def of(start: int, end: int) -> str:
            path = _path_below_title(root, outline.path(start - begin, end - begin))
            short = _short_path(path)
            if short != path:
                self._cut_titles[source] = None
            return PATH_SEPARATOR.join(short) or name

        return of

    def _title(self, title: str, source: str) -> str:
        """Return a heading for use in titles, truncated if it is too long."""
        if len(title) <= MAX_TITLE_CHARS:
            return title
        self._cut_titles[source] = None
        return shorten(title, MAX_TITLE_CHARS)

    @property
    def _crumbs(self) -> Breadcrumb:
        """Position of the path of headings."""
        return self.config.breadcrumb or "title"

    @cached_property
    def _chunker(self) -> Chunker:
        return self.cutter(self.config.max_words)

    @cached_property
    def _by_headings(self) -> Chunker:
        """Chunker of documents with headings, used if the settings name no chunker."""
        return self.context.chunker(MarkdownChunker.Config(size=round(TOKENS_PER_WORD * self.config.max_words)))

    def _listing(self) -> FolderListing:
        """Return the files of the folder.

        Raises:
            NotFoundError, DataError: see `list_files`.
        """
        config = self.config
        return list_files(config.path, config.patterns, config.exclude, follow_symlinks=config.follow_symlinks)

    def _readers(self) -> Mapping[str, DocumentReader]:
        """Return the readers of the selected files, by suffix."""
        try:
            files = self._listing().files
        except RaggsError:
            return {}  # the error is reported when the folder is read
        named = {path.suffix.removeprefix(".").lower(): path for _, path in files}
        return {suffix: reader_of(path) for suffix, path in sorted(named.items()) if suffix in documents.REGISTRY}


def _list_faults(faults: Sequence[str]) -> str:
    more = f", and {len(faults) - MAX_LISTED_FAULTS:,} more" if len(faults) > MAX_LISTED_FAULTS else ""
    return f"{', '.join(faults[:MAX_LISTED_FAULTS])}{more}"


def _document(reading: DocumentContent, source: str) -> Document:
    return Document(reading.text, source, reading.begin, reading.blocks, marked=not reading.unmarked)


def _short_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path of at most `MAX_PATH_CHARS` characters: its first heading and as many of its last headings as fit.

    A mark replaces omitted headings, and may exceed the limit. The first and the last heading are never omitted.
    """
    parts = list(path)
    while len(PATH_SEPARATOR.join(parts)) > MAX_PATH_CHARS and len(parts) > 2:
        del parts[1]
    return path if len(parts) == len(path) else (parts[0], OMITTED, *parts[1:])


def _path_below_title(title: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path with the document's title before it, except if the first heading already repeats the title."""
    return path if not title or path[:1] == (title,) else (title, *path)


def file_id(name: str) -> str:
    """Return a path as an id without white space; different paths have different ids."""
    return "".join(char if char.isprintable() and char not in " %" else _escaped(char) for char in name)


def file_name(source: str) -> str:
    """Return the relative path for an id that `file_id` returned; an id without escapes stays unchanged."""
    return unquote(source, errors="surrogatepass")


def _escaped(char: str) -> str:
    return quote(char, safe="", errors="surrogatepass")  # a file name may contain bytes that are not valid UTF-8
