"""Parameters that several measures have."""

from __future__ import annotations

from raggs.metrics.measure import Parameter

ALPHA = Parameter(1.0, 0, 10)  # how much rarity counts
CAP4 = Parameter(1.0, 0, 1)  # what a grade 4 is worth at most, beside a grade 5
CAP3 = Parameter(0.25, 0, 1)
POOL = Parameter(50, 1, 1e9, whole=True)  # the system's own passages that a ceiling may choose from
REL = Parameter(None, 1, 1e9, whole=True)  # the lowest relevant grade
FLAG = Parameter(None, 0, 1, whole=True)  # 0 unless given; without a usual value it does not change what a lock holds
