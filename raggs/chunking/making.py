"""Documents cut by a chunker that asks models: many at once, each kept as soon as it is cut.

What was cut before is not asked about. A document for which no answer came keeps nobody else from being cut. Nothing is
asked by `foresee`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from raggs.base.text import plural
from raggs.llm.rehearsal import Asked
from raggs.parts.chunkers.base import Document
from raggs.parts.chunkers.paid import Cuts, NotCut, PaidChunker
from raggs.parts.workshop import Workshop
from raggs.stages.ordered import run_ordered

SHOWN = 3


@dataclass
class Made:
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


@dataclass(frozen=True)
class Foreseen:
    """What cutting would ask.

    Attributes:
        cut, before: documents that would be cut, and those that are.
        asked: by model; with `guessed`, how many windows there are is an estimate, since each begins where the model
            cuts the one before.
    """

    cut: int
    before: int
    asked: dict[str, Asked]
    guessed: bool


def make_cuts(
    chunker: PaidChunker,
    documents: Iterable[Document],
    workshop: Workshop,
    tell: Callable[[int], None] = lambda _: None,
    *,
    again: bool = False,
) -> Made:
    """Cut what is not cut yet.

    Args:
        tell: hears how many documents are done.
        again: also what was cut in part by rule, for want of an answer of use; other answers are in the cache.

    Raises:
        RaggsError: a provider refused, the budget is used up, or the disk: whatever was answered is kept.
    """
    made, began = Made(), time.perf_counter()

    async def work(given: Document) -> Cuts | str | None:
        document = given.body
        if _is_cut(chunker, document, again=again):
            return None
        try:
            return await chunker.make(document, workshop.llm)
        except NotCut as error:
            return str(error)

    for number, found in enumerate(run_ordered(workshop, documents, work), start=1):
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
    chunker: PaidChunker, documents: Iterable[Document], workshop: Workshop, *, again: bool = False
) -> Foreseen:
    """What `make_cuts` would ask. Nobody is asked, nothing is written.

    Raises:
        RaggsError: what is kept cannot be read.
    """
    rehearsal = workshop.rehearsal()
    count = before = 0
    guessed = False
    for document in (each.body for each in documents):
        if _is_cut(chunker, document, again=again):
            before += 1
            continue
        count += 1
        missing = rehearsal.missing
        workshop.loop.run(chunker.ask(document.body, rehearsal, guess=True))
        guessed = guessed or rehearsal.missing > missing + 1
    workshop.loop.run(rehearsal.close())
    return Foreseen(count, before, {model: rehearsal.asked(model, chunker.TASK) for model in chunker.models}, guessed)
