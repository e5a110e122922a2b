"""Elasticsearch: settings that the corpus, the retriever and `raggs index` share.

Credentials are not settings, so that they never appear in a manifest. The API key, or user name and password, are read
from the environment (see `raggs.parts.elastic.server`). TLS certificates are always verified.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from raggs.base.settings import AnchoredPath, Effort, Settings, http_address

# Valid index names. Servers accept a percent sign, but proxies may decode "%2e%2e" in a path, so it is not allowed
# here.
NAME = re.compile(r"[^\s\\/\"<>|#:%_+\-\x00-\x1f][^\s\\/\"<>|#:%\x00-\x1f]*")
MAX_NAME = 255  # bytes
MAX_RESULTS = 10_000  # default limit of hits per search in Elasticsearch


class IndexPlace(Settings):
    """An index on a server, and the names of its fields."""

    url: str = Field("http://localhost:9200", description="address of the server, without user name and password")
    index: str = Field(min_length=1, description="name of the index, or an alias")
    id_field: str = Field("_id", description="field of the passage id: _id, or a field of type keyword")
    title_field: str = Field("title", description="field of the title; documents may lack this field")
    text_field: str = Field("text", description="field of the text")
    metadata_field: str = Field("metadata", description="field of the metadata, of type object")
    ca_certs: Effort[AnchoredPath | None] = Field(
        None, description="PEM file of the server's certificate authority; null: the system's certificates"
    )
    timeout: Effort[float] = Field(30.0, gt=0, description="timeout of a request in seconds")
    retries: Effort[int] = Field(4, ge=0, description="retries if the server fails or is busy")
    batch: Effort[int] = Field(500, ge=1, le=MAX_RESULTS // 2, description="documents per request")

    @field_validator("url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        parts = urlsplit(http_address(url))
        if parts.username is not None or parts.password is not None or parts.query:
            raise ValueError(
                "the address must not contain credentials or a query; set ELASTIC_API_KEY or ELASTIC_PASSWORD"
            )
        return url.rstrip("/")

    @field_validator("index")
    @classmethod
    def _one_index(cls, index: str) -> str:
        if index == "_all" or any(char in index for char in ",*?"):
            raise ValueError("set one index or alias, without wildcards")
        if not NAME.fullmatch(index) or index in (".", "..") or len(index.encode()) > MAX_NAME:
            raise ValueError(
                "not a valid index name: use lower-case letters, digits, dots, dashes and underscores, do not start "
                f"with - or _, and use at most {MAX_NAME} bytes"
            )
        return index

    @property
    def shown(self) -> str:
        """Address of the index, for messages."""
        return f"{self.url}/{self.index}"


class VectorPlace(IndexPlace):
    """An index that may also contain vectors."""

    vector_field: str = Field("vector", description="field of the vector, of type dense_vector")

    @property
    def by_vectors(self) -> bool:
        """Whether a search with these settings uses vectors."""
        return True


class ElasticIndexSettings(Settings):
    """Settings with which `raggs index` creates an index. Stages ignore them and use the server's index as it is."""

    analyzer: str = Field("standard", description="analyzer of title and text: standard, english, french, ...")
    shards: int = Field(1, ge=1, description="number of primary shards")
    replicas: int = Field(0, ge=0, description="replicas per shard")
    m: int = Field(16, ge=2, le=512, description="links per node in the HNSW graph")
    ef_construction: int = Field(100, ge=2, le=3200, description="candidates per node when the HNSW graph is built")
