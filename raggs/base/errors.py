"""The classes of errors for users, and their exit codes.

    RaggsError
    ├── UsageError              2  the command line is invalid, or names something that does not exist
    ├── PrerequisiteError       3  an extra, a key or a server is missing
    │   └── AuthenticationError 3  the provider rejected the key
    ├── NotFoundError           4  a file, a run or a record is missing or unreadable
    ├── DataError               5  a file has invalid content
    │   ├── ConfigError         5  the configuration is invalid
    │   │   └── ModelError      5  a provider does not accept a model's name or settings
    │   └── AuditError          5  a run's artifacts contradict its manifest
    ├── ProviderError           6  a provider, a disk, a network or a user's function failed
    │   └── BusyError           6  another process uses the directory or the cache
    └── PartialError            7  the work stopped before its end, in a consistent state
        ├── GateError           7  a result does not meet a requirement
        ├── SnapshotError       7  the provider answers with another snapshot of a model than before
        └── BudgetError         7  the money or the calls are used up

An error states the problem and, in most cases, its location (file and line) and a remedy. Only the command line prints
errors; ``--debug`` shows a stack trace. `raggs.base.secrets.mask` removes known secrets from the texts of an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from raggs.base.secrets import mask


class RaggsError(Exception):
    """Base of all errors. `where` and `line` locate the problem; `remedy` describes what to do next."""

    exit_code = 6

    def __init__(
        self, message: str, *, where: Path | str | None = None, line: int | None = None, remedy: str | None = None
    ) -> None:
        self.message = mask(message)
        super().__init__(self.message)
        self.where = None if where is None else mask(str(where))
        self.line = line
        self.remedy = None if remedy is None else mask(remedy)

    def __str__(self) -> str:
        place = self.where or ""
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} — {self.remedy}" if self.remedy else text


class UsageError(RaggsError):
    exit_code = 2


class PrerequisiteError(RaggsError):
    exit_code = 3


class AuthenticationError(PrerequisiteError):
    pass


class NotFoundError(RaggsError):
    exit_code = 4


class DataError(RaggsError):
    exit_code = 5


class ConfigError(DataError):
    pass


class ModelError(ConfigError):
    pass


class AuditError(DataError):
    pass


class ProviderError(RaggsError):
    exit_code = 6


class BusyError(ProviderError):
    pass


class PartialError(RaggsError):
    exit_code = 7


class GateError(PartialError):
    """Requirements (gates) were not met. `failed`: one sentence per gate; `file`: the golden set that was checked."""

    def __init__(self, failed: Sequence[str], file: str, remedy: str | None = None) -> None:
        super().__init__("; ".join(failed), remedy=remedy)
        self.failed, self.file = tuple(map(mask, failed)), mask(file)


class BudgetError(PartialError):
    pass


class SnapshotError(PartialError):
    pass
