"""Answers that were paid for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CacheStats:
    """What the cache holds: `entries` answers, `bytes` on the disk, worth `usd`."""

    entries: int
    bytes: int
    usd: float


def cache_stats(folder: Path) -> CacheStats:
    """What the cache in `folder` holds; zeros where there is none."""
    raise NotImplementedError


def clear_cache(folder: Path) -> int:
    """Forget all answers in `folder`; returns how many there were."""
    raise NotImplementedError
