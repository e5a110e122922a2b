"""Content hashes: the same value has the same hash on every machine and in every process.

Everything that raggs compares (fingerprints, cache keys, artifacts) goes through the three functions here.

Random numbers that depend on names, not on the order of the work.

Every generator is derived from the run's seed and the names of what it serves (query, stage, round), so a
resumed, reordered or parallel run draws the same numbers as an undisturbed one.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from raggs.base.files import regular_file

BLOCK = 1 << 20


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def hash_bytes(data: bytes) -> str:
    """sha256 of `data`, 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def hash_value(value: Any) -> str:
    """sha256 of any JSON value by its canonical text."""
    return hash_bytes(canonical_json(value).encode())


def hash_file(path: Path) -> str:
    """sha256 of a file's bytes, read in blocks of 1 MiB.

    Raises:
        OSError: the file cannot be read.
        DataError: it is a pipe or a device, which never ends.
    """
    digest = hashlib.sha256()
    with regular_file(path).open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


SEPARATOR = "\x1f"


def derive_seed(seed: int, *names: object) -> int:
    """A 64-bit seed from `seed` and `names`; equal arguments give equal seeds on every platform."""
    text = SEPARATOR.join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def generator(seed: int, *names: object) -> np.random.Generator:
    """A numpy generator for `names`, independent of every other combination of names."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *names)))
