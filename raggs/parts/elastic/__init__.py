"""Elasticsearch: connection, errors, reading, searching and loading, for whoever keeps passages there.

Where an index lies and how it is spoken to: the settings that corpus, retriever and `raggs index` share.

Credentials are no settings, so that they reach no manifest: the API key, or user name and password, come from the
environment (see `raggs.parts.elastic.server`). TLS certificates are always verified; there is no switch for it.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from raggs.base.settings import AnchoredPath, Effort, Settings, http_address

# Legal names of an index. Servers accept a percent sign, but a path with "%2e%2e" can be decoded on its way to them.
NAME = re.compile(r"[^\s\\/\"<>|#:%_+\-\x00-\x1f][^\s\\/\"<>|#:%\x00-\x1f]*")
MAX_NAME = 255  # bytes
MAX_RESULTS = 10_000  # a search of Elasticsearch returns no more unless its index says so


class IndexPlace(Settings):
    """An index on a server, and which of its fields hold what."""

    url: str = Field("http://localhost:9200", description="the server; no user name or password in it")
    index: str = Field(min_length=1, description="the index, or an alias")
    id_field: str = Field("_id", description="the passage's id: _id, or a field of type keyword")
    title_field: str = Field("title", description="the passage's title; passages may lack it")
    text_field: str = Field("text", description="the passage's text")
    metadata_field: str = Field("metadata", description="an object with whatever else is known of the passage")
    ca_certs: Effort[AnchoredPath | None] = Field(
        None, description="PEM file of the authority that signed the server's certificate; the system's if absent"
    )
    timeout: Effort[float] = Field(30, gt=0, description="seconds before a request is given up")
    retries: Effort[int] = Field(4, ge=0, description="further tries where the server fails or is busy")
    batch: Effort[int] = Field(500, ge=1, le=MAX_RESULTS // 2, description="documents in one request")

    @field_validator("url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        parts = urlsplit(http_address(url))
        if parts.username is not None or parts.password is not None or parts.query:
            raise ValueError("leave credentials out of the address; set ELASTIC_API_KEY or ELASTIC_PASSWORD instead")
        return url.rstrip("/")

    @field_validator("index")
    @classmethod
    def _one_index(cls, index: str) -> str:
        if index == "_all" or any(char in index for char in ",*?"):
            raise ValueError("name one index or alias, without wildcards")
        if not NAME.fullmatch(index) or index in (".", "..") or len(index.encode()) > MAX_NAME:
            raise ValueError(
                "not the name of an index: use lower-case letters, digits, dots, dashes and underscores, do not start "
                f"with - or _, and use at most {MAX_NAME} bytes"
            )
        return index

    @property
    def shown(self) -> str:
        """The place as messages name it."""
        return f"{self.url}/{self.index}"


class VectorPlace(IndexPlace):
    """An index that may hold vectors too."""

    vector_field: str = Field("vector", description="the passage's vector; a dense_vector")

    @property
    def by_vectors(self) -> bool:
        """Whether whoever names the place searches its vectors."""
        return True


class ElasticIndexSettings(Settings):
    """How `raggs index` creates an index. No stage reads it: what an index is counts by its state on the server."""

    analyzer: str = Field("standard", description="of title and text: standard, english, french, whitespace, ...")
    shards: int = Field(1, ge=1, description="primary shards")
    replicas: int = Field(0, ge=0, description="copies of each shard")
    m: int = Field(16, ge=2, le=512, description="neighbours of a node in the HNSW graph")
    ef_construction: int = Field(100, ge=2, le=3200, description="candidates considered for them")
