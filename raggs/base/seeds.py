"""Random numbers that depend on names, not on the order of the work.

Every generator is derived from the run's seed and the names of what it serves (query, stage, round), so a
resumed, reordered or parallel run draws the same numbers as an undisturbed one.
"""

from __future__ import annotations

import hashlib

import numpy as np

SEPARATOR = "\x1f"


def derive_seed(seed: int, *names: object) -> int:
    """A 64-bit seed from `seed` and `names`; equal arguments give equal seeds on every platform."""
    text = SEPARATOR.join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def generator(seed: int, *names: object) -> np.random.Generator:
    """A numpy generator for `names`, independent of every other combination of names."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *names)))
