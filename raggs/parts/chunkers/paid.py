"""What chunkers are that ask models: their cuts are made once, by who may pay for them, and kept.

A corpus is read before anybody agreed to any cost, also by a dry run. So a chunker that costs money only gives it what
was cut before; it cuts when it is asked to `make`, and where its context says that it pays. Kept are the places, by the
text and by all that can change them: the same document is cut in the same way for good, whatever a model would answer
today. A process that is killed loses no answer, since these are kept, too.
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

GUESSED_BOUNDARY_SHARE = 0.75  # of a window: where its last cut is taken to be before anybody knows


class ChunkBoundaries(BaseModel):
    """Where one document was cut.

    Attributes:
        at: the characters at which chunks begin, besides the first, ascending.
        asked: parts of the document that the model was asked about.
        lost: those of them to which it gave no answer of use, so that a rule stood in.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    at: tuple[int, ...] = ()
    asked: int = 0
    lost: int = 0

    def fits(self, text: str) -> bool:
        """Whether these can be cuts of `text`."""
        edges = [0, *self.at, len(text)]
        return all(one < other for one, other in pairwise(edges))

    def places(self, text: str) -> Iterator[TextRange]:
        """The chunks that they make of `text`."""
        return drop_repeated_ranges(text, pairwise([0, *self.at, len(text)]))


class NotCut(ProviderError):
    """One document that no answer came for; others may well be cut."""


class PaidChunker(Chunker):
    """A chunker that asks models, and so cuts a document once."""

    TASK: ClassVar[str]  # under which its calls are booked

    @property
    @abstractmethod
    def models(self) -> tuple[str, ...]:
        """The models that are paid."""

    @abstractmethod
    async def ask(self, document: Document, llm: LLM, *, guess: bool) -> ChunkBoundaries:
        """Cut a document that holds text, and has no beginning that is left out.

        Args:
            llm: whom to ask.
            guess: go on where `llm` gives no answer, as if it were a usual one; for estimates.

        Raises:
            NotCut: the provider gave no answer.
            RaggsError: it refused, or the budget is used up; what was answered is in the cache.
        """

    def places(self, document: Document) -> Iterator[TextRange]:
        """See `Chunker.places`.

        Raises:
            PrerequisiteError: the document was not cut before, and nobody agreed to pay for it.
            RaggsError: as `make`.
        """
        text = document.text
        if not text.strip():
            return
        cuts = self.kept(document)
        if cuts is None:
            asking = self.asking
            if not asking.pays:
                raise PrerequisiteError(
                    f"{self.models[0]} has not cut {document.source} yet, which costs money",
                    remedy="see what by `raggs chunks make --config FILE --dry-run`, and leave --dry-run out to do it",
                )
            cuts = asking.loop().run(self.make(document, asking.llm()))
        yield from cuts.places(text)

    async def make(self, document: Document, llm: LLM) -> ChunkBoundaries:
        """Cut the body of a document, and keep where.

        Raises:
            RaggsError: as `ask`, or the folder of cuts cannot be written.
        """
        cuts = await self.ask(document.body, llm, guess=False)
        self._store.put({_key(document): cuts.model_dump_json().encode()})
        return cuts

    def kept(self, document: Document) -> ChunkBoundaries | None:
        """Where the document's body was cut before; None where it was not, or what was kept is damaged.

        Raises:
            ProviderError: the file cannot be read.
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
        """How models are asked.

        Raises:
            PrerequisiteError: nobody said.
        """
        if self.context.asking is None:
            raise PrerequisiteError(
                f"no language model is at hand for the chunker {self.config.type}",
                remedy="let a workspace make the chunker, or name another one",
            )
        return self.context.asking

    @cached_property
    def _store(self) -> CacheTable:
        return self.asking.cuts.table(f"{self.config.type}-{hash_value(self.causes())[:16]}")


def _key(document: Document) -> str:
    return hash_value(document.body.text)
