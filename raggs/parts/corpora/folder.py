"""A folder of documents, each cut into passages: whole paragraphs, or as a chunker says.

A passage's id is the file's path below the folder (white space and ``%`` percent-encoded, so that ids stay unique) and
the number of the passage in the file. Its span tells the place: ``text == source[start:end]``, in characters of the
text that the file's reader gives (see `raggs.parts.documents`), which of a text file is the file's; with ``breadcrumb:
text`` the path of its sections stands before that. What a document says about itself before it begins is in no passage.

Unless a chunker is named, Markdown, HTML and rst are cut at their headings, and a passage is called by the headings
above it. Plain text and PDF have no headings: whole paragraphs are packed, and a passage is called by its file.

Which files of a folder are documents, and which are left out and why.

Hidden files and folders (a leading dot) are left alone, whatever the patterns say. Symbolic links are not followed
unless the settings say so; then a link that leads back to a folder above it is left out. Without patterns every file
counts that a reader takes; with patterns the files that fit one, whatever their suffix. What is left out is counted by
reason and suffix, with the first few names: a line, however large the folder.
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

MAX_NAMED_FILES = 3  # of the files that are left out for one reason
GROUPS = 8  # reasons and suffixes that are told apart
NO_READER_REASON = "no reader"
FOLDER = "folder"
HIDDEN, LINK, SYMLINK_LOOP_REASON, BROKEN_SYMLINK_REASON = (
    "hidden",
    "symlink",
    "symlink to a folder above it",
    "broken symlink",
)
FOLLOW = "set corpus.follow_symlinks: true to read what symlinks point to"


@dataclass(frozen=True)
class SkippedFile:
    """A file or folder that is left out; `reason`: why, in a few words."""

    name: str
    reason: str


@dataclass(frozen=True)
class FolderListing:
    """The files of a folder by their paths below it, in the order of these.

    Attributes:
        files: that are documents.
        skipped: what is left out.
        closed: folders that cannot be listed, by their paths below it, and why.
    """

    files: tuple[tuple[str, Path], ...]
    skipped: tuple[SkippedFile, ...]
    closed: tuple[SkippedFile, ...] = ()


def reader_of(path: Path) -> DocumentReader:
    """Who reads a file, by its suffix; a file of any other suffix is plain text.

    Raises:
        PrerequisiteError: a package offers the reader, and it cannot be loaded.
    """
    suffix = _suffix(path)
    return documents.REGISTRY.load(suffix)() if suffix in documents.REGISTRY else TextReader()


def list_files(
    root: Path, patterns: Sequence[str] | None, exclude: Sequence[str] = (), *, follow_symlinks: bool = False
) -> FolderListing:
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
    skipped: list[SkippedFile] = []
    closed: list[SkippedFile] = []
    there = list(_walk_files(root, skipped, closed, follow_symlinks=follow_symlinks))
    fitting = there if patterns is None else [each for each in there if _fits_one(each[0], patterns)]
    files = {name: path for name, path in fitting if not _reason(name, path, exclude, known=patterns is None)}
    left = [(name, path) for name, path in there if name not in files]
    known = patterns is None
    skipped += [
        SkippedFile(name, _reason(name, path, exclude, known=known) or "fits no pattern") for name, path in left
    ]
    if not files and not closed:
        wanted = " or ".join(patterns or (f"*.{suffix}" for suffix in documents.REGISTRY))
        told = f"; {describe_skipped(skipped)}" if skipped else ""
        remedy = "check corpus.path and corpus.patterns"
        raise DataError(f"the folder holds no file that fits {wanted}{told}", where=root, remedy=remedy)
    return FolderListing(
        tuple(sorted(files.items())), tuple(sorted(skipped, key=lambda each: each.name)), tuple(closed)
    )


def describe_skipped(skipped: Sequence[SkippedFile]) -> str:
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
    named = ", ".join(names[:MAX_NAMED_FILES]) + (", …" if len(names) > MAX_NAMED_FILES else "")
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
            return BROKEN_SYMLINK_REASON if path.is_symlink() else "no file"
    except OSError:
        return ""  # reading it will tell why it cannot be read
    if any(_fits_pattern(name, pattern) for pattern in exclude):
        return "excluded"
    return _reader_problem(path) if known else ""


def _reader_problem(path: Path) -> str:
    """Why nobody reads a file; empty where somebody does."""
    return (reader_of(path).missing() or "") if _suffix(path) in documents.REGISTRY else NO_READER_REASON


def _fits_pattern(name: str, pattern: str) -> bool:
    """Whether a path below the folder fits a pattern, at any depth; a folder stands for all in it."""
    parts, wanted = PurePath(name).parts, PurePath(pattern).parts
    return any(
        all(fnmatchcase(part, each) for part, each in zip(parts[at:], wanted, strict=False))
        for at in range(len(parts) - len(wanted) + 1)
    )


def _walk_files(
    root: Path, skipped: list[SkippedFile], closed: list[SkippedFile], *, follow_symlinks: bool
) -> Iterator[tuple[str, Path]]:
    """Every file below a folder; what is hidden, behind a link or closed is noted instead.

    Raises:
        NotFoundError: the folder itself cannot be listed.
    """

    def refused(error: OSError) -> None:
        folder = Path(error.filename or root)
        if folder == root:
            raise unreadable(error, root) from error
        closed.append(SkippedFile(f"{folder.relative_to(root).as_posix()}/", error.strerror or str(error)))

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
        raise ValueError(f"{pattern!r} is not a pattern of file names, such as *.md")
    return pattern


Pattern = Annotated[str, AfterValidator(_relative)]
Breadcrumb = Literal["title", "text", "none"]
PATH_SEPARATOR = " > "
EARLIER_PATTERNS = ("*.txt", "*.md")  # what all suffixes meant when these were all
MAX_TITLE_CHARS = 200  # characters of a heading in a title; each passage of the section repeats them
MAX_PATH_CHARS = 1000  # characters of a path of headings
OMITTED = "…"
MAX_LISTED_FAULTS = 10  # unreadable files that a message names
SKIP = "set corpus.unreadable: skip"
TOKENS_PER_WORD = 4 / 3  # of cl100k, in English
HEADING = re.compile(rb"^(?:#{1,6}\s+\S|([=*#~^\"-])\1{2,})", re.MULTILINE)  # what plain text was searched for


class FolderConfig(AdapterConfig):
    type: Literal["folder"] = "folder"
    path: SourcePath = Field(description="the folder")
    patterns: tuple[Pattern, ...] | None = Field(
        None, min_length=1, description="which files, at any depth; null: all that raggs list documents names"
    )
    exclude: AddedLater[tuple[Pattern, ...]] = Field((), description="files and folders that are left out all the same")
    max_words: int = Field(
        DEFAULT_MAX_WORDS,
        ge=20,
        description="maximum words per passage if no chunker is named (Markdown, HTML, rst: 4 tokens for 3 words)",
    )
    chunker: AddedLater[ChunkerSpec | None] = Field(
        None,
        description="how files are cut; null: Markdown, HTML and rst at their headings (as by the chunker markdown), "
        "other files as whole paragraphs of up to `max_words` words",
    )
    unreadable: AddedLater[Literal["stop", "skip"]] = Field(
        "stop",
        description="files that cannot be read (not UTF-8, a damaged PDF, no permission): stop and name them all, or "
        "skip them; skipped files are counted in the run's status, report and manifest",
    )
    follow_symlinks: AddedLater[bool] = Field(
        False, description="whether symbolic links to files and folders are read as what they point to"
    )
    breadcrumb: AddedLater[Breadcrumb | None] = Field(
        None,
        description="where the path of a passage's headings stands (Guide > Install > Linux): in its title, before its "
        f"text, or nowhere; null: in its title. A heading counts with its first {MAX_TITLE_CHARS} characters",
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        refuse_two_sizes(self.chunker, self.max_words)
        return self

    def recut(self, chunker: ChunkerConfig) -> FolderConfig:
        """The same folder, cut in another way."""
        return self.model_copy(update={"chunker": chunker, "max_words": DEFAULT_MAX_WORDS})


class FolderCorpus(CutCorpus):
    """Text, Markdown, rst, HTML and PDF files below a folder, cut into passages."""

    Config = FolderConfig
    config: FolderConfig

    def __init__(self, config: AdapterConfig) -> None:
        super().__init__(config)
        self._warnings: list[str] = []
        self._cut_titles: dict[str, None] = {}  # files, in order
        self._faults: list[str] = []  # unreadable files, and why

    @property
    def place(self) -> Path:
        return self.config.path

    @property
    def named(self) -> ChunkerConfig | None:
        return self.config.chunker

    def source_hash(self) -> str:
        """Over the files that count: their paths below the folder and their bytes, None if these cannot be read."""
        listing, rows = self._listing(), list[list[str | None]]()
        for name, path in listing.files:
            try:
                rows.append([file_id(name), hash_source(path), *self._marks(path)])
            except (DataError, NotFoundError):
                rows.append([file_id(name), None])
        rows += [[file_id(folder.name), None] for folder in listing.closed]
        if self.config.unreadable == "stop" and any(None in row for row in rows):
            for _ in self._read():  # which names all files that cannot be read
                pass
        return hash_value(rows)

    def _marks(self, path: Path) -> Iterator[str]:
        """How a file is read otherwise than when it was first read, so that its passages are other ones."""
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
        """Its own, the chunkers', and the readers' where texts or breadcrumbs come from them."""
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
        """Files that are left out, by reason."""
        return [describe_skipped(skipped)] if (skipped := self._listing().skipped) else []

    def notes(self) -> list[str]:
        """Files that were skipped or have no text, front matter that was not understood, and titles that were cut."""
        found = []
        if self._faults:
            found.append(f"{plural(len(self._faults), 'unreadable file')} skipped: {_list_faults(self._faults)}")
        if self.left_out:
            named = ", ".join(each.doc_id for each in self.left_out[:MAX_LISTED_PASSAGES])
            more = ", …" if len(self.left_out) > MAX_LISTED_PASSAGES else ""
            found.append(f"{plural(len(self.left_out), 'file')} without text left out: {named}{more}")
        if self._warnings:
            more = (
                f"; and {len(self._warnings) - MAX_LISTED_PASSAGES:,} more"
                if len(self._warnings) > MAX_LISTED_PASSAGES
                else ""
            )
            found.append(
                f"front matter not understood and left out: {'; '.join(self._warnings[:MAX_LISTED_PASSAGES])}{more}"
            )
        if self._cut_titles:
            named = ", ".join([*self._cut_titles][:MAX_LISTED_PASSAGES]) + (
                ", …" if len(self._cut_titles) > MAX_LISTED_PASSAGES else ""
            )
            many = plural(len(self._cut_titles), "file")
            found.append(f"headings of {many} cut to {MAX_TITLE_CHARS} characters in titles: {named}")
        return found

    def passages(self) -> Iterator[Passage]:
        """See `Corpus.passages`; file after file by path, each with its span."""
        self.cutting_s = None if isinstance(self._chunker, PaidChunker) else 0.0  # its cuts are looked up
        for source, reading in self._read():
            number = 0
            for number, passage in enumerate(self._cut(reading, source), start=1):  # noqa: B007
                yield passage
            if not number:
                self.left_out.append(EmptyPassage(source, 1))

    def documents(self) -> Iterator[Document]:
        """Every file whole; see `CutCorpus.documents`."""
        for source, reading in self._read():
            document = _document(reading, source)
            if not document.body.text.strip():
                self.left_out.append(EmptyPassage(source, 1))
            yield document

    def _read(self) -> Iterator[tuple[str, DocumentContent]]:
        """Every file that can be read.

        Raises:
            NotFoundError, DataError: the settings say so where one cannot; all that cannot are named.
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
            if not (stops and self._faults):  # after a fault the others are only tried
                yield source, reading
        if stops and self._faults:
            raise self._unreadable(first)

    def _skip(self, source: str, error: RaggsError) -> None:
        self.unreadable.append(source)
        self._faults.append(f"{source}{'' if error.line is None else f':{error.line}'} ({error.message})")

    def _unreadable(self, first: RaggsError | None) -> RaggsError:
        """The error that names what cannot be read: of one file its own."""
        if first is not None and len(self._faults) == 1:
            first.remedy = f"{first.remedy}; or {SKIP}" if first.remedy else SKIP
            return first
        said = f"{plural(len(self._faults), 'file')} cannot be read: {_list_faults(self._faults)}"
        return DataError(said, where=self.place, remedy=f"repair them, leave them out by corpus.exclude, or {SKIP}")

    def _cut(self, reading: DocumentContent, source: str) -> Iterator[Passage]:
        """The passages of one file."""
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
        """The chunks of a document, with the time that cutting takes added up."""
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
        """The title of a place in a file: the path of its headings, or the document's name if it has none."""
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
        """A heading as titles have it, cut if it is too long."""
        if len(title) <= MAX_TITLE_CHARS:
            return title
        self._cut_titles[source] = None
        return shorten(title, MAX_TITLE_CHARS)

    @property
    def _crumbs(self) -> Breadcrumb:
        """Where breadcrumbs stand."""
        return self.config.breadcrumb or "title"

    @cached_property
    def _chunker(self) -> Chunker:
        return self.cutter(self.config.max_words)

    @cached_property
    def _by_headings(self) -> Chunker:
        """The chunker of documents with headings, if the settings name none."""
        return self.context.chunker(MarkdownChunker.Config(size=round(TOKENS_PER_WORD * self.config.max_words)))

    def _listing(self) -> FolderListing:
        """
        Raises:
            NotFoundError: the folder is not there.
            DataError: no file fits.
        """
        config = self.config
        return list_files(config.path, config.patterns, config.exclude, follow_symlinks=config.follow_symlinks)

    def _readers(self) -> Mapping[str, DocumentReader]:
        """The readers of the files that are there, by suffix."""
        try:
            files = self._listing().files
        except RaggsError:
            return {}  # whoever reads the folder will say so better
        named = {path.suffix.removeprefix(".").lower(): path for _, path in files}
        return {suffix: reader_of(path) for suffix, path in sorted(named.items()) if suffix in documents.REGISTRY}


