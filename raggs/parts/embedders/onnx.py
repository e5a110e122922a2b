"""Embedding models of this machine: each token's vector from an ONNX file, pooled here, at unit length.

Texts are read one at a time unless `batch` says otherwise: on a processor that is as fast, and a vector then hangs on
its text alone. A model that was trained with words in front of questions and passages gets them by `query_prefix` and
`passage_prefix`; one that was trained for shorter vectors gives its leading dimensions.
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

SIZES = ("hidden_size", "d_model", "n_embd", "dim")  # what configurations of models call the length of a vector
CONFIG = "config.json"
OUTPUTS = ("last_hidden_state", "token_embeddings", "sentence_embedding")


class OnnxEmbedder(Embedder):
    """A model of this machine: a folder with model.onnx and tokenizer.json."""

    PACKAGES = (*PACKAGES, "numpy")

    class Config(EmbedderConfig):
        type: Literal["onnx"] = "onnx"
        path: SourcePath = Field(
            description="the model's folder, with its ONNX file and tokenizer.json; nothing is downloaded"
        )
        file: str | None = Field(None, description="the ONNX file in it; null: model.onnx, or onnx/model.onnx")
        pooling: Literal["mean", "cls"] = Field("mean", description="of the tokens' vectors: their mean, or the first")
        dims: int | None = Field(
            None, ge=1, description="length of a vector: the model's leading dimensions; null: all of them"
        )
        max_length: int = Field(512, ge=8, le=1 << 20, description="tokens read; what is longer is cut")
        query_prefix: str = Field("", description='put in front of each question, such as "query: "')
        passage_prefix: str = Field("", description='put in front of each passage, such as "passage: "')
        batch: int = Field(1, ge=1, le=4096, description="texts read together; above 1 last digits hang on the others")
        threads: Effort[int | None] = Field(None, ge=1, description="of the model; null: one a core")

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), "file": None}  # it counts by its content

    @property
    def identity(self) -> str:
        """The model's content, and all by which it is read."""
        return f"onnx/{self.dims}/{hash_value([self.own_causes(), self._folder.content])[:16]}"

    def causes(self) -> Causes:
        return {**super().causes(), "content": self._folder.content}

    @property
    def dims(self) -> int:
        """As set, or as the model's config.json or the model itself tells.

        Raises:
            ConfigError: more than the model has, or neither tells.
        """
        own, wanted = self._size, self.config.dims
        if own is None and wanted is None:
            raise ConfigError(
                "the length of the model's vectors is not known", where=self._folder.path, remedy="set dims"
            )
        if own is not None and wanted is not None and wanted > own:
            raise ConfigError(
                f"dims is {wanted}, and the model's vectors have {own}",
                where=self._folder.path,
                remedy="set fewer, or none",
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
        """Vectors of unit length, shape (texts, dims).

        Raises:
            ProviderError: the model gives neither tokens' vectors nor texts', or shorter ones.
            DataError: as `_check_size`.
        """
        import numpy as np

        numbers, mask = self._model.run(batch)
        if self._model.output == "logits":  # a classifier's
            raise self._model.wrong_output(numbers, "vectors: no embedder")
        if numbers.ndim not in (2, 3) or numbers.shape[1:-1] not in ((), mask.shape[1:]):
            raise self._model.wrong_output(numbers, f"{self.dims} numbers for each token or text: no embedder")
        self._check_size(numbers)
        pooled = numbers.astype(np.float64) if numbers.ndim == 2 else self._pool(numbers, mask)
        return unit_rows(pooled[:, : self.dims]).astype(np.float32)

    def _check_size(self, numbers: Vectors) -> None:
        """
        Raises:
            DataError: config.json says another length than the model's vectors have, and no `dims` is set.
            ProviderError: the model's vectors are shorter than `dims`.
        """
        real = numbers.shape[-1]
        if self.config.dims is None and real != self.dims:
            raise DataError(
                f"says that vectors have {self.dims} dimensions, and the model gives {real}",
                where=self._folder.path / CONFIG,
                remedy=f"correct it, or set embed.embedder.dims to {real}, or to fewer for the leading dimensions",
            )
        if real < self.dims:
            raise self._model.wrong_output(numbers, f"{self.dims} numbers for each token or text: no embedder")

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
        from raggs.parts.localmodels import LocalModel  # late: a configuration can be read without numpy

        return LocalModel(self._folder, self.config.max_length, OUTPUTS, self.config.threads)

    @cached_property
    def _size(self) -> int | None:
        """The length of the model's own vectors; None where only a text would tell."""
        try:
            found = as_object(json.loads(read_whole(self._folder.path / CONFIG)))
        except (RaggsError, ValueError, RecursionError):
            found = {}
        stated = next((size for name in SIZES if type(size := found.get(name)) is int and size > 0), None)
        return stated or self._model.size
