"""Questions as a specification names them."""

from __future__ import annotations

from collections.abc import Mapping

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.errors import NotFoundError
from raggs.base.progress import Hear, deaf
from raggs.base.text import REPLACED
from raggs.parts import queries
from raggs.parts.queries.load import load_numbered
from raggs.parts.workshop.corpus import place_of, replaced


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
