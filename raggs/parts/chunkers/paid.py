"""Base of chunkers that call models: boundaries are computed once, after the user accepts the cost, and then cached.

A corpus is also read before the user has accepted any cost, for example by a dry run. Reading therefore only uses
cached boundaries. New boundaries are computed by `make`, or if the chunker's context allows paid calls. The cache key
covers the text and everything that affects the boundaries, so a document's chunks do not change with later answers of a
model. The model's answers are cached, too, so that no paid answer is lost if the process is killed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from raggs.base.cache import CacheTable
from raggs.base.errors import PrerequisiteError, ProviderError
from raggs.base.hashing import hash_value
from raggs.parts.chunkers import Chunker, Document, ModelAccess, TextRange
from raggs.parts.chunkers.sizes import drop_repeated_ranges

if TYPE_CHECKING:
    from raggs.llm import LLM

GUESSED_BOUNDARY_SHARE = 0.75  # for estimates: assumed position of a window's last boundary, as a share of the window


class ChunkBoundaries(BaseModel):
    """Boundaries of the chunks of one document.

    Attributes:
        at: offsets at which chunks start, ascending, without the first.
        asked: number of windows for which the model was called.
        lost: number of windows for which the model gave no usable answer, so that a fallback rule was applied.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    at: tuple[int, ...] = ()
    asked: int = 0
    lost: int = 0

    def fits(self, text: str) -> bool:
        """Return whether the boundaries ascend and are within `text`."""
        edges = [0, *self.at, len(text)]
        return all(one < other for one, other in pairwise(edges))

    def places(self, text: str) -> Iterator[TextRange]:
        """Yield the chunks of `text` that these boundaries define."""
        return drop_repeated_ranges(text, pairwise([0, *self.at, len(text)]))


class NotCut(ProviderError):
    """Reports that the provider returned no answer for one document; other documents may succeed."""


class PaidChunker(Chunker):
    """A chunker that calls models; the boundaries of each text are cached."""

    TASK: ClassVar[str]  # name of the chunker's calls in the ledger

    @property
    @abstractmethod
    def models(self) -> tuple[str, ...]:
        """Models that the chunker calls and that cost money."""

    @abstractmethod
    async def ask(self, document: Document, llm: LLM, *, guess: bool) -> ChunkBoundaries:
        """Compute the boundaries of a document that has text and `begin` 0.

        Args:
            llm: language models.
            guess: for cost estimates: if `llm` returns no answer, continue with a typical one.

        Raises:
            NotCut: the provider returned no answer.
            RaggsError: the provider refused, or the budget is used up; answers so far are cached.
        """

    def places(self, document: Document) -> Iterator[TextRange]:
        """Yield the ranges (see `Chunker.places`).

        Raises:
            PrerequisiteError: the boundaries are not cached, and paid calls are not allowed.
            RaggsError: see `make`.
        """
        text = document.text
        if not text.strip():
            return
        cuts = self.kept(document)
        if cuts is None:
            asking = self.asking
            if not asking.pays:
                raise PrerequisiteError(
                    f"{document.source} has not been chunked by {self.models[0]} yet, which costs money",
                    remedy="estimate the cost with `raggs chunks make --config FILE --dry-run`, then run it"
                    " without --dry-run",
                )
            cuts = asking.loop().run(self.make(document, asking.llm()))
        yield from cuts.places(text)

    async def make(self, document: Document, llm: LLM) -> ChunkBoundaries:
        """Compute the boundaries of a document's body, and cache them.

        Raises:
            RaggsError: see `ask`, or the cache cannot be written.
        """
        cuts = await self.ask(document.body, llm, guess=False)
        self._store.put({_key(document): cuts.model_dump_json().encode()})
        return cuts

    def kept(self, document: Document) -> ChunkBoundaries | None:
        """Return the cached boundaries of the document's body; None if there is no entry, or it is damaged.

        Raises:
            ProviderError: the cache file cannot be read.
        """
        found = self._store.find([_key(document)]).get(_key(document))
        if found is None:
            return None
        try:
            cuts = ChunkBoundaries.model_validate_json(found)
        except ValidationError:
            return None
        return cuts if cuts.fits(document.body.text) else None

    @property
    def asking(self) -> ModelAccess:
        """Access to language models.

        Raises:
            PrerequisiteError: the context provides no access to language models.
        """
        if self.context.asking is None:
            raise PrerequisiteError(
                f"no language model is available for chunker {self.config.type}",
                remedy="create the chunker with a workspace, or choose another one",
            )
        return self.context.asking

    @cached_property
    def _store(self) -> CacheTable:
        return self.asking.cuts.table(f"{self.config.type}-{hash_value(self.causes())[:16]}")


def _key(document: Document) -> str:
    return hash_value(document.body.text)
