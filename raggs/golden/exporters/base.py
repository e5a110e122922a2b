"""What an exporter is: a golden set in, files of another tool's format out, and word of what the format cannot hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from raggs.base.artifacts import Passage
from raggs.golden.base import GoldenSet
from raggs.golden.exporters.files import write_json
from raggs.golden.parts import PARTS, Part, Stock, contents_of
from raggs.parts.readers.scales import GradeScale

UNORDERED = "nobody was asked for an order (rank: null); what stands in one is by grade, then by fused rank"
TEST = "test"  # the split that tools evaluate on


@dataclass(frozen=True)
class ExportOptions:
    """What is asked of an export.

    Attributes:
        scale: on which numbers labels are written.
        corpus: all passages, for exporters with `WHOLE_CORPUS`; None where only the pools are wanted, or at hand.
        split: what the part of the data is called that the questions are, in formats with parts.
        contents: what the golden set holds, where it is counted already.
        facts: what else the sidecar is to say.
    """

    scale: GradeScale = field(default_factory=GradeScale)
    corpus: Iterable[Passage] | None = None
    split: str = TEST
    contents: Mapping[Part, Stock] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Loss:
    """A part of a golden set that an export does not hold.

    Attributes:
        part, what: its name, and what it is in words.
        count: how much of it is lost, in items of `raggs.golden.parts`.
        kept: how much of it is there all the same.
    """

    part: Part
    what: str
    count: int
    kept: int = 0

    def __str__(self) -> str:
        return f"{self.what} ({self.kept:,} of {self.count + self.kept:,} are there)" if self.kept else self.what


class Exporter(ABC):
    """Writes a golden set. Built as ``cls(options)``, or ``cls()`` for what is usual.

    Attributes:
        FORMAT: its name in the registry.
        SIDECAR: the file beside the data that says whence it is; `raggs eval` goes by it.
        LABELS: the file of its labels, in a form that `raggs.parts.readers` knows; ``{split}`` stands for the split's
            name.
        HOLDS: what of a golden set its files give back whole; None: it does not say.
        NEEDS_ORDER: whether it is nothing without a finished ranking.
        WHOLE_CORPUS: whether it writes all passages where it can.
    """

    FORMAT: ClassVar[str] = ""
    SIDECAR: ClassVar[str] = "meta.json"
    LABELS: ClassVar[str] = ""
    HOLDS: ClassVar[frozenset[Part] | None] = None
    NEEDS_ORDER: ClassVar[bool] = False
    WHOLE_CORPUS: ClassVar[bool] = False

    def __init__(self, options: ExportOptions | None = None) -> None:
        self.options = options or ExportOptions()

    @property
    def holds(self) -> frozenset[Part] | None:
        """What of a golden set the files give back whole, with these options."""
        return self.HOLDS - {"grades"} if self.HOLDS and self.options.scale.form == "binary" else self.HOLDS

    def numbers(self, golden: GoldenSet) -> GradeScale | None:
        """On which numbers the labels of the files stand; None where nobody knows."""
        return self.options.scale

    @property
    def labels(self) -> str:
        """The file of labels, relative to the folder; empty where there is none."""
        return self.LABELS.format(split=self.options.split)

    def losses(self, contents: Mapping[Part, Stock]) -> tuple[Loss, ...]:
        """What the set has and the files do not hold; nothing of exporters that do not say what they hold."""
        held = self.holds
        there = self.kept
        lost = () if held is None else [part for part in PARTS if part not in held and contents[part].count]
        kept = {part: min(there.get(part, 0), contents[part].count) for part in lost}
        return tuple(Loss(part, PARTS[part], contents[part].count - kept[part], kept[part]) for part in lost)

    @property
    def kept(self) -> Mapping[Part, int]:
        """How many items there are in what was written of parts that the files do not hold whole."""
        return {}

    @abstractmethod
    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files of the format into `folder` (made if missing); each appears whole or not at all.

        Returns:
            The files, in a stable order.
        """

    def write_sidecar(
        self,
        golden: GoldenSet,
        folder: Path,
        files: Mapping[str, Mapping[str, object]],
        **facts: object,
    ) -> Path:
        """Write what the files cannot say themselves: whence they are, on which numbers, and what they do not hold.

        Args:
            files: what was written: by path in the folder, with its number of ``rows``.
            facts: what else the format says of itself.

        Raises:
            ProviderError: the folder cannot be written.
        """
        contents = self.options.contents or contents_of(golden)
        provenance = golden.provenance and golden.provenance.model_dump(mode="json")
        numbers = self.numbers(golden)
        meta: dict[str, object] = {
            "name": golden.name,
            "format": self.FORMAT,
            "labels": self.labels,
            "files": files,
            "top": golden.top,
            **facts,
            **self.options.facts,
            **({"lacks": golden.lacks} if golden.lacks else {}),
            **({"unordered": UNORDERED} if golden.by_grade else {}),
            **({"grades": numbers.described()} if numbers else {}),
            "contents": {part: vars(stock) for part, stock in contents.items() if stock.count},
            "lost": [vars(loss) for loss in self.losses(contents)],
            "provenance": provenance,
        }
        path = folder / self.SIDECAR
        write_json(path, meta)
        return path
