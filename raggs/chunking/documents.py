"""Documents whole, by the names that a corpus of their folder would give them, and by the names of questions.

A question may name a document without the file's ending, as the files of chunking benchmarks do.

All documents cut by one chunker, with the time that took.

A chunk's place is where it was cut. With `compat` it is where its text is found first, as the report's code has it.

Documents cut by a chunker that asks models: many at once, each kept as soon as it is cut.

What was cut before is not asked about. A document for which no answer came keeps nobody else from being cut. Nothing is
asked by `foresee`.
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
    """Texts in the order of their names.

    Attributes:
        folder: where they lie.
        names: of the files below it.
        texts: as their readers give them, in which places count.
        read: the same with what their readers know of them; empty: nothing.
        notes: what of the folder was left out, a sentence each.
    """

    folder: Path
    names: tuple[str, ...]
    texts: tuple[str, ...]
    read: tuple[Document, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lengths(self) -> list[int]:
        """Of each, in characters."""
        return [len(text) for text in self.texts]

    @property
    def whole(self) -> Iterator[Document]:
        """Each, to be cut."""
        return iter(self.read) if self.read else map(Document, self.texts, self.names)

    def number(self, name: str) -> int | None:
        """Of the document of this name; without its ending where that is one document's alone."""
        found = self._called.get(name, ())
        return found[0] if len(found) == 1 or name in self.names else None

    def missing(self, name: str) -> str:
        """What to do about a name that no document has, or several."""
        if found := [self.names[place] for place in self._called.get(name, ())]:
            return f"it may be {' or '.join(found)}: write its ending"
        return did_you_mean(name, self._called)

    @cached_property
    def _called(self) -> Mapping[str, Sequence[int]]:
        """By a name, and by a name without its ending, the documents that are called so; whole names first."""
        found: dict[str, list[int]] = {}
        for short in (False, True):
            for place, name in enumerate(self.names):
                found.setdefault(Path(name).with_suffix("").as_posix() if short else name, []).append(place)
        return {name: list(dict.fromkeys(places)) for name, places in found.items()}


def read_documents(folder: Path) -> Documents:
    """All documents of a folder that a corpus of it would read.

    Raises:
        NotFoundError: the folder is not there, or a file cannot be read.
        DataError: it holds no document with text, or one that is not UTF-8.
    """
    if not folder.is_dir():
        said = "is no folder" if folder.exists() else "no such folder"
        raise NotFoundError(said, where=folder, remedy="name the folder of the documents by --corpus")
    corpus = FolderCorpus(FolderConfig(path=folder))
    found = tuple(each for each in corpus.documents() if each.body.text.strip())
    if not found:
        raise DataError("holds no document with text", where=folder, remedy="check --corpus")
    names, texts = tuple(each.source for each in found), tuple(each.text for each in found)
    return Documents(folder, names, texts, found, (*corpus.outside(), *corpus.notes()))


@dataclass(frozen=True)
class ChunkedDocuments:
    """The chunks of all documents.

    Attributes:
        texts: of the chunks.
        spans: their places.
        seconds: that the chunker took.
    """

    texts: tuple[str, ...]
    spans: Spans
    seconds: float


def chunk_documents(
    chunker: Chunker, documents: Documents, *, compat: bool = False, tell: Callable[[int], None] = lambda _: None
) -> ChunkedDocuments:
    """Cut all documents.

    Args:
        tell: hears how many are cut.

    Raises:
        RaggsError: as the chunker.
        DataError: no chunk came of them.
    """
    began = time.perf_counter()
    found: list[tuple[int, Chunk]] = []
    for number, document in enumerate(documents.whole):
        found += ((number, chunk) for chunk in chunker.chunk(document))
        tell(number + 1)
    seconds = time.perf_counter() - began
    if not found:
        raise DataError("no chunk came of the documents", where=documents.folder, remedy="choose another chunker")
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
    """What came of cutting.

    Attributes:
        cut, before: documents that were cut now, and those that were before.
        asked, lost: parts of the former that the model was asked about, and those that it gave no answer of use to.
        failed: what is said of each document that is not cut.
        seconds: of this.
    """

    cut: int = 0
    before: int = 0
    asked: int = 0
    lost: int = 0
    failed: tuple[str, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        lost = f", of which {self.lost:,} gave no answer of use and were cut at their ends" if self.lost else ""
        failed = f"; {plural(len(self.failed), 'document')} could not be cut" if self.failed else ""
        asked = f"; {plural(self.asked, 'window')} shown to the model{lost}" if self.asked else ""
        return f"{plural(self.cut, 'document')} cut, {self.before:,} cut before{asked}{failed}"

    def notes(self, name: str) -> list[str]:
        """What a reader of scores must know; `name`: of the chunker."""
        found = []
        if self.before:
            found.append(f"{name} cut {plural(self.before, 'document')} before; its seconds leave that out")
        if self.lost:
            found.append(
                f"{name}: no answer of use about {self.lost:,} of {plural(self.asked, 'window')}, which were cut at "
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
    """Cut what is not cut yet.

    Args:
        tell: hears how many documents are done.
        again: also what was cut in part by rule, for want of an answer of use; other answers are in the cache.

    Raises:
        RaggsError: a provider refused, the budget is used up, or the disk: whatever was answered is kept.
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
    """Whether nobody need be asked about a document."""
    if not document.body.text.strip():
        return True
    kept = chunker.kept(document)
    return kept is not None and not (again and kept.lost)


def foresee(
    chunker: PaidChunker, documents: Iterable[Document], workspace: Workspace, llm: DryRunLLM, *, again: bool = False
) -> tuple[int, int]:
    """Ask what `make_cuts` would ask, of models that count; how many documents would be cut, and how many are.

    How many windows a document has is a guess, since each begins where the model cuts the one before.

    Raises:
        RaggsError: what is kept cannot be read.
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
