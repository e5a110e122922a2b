"""What an embedder is: texts in, float32 vectors out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from raggs.arrays import Vectors

if TYPE_CHECKING:
    from raggs.llm import LLM


@dataclass(frozen=True)
class EmbedderContext:
    """What an embedder may use: language models, and the loop in which to ask them."""

    llm: LLM
    loop: Callable[[], asyncio.Runner]


class Embedder(Protocol):
    """Turns texts into vectors. Built as ``cls(config, context)``; loads its model at first use."""

    @property
    def identity(self) -> str:
        """Name, version and dimensions: vectors of equal identity may be compared. Cheap: loads no model."""
        ...

    @property
    def dims(self) -> int:
        """Length of a vector. Cheap: loads no model."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of unit length, shape (len(texts), dims), float32; a text without any known word gives zeros.

        Raises:
            ProviderError: the model gave a wrong shape, NaN or infinity.
        """
        ...
