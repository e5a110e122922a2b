"""The passages of a golden set, each once, in the form that `corpus: {type: jsonl}` reads."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from raggs.artifacts import Passage
from raggs.exporters.files import object_writer, write_lines, write_objects
from raggs.golden.base import GoldenSet


def passage_facts(passage: Passage) -> dict[str, object]:
    """A passage's place in the corpus and its metadata, where there are any."""
    found = passage.model_dump(mode="json", include={"span", "metadata"}, exclude_none=True)
    return {name: value for name, value in found.items() if value}


def passage_object(passage: Passage) -> dict[str, object]:
    """A passage as `corpus: {type: jsonl}` reads it again."""
    return {"_id": passage.doc_id, "title": passage.title, "text": passage.text, **passage_facts(passage)}


def write_passages(golden: GoldenSet, path: Path, whole: Iterable[Passage] | None) -> int:
    """Write the corpus in its own order, or every passage of any query's pool once, sorted by id; count them.

    Args:
        whole: all passages, where they are wanted and at hand.

    Raises:
        ProviderError: the disk refuses.
    """
    if whole is not None:
        return write_objects(path, map(passage_object, whole))
    return write_lines(path, pooled_lines(golden))


def pooled_lines(golden: GoldenSet) -> Iterator[str]:
    """Each passage once, sorted by id. Texts wait in a temporary file, so that memory holds ids and offsets only."""
    places: dict[str, int] = {}
    with tempfile.TemporaryFile() as spill, object_writer(spill) as writer:
        for passage in (passage for query in golden.by_query("pool") for passage in query.pool):
            if passage.doc_id not in places:
                places[passage.doc_id] = spill.tell()
                writer.write(passage_object(passage))
        for doc_id in sorted(places):
            spill.seek(places[doc_id])
            yield spill.readline()[:-1].decode()
