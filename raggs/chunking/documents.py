"""Documents of a folder, and their chunks.

Documents are named as in a `folder` corpus. Questions may name a document without the file's extension, as the files of
chunking benchmarks do.

A chunk's position is where the chunker cut it. With `compat`, its position is the first occurrence of its text, if the
text occurs, as in the code of Chroma's report.

`make_cuts` runs chunkers that call models. It chunks many documents concurrently, and stores each document as soon as
it is chunked. Documents that are already chunked need no call, and a failed document does not stop the others.
`foresee` counts these calls without making them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from raggs.base.errors import DataError, NotFoundError
from raggs.base.text import did_you_mean, plural
from raggs.llm.rehearsal import DryRunLLM
from raggs.metrics.spans import Spans, locate
from raggs.metrics.spans.columns import SpanPlace
from raggs.parts.chunkers import Chunk, Chunker, Document
from raggs.parts.chunkers.paid import ChunkBoundaries, NotCut, PaidChunker
from raggs.parts.corpora.folder import FolderConfig, FolderCorpus
from raggs.parts.workspace import Workspace
from raggs.stages.ordered import run_ordered


@dataclass(frozen=True)
class Documents:
    """Documents in the order of their names.

    Attributes:
        folder: folder of the documents.
        names: paths of the files, relative to the folder.
        texts: texts as the readers return them; offsets refer to these texts.
        read: the documents with metadata from their readers; may be empty.
        notes: sentences about files of the folder that were skipped.
    """

    folder: Path
    names: tuple[str, ...]
    texts: tuple[str, ...]
    read: tuple[Document, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lengths(self) -> list[int]:
        """Length of each document in characters."""
        return [len(text) for text in self.texts]

    @property
    def whole(self) -> Iterator[Document]:
        """Each document, ready to be chunked."""
        return iter(self.read) if self.read else map(Document, self.texts, self.names)

    def number(self, name: str) -> int | None:
        """Return the index of the document with this name; None if no document, or more than one, matches.

        The extension may be omitted if the name is unique without it.
        """
        found = self._called.get(name, ())
        return found[0] if len(found) == 1 or name in self.names else None

    def missing(self, name: str) -> str:
        """Return a remedy for a name that matches no document, or several documents."""
        if found := [self.names[place] for place in self._called.get(name, ())]:
            return f"it may be {' or '.join(found)}: add the extension"
        return did_you_mean(name, self._called)

    @cached_property
    def _called(self) -> Mapping[str, Sequence[int]]:
        """Indices of documents by name, and by name without extension. Documents with exactly this name come first."""
        found: dict[str, list[int]] = {}
        for short in (False, True):
            for place, name in enumerate(self.names):
                found.setdefault(Path(name).with_suffix("").as_posix() if short else name, []).append(place)
        return {name: list(dict.fromkeys(places)) for name, places in found.items()}


def read_documents(folder: Path) -> Documents:
    """Return the documents with text that a `folder` corpus would read from this folder.

    Raises:
        NotFoundError: the folder does not exist, or a file cannot be read.
        DataError: no document contains text, or a document is not UTF-8.
    """
    if not folder.is_dir():
        said = "is not a folder" if folder.exists() else "no such folder"
        raise NotFoundError(said, where=folder, remedy="give the folder of the documents with --corpus")
    corpus = FolderCorpus(FolderConfig(path=folder))
    found = tuple(each for each in corpus.documents() if each.body.text.strip())
    if not found:
        raise DataError("contains no document with text", where=folder, remedy="check --corpus")
    names, texts = tuple(each.source for each in found), tuple(each.text for each in found)
    return Documents(folder, names, texts, found, (*corpus.outside(), *corpus.notes()))


@dataclass(frozen=True)
class ChunkedDocuments:
    """The chunks of all documents.

    Attributes:
        texts: texts of the chunks.
        spans: their character ranges.
        seconds: duration of the chunking.
    """

    texts: tuple[str, ...]
    spans: Spans
    seconds: float


def chunk_documents(
    chunker: Chunker, documents: Documents, *, compat: bool = False, tell: Callable[[int], None] = lambda _: None
) -> ChunkedDocuments:
    """Split all documents into chunks.

    Args:
        chunker: the chunker.
        documents: the documents.
        compat: whether to locate chunks by their text, as the code of Chroma's report does.
        tell: called with the number of documents chunked so far.

    Raises:
        RaggsError: an error of the chunker.
        DataError: the chunker produced no chunks.
    """
    began = time.perf_counter()
    found: list[tuple[int, Chunk]] = []
    for number, document in enumerate(documents.whole):
        found += ((number, chunk) for chunk in chunker.chunk(document))
        tell(number + 1)
    seconds = time.perf_counter() - began
    if not found:
        raise DataError("the chunker produced no chunks", where=documents.folder, remedy="choose another chunker")
    spans = Spans.of(
        _places(found, documents) if compat else ((number, each.start, each.end) for number, each in found)
    )
    return ChunkedDocuments(tuple(chunk.text for _, chunk in found), spans, seconds)


def _places(found: list[tuple[int, Chunk]], documents: Documents) -> Iterator[SpanPlace]:
    for number, chunk in found:
        start, end = locate(chunk.text, documents.texts[number]) or (chunk.start, chunk.end)
        yield number, start, end


MAX_SHOWN_FILES = 3


@dataclass
class ChunkingResult:
    """Result of chunking with a model.

    Attributes:
        cut, before: number of documents that were chunked now, and number that were already chunked or
            empty.
        asked: number of windows of text that were sent to the model.
        lost: number of these windows for which the model gave no usable answer.
        failed: one message per document that could not be chunked.
        seconds: duration of the chunking.
    """

    cut: int = 0
    before: int = 0
    asked: int = 0
    lost: int = 0
    failed: tuple[str, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        lost = f", of which {self.lost:,} had no usable answer and were split at their ends" if self.lost else ""
        failed = f"; {plural(len(self.failed), 'document')} could not be chunked" if self.failed else ""
        asked = f"; {plural(self.asked, 'window')} sent to the model{lost}" if self.asked else ""
        return f"{plural(self.cut, 'document')} chunked, {self.before:,} already chunked{asked}{failed}"

    def notes(self, name: str) -> list[str]:
        """Return notes for readers of the scores; `name` is the name of the chunker."""
        found = []
        if self.before:
            found.append(f"{name}: {plural(self.before, 'document')} already chunked, not included in the time")
        if self.lost:
            found.append(
                f"{name}: no usable answer for {self.lost:,} of {plural(self.asked, 'window')}, which were split at "
                "their ends"
            )
        return found


def make_cuts(
    chunker: PaidChunker,
    documents: Iterable[Document],
    workspace: Workspace,
    tell: Callable[[int], None] = lambda _: None,
    *,
    again: bool = False,
) -> ChunkingResult:
    """Chunk the documents that are not chunked yet.

    Args:
        chunker: the chunker.
        documents: the documents.
        workspace: gives access to models and stored results.
        tell: called with the number of documents finished so far.
        again: whether to also repeat documents with windows that had no usable answer. The answers for their other
            windows come from the cache.

    Raises:
        RaggsError: a provider refused, the budget is used up, or the disk failed. Answers received before are stored.
    """
    made, began = ChunkingResult(), time.perf_counter()

    async def work(given: Document) -> ChunkBoundaries | str | None:
        document = given.body
        if _is_cut(chunker, document, again=again):
            return None
        try:
            return await chunker.make(document, workspace.llm)
        except NotCut as error:
            return str(error)

    for number, found in enumerate(run_ordered(workspace, documents, work), start=1):
        if isinstance(found, str):
            made.failed = (*made.failed, found)
        elif found is None:
            made.before += 1
        else:
            made.cut, made.asked, made.lost = made.cut + 1, made.asked + found.asked, made.lost + found.lost
        tell(number)
    made.seconds = time.perf_counter() - began
    return made


def _is_cut(chunker: PaidChunker, document: Document, *, again: bool) -> bool:
    """Return whether a document needs no calls: it is empty or already chunked."""
    if not document.body.text.strip():
        return True
    kept = chunker.kept(document)
    return kept is not None and not (again and kept.lost)


def foresee(
    chunker: PaidChunker, documents: Iterable[Document], workspace: Workspace, llm: DryRunLLM, *, again: bool = False
) -> tuple[int, int]:
    """Return the number of documents to chunk, and the number that are already chunked or empty.

    The calls that `make_cuts` would make are counted with a dry-run model. The number of windows per document is a
    guess, because each window starts where the model ends a chunk of the window before.

    Raises:
        RaggsError: a stored result cannot be read.
    """
    count = before = 0
    for model in chunker.models:
        llm.count(model, chunker.TASK, 0, exact=True)
    for document in (each.body for each in documents):
        if _is_cut(chunker, document, again=again):
            before += 1
            continue
        count += 1
        missing = llm.missing
        workspace.loop.run(chunker.ask(document.body, llm, guess=True))
        if llm.missing > missing + 1:
            llm.guess()
    return count, before
