"""Why a stage runs again, as values that print as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from raggs.base.text import plural, shorten

ABSENT = object()


@dataclass(frozen=True)
class NeverRun:
    def __str__(self) -> str:
        return "it has not run yet"


@dataclass(frozen=True)
class Interrupted:
    def __str__(self) -> str:
        return "its last attempt did not finish"


@dataclass(frozen=True)
class Forced:
    def __str__(self) -> str:
        return "it was asked for by --force"


@dataclass(frozen=True)
class Changed:
    """A component differs from the one that the lock holds."""

    component: str
    old: Any
    new: Any

    def __str__(self) -> str:
        if self.old is ABSENT:
            return f"{self.component} is new ({_show(self.new)})"
        if self.new is ABSENT:
            return f"{self.component} is gone (was {_show(self.old)})"
        return f"{self.component} changed ({_show(self.old)} -> {_show(self.new)})"


@dataclass(frozen=True)
class OutputMissing:
    file: str

    def __str__(self) -> str:
        return f"{self.file} is missing"


@dataclass(frozen=True)
class OutputEdited:
    file: str

    def __str__(self) -> str:
        return f"{self.file} was edited by hand"


@dataclass(frozen=True)
class LockEdited:
    """What its lock says of a stage cannot be believed."""

    stage: str

    def __str__(self) -> str:
        return "its lock in manifest.json was edited by hand (raggs audit says where)"


@dataclass(frozen=True)
class FailuresLeft:
    count: int

    def __str__(self) -> str:
        return f"{plural(self.count, 'judgment')} failed last time and will be tried again"


@dataclass(frozen=True)
class InPart:
    """A stage before it was stopped, and what that one has done is gone on with."""

    stage: str

    def __str__(self) -> str:
        return f"for the queries that {self.stage} has done"


@dataclass(frozen=True)
class PaidFor:
    """The budget has ended, and nobody is asked any more."""

    def __str__(self) -> str:
        return "the budget has ended; with what is paid for"


@dataclass(frozen=True)
class Upstream:
    """An earlier stage will run; this one follows if that stage's artifact changes."""

    stage: str

    def __str__(self) -> str:
        return f"{self.stage} runs before it; it follows if {self.stage}.jsonl changes"


Reason = (
    NeverRun
    | Interrupted
    | Forced
    | Changed
    | OutputMissing
    | OutputEdited
    | LockEdited
    | FailuresLeft
    | InPart
    | PaidFor
    | Upstream
)


def differences(old: Any, new: Any, name: str = "") -> Iterator[Changed]:
    """Every leaf at which two component trees differ, by dotted name, in sorted order."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key, ABSENT), new.get(key, ABSENT), f"{name}.{key}" if name else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for position, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{name}.{position}")
    elif old != new:
        yield Changed(name, old, new)


def _show(value: Any) -> str:
    text = str(value)
    if len(text) == 64 and all(char in "0123456789abcdef" for char in text):
        return text[:8]
    return shorten(text, 40) or repr(value)
