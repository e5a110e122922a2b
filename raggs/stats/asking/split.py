"""Which questions are for choosing (dev) and which for reporting (test).

A question's part is drawn by a hash of the seed and its key, and of nothing else: adding questions moves none. So the
shares hold in every type of question alike, in the mean and not to the question. With the window or document as key,
all questions about it are in one part, and what was chosen on dev has not seen what test asks about.
"""

from __future__ import annotations

from typing import Literal

from raggs.base.seeds import derive_seed

Part = Literal["dev", "test"]
DEV = 0.5
RANGE = 2.0**64


def part_of(key: str, seed: int, dev: float = DEV) -> Part:
    """The part of the question with this key.

    Args:
        key: of the question, or of what it is about.
        dev: the share of dev, 0..1. A larger share keeps all that a smaller one held.

    Raises:
        ValueError: the share is out of range.
    """
    if not 0 <= dev <= 1:
        raise ValueError(f"the share of dev is {dev}; it must lie in 0..1")
    return "dev" if derive_seed(seed, "split", key) < dev * RANGE else "test"
