"""Cross-encoders of this machine: a model reads the query and a passage together, and gives one number for them, or one
for each of "no" and "yes".

Pairs are read one at a time unless `batch` says otherwise: on a processor that is as fast, and a pair's score does not
hang on what was read beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from raggs.base.arrays import Vectors
from raggs.base.errors import ConfigError
from raggs.parts.localmodels import Pair
from raggs.parts.rerankers.local import LocalConfig, LocalReranker

if TYPE_CHECKING:
    from raggs.parts.localmodels import Tokens

Activation = Literal["sigmoid", "softmax", "none"]


class OnnxReranker(LocalReranker):
    """A cross-encoder of this machine: a folder with model.onnx and tokenizer.json."""

    OUTPUTS: ClassVar[tuple[str, ...]] = ("logits",)

    class Config(LocalConfig):
        type: Literal["onnx"] = "onnx"
        batch: int = Field(1, ge=1, le=4096, description="pairs read together; above 1 last digits hang on the others")
        activation: Activation | None = Field(
            None,
            description="from logit to score: sigmoid of one; softmax over two, of which the second is yes; "
            "null: by how many there are",
        )

    config: Config

    def scores(self, numbers: Vectors) -> tuple[Vectors, Vectors]:
        """Raw logits: of two the distance of yes from no, of which a sigmoid is their softmax."""
        scoring, activation = self.config.scoring, self._activation(numbers.shape[1])
        parts = scoring.part(numbers)
        raw = numbers[:, -1] - numbers[:, 0] if numbers.shape[1] == 2 else numbers[:, 0]
        if activation == "softmax":
            return scoring.last(_sigmoid(parts[:, 1] - parts[:, 0])), raw
        return scoring.last(_sigmoid(parts[:, 0]) if activation == "sigmoid" else parts[:, 0]), raw

    def _activation(self, outputs: int) -> Activation:
        wanted = self.config.activation
        found: Activation = "softmax" if outputs == 2 else "sigmoid"
        if wanted is not None and (wanted == "softmax") != (found == "softmax"):
            fits = "activation softmax" if outputs == 2 else "activation sigmoid or none"
            raise ConfigError(
                f"the reranker gives {outputs} numbers for a pair, which activation {wanted} does not fit",
                where=self.folder.model,
                remedy=f"set {fits}, or leave it out",
            )
        return wanted or found

    def _read(self, query: str, texts: Sequence[str]) -> Iterator[Pair]:
        for start in range(0, len(texts), self.config.batch):
            began = time.perf_counter()
            pairs = [self.model.encode(query, text) for text in texts[start : start + self.config.batch]]
            logits = self._logits(pairs)
            ms = (time.perf_counter() - began) * 1000
            total = sum(map(len, pairs)) or 1
            for tokens, row in zip(pairs, logits, strict=True):
                yield Pair(tuple(row.tolist()), len(tokens), round(ms * len(tokens) / total, 3))

    def _logits(self, pairs: Sequence[Tokens]) -> Vectors:
        """Shape (pairs, 1 or 2).

        Raises:
            ProviderError: the model gives something else, or what is not finite.
        """
        numbers, _ = self.model.run(pairs)
        found = numbers[:, None] if numbers.ndim == 1 else numbers
        if found.ndim != 2 or found.shape[1] not in (1, 2):
            raise self.model.wrong_output(numbers, "one number or two for a pair: no cross-encoder")
        return found


def _sigmoid(logits: Vectors) -> Vectors:
    """1 / (1 + exp(-x)) in float32, without overflow."""
    small = np.exp(-np.abs(logits))
    found: Vectors = np.where(logits >= 0, 1 / (1 + small), small / (1 + small))
    return found.astype(np.float32)
