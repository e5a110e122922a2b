"""WordLlama: averaged static token vectors. Small and fast; the package includes the weights, nothing is downloaded.

Only the tokenizer and the table of vectors are used, read from the package's files. Importing the package, which can
also download and cluster, takes a third of a second. The package's `embed` pads every batch to the longest text, so
that one long passage needs gigabytes. Here each text is pooled separately in blocks of tokens, so that a vector does
not depend on its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.base.arrays import Floats, Ints, Vectors
from raggs.base.errors import PrerequisiteError, ProviderError
from raggs.base.registry import installed
from raggs.base.text import fold_quotes
from raggs.parts.embedders import FALLBACK_EMBEDDER, Embedder, EmbedderConfig

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from raggs.parts.embedders import EmbedderContext

WEIGHTS = "l2_supercat"
# dimensions of the packaged weights; shorter vectors are their leading dimensions, which the training supports
TRAINED_DIMS = 256
TABLE = "embedding.weight"
TOKENS_PER_BLOCK = 8192  # tokens pooled at a time: 8 MiB of vectors


@dataclass
class _WordLlamaModel:
    """Tokenizer and table of token vectors.

    Attributes:
        embedding: one row per token, in half precision; converted to float32 after as many lookups as there are rows.
        asked: number of tokens looked up so far.
    """

    tokenizer: Tokenizer
    embedding: Vectors
    asked: int = 0

    def sum(self, tokens: Ints, dims: int) -> Floats:
        """Return the sum of the first `dims` components of the tokens' vectors; its bits do not depend on the
        precision of the table.
        """
        import numpy as np

        self.asked += len(tokens)
        if self.asked > len(self.embedding):
            self.embedding = self.embedding.astype(np.float32, copy=False)
        return np.asarray(self.embedding[tokens, :dims].sum(axis=0, dtype=np.float64))


class WordLlamaEmbedder(Embedder):
    """WordLlama: averaged static token vectors; no download, thousands of texts per second."""

    PACKAGES = ("wordllama",)

    class Config(EmbedderConfig):
        type: Literal["wordllama"] = "wordllama"
        dims: Literal[64, 128, 256] = Field(256, description="dimensions of a vector")

    config: Config

    def __init__(self, config: Config, context: EmbedderContext | None = None) -> None:
        self.config = config
        self._model: _WordLlamaModel | None = None

    @property
    def identity(self) -> str:
        """Identity of the vectors: version of wordllama, weights and dimensions.

        Raises:
            PrerequisiteError: the package is not installed.
        """
        version = installed("wordllama")
        if version is None:
            raise PrerequisiteError(
                "the embedder wordllama needs the package wordllama, which is not installed",
                remedy=f"install it, or set an embedder that needs no package: {{type: {FALLBACK_EMBEDDER}}}",
            )
        return f"wordllama/{version}/{WEIGHTS}_{self.dims}"

    @property
    def dims(self) -> int:
        """Number of leading dimensions of the weights that a vector has."""
        return self.config.dims

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return, for each text, the sum of its token vectors, scaled to unit length; shape (texts, dims). A text
        without tokens has a zero vector.
        """
        import numpy as np

        model = self._load()
        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for start in range(0, len(texts), self.config.batch):
            batch = list(map(fold_quotes, texts[start : start + self.config.batch]))
            for place, tokens in enumerate(model.tokenizer.encode_batch(batch, add_special_tokens=False), start):
                vectors[place] = self._pool(model, np.array(tokens.ids, dtype=np.int64))
        return vectors

    def _pool(self, model: _WordLlamaModel, tokens: Ints) -> Vectors:
        """Return the sum of the token vectors, scaled to unit length, or zeros without tokens. The sum is in
        float64.
        """
        import numpy as np

        total = np.zeros(self.dims)
        for start in range(0, len(tokens), TOKENS_PER_BLOCK):
            total += model.sum(tokens[start : start + TOKENS_PER_BLOCK], self.dims)
        norm = float(np.linalg.norm(total))
        if not np.isfinite(norm):
            raise ProviderError(f"{self.identity} returned a vector that is not finite", remedy="reinstall wordllama")
        return (total / norm if norm > 0 else total).astype(np.float32)

    def _load(self) -> _WordLlamaModel:
        if self._model is None:
            _ = self.identity  # raises an error if the package is not installed
            try:
                self._model = _read(_folder())
            except Exception as error:  # the libraries raise various exceptions
                raise ProviderError(
                    f"wordllama's weights cannot be loaded ({error})", remedy="reinstall wordllama"
                ) from error
        if self._model.embedding.shape[1] != TRAINED_DIMS:
            raise ProviderError(
                f"wordllama's table has {self._model.embedding.shape[1]} dimensions, not {TRAINED_DIMS}",
                remedy="reinstall wordllama",
            )
        return self._model


def _folder() -> Path:
    """Return the folder of the package, which is found without importing it."""
    found = find_spec("wordllama")
    if found is None or found.origin is None:
        raise FileNotFoundError("the package is not installed")
    return Path(found.origin).parent


@lru_cache(maxsize=1)  # loading takes 0.1 s; embedders with different dims share the result
def _read(folder: Path) -> _WordLlamaModel:
    from safetensors import safe_open
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / f"{WEIGHTS}_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    with safe_open(folder / "weights" / f"{WEIGHTS}_{TRAINED_DIMS}.safetensors", framework="np") as weights:
        return _WordLlamaModel(tokenizer, weights.get_tensor(TABLE))
