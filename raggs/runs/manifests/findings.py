"""What an audit says: one finding a lie, with its file and, where it is known, its line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MANIFEST = "manifest.json"


Cure = Literal["run", "copy", "lock", "sign", "told"]


@dataclass(frozen=True)
class Finding:
    """One lie: where, and what was expected.

    Attributes:
        cure: what puts it right: another run; a copy of the file, since no run restores it; another lock or signature,
            if the set is meant as it is; or what the message says.
    """

    file: str
    line: int | None
    message: str
    cure: Cure = "run"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"
