"""Questions as a specification names them."""

from __future__ import annotations

from collections.abc import Mapping

from raggs import queries
from raggs.adapter import AdapterConfig
from raggs.artifacts import Query
from raggs.queries.load import load_queries
from raggs.workshop.corpus import place_of


def open_queries(spec: AdapterConfig) -> Mapping[str, Query]:
    """All questions by id, sorted by id.

    Raises:
        NotFoundError, DataError: the file is missing or malformed (see `load_queries`).
    """
    return load_queries(queries.REGISTRY.of(spec)(spec), place_of(spec))
