"""What of a corpus the diagnosis of names reads: fields, one passage at a time."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.base.artifacts import Passage
from raggs.base.errors import DataError
from raggs.base.text import did_you_mean
from raggs.diagnosis.names.lists import field_text
from raggs.parts.indexes.passages import Passages, PassageStore

LOOKED_AT = 500  # passages whose fields are named where the one asked for is not there


def every(passages: Passages) -> Iterator[Passage]:
    """All passages, in the corpus' order; none of a corpus that gives single ones only."""
    if isinstance(passages, PassageStore):
        yield from passages


def field_rows(passages: Passages, name_field: str, topic_field: str) -> list[tuple[str, str]]:
    """Of each passage that has both, the field of names and that of topics; ``title`` and ``text`` are fields, too.

    Raises:
        DataError: no passage has one of them.
    """
    found: list[tuple[str, str]] = []
    named = about = 0
    for passage in every(passages):
        names, topic = field_of(passage, name_field), field_of(passage, topic_field)
        named += names is not None
        about += topic is not None
        if names is not None and topic is not None:
            found.append((names, topic))
    for count, field in ((named, name_field), (about, topic_field)):
        if not count:
            raise DataError(f"no passage of the corpus has a field {field!r}", remedy=_known(passages, field))
    return found


def field_of(passage: Passage, field: str) -> str | None:
    """What a passage says under a name, several values joined; None where nothing does."""
    if field in ("title", "text"):
        return (passage.title if field == "title" else passage.text) or None
    return field_text(passage.metadata, field)


def _known(passages: Passages, field: str) -> str:
    known = {"title": None, "text": None}
    for _, passage in zip(range(LOOKED_AT), every(passages), strict=False):
        known |= dict.fromkeys(passage.metadata)
    return did_you_mean(field, known)
