"""Do the places of references and those of passages speak of the same documents? A judge that goes by places needs it.

A question about a document that is not in the corpus is told, since the corpus may well be a part of what was asked
about; where no document at all is known by the names of the questions, every grade would be 1, and nothing is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from raggs.base.artifacts import Query, names_of
from raggs.base.errors import DataError
from raggs.base.text import did_you_mean, plural


def strange_places(queries: Mapping[str, Query], sources: Collection[str], where: Path | str) -> str | None:
    """What is told of references in documents that the corpus has not; None where there are none.

    Args:
        queries: by id.
        sources: the documents of the corpus; empty where its passages have no places, and words are compared.
        where: the questions are from, for messages.

    Raises:
        DataError: none of the references stands in a document of the corpus; or a name stands for several.
    """
    spans = [(query.qid, each.span.source) for query in queries.values() for each in query.references if each.span]
    known: dict[str, set[str]] = {}
    for source in sources:
        for name in names_of(source):
            known.setdefault(name, set()).add(source)
    for qid, name in spans:
        if len(meant := sorted(known.get(name, ()))) > 1:
            message = f"query {qid}: its document {name!r} may be {meant[0]} or {meant[1]}"
            raise DataError(message, where=where, remedy="write the name with its ending, or rename one of them")
    strange = [(qid, name) for qid, name in spans if name not in known]
    if not strange or not known:
        return None
    qid, name = strange[0]
    said, remedy = f"query {qid}: its document {name!r} is not in the corpus", did_you_mean(name, sorted(known))
    if len(strange) == len(spans):
        raise DataError(said, where=where, remedy=remedy)
    count = len({qid for qid, _ in strange})
    return (
        f"{plural(count, 'question')} about documents that are not in the corpus, where nothing will be found: {said}"
    )