def _list_faults(faults: Sequence[str]) -> str:
    more = f", and {len(faults) - MAX_LISTED_FAULTS:,} more" if len(faults) > MAX_LISTED_FAULTS else ""
    return f"{', '.join(faults[:MAX_LISTED_FAULTS])}{more}"


def _document(reading: DocumentContent, source: str) -> Document:
    return Document(reading.text, source, reading.begin, reading.blocks, marked=not reading.unmarked)


def _short_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """A path of at most `MAX_PATH_CHARS` characters: the first heading and the last ones."""
    parts = list(path)
    while len(PATH_SEPARATOR.join(parts)) > MAX_PATH_CHARS and len(parts) > 2:
        del parts[1]
    return path if len(parts) == len(path) else (parts[0], OMITTED, *parts[1:])


def _path_below_title(title: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """A path below the document's title, which its first heading often repeats."""
    return path if not title or path[:1] == (title,) else (title, *path)


def file_id(name: str) -> str:
    """A path as an id without white space; different paths have different ids."""
    return "".join(char if char.isprintable() and char not in " %" else _escaped(char) for char in name)


def file_name(source: str) -> str:
    """The path below the folder that `file_id` made an id of; names of other documents hold no such escapes."""
    return unquote(source, errors="surrogatepass")


def _escaped(char: str) -> str:
    return quote(char, safe="", errors="surrogatepass")  # a file name may hold bytes that are no text
