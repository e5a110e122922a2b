"""What rerankers have in common that run on this machine: pairs are read once, kept, and told with their own time.

A pair's numbers hang on the query, the passage, the model's content and the settings by which it reads, on nothing
else; what is made of them (an activation, a rounding) is done anew each time. The model reads quotation marks as
keyboards have them, as embedders do: to the model, a typographic apostrophe is another token. What was read is kept in
the workspace every `FLUSH` pairs, so that a killed process has lost no more than those; one that is stopped loses none.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from raggs.base.arrays import Vectors, shortest_floats
from raggs.base.hashing import hash_value
from raggs.base.precision import Scoring
from raggs.base.settings import Causes, Effort, SourcePath
from raggs.base.text import fold_quotes
from raggs.parts.localmodels import PACKAGES, KeptPairs, LocalModel, ModelFolder, Pair, passage_key
from raggs.parts.rerankers.base import Reranker, RerankerConfig, RerankerContext, Reranking

if TYPE_CHECKING:
    from raggs.base.artifacts import Passage

FLUSH = 32


class LocalConfig(RerankerConfig):
    """What the settings of a reranker of this machine hold."""

    path: SourcePath = Field(
        description="the model's folder, with its ONNX file and tokenizer.json; nothing is downloaded"
    )
    file: str | None = Field(None, description="the ONNX file in it; null: model.onnx, or onnx/model.onnx")
    max_length: int = Field(512, ge=8, le=1 << 20, description="tokens read; what is longer is cut")
    scoring: Scoring = Scoring()
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
        texts = {passage_key(text): text for text in read}
        async with self._turn():
            known = self._kept.of(query)
            known |= await self._learn(query, {key: text for key, text in texts.items() if key not in known})
        pairs = [known[passage_key(text)] for text in read]
        scores, logits = self.scores(np.array([pair.logits for pair in pairs], dtype=np.float32))
        return Reranking.of(
            passages,
            shortest_floats(scores),
            shortest_floats(logits),
            numbers=[pair.logits if len(pair.logits) > 1 else () for pair in pairs],
            tokens=sum(pair.tokens for pair in pairs),
            ms=sum(known[key].ms for key in texts),
        )

    def _turn(self) -> asyncio.Lock:
        """One query after the other: read side by side, none would be done before the last one."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = loop, asyncio.Lock()
        return self._lock[1]

    async def _learn(self, query: str, missing: Mapping[str, str]) -> dict[str, Pair]:
        """Read passages that are not known, by key; whoever is stopped keeps what was read."""
        found: dict[str, Pair] = {}
        kept = 0
        try:
            for key, pair in zip(missing, self._read(query, list(missing.values())) if missing else (), strict=True):
                found[key] = pair
                if len(found) - kept == FLUSH:
                    self._kept.keep(query, dict(islice(found.items(), kept, None)))
                    kept = len(found)
                await asyncio.sleep(0)  # others of this loop, such as whoever stops it, have their turn
        finally:
            self._kept.keep(query, dict(islice(found.items(), kept, None)))
        return found

    @abstractmethod
    def _read(self, query: str, texts: Sequence[str]) -> Iterator[Pair]:
        """What the model gives for the query with each of the texts, in their order."""

    @abstractmethod
    def scores(self, numbers: Vectors) -> tuple[Vectors, Vectors]:
        """Scores and raw logits, one a pair, of what the model gave, shape (pairs, outputs)."""

    def close(self) -> None:
        if "_kept" in self.__dict__:
            self._kept.close()

    @cached_property
    def _kept(self) -> KeptPairs:
        causes = {name: value for name, value in self.causes().items() if name not in self.AFTERWARDS}
        return KeptPairs(self._folder, hash_value(causes), self.context.tell)

    @property
    def _folder(self) -> Path | None:
        return self.context.places.rerank if self.context.keeps else None
