"""What of a corpus was cut where: each chunk's place and size, and what a cut does to the sentence that it falls into.

A cut tears a sentence where the line goes on behind it and no sentence ends before it.
Nothing is embedded or written, unless the chunker itself needs an embedder.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.base.artifacts import Passage
from raggs.base.errors import NotFoundError
from raggs.base.text import did_you_mean, shorten
from raggs.base.tokens import count_tokens
from raggs.chunking.models import ChunkRow, CutFile, CutReport
from raggs.parts.chunkers.base import Document
from raggs.parts.corpora.cut import CutCorpus
from raggs.parts.corpora.folder import file_name

WORDS = 5  # of a chunk's beginning and end
WIDTH = 36
ENDED = re.compile(r"[.!?…。！？:;][\"'”’»)\]*_`]*\Z")
ENDS = re.compile(r"[.!?…。！？]+[\"'”’»)\]*_`]*(?!\S)")
ON = re.compile(r"[^\S\n]*\S")


@dataclass(frozen=True)
class Shown:
    """How files are cut, and their texts, in the same order."""

    report: CutReport
    documents: tuple[Document, ...]


def show_cuts(corpus: CutCorpus, file: str | None = None) -> Shown:
    """How the documents of a corpus are cut.

    Args:
        file: one of them, by its path below the folder or the end of it; None for all.

    Raises:
        NotFoundError: the folder or the file is not there.
        DataError: a file is not UTF-8.
    """
    read = {each.source: each for each in corpus.documents()}
    wanted = set(read) if file is None else {_named(file, list(read), corpus)}
    held: dict[str, list[Passage]] = {name: [] for name in read if name in wanted}
    for passage in corpus.passages():
        if passage.span is not None and passage.span.source in held:
            held[passage.span.source].append(passage)
    files = tuple(_file(read[name], passages) for name, passages in held.items())
    report = CutReport(files=files, notes=() if file else (*corpus.outside(), *corpus.notes()))
    return Shown(report, tuple(read[name] for name in held))


def _named(file: str, names: Sequence[str], corpus: CutCorpus) -> str:
    """The one document that a user means by the name of its file, its id, or the end of either.

    Raises:
        NotFoundError: none is called so, or several.
    """
    known = {name: file_name(name) for name in names}
    wanted = [file, *_below(file, corpus.place)]
    found = [name for name, real in known.items() if name in wanted or real in wanted]
    if not found:  # systems write accents in one character or two
        composed = {name: (_composed(name), _composed(real)) for name, real in known.items()}
        plain = [_composed(each) for each in wanted]
        found = [name for name, both in composed.items() if {*both} & {*plain}]
        ends = tuple(f"/{each}" for each in plain)
        found = found or [name for name, both in composed.items() if any(each.endswith(ends) for each in both)]
    if len(found) != 1:
        problem = f"{file} is the name of {len(found)} files" if found else f"no file {file}"
        raise NotFoundError(problem, where=corpus.place, remedy=did_you_mean(file, known.values()))
    return found[0]


def _below(file: str, place: Path | str) -> Iterator[str]:
    """A path that a shell completed, as a path below the folder."""
    path, folder = Path(file).absolute(), Path(place).absolute()
    for one, other in ((path, folder), (path.resolve(), folder.resolve())):
        if one.is_relative_to(other):
            yield one.relative_to(other).as_posix()


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _file(document: Document, passages: Sequence[Passage]) -> CutFile:
    text, begin = document.text, document.begin
    places = [(span.start, span.end) for passage in passages if (span := passage.span) is not None]
    titles = [passage.title for passage in passages if passage.span is not None]
    lengths = count_tokens([text[start:end] for start, end in places])
    shown = _times_shown(text, places)
    return CutFile(
        file=document.source,
        characters=len(text),
        lost=sum(not char.isspace() for char, times in zip(text[begin:], shown[begin:], strict=True) if not times),
        repeated=int((shown > 1).sum()),
        chunks=tuple(
            ChunkRow(
                number=number,
                start=start,
                end=end,
                tokens=length,
                first=_words(text[start:end].split()[:WORDS]),
                last=_words(text[start:end].split()[-WORDS:]),
                torn=is_torn(text, end),
                title=title,
            )
            for number, ((start, end), length, title) in enumerate(zip(places, lengths, titles, strict=True), start=1)
        ),
    )


def is_torn(text: str, end: int) -> bool:
    """Whether a cut at `end` falls into a sentence."""
    if ENDED.search(text, max(0, end - WIDTH), end) or ENDS.match(text, end):
        return False
    return ON.match(text, end) is not None


def _times_shown(text: str, places: Sequence[tuple[int, int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many chunks hold each character."""
    steps = np.zeros(len(text) + 1, dtype=np.int64)
    for start, end in places:
        steps[start] += 1
        steps[end] -= 1
    return np.cumsum(steps)[:-1]


def _words(words: Sequence[str]) -> str:
    return shorten(" ".join(words), WIDTH)
