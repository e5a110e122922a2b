"""Questions as a specification names them."""

from __future__ import annotations

from collections.abc import Mapping

from raggs import queries
from raggs.adapter import AdapterConfig
from raggs.artifacts import Query
from raggs.errors import NotFoundError
from raggs.progress import Hear, deaf
from raggs.queries.load import load_numbered
from raggs.text import REPLACED
from raggs.workshop.corpus import place_of, replaced


def open_queries(spec: AdapterConfig, hear: Hear = deaf) -> Mapping[str, Query]:
    """All questions by id, sorted by id; see `open_numbered`."""
    return {qid: query for qid, (_, query) in open_numbered(spec, hear).items()}


def open_numbered(spec: AdapterConfig, hear: Hear = deaf) -> Mapping[str, tuple[int, Query]]:
    """All questions by id, sorted by id, each after its line.

    Args:
        hear: is told of questions that hold characters which are none.

    Raises:
        NotFoundError, DataError: the file is missing or malformed (see `load_numbered`).
    """
    try:
        found = load_numbered(queries.REGISTRY.of(spec)(spec), place_of(spec))
    except NotFoundError as error:
        error.remedy = f"{error.remedy or 'check queries.path'}; raggs questions makes some of the documents"
        raise
    if broken := [qid for qid, (_, query) in found.items() if REPLACED in query.model_dump_json()]:
        hear(replaced("question", broken))
    return found
