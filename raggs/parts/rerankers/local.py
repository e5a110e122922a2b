"""Rerankers that run on this machine: cross-encoders and late interaction. Outputs and their times are cached per pair.

Apart from the last digits, the outputs for a pair depend only on the query, the passage, the model files and the
settings of the input. Settings in `AFTERWARDS` (activation, rounding) are applied to cached outputs. Typographic
quotation marks are replaced by ASCII ones, as in the embedders, because a typographic apostrophe is another token to
the model. Outputs are stored in the workspace every `FLUSH` pairs, so that a killed process loses at most `FLUSH`
outputs and one batch. If a call is cancelled, at most the rest of one batch is lost.

Cross-encoders: the model reads the query and a passage together. The model returns one logit, or two: one for "no" and
one for "yes". By default, pairs are run one at a time, not in batches. On a CPU this is as fast, and the score of a
pair does not depend on other pairs.

Late interaction: query and passage are encoded separately, and their tokens are compared at the end (ColBERT). The
score is MaxSim: for each query token, the maximum cosine to any passage token, summed over the query (Khattab and
Zaharia, SIGIR 2020, equation 3). By default, a query is padded with mask tokens, which the model turns into additional
terms, and passage tokens that are punctuation are ignored. Only the sums are cached, not the vectors.
"""

from __future__ import annotations

import asyncio
import json
import string
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from raggs.base.arrays import Vectors, shortest_floats
from raggs.base.cache import CacheTable
from raggs.base.errors import ConfigError
from raggs.base.hashing import canonical_json, hash_value
from raggs.base.precision import PrecisionSettings
from raggs.base.settings import Causes, Effort, SourcePath
from raggs.base.text import fold_quotes
from raggs.parts.localmodels import PACKAGES, LocalModel, ModelFolder, Tokens
from raggs.parts.rerankers import Reranker, RerankerConfig, RerankerContext, Reranking

if TYPE_CHECKING:
    from raggs.base.artifacts import Passage

FLUSH = 32
FORMAT = 3  # version of the cached rows


@dataclass(frozen=True)
class PairOutput:
    """Output of a model for a pair of texts, the number of the pair's tokens, and its share of the computing time in
    ms.
    """

    logits: tuple[float, ...]
    tokens: int
    ms: float

    @classmethod
    def read(cls, row: bytes) -> PairOutput:
        """Return the output stored in `row`."""
        logits, tokens, ms = json.loads(row)
        return cls(tuple(logits), tokens, ms)

    @property
    def row(self) -> bytes:
        """Serialized output."""
        return canonical_json([self.logits, self.tokens, self.ms]).encode()


class LocalConfig(RerankerConfig):
    """Settings of all local rerankers."""

    path: SourcePath = Field(description="folder with an ONNX file and tokenizer.json; nothing is downloaded")
    file: str | None = Field(None, description="name of the ONNX file in `path`; null: model.onnx or onnx/model.onnx")
    max_length: int = Field(512, ge=8, le=1 << 20, description="maximum number of tokens; longer texts are truncated")
    scoring: PrecisionSettings = PrecisionSettings()
    threads: Effort[int | None] = Field(None, ge=1, description="number of threads; null: one per core")


