"""Which system to ship: fronts, rules, effects, chances of winning, prices and memory, out of numbers alone.

Pure: what was measured of each system goes in, frozen results come out; seeded where queries are resampled. Nothing
here knows a run, a retriever or a price list, and what cannot be told is said so, never decided by chance.
"""

from raggs.stats.decision.choice import Choice, Exclusion, Limits, Peers, Reason, Rule, Turn, choose, turning_points
from raggs.stats.decision.costs import QueryCosts, generator_usd, rerank_usd, search_usd, tokens_usd
from raggs.stats.decision.deltas import Delta, Measured, deltas, enough_effort
from raggs.stats.decision.effects import Effect, Shift, main_effects, main_shifts
from raggs.stats.decision.efficiency import Gain, Step, efficiency, end_to_end_efficiency, marginal_gains
from raggs.stats.decision.front import JITTER_MS, Candidate, Front, dominates, find_front, may_replace
from raggs.stats.decision.halving import Dropped, Halving, draw_order, halve
from raggs.stats.decision.holes import Hole, order_holes
from raggs.stats.decision.interactions import Interaction, strongest_interactions
from raggs.stats.decision.leave_one_out import Contribution, Fall, contributions, falls, without
from raggs.stats.decision.memory import Memory, flat_memory, hnsw_memory, ivf_memory, measured_memory
from raggs.stats.decision.winners import Share, Winners, find_winners

__all__ = [
    "JITTER_MS",
    "Candidate",
    "Choice",
    "Contribution",
    "Delta",
    "Dropped",
    "Effect",
    "Exclusion",
    "Fall",
    "Front",
    "Gain",
    "Halving",
    "Hole",
    "Interaction",
    "Limits",
    "Measured",
    "Memory",
    "Peers",
    "QueryCosts",
    "Reason",
    "Rule",
    "Share",
    "Shift",
    "Step",
    "Turn",
    "Winners",
    "choose",
    "contributions",
    "deltas",
    "dominates",
    "draw_order",
    "efficiency",
    "end_to_end_efficiency",
    "enough_effort",
    "falls",
    "find_front",
    "find_winners",
    "flat_memory",
    "generator_usd",
    "halve",
    "hnsw_memory",
    "ivf_memory",
    "main_effects",
    "main_shifts",
    "marginal_gains",
    "may_replace",
    "measured_memory",
    "order_holes",
    "rerank_usd",
    "search_usd",
    "strongest_interactions",
    "tokens_usd",
    "turning_points",
    "without",
]
