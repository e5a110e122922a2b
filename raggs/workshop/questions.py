"""Questions as a specification names them."""

from __future__ import annotations

from collections.abc import Mapping

from raggs import queries
from raggs.adapter import AdapterConfig
from raggs.artifacts import Query
from raggs.progress import Hear, deaf
from raggs.queries.load import load_queries
from raggs.text import REPLACED
from raggs.workshop.corpus import place_of, replaced


def open_queries(spec: AdapterConfig, hear: Hear = deaf) -> Mapping[str, Query]:
    """All questions by id, sorted by id.

    Args:
        hear: is told of questions that hold characters which are none.

    Raises:
        NotFoundError, DataError: the file is missing or malformed (see `load_queries`).
    """
    found = load_queries(queries.REGISTRY.of(spec)(spec), place_of(spec))
    if broken := [qid for qid, query in found.items() if REPLACED in query.model_dump_json()]:
        hear(replaced("question", broken))
    return found
