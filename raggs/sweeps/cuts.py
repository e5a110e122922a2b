"""The corpus of a sweep in every way in which its systems have it cut.

Each cut is a corpus of its own in the workspace: its passages, vectors and indexes lie there under what they are made
of, so that systems share them, and sweeps and runs too. The golden set's own cut is known by the content of its
passages; of any other the text must be what was judged, wherever a judged passage stands.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from raggs.base.adapter import AdapterConfig
from raggs.base.errors import ConfigError, DataError
from raggs.golden.places import judged_places
from raggs.golden.projecting import Cut, project_onto
from raggs.parts.chunkers.base import ChunkerConfig
from raggs.parts.corpora.base import Recuttable
from raggs.parts.indexes.passages import PassageStore
from raggs.sweeps.excerpts import references_of
from raggs.sweeps.grid import cut_labels
from raggs.sweeps.models import CutPart
from raggs.sweeps.once import Once
from raggs.sweeps.projecting import Atlas

if TYPE_CHECKING:
    from raggs.sweeps.world import World

REMEDY = "name documents under `corpus`, {type: folder, path: ...}, or take `chunker` out"


class Cuts:
    """All cuts of one corpus.

    Args:
        world: of the sweep.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._stores = Once[PassageStore]()
        self._labels = cut_labels(world.config)

    def passages(self, chunker: ChunkerConfig | None) -> PassageStore:
        """The passages of one cut.

        Raises:
            ConfigError: the corpus comes in passages.
            DataError: the chunker gives none.
        """
        return self._stores(chunker, lambda: self._made(chunker))

    @cached_property
    def atlas(self) -> Atlas:
        """All cuts by place, with the grades of the golden set.

        Raises:
            DataError: the judged passages have no places; the documents are not those that were judged.
        """
        world = self._world
        stores = [(chunker, self.passages(chunker)) for chunker in world.config.cuts]
        judged = judged_places(world.golden, world.judgments)
        found: list[tuple[CutPart, Cut]] = []
        for chunker, passages in stores:
            places = project_onto(judged, passages, passages.content_hash, world.corpus.place)
            found.append((self._part(chunker, passages), places.cut))
        return Atlas(judged, world.labels, found, references_of(world.golden.queries()))

    def _part(self, chunker: ChunkerConfig | None, passages: PassageStore) -> CutPart:
        content = passages.content_hash
        return CutPart(
            label=self._labels[repr(chunker)],
            chunker="as `corpus` says" if chunker is None else _told(chunker),
            content=content,
            passages=len(passages),
            seconds=passages.cutting_s,
            golden=content == self._world.judgments.origin.corpus,
        )

    def _made(self, chunker: ChunkerConfig | None) -> PassageStore:
        spec = self._recut(self._world.named, chunker)
        try:
            return self._world.workshop.corpus(spec).store
        except ConfigError:
            raise
        except DataError as error:
            if chunker is None:
                raise
            said = f"cut by {self._labels[repr(chunker)]}: {error.message}"
            raise DataError(said, where=error.where, line=error.line, remedy=error.remedy) from error

    def _recut(self, spec: AdapterConfig, chunker: ChunkerConfig | None) -> AdapterConfig:
        if not isinstance(spec, Recuttable):
            said = f"a corpus {spec.type} comes in passages, so no chunker can cut it (axis `chunker`)"
            raise ConfigError(said, where=self._world.corpus.place, remedy=REMEDY)
        return spec if chunker is None else spec.recut(chunker)


def _told(chunker: ChunkerConfig) -> str:
    """A chunker and those of its settings that are not its defaults, in one line."""
    given = chunker.model_dump(mode="json", exclude_defaults=True, exclude={"type"})
    parts = {key: getattr(chunker, key) for key in given}
    told = (f"{key} {part.type if isinstance(part, AdapterConfig) else given[key]}" for key, part in parts.items())
    return ", ".join([chunker.type, *told])
