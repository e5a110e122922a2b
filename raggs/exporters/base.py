"""What an exporter is: a finished golden set in, files of another tool's format out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from raggs.golden.base import GoldenSet


class Exporter(ABC):
    """Writes a golden set. Built as ``cls()``."""

    @abstractmethod
    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files of the format into `folder` (made if missing); each appears whole or not at all.

        Returns:
            The files, in a stable order.
        """
