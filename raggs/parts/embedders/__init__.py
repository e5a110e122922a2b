"""Embedders: base class and registry. An embedder converts texts to float32 vectors.

Embedders replace typographic quotation marks and apostrophes by ASCII ones (`raggs.base.text.fold_quotes`). Otherwise,
the vector of a query would depend on the user's keyboard, because the two kinds are different tokens.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.arrays import Vectors
from raggs.base.hashing import hash_value
from raggs.base.registry import Registry, installed
from raggs.base.settings import Causes, Effort

if TYPE_CHECKING:
    from raggs.base.cache import Cache
    from raggs.llm import LLM

# the default embedder: the first if its package is installed, otherwise the second
PACKAGED_EMBEDDER, FALLBACK_EMBEDDER = "wordllama", "lsa"


def default_embedder() -> dict[str, str]:
    """Return the settings of the default embedder, which depends on the installed packages."""
    return {"type": FALLBACK_EMBEDDER if installed(PACKAGED_EMBEDDER) is None else PACKAGED_EMBEDDER}


def default_reason(type: str) -> str:
    """Return a sentence on why `type` is the default embedder here."""
    if type == PACKAGED_EMBEDDER:
        return f"embedder {PACKAGED_EMBEDDER}: the default, because its package is installed"
    reason = f"because the package {PACKAGED_EMBEDDER} is not installed"
    return f"embedder {FALLBACK_EMBEDDER}, fitted on the corpus: the default, {reason}"


@dataclass(frozen=True)
class FittingTexts:
    """Texts that an embedder can be fitted on; they are read only if the embedder needs them.

    Attributes:
        key: returns a hash of the texts.
        texts: returns the texts, the same ones in the same order on every call.
        cache: cache of fitted models; None: a model is kept in memory only.
    """

    key: Callable[[], str]
    texts: Callable[[], Iterable[str]]
    cache: Cache | None = None

    @classmethod
    def of(cls, texts: Sequence[str]) -> FittingTexts:
        """Return the object for texts in memory, without a cache."""
        return cls(lambda: hash_value(list(texts)), lambda: texts)


@dataclass(frozen=True)
class EmbedderContext:
    """Resources for embedders: language models, and the event loop for calls."""

    llm: LLM
    loop: Callable[[], asyncio.Runner]


class EmbedderConfig(AdapterConfig):
    """Settings common to all embedders."""

    batch: Effort[int] = Field(256, ge=1, description="texts per batch")


class Embedder(Adapter, ABC):
    """Converts texts to vectors. Created as ``cls(config, context)``; loads its model at first use."""

    Config: ClassVar[type[EmbedderConfig]] = EmbedderConfig
    NEEDS_FIT: ClassVar[bool] = False  # whether the embedder must be fitted on texts before it can embed (see `fitted`)

    config: EmbedderConfig

    def __init__(self, config: EmbedderConfig, context: EmbedderContext) -> None:
        self.config = config
        self.context = context

    @property
    def models(self) -> tuple[str, ...]:
        """The model, if each `batch` of texts is a paid call; empty if nothing is paid."""
        return ()

    @property
    def identity(self) -> str:
        """Type, dimensions, and a hash of settings and versions; most embedders do not load their model for it.

        Vectors of equal identity are comparable.
        """
        return f"{self.config.type}/{self.dims}/{hash_value(self.own_causes())[:12]}"

    def causes(self) -> Causes:
        """Return everything that affects a vector."""
        return {**self.own_causes(), "identity": self.identity}

    def fitted(self, texts: FittingTexts) -> Embedder:
        """Return the embedder fitted on texts; the embedder itself if it needs no fit, or is already fitted."""
        return self

    def check(self) -> None:
        """Check a local model by embedding one word, before any paid call.

        Raises:
            RaggsError: see `embed`.
        """
        if not self.models:
            self.embed(["word"])

    @property
    @abstractmethod
    def dims(self) -> int:
        """Dimensions of a vector; the model is loaded only if settings and files do not contain them."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of unit length, shape (len(texts), dims), float32. A text without known words has a zero
        vector.

        Raises:
            ProviderError: the model returned a wrong shape, NaN or infinity.
        """

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of queries; overridden for models that encode queries and passages differently.

        Raises:
            ProviderError: see `embed`.
        """
        return self.embed(texts)


REGISTRY: Registry[Embedder] = Registry(
    "embedder",
    "embedders",
    "raggs.parts.embedders:Embedder",
    {
        "litellm": "raggs.parts.embedders.litellm:LiteLLMEmbedder",
        "lsa": "raggs.parts.embedders.lsa:LsaEmbedder",
        "onnx": "raggs.parts.embedders.onnx:OnnxEmbedder",
        "python": "raggs.parts.callables:PythonEmbedder",
        "wordllama": "raggs.parts.embedders.wordllama:WordLlamaEmbedder",
    },
)
