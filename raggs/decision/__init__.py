"""Which system to ship: fronts, rules, effects, chances of winning, prices and memory, out of numbers alone.

Pure: what was measured of each system goes in, frozen results come out; seeded where queries are resampled. Nothing
here knows a run, a retriever or a price list, and what cannot be told is said so, never decided by chance.

Imports: leaves.
"""

from raggs.decision.front import JITTER_MS, Candidate, Front, dominates, find_front

__all__ = ["JITTER_MS", "Candidate", "Front", "dominates", "find_front"]
