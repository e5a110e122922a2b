"""Local embedding models: token vectors from an ONNX file, pooled and normalised to unit length.

By default, texts are encoded one at a time. On a CPU, this is as fast as encoding in batches, and a vector then depends
only on its text. `query_prefix` and `passage_prefix` are for models that were trained with prefixes. For models that
support shorter vectors, `dims` selects the leading dimensions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.base.arrays import unit_rows
from raggs.base.errors import ConfigError, DataError, RaggsError
from raggs.base.files import read_whole
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes, Effort, SourcePath
from raggs.base.text import fold_quotes
from raggs.base.types import as_object
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.localmodels import PACKAGES, ModelFolder

if TYPE_CHECKING:
    from raggs.base.arrays import Floats, Ints, Vectors
    from raggs.parts.localmodels import LocalModel, Tokens

SIZES = ("hidden_size", "d_model", "n_embd", "dim")  # keys of the vector size in a model's config.json
CONFIG = "config.json"
OUTPUTS = ("last_hidden_state", "token_embeddings", "sentence_embedding")


class OnnxEmbedder(Embedder):
    """A local model in a folder with model.onnx and tokenizer.json."""

    PACKAGES = (*PACKAGES, "numpy")

    class Config(EmbedderConfig):
        type: Literal["onnx"] = "onnx"
        path: SourcePath = Field(description="folder with an ONNX file and tokenizer.json; nothing is downloaded")
        file: str | None = Field(None, description="ONNX file in `path`; null: model.onnx or onnx/model.onnx")
        pooling: Literal["mean", "cls"] = Field(
            "mean", description="pooling of token vectors: their mean, or the first token's vector"
        )
        dims: int | None = Field(None, ge=1, description="number of leading dimensions to use; null: all")
        max_length: int = Field(
            512, ge=8, le=1 << 20, description="maximum tokens per text; longer texts are truncated"
        )
        query_prefix: str = Field("", description='prefix of each query, such as "query: "')
        passage_prefix: str = Field("", description='prefix of each passage, such as "passage: "')
        batch: int = Field(
            1, ge=1, le=4096, description="texts per batch; above 1, the last digits of vectors depend on the batch"
        )
        threads: Effort[int | None] = Field(None, ge=1, description="number of threads; null: one per core")

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), "file": None}  # the hash of the file's content is used instead of its name

    @property
    def identity(self) -> str:
        """Identity of the vectors: the model's content and the settings of its input."""
        return f"onnx/{self.dims}/{hash_value([self.own_causes(), self._folder.content])[:16]}"

    def causes(self) -> Causes:
        return {**super().causes(), "content": self._folder.content}

    @property
    def dims(self) -> int:
        """Dimensions of a vector, from the settings, the model's config.json, or the model itself.

        Raises:
            ConfigError: `dims` exceeds the model's dimensions, or neither is known.
        """
        own, wanted = self._size, self.config.dims
        if own is None and wanted is None:
            raise ConfigError("the dimensions of the model are unknown", where=self._folder.path, remedy="set dims")
        if own is not None and wanted is not None and wanted > own:
            raise ConfigError(
                f"dims is {wanted}, but the model has only {own}",
                where=self._folder.path,
                remedy="reduce dims, or remove it",
            )
        return wanted or own or 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self.config.passage_prefix + text if text.strip() else "" for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self.config.query_prefix + text if text.strip() else "" for text in texts])

    def _embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        tokens = {place: self._model.encode(fold_quotes(text)) for place, text in enumerate(texts) if text}
        said = [place for place, found in tokens.items() if len(found)]
        for start in range(0, len(said), self.config.batch):
            batch = said[start : start + self.config.batch]
            vectors[batch] = self._pooled([tokens[place] for place in batch])
        return vectors

    def _pooled(self, batch: Sequence[Tokens]) -> Vectors:
        """Return vectors of unit length, shape (texts, dims).

        Raises:
            ProviderError: the output is neither token nor text vectors, or has too few dimensions.
            DataError: see `_check_size`.
        """
        import numpy as np

        numbers, mask = self._model.run(batch)
        if self._model.output == "logits":  # a classifier returns logits
            raise self._model.wrong_output(numbers, "vectors; the model is not an embedder")
        if numbers.ndim not in (2, 3) or numbers.shape[1:-1] not in ((), mask.shape[1:]):
            raise self._model.wrong_output(numbers, f"{self.dims} numbers per token or text; it is not an embedder")
        self._check_size(numbers)
        pooled = numbers.astype(np.float64) if numbers.ndim == 2 else self._pool(numbers, mask)
        return unit_rows(pooled[:, : self.dims]).astype(np.float32)

    def _check_size(self, numbers: Vectors) -> None:
        """Raise an error if the output does not have the expected dimensions.

        Raises:
            DataError: config.json and the model's output have different dimensions, and `dims` is not set.
            ProviderError: the output has fewer dimensions than `dims`.
        """
        real = numbers.shape[-1]
        if self.config.dims is None and real != self.dims:
            raise DataError(
                f"contains {self.dims} dimensions, but the model returns {real}",
                where=self._folder.path / CONFIG,
                remedy=f"correct it, or set embed.embedder.dims to {real} (or less, for the leading dimensions)",
            )
        if real < self.dims:
            raise self._model.wrong_output(numbers, f"{self.dims} numbers per token or text; it is not an embedder")

    def _pool(self, numbers: Vectors, mask: Ints) -> Vectors | Floats:
        import numpy as np

        if self.config.pooling == "cls":
            return numbers[:, 0]
        weights = mask[:, :, None].astype(np.float64)
        pooled: Floats = (np.where(weights > 0, numbers, 0) * weights).sum(axis=1) / weights.sum(axis=1)
        return pooled

    @cached_property
    def _folder(self) -> ModelFolder:
        return ModelFolder(self.config.path, self.config.file)

    @cached_property
    def _model(self) -> LocalModel:
        # imported lazily, so that a configuration can be read without numpy
        from raggs.parts.localmodels import LocalModel

        return LocalModel(self._folder, self.config.max_length, OUTPUTS, self.config.threads)

    @cached_property
    def _size(self) -> int | None:
        """Dimensions of the model's vectors; None if only an output can show them."""
        try:
            found = as_object(json.loads(read_whole(self._folder.path / CONFIG)))
        except (RaggsError, ValueError, RecursionError):
            found = {}
        stated = next((size for name in SIZES if type(size := found.get(name)) is int and size > 0), None)
        return stated or self._model.size
