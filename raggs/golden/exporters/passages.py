"""The passages of a golden set, each once, in the form that `corpus: {type: jsonl}` reads."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from raggs.base.artifacts import Passage
from raggs.golden.base import GoldenSet
from raggs.golden.exporters.files import object_writer, write_lines, write_objects
from raggs.golden.packed import passage_facts

Form = Callable[[Passage], Mapping[str, object]]


def passage_object(passage: Passage) -> dict[str, object]:
    """A passage as `corpus: {type: jsonl}` reads it again."""
    return {"_id": passage.doc_id, "title": passage.title, "text": passage.text, **passage_facts(passage)}


def write_passages(golden: GoldenSet, path: Path, whole: Iterable[Passage] | None, form: Form = passage_object) -> int:
    """Write the corpus in its own order, or every passage of any query's pool once, sorted by id; count them.

    Args:
        whole: all passages, where they are wanted and at hand.
        form: what is written of a passage.

    Raises:
        ProviderError: the disk refuses.
    """
    if whole is not None:
        return write_objects(path, map(form, whole))
    return write_lines(path, _pooled(golden, form))


def _pooled(golden: GoldenSet, form: Form) -> Iterator[str]:
    """Each passage once, sorted by id. Texts wait in a temporary file, so that memory holds ids and offsets only."""
    places: dict[str, int] = {}
    with tempfile.TemporaryFile() as spill, object_writer(spill) as writer:
        for passage in (passage for query in golden.by_query("pool") for passage in query.pool):
            if passage.doc_id not in places:
                places[passage.doc_id] = spill.tell()
                writer.write(form(passage))
        for doc_id in sorted(places):
            spill.seek(places[doc_id])
            yield spill.readline()[:-1].decode()
