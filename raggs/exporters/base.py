"""What an exporter is: a golden set in, files of another tool's format out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from raggs.artifacts import Passage
from raggs.golden.base import GoldenSet
from raggs.golden.scales import GradeScale


@dataclass(frozen=True)
class ExportOptions:
    """What is asked of an export.

    Attributes:
        scale: on which numbers labels are written.
        corpus: all passages, for exporters with `WHOLE_CORPUS`; None where only the pools are wanted, or at hand.
    """

    scale: GradeScale = field(default_factory=GradeScale)
    corpus: Iterable[Passage] | None = None


class Exporter(ABC):
    """Writes a golden set. Built as ``cls(options)``, or ``cls()`` for what is usual."""

    NEEDS_ORDER: ClassVar[bool] = True  # whether it is nothing without a finished ranking
    WHOLE_CORPUS: ClassVar[bool] = False  # whether it writes all passages where it can

    def __init__(self, options: ExportOptions | None = None) -> None:
        self.options = options or ExportOptions()

    @abstractmethod
    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files of the format into `folder` (made if missing); each appears whole or not at all.

        Returns:
            The files, in a stable order.
        """
