"""What an exporter is: a finished golden set in, files of another tool's format out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raggs.artifacts import JudgeRecord, MergeRecord, Query, RankRecord


@dataclass(frozen=True)
class Golden:
    """What a run has to give. The three streams may be read once each and are sorted by query id."""

    name: str
    top: int
    queries: Mapping[str, Query]
    pool: Iterable[MergeRecord]
    grades: Iterable[JudgeRecord]
    ranking: Iterable[RankRecord]
    provenance: Mapping[str, Any]


class Exporter(ABC):
    """Writes a golden set. Built as ``cls()``."""

    @abstractmethod
    def write(self, golden: Golden, folder: Path) -> list[Path]:
        """Write all files of the format into `folder` (made if missing); each appears whole or not at all.

        Returns:
            The files, in a stable order.
        """
