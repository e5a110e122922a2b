"""What an audit says: one finding a lie, with its file and, where it is known, its line."""

from __future__ import annotations

from dataclasses import dataclass

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Finding:
    """One lie: where, and what was expected."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"
