"""Embeddings by any provider that litellm supports.

Calls count towards the budget and are recorded in the ledger, and their answers are cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.base.arrays import unit_rows
from raggs.base.errors import ConfigError
from raggs.base.hashing import hash_value
from raggs.base.settings import Effort
from raggs.base.text import fold_quotes
from raggs.llm import EmbedRequest, Parameters
from raggs.llm.prices import nearest_model, vector_size
from raggs.llm.settings import ModelSettings
from raggs.parts.embedders import Embedder, EmbedderConfig

if TYPE_CHECKING:
    from raggs.base.arrays import Vectors


class LiteLLMEmbedder(Embedder):
    """Embedding models of any provider that litellm supports; vectors are cached."""

    class Config(EmbedderConfig):
        type: Literal["litellm"] = "litellm"
        model: str = Field(min_length=1, description='provider and model, for example "openai/text-embedding-3-small"')
        dims: int | None = Field(
            None,
            ge=1,
            description="dimensions of a vector; null: all dimensions, according to litellm's model list",
        )
        batch: Effort[int] = Field(128, ge=1, description="texts per call")
        parameters: Parameters = Field(default_factory=dict, description="call parameters, such as input_type")

    config: Config

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    @property
    def identity(self) -> str:
        """Identity of the vectors; depends on parameters and `model_id`, but not on the server's address."""
        found = {"parameters": self._set(), "model_id": self._own.model_id}
        more = {name: value for name, value in found.items() if value}
        mark = f"/{hash_value(more)[:12]}" if more else ""
        return f"litellm/{self.config.model}/{self.dims}{mark}"

    @property
    def _own(self) -> ModelSettings:
        return self.context.llm.settings.of(self.config.model)

    def _set(self) -> dict[str, object]:
        """Return the call parameters from the settings."""
        return {**self._own.parameters, **self.config.parameters}

    @property
    def dims(self) -> int:
        """Dimensions of a vector.

        Raises:
            ConfigError: neither the settings nor litellm's model list contain the dimensions.
        """
        found = self.config.dims or vector_size(self.config.model)
        if found is None:
            near = None if self.context.llm.settings.base_of(self.config.model) else nearest_model(self.config.model)
            meant = "" if near is None else f"use {near} if you meant that, or "
            raise ConfigError(
                f"the dimensions of {self.config.model} are unknown",
                remedy=f"{meant}set embed.embedder.dims",
            )
        return found

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        said = [place for place, text in enumerate(texts) if text.strip()]  # providers reject empty texts
        if said:
            vectors[said] = unit_rows(self._ask([fold_quotes(texts[place]) for place in said]).astype(np.float64))
        return vectors

    def _ask(self, texts: list[str]) -> Vectors:
        request = EmbedRequest(self.config.model, texts, self.dims, self.config.batch, self._parameters())
        self.context.llm.require_price(self.config.model)
        return self.context.loop().run(self.context.llm.embed(request))

    def _parameters(self) -> dict[str, object]:
        """Return the parameters of a call; `dimensions` is included if the settings ask for fewer than the model
        has.
        """
        own = vector_size(self.config.model)
        shorter = {"dimensions": self.dims} if own is not None and self.dims < own else {}
        return {**shorter, **self._set()}
