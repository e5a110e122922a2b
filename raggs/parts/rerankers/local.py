"""What rerankers have in common that run on this machine: pairs are read once, kept, and told with their own time.

A pair's numbers hang on the query, the passage, the model's content and the settings by which it reads, on nothing
else; what is made of them (an activation, a rounding) is done anew each time. The model reads quotation marks as
keyboards have them, as embedders do: to the model, a typographic apostrophe is another token. What was read is kept in
the workspace every `FLUSH` pairs, so that a killed process has lost no more than those; one that is stopped loses none.

Cross-encoders of this machine: a model reads the query and a passage together, and gives one number for them, or one
for each of "no" and "yes".

Pairs are read one at a time unless `batch` says otherwise: on a processor that is as fast, and a pair's score does not
hang on what was read beside it.

Late interaction on this machine: query and passage are read apart, token by token, and meet at the end (ColBERT).

The score is MaxSim: for each token of the query the greatest cosine to any token of the passage, summed over the query
(Khattab and Zaharia, SIGIR 2020, equation 3). A query is filled up with masks, which the model makes into further
terms; of a passage, tokens that are nothing but punctuation take no part. Only the sums are kept, not the vectors.
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
FORMAT = 3  # of what is kept of a pair


@dataclass(frozen=True)
class PairOutput:
    """What a model gave for a pair of texts, the tokens that it read, and its share of the time, in ms."""

    logits: tuple[float, ...]
    tokens: int
    ms: float

    @classmethod
    def read(cls, row: bytes) -> PairOutput:
        """What `row` keeps."""
        logits, tokens, ms = json.loads(row)
        return cls(tuple(logits), tokens, ms)

    @property
    def row(self) -> bytes:
        """The bytes that are kept."""
        return canonical_json([self.logits, self.tokens, self.ms]).encode()


class LocalConfig(RerankerConfig):
    """What the settings of a reranker of this machine hold."""

    path: SourcePath = Field(
        description="the model's folder, with its ONNX file and tokenizer.json; nothing is downloaded"
    )
    file: str | None = Field(None, description="the ONNX file in it; null: model.onnx, or onnx/model.onnx")
    max_length: int = Field(512, ge=8, le=1 << 20, description="tokens read; what is longer is cut")
    scoring: PrecisionSettings = PrecisionSettings()
    threads: Effort[int | None] = Field(None, ge=1, description="of the model; null: one a core")


class LocalReranker(Reranker):
    """Reads pairs by a model of this machine (see the module)."""

    PACKAGES = (*PACKAGES, "numpy")
    FOLDS = True
    AFTERWARDS: ClassVar[tuple[str, ...]] = ("activation", "scoring")  # settings that count only after what is kept
    ADDED: ClassVar[int] = 0  # tokens that are put to those of a text
    OUTPUTS: ClassVar[tuple[str, ...]] = ()  # names of the output that is wanted, where the model has it

    Config: ClassVar[type[RerankerConfig]] = LocalConfig
    config: LocalConfig

    def __init__(self, config: LocalConfig, context: RerankerContext) -> None:
        super().__init__(config, context)
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self.folder = ModelFolder(config.path, config.file)
        self.model = LocalModel(self.folder, config.max_length - self.ADDED, self.OUTPUTS, config.threads)

    def own_causes(self) -> Causes:
        return {**super().own_causes(), "file": None}  # it counts by its content

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
        """One query after the other: read side by side, none would be done before the last one."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = loop, asyncio.Lock()
        return self._lock[1]

    async def _read_once(self, query: str, texts: Sequence[str]) -> dict[str, PairOutput]:
        """What the model gives, by text, read now where it is not known. Whoever is stopped keeps what was read."""
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
                await asyncio.sleep(0)  # others of this loop, such as whoever stops it, have their turn
        finally:
            self._keep({keys[text]: pair.row for text, pair in islice(found.items(), kept, None)})
        return known | found

    def _keep(self, rows: dict[str, bytes]) -> None:
        if rows and self._kept is not None:
            self._kept.put(rows)

    @abstractmethod
    def _read(self, query: str, texts: Sequence[str]) -> Iterator[PairOutput]:
        """What the model gives for the query with each of the texts, in their order."""

    @abstractmethod
    def scores(self, numbers: Vectors) -> tuple[Vectors, Vectors]:
        """Scores and raw logits, one a pair, of what the model gave, shape (pairs, outputs)."""

    @cached_property
    def _kept(self) -> CacheTable | None:
        causes = {name: value for name, value in self.causes().items() if name not in self.AFTERWARDS}
        cache = self.context.cache
        return None if cache is None else cache.at("rerank").table(f"pairs-{hash_value([FORMAT, causes])[:16]}")


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
