"""Late interaction on this machine: query and passage are read apart, token by token, and meet at the end (ColBERT).

The score is MaxSim: for each token of the query the greatest cosine to any token of the passage, summed over the query
(Khattab and Zaharia, SIGIR 2020, equation 3). A query is filled up with masks, which the model makes into further
terms; of a passage, tokens that are nothing but punctuation take no part. Only the sums are kept, not the vectors.
"""

from __future__ import annotations

import string
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from raggs.base.arrays import Vectors
from raggs.parts.localmodels import Pair, Tokens
from raggs.parts.rerankers.local import LocalConfig, LocalReranker


class LateReranker(LocalReranker):
    """ColBERT models on this machine: tokens of query and passage are compared, each with each."""

    AFTERWARDS: ClassVar[tuple[str, ...]] = ()  # vectors are rounded before they meet
    ADDED: ClassVar[int] = 1  # the marker
    OUTPUTS: ClassVar[tuple[str, ...]] = ("contextual", "last_hidden_state", "token_embeddings")

    class Config(LocalConfig):
        type: Literal["late-interaction"] = "late-interaction"
        query_marker: str | None = Field(
            "[unused0]", description="the token after the first one of a query; null: none"
        )
        passage_marker: str | None = Field("[unused1]", description="the same of a passage")
        mask: str | None = Field("[MASK]", description="the token that fills up a query; null: none does")
        query_length: int = Field(32, ge=2, le=4096, description="tokens that a query has at least")
        punctuation: bool = Field(False, description="whether a passage's punctuation takes part")

    config: Config

    def scores(self, numbers: Vectors) -> tuple[Vectors, Vectors]:
        """The sums as they were rounded, and as they were."""
        return numbers[:, 1], numbers[:, 0]

    def _read(self, query: str, texts: Sequence[str]) -> Iterator[Pair]:
        began = time.perf_counter()
        asked = self._query(query)
        terms = self._vectors(asked)
        shared = (time.perf_counter() - began) * 1000 / max(1, len(texts))
        for text in texts:
            began = time.perf_counter()
            tokens = self._marked(self.model.encode(text), self.config.passage_marker)
            kept = [place for place, each in enumerate(tokens.ids) if each not in self._silent]
            raw = float((terms @ self._vectors(tokens)[kept].T).max(axis=1).sum(dtype=np.float32))
            score = float(self.config.scoring.last(np.array([raw], dtype=np.float32))[0])
            ms = (time.perf_counter() - began) * 1000 + shared
            yield Pair((raw, score), len(asked) + len(tokens), round(ms, 3))

    def _query(self, text: str) -> Tokens:
        """A query with its marker, filled up with masks, which no other token sees."""
        found = self._marked(self.model.encode(text), self.config.query_marker)
        missing = 0 if self.config.mask is None else max(0, self.config.query_length - len(found))
        filling = () if self.config.mask is None else (self.model.token(self.config.mask),) * missing
        return Tokens(found.ids + filling, found.types + (0,) * missing, unseen=missing)

    def _marked(self, tokens: Tokens, marker: str | None) -> Tokens:
        if marker is None:
            return tokens
        ids = (*tokens.ids[:1], self.model.token(marker), *tokens.ids[1:])
        return Tokens(ids, (0, *tokens.types))

    def _vectors(self, tokens: Tokens) -> Vectors:
        """A vector of unit length for each token, at the precision of the settings.

        Raises:
            ProviderError: the model gives something else.
        """
        numbers, _ = self.model.run([tokens])
        if numbers.ndim != 3 or numbers.shape[1] != len(tokens):
            raise self.model.wrong_output(numbers, "a vector for each token: no model of late interaction")
        norms = np.linalg.norm(numbers[0], axis=1, keepdims=True)
        return self.config.scoring.part(numbers[0] / np.where(norms > 0, norms, 1))

    @cached_property
    def _silent(self) -> frozenset[int]:
        """The ids of punctuation."""
        signs = () if self.config.punctuation else string.punctuation
        return frozenset(found for sign in signs if (found := self.model.find(sign)) is not None)
