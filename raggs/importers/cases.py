"""Sets of tools that have an entry a question, with the passages that count listed in it.

Of an export of raggs the labels beside it say every grade; of another's file a listed passage is labelled 1, and
nothing is known of any other. Passages without an id get one that is made of their text, questions as everywhere.
"""

from __future__ import annotations

import json
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar

from raggs.artifacts import Query
from raggs.atomic import disk
from raggs.errors import DataError
from raggs.golden.scales import sidecar, stated_labels
from raggs.hashing import hash_bytes
from raggs.importers.base import ImportedSet, Importer
from raggs.importers.pieces import Pieces, first_of, grades_of, missing, runs_beside
from raggs.jsonl import decode_json
from raggs.jsontypes import as_list, as_object, as_text
from raggs.queries.fields import made_id, query_of
from raggs.queries.writing import write_queries
from raggs.text import id_problem, sound


@dataclass(frozen=True)
class Entry:
    """One question as its file has it; nothing of it is checked yet.

    Attributes:
        contexts, ids: the texts and ids of the passages that count, in the same order; either may be missing.
        facts: what else came with the question.
    """

    text: object
    qid: object = None
    answer: object = None
    contexts: object = None
    ids: object = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass
class CaseRead:
    """What entries hold, each thing once.

    Attributes:
        texts: by passage, title and text.
        labels: question and passage.
    """

    queries: dict[str, Query] = field(default_factory=dict)
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    labels: dict[tuple[str, str], None] = field(default_factory=dict)


class CaseImporter(Importer):
    """Base of importers whose file has an entry for each question.

    Attributes:
        FILE, ALSO: its usual name in a folder, and others.
    """

    FILE: ClassVar[str]
    ALSO: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def entries(self, path: Path) -> Iterator[tuple[int, Entry]]:
        """The entries of a file, each with its line or number.

        Raises:
            NotFoundError, DataError: it cannot be read.
        """

    def passages(self, path: Path) -> Iterator[Mapping[str, object]]:
        """Passages that lie beside a file, as rows of `corpus: {type: jsonl}`, where the format has them apart."""
        return iter(())

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        file = first_of(path, self.FILE, *self.ALSO) if path.is_dir() else path
        if file is None:
            raise missing(path, self.FORMAT, self.FILE)
        labels = stated_labels(file.parent) if sidecar(file) else None
        read = self._read(file, ours=labels is not None)
        kept = tempfile.TemporaryDirectory(prefix="raggs-")
        questions, corpus = written(read, Path(kept.name), self.passages(file))
        if labels is None:
            made = Path(kept.name) / f"{file.name}.qrels"
            _write(made, (f"{qid} 0 {doc_id} 1" for qid, doc_id in read.labels))
            return Pieces(made, grades_of(made), {}, False, questions, corpus, (), kept).put_together()
        grades = grades_of(labels)
        orders, lists = runs_beside(file.parent, labels, grades)
        return Pieces(labels, grades, orders, False, questions, corpus, lists, kept).put_together()

    def _read(self, file: Path, *, ours: bool) -> CaseRead:
        read = CaseRead()
        for number, entry in self.entries(file):
            query = _query(entry, file, number, ours=ours)
            read.queries.setdefault(query.qid, query)
            for doc_id, text in _passages(entry, file, number):
                read.labels[query.qid, doc_id] = None
                if text is not None:
                    read.texts.setdefault(doc_id, ("", text))
        return read


def _query(entry: Entry, file: Path, number: int, *, ours: bool) -> Query:
    """The question; what raggs wrote beside it are its fields, what another wrote is metadata."""
    if not isinstance(entry.text, str) or not entry.text.strip():
        raise DataError("an entry without a question", where=file, line=number, remedy="give it a text, not a list")
    facts = entry.facts if ours else {"metadata": entry.facts}
    qid = str(entry.qid) if isinstance(entry.qid, str | int) else made_id(sound(entry.text))
    answer = {"answer": entry.answer} if isinstance(entry.answer, str) else {}
    return query_of({"_id": qid, "text": entry.text, **answer, **facts}, file, number)


def _passages(entry: Entry, file: Path, number: int) -> Iterator[tuple[str, str | None]]:
    """The passages that count, each with its text where that is known."""
    texts = [each if isinstance(each, str) and each.strip() else None for each in as_list(entry.contexts)]
    ids: list[str | None] = [str(each) for each in as_list(entry.ids)]
    if ids and texts and len(ids) != len(texts):
        said = f"{len(texts)} contexts and {len(ids)} ids of contexts"
        raise DataError(said, where=file, line=number, remedy="give each context its id, or leave the ids out")
    for doc_id, text in zip(ids or [None] * len(texts), texts or [None] * len(ids), strict=True):
        name = doc_id or (text and made_passage_id(text))
        if name:
            yield sound_id(name, file, number), text and sound(text)


def made_passage_id(text: str) -> str:
    """The id of a passage that has none: of its text alone."""
    return f"p-{hash_bytes(sound(text).encode())[:12]}"


def sound_id(name: str, file: Path, number: int) -> str:
    """An id that files can carry.

    Raises:
        DataError: it is none.
    """
    fault = id_problem(name) if name else "is empty"
    if fault:
        raise DataError(f"the id {name!r} {fault}", where=file, line=number, remedy="give it another")
    return name


def written(read: CaseRead, folder: Path, more: Iterable[Mapping[str, object]] = ()) -> tuple[Path, Path]:
    """Questions and passages as JSON lines in a folder.

    Raises:
        ProviderError: it cannot be written.
    """
    questions, corpus = folder / "queries.jsonl", folder / "corpus.jsonl"
    write_queries(read.queries.values(), questions)
    rows = ({"_id": doc_id, "title": title, "text": text} for doc_id, (title, text) in read.texts.items())
    _write(corpus, (json.dumps(row) for row in chain(rows, more)))
    return questions, corpus


def _write(path: Path, lines: Iterator[str]) -> None:
    with disk(path, "name another place for temporary files by TMPDIR"), path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def first_named(found: Mapping[str, object], names: Sequence[str]) -> object:
    """The first of some fields that an object has."""
    return next((found[name] for name in names if found.get(name) is not None), None)


def without(found: object, *names: str) -> dict[str, object]:
    """The fields of an object but these."""
    return {name: value for name, value in as_object(found).items() if name not in names}


def unpacked(found: object) -> dict[str, object]:
    """What an export packed into a text; nothing of any other."""
    try:
        return dict(as_object(decode_json(as_text(found) or "{}")))
    except ValueError:
        return {}
