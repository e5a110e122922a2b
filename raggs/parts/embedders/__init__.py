"""Embedders by name: one file and one line each (see `Embedder`).

What an embedder is: texts in, float32 vectors out.

Embedders read quotation marks and apostrophes as keyboards have them (`raggs.base.text.fold_quotes`): to their models
the typographic ones are other tokens, and the vector of a question would depend on who typed it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.arrays import Vectors
from raggs.base.hashing import hash_value
from raggs.base.registry import Registry
from raggs.base.settings import Causes, Effort

if TYPE_CHECKING:
    from raggs.llm import LLM


@dataclass(frozen=True)
class EmbedderContext:
    """What an embedder may use: language models, and the loop in which to ask them."""

    llm: LLM
    loop: Callable[[], asyncio.Runner]


class EmbedderConfig(AdapterConfig):
    """What every embedder's settings hold."""

    batch: Effort[int] = Field(256, ge=1, description="texts worked on at a time")


class Embedder(Adapter, ABC):
    """Turns texts into vectors. Built as ``cls(config, context)``; loads its model at first use."""

    Config: ClassVar[type[EmbedderConfig]] = EmbedderConfig

    config: EmbedderConfig

    def __init__(self, config: EmbedderConfig, context: EmbedderContext) -> None:
        self.config = config
        self.context = context

    @property
    def models(self) -> tuple[str, ...]:
        """The model that is paid for each `batch` of texts; empty where nobody is paid."""
        return ()

    @property
    def identity(self) -> str:
        """Name, version and dimensions: vectors of equal identity may be compared. Cheap: loads no model."""
        return f"{self.config.type}/{self.dims}/{hash_value(self.own_causes())[:12]}"

    def causes(self) -> Causes:
        """All that can change a vector."""
        return {**self.own_causes(), "identity": self.identity}

    def check(self) -> None:
        """Find what a model on this machine lacks, by embedding one word, before anything is paid for.

        Raises:
            RaggsError: as `embed`.
        """
        if not self.models:
            self.embed(["word"])

    @property
    @abstractmethod
    def dims(self) -> int:
        """Length of a vector. Cheap: loads no model."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of unit length, shape (len(texts), dims), float32; a text without any known word gives zeros.

        Raises:
            ProviderError: the model gave a wrong shape, NaN or infinity.
        """

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """The same of questions, for models that read these in another way than passages.

        Raises:
            ProviderError: as `embed`.
        """
        return self.embed(texts)


REGISTRY: Registry[Embedder] = Registry(
    "embedder",
    "embedders",
    "raggs.parts.embedders:Embedder",
    {
        "litellm": "raggs.parts.embedders.litellm:LiteLLMEmbedder",
        "onnx": "raggs.parts.embedders.onnx:OnnxEmbedder",
        "python": "raggs.parts.callables:PythonEmbedder",
        "wordllama": "raggs.parts.embedders.wordllama:WordLlamaEmbedder",
    },
)
