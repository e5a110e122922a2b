"""Hashes of values, and random numbers that depend on names.

A value has the same hash on every machine and in every process. Fingerprints and the cache keys of language models are
made by these functions. `raggs.base.files.hash_file` hashes files, and `raggs.base.jsonl` hashes artifacts while it
writes them. Random generators of results are derived from a seed and the names of their purpose (query, stage, round).
A resumed, reordered or parallel run therefore draws the same numbers as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and without spaces. NaN and infinity are errors."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def hash_bytes(data: bytes) -> str:
    """Return the sha256 of `data`, 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def hash_value(value: Any) -> str:
    """Return the sha256 of a JSON value, from its canonical text."""
    return hash_bytes(canonical_json(value).encode())


SEPARATOR = "\x1f"


def derive_seed(seed: int, *names: object) -> int:
    """Return a 64-bit seed from `seed` and `names`; equal arguments give equal seeds on every platform."""
    text = SEPARATOR.join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def generator(seed: int, *names: object) -> np.random.Generator:
    """Return a numpy generator for `names`, independent of every other combination of names."""
    import numpy as np  # imported lazily: `raggs init` and `raggs --help` need only hashes

    return np.random.Generator(np.random.PCG64(derive_seed(seed, *names)))