class LocalReranker(Reranker):
    """Scores pairs with a model on this machine (see the module)."""

    PACKAGES = (*PACKAGES, "numpy")
    FOLDS = True
    # settings that are applied to cached outputs, so they are not part of the cache key
    AFTERWARDS: ClassVar[tuple[str, ...]] = ("activation", "scoring")
    ADDED: ClassVar[int] = 0  # number of tokens that are added to those of a text
    OUTPUTS: ClassVar[tuple[str, ...]] = ()  # preferred names of the model's output

    Config: ClassVar[type[RerankerConfig]] = LocalConfig
    config: LocalConfig

    def __init__(self, config: LocalConfig, context: RerankerContext) -> None:
        super().__init__(config, context)
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self.folder = ModelFolder(config.path, config.file)
        self.model = LocalModel(self.folder, config.max_length - self.ADDED, self.OUTPUTS, config.threads)

    def own_causes(self) -> Causes:
        return {**super().own_causes(), "file": None}  # the hash of the file's content is used instead of its name

    def causes(self) -> Causes:
        return {**self.own_causes(), "content": self.folder.content}

    def check(self) -> None:
        self.folder.check()

    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        if not passages:
            return Reranking(())
        query, read = fold_quotes(query), [fold_quotes(passage.content) for passage in passages]
        async with self._turn():
            known = await self._read_once(query, list(dict.fromkeys(read)))
        pairs = [known[text] for text in read]
        scores, logits = self.scores(np.array([pair.logits for pair in pairs], dtype=np.float32))
        return Reranking.of(
            passages,
            shortest_floats(scores),
            shortest_floats(logits),
            numbers=[pair.logits if len(pair.logits) > 1 else () for pair in pairs],
            tokens=sum(pair.tokens for pair in pairs),
            ms=sum(pair.ms for pair in known.values()),
        )

    def _turn(self) -> asyncio.Lock:
        """Return a lock that makes queries run one after the other. Otherwise, all would finish only at the end."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = loop, asyncio.Lock()
        return self._lock[1]

    async def _read_once(self, query: str, texts: Sequence[str]) -> dict[str, PairOutput]:
        """Return the outputs by text, and compute those that are not cached.

        If cancelled, it stores the outputs computed so far, except the rest of the current batch.
        """
        keys = {text: hash_value([query, text]) for text in texts}
        rows = {} if self._kept is None else self._kept.find(keys.values())
        known = {text: PairOutput.read(rows[key]) for text, key in keys.items() if key in rows}
        missing, found, kept = [text for text in texts if text not in known], dict[str, PairOutput](), 0
        try:
            for text, pair in zip(missing, self._read(query, missing) if missing else (), strict=True):
                found[text] = pair
                if len(found) - kept == FLUSH:
                    self._keep({keys[text]: pair.row for text, pair in islice(found.items(), kept, None)})
                    kept = len(found)
                await asyncio.sleep(0)  # lets other tasks run, for example one that cancels this one
        finally:
            self._keep({keys[text]: pair.row for text, pair in islice(found.items(), kept, None)})
        return known | found

    def _keep(self, rows: dict[str, bytes]) -> None:
        if rows and self._kept is not None:
            self._kept.put(rows)

    @abstractmethod
    def _read(self, query: str, texts: Sequence[str]) -> Iterator[PairOutput]:
        """Yield the outputs for the query and each text, in the order of `texts`."""

    @abstractmethod
    def scores(self, numbers: Vectors) -> tuple[Vectors, Vectors]:
        """Return scores and raw logits, one per pair, from the outputs of shape (pairs, outputs)."""

    @cached_property
    def _kept(self) -> CacheTable | None:
        causes = {name: value for name, value in self.causes().items() if name not in self.AFTERWARDS}
        cache = self.context.cache
        return None if cache is None else cache.at("rerank").table(f"pairs-{hash_value([FORMAT, causes])[:16]}")


Activation = Literal["sigmoid", "softmax", "none"]


class OnnxReranker(LocalReranker):
    """A local cross-encoder in a folder with model.onnx and tokenizer.json."""

    OUTPUTS: ClassVar[tuple[str, ...]] = ("logits",)

    class Config(LocalConfig):
        type: Literal["onnx"] = "onnx"
        batch: int = Field(
            1, ge=1, le=4096, description="pairs per batch; above 1, the last digits of scores depend on the batch"
        )
        activation: Activation | None = Field(
            None,
            description="function from logits to score: sigmoid or none for one logit, softmax for two (no, yes); "
            "null: chosen by the number of logits",
        )

    config: Config

    def scores(self, numbers: Vectors) -> tuple[Vectors, Vectors]:
        """Return scores and raw logits. For two outputs, the logit is yes minus no; its sigmoid equals their
        softmax.
        """
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
                f"the reranker has {outputs} outputs per pair, which activation {wanted} does not support",
                where=self.folder.model,
                remedy=f"set {fits}, or remove the setting",
            )
        return wanted or found

    def _read(self, query: str, texts: Sequence[str]) -> Iterator[PairOutput]:
        for start in range(0, len(texts), self.config.batch):
            began = time.perf_counter()
            pairs = [self.model.encode(query, text) for text in texts[start : start + self.config.batch]]
            logits = self._logits(pairs)
            ms = (time.perf_counter() - began) * 1000
            total = sum(map(len, pairs)) or 1
            for tokens, row in zip(pairs, logits, strict=True):
                yield PairOutput(tuple(row.tolist()), len(tokens), round(ms * len(tokens) / total, 3))

    def _logits(self, pairs: Sequence[Tokens]) -> Vectors:
        """Return the logits, shape (pairs, 1 or 2).

        Raises:
            ProviderError: the output has another shape, or is not finite.
        """
        numbers, _ = self.model.run(pairs)
        found = numbers[:, None] if numbers.ndim == 1 else numbers
        if found.ndim != 2 or found.shape[1] not in (1, 2):
            raise self.model.wrong_output(numbers, "one or two numbers per pair; the model is not a cross-encoder")
        return found


def _sigmoid(logits: Vectors) -> Vectors:
    """Return 1 / (1 + exp(-x)) in float32, without overflow."""
    small = np.exp(-np.abs(logits))
    found: Vectors = np.where(logits >= 0, 1 / (1 + small), small / (1 + small))
    return found.astype(np.float32)


class LateReranker(LocalReranker):
    """Local ColBERT models: all tokens of the query are compared with all tokens of the passage."""

    AFTERWARDS: ClassVar[tuple[str, ...]] = ()  # empty, because vectors are rounded before they are compared
    ADDED: ClassVar[int] = 1  # the marker token
    OUTPUTS: ClassVar[tuple[str, ...]] = ("contextual", "last_hidden_state", "token_embeddings")

    class Config(LocalConfig):
        type: Literal["late-interaction"] = "late-interaction"
        query_marker: str | None = Field(
            "[unused0]", description="token inserted after a query's first token; null: no token"
        )
        passage_marker: str | None = Field(
            "[unused1]", description="token inserted after a passage's first token; null: no token"
        )
        mask: str | None = Field("[MASK]", description="token that pads a query; null: no padding")
        query_length: int = Field(32, ge=2, le=4096, description="minimum number of query tokens, reached by padding")
        punctuation: bool = Field(False, description="compare the punctuation of passages, too")

    config: Config

    def scores(self, numbers: Vectors) -> tuple[Vectors, Vectors]:
        """Return the rounded sums as scores, and the raw sums as logits."""
        return numbers[:, 1], numbers[:, 0]

    def _read(self, query: str, texts: Sequence[str]) -> Iterator[PairOutput]:
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
            yield PairOutput((raw, score), len(asked) + len(tokens), round(ms, 3))

    def _query(self, text: str) -> Tokens:
        """Return the tokens of a query with its marker, padded with masks that other tokens do not attend to."""
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
        """Return one vector of unit length per token, at the precision of the settings.

        Raises:
            ProviderError: the output has another shape.
        """
        numbers, _ = self.model.run([tokens])
        if numbers.ndim != 3 or numbers.shape[1] != len(tokens):
            raise self.model.wrong_output(numbers, "one vector per token; the model does not support late interaction")
        norms = np.linalg.norm(numbers[0], axis=1, keepdims=True)
        return self.config.scoring.part(numbers[0] / np.where(norms > 0, norms, 1))

    @cached_property
    def _silent(self) -> frozenset[int]:
        """Ids of the tokens that are punctuation."""
        signs = () if self.config.punctuation else string.punctuation
        return frozenset(found for sign in signs if (found := self.model.find(sign)) is not None)
