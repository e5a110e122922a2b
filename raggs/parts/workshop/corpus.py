"""A corpus as it was named: its passages one by one as its source gives them, or all of them on this disk.

The copy on the disk is made once for a source's content and a corpus's settings, whoever asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage
from raggs.base.atomic import make_folder
from raggs.base.errors import DataError
from raggs.base.hashing import hash_value
from raggs.base.progress import Building, Hear, Notice
from raggs.base.text import plural
from raggs.parts import corpora
from raggs.parts.chunkers.base import Document
from raggs.parts.corpora.base import Corpus, CorpusContext, Remote, Whole
from raggs.parts.corpora.cut import CutCorpus
from raggs.parts.indexes.passages import FORMAT, Passages, PassageStore
from raggs.parts.indexes.places import Places

SHOWN = 3


class OpenCorpus:
    """One corpus. Nothing is read before it is needed.

    Args:
        spec: of the corpus.
        places: where copies are kept.
        hear: is told of the reading, and of passages that were left out.
        context: what the corpus may use.
    """

    def __init__(self, spec: AdapterConfig, places: Places, hear: Hear, context: CorpusContext | None = None) -> None:
        self._spec = spec
        self._places = places
        self._hear = hear
        self._context = context or CorpusContext()
        self._told: set[str] = set()

    @property
    def place(self) -> Path | str:
        """Where the corpus lies, for messages."""
        return place_of(self._spec)

    def passages(self, *, whole: bool) -> Passages:
        """The passages, from their own source where that gives single ones and the `whole` corpus is not needed.

        Raises:
            RaggsError: as `store`; or the source's server has not what is asked of it.
        """
        source = self._source
        if isinstance(source, Remote) and not whole:
            return self._remote
        return self.store

    @cached_property
    def store(self) -> PassageStore:
        """All passages, on this disk.

        Raises:
            NotFoundError, DataError: the corpus is missing, malformed or empty, or changed while it was read.
            ProviderError: the workspace cannot be written.
        """
        source = self._source
        content = source.source_hash()
        path = self._places.corpora / f"{self._spec.type}-{self._key(content)}.sqlite"
        if (kept := self._kept(path, content)) is not None:
            self._tell([*source.outside(), *kept.notes])
            return kept
        make_folder(path.parent)
        store = PassageStore.build(
            path,
            self._some(source),
            content,
            progress=self._building,
            notes=source.notes,
            cutting_s=lambda: source.cutting_s,
            unreadable=lambda: source.unreadable,
        )
        self._tell([*source.outside(), *store.notes])
        self._tell_replaced(source)
        if source.source_hash() != content:
            store.close()
            path.unlink()
            raise DataError("the corpus changed while it was read", where=self.place, remedy="run again")
        return store

    def _kept(self, path: Path, content: str) -> PassageStore | None:
        """Return the passages that were stored before; None if there are none, or the file is not what was stored."""
        if not path.exists():
            return None
        try:
            store = PassageStore.open(path)
        except DataError as error:
            self._hear(Notice(f"{path}: {error.message}, so it is built again from the corpus"))
            return None
        if (store.built_as, store.source_hash) == (path.name, content):
            return store
        store.close()
        self._hear(Notice(f"{path}: holds the passages of another corpus, so it is built again"))
        return None

    def documents(self) -> Iterator[Document | Passage]:
        """Documents whole, where the source knows them; else its passages one by one.

        Raises:
            NotFoundError, DataError: the corpus is missing or malformed.
        """
        source = self._source
        yield from source.documents() if isinstance(source, Whole) else source.passages()
        self._tell([*source.outside(), *source.notes()])

    def empty(self) -> DataError:
        """What is said of a corpus without passages."""
        return DataError("the corpus holds no passages", where=self.place, remedy="add at least one")

    @property
    def key(self) -> str:
        """A hash of all that its passages depend on, of which no copy need be made.

        Raises:
            NotFoundError, DataError: the corpus is missing.
        """
        return self._key(self._source.source_hash())

    def _key(self, content: str) -> str:
        source = self._source
        cuts = source.cuts_hash() if isinstance(source, CutCorpus) else None
        return hash_value([FORMAT, source.causes(), content, *([] if cuts is None else [cuts])])[:24]

    def close(self) -> None:
        """Let go of files and connections."""
        if "_remote" in self.__dict__:
            self._tell_replaced(self._source)
        for part in ("store", "_remote"):
            if part in self.__dict__:
                self.__dict__.pop(part).close()

    @cached_property
    def _source(self) -> Corpus:
        source = corpora.REGISTRY.of(self._spec)(self._spec)
        source.context = self._context
        return source

    @cached_property
    def _remote(self) -> Passages:
        source = self._source
        if not isinstance(source, Remote):
            raise TypeError("this corpus does not give single passages")
        return source.remote()

    def _some(self, source: Corpus) -> Iterator[Passage]:
        """The passages of a corpus that has any."""
        number = 0
        for number, passage in enumerate(source.passages(), start=1):  # noqa: B007 - counted for the check below
            yield passage
        if not number:
            error = self.empty()
            error.message = "; ".join((error.message, *source.notes()))
            raise error

    def _tell(self, sentences: Sequence[str]) -> None:
        """Each sentence once."""
        for sentence in sentences:
            if sentence not in self._told:
                self._told.add(sentence)
                self._hear(Notice(sentence))

    def _tell_replaced(self, source: Corpus) -> None:
        if source.replaced:
            self._hear(replaced("passage", sorted(source.replaced)))
            source.replaced.clear()

    def _building(self, what: str, done: int, total: int) -> None:
        self._hear(Building(what, done, total))


def replaced(what: str, ids: Sequence[str]) -> Notice:
    """What is told of texts that came in with characters which are none."""
    shown = ", ".join(ids[:SHOWN]) + (", …" if len(ids) > SHOWN else "")
    return Notice(f"{plural(len(ids), what)} with U+FFFD in place of what is no character: {shown}")


def place_of(spec: AdapterConfig) -> Path | str:
    """Where the thing that a spec names lies, for messages: its path or address, else its type."""
    return getattr(spec, "path", None) or getattr(spec, "shown", None) or spec.type
