"""The findings that may be made of lists, each a row: its conditions, its sentence, what to turn.

Quantities are means over questions: losses in points of the measure, shares of places or of relevant passages, changes
against the baseline, doublings of length. Another rule is another row, of quantities that `lists.py` gives.
"""

from __future__ import annotations

from raggs.evaluation.words import KNOBS, LOSSES
from raggs.stats.probes.findings import Rule

LOST = tuple(f"lost by {loss}" for loss in LOSSES)
COPIES, DOUBLINGS, ALONE = "share of copies", "doublings of length", "share found by the other alone"
NDCG, RECALL, DEEP = "change of nDCG", "change of recall", "change of recall in the pool"

POINTS = 0.05  # of the measure; a smaller loss is not worth a finding
COPIED = 0.03  # of the places
LONGER = 0.1  # doublings: 7%
MISSED = 0.05  # of the relevant passages
HELD = -0.02  # a fall of recall within this is none

RERANKER = (
    "look at the reranker: its model, the texts it is given (cut off, without titles), whether its scores are read "
    "the right way round"
)

OF_ONE: tuple[Rule, ...] = (
    Rule(
        "candidates",
        "its candidates lack much of what answers: low PROC",
        KNOBS[1],
        above={LOST[1]: POINTS},
        beside=(LOST[2],),
    ),
    Rule(
        "order",
        "its order loses what its candidates hold: low share of PROC",
        KNOBS[2],
        above={LOST[2]: POINTS},
        beside=(LOST[1],),
    ),
    Rule("nobody", "no system finds much of what answers", KNOBS[0], above={LOST[0]: POINTS}),
    Rule("holes", "what it shows at the top is often not judged", KNOBS[3], above={LOST[3]: POINTS}),
    Rule(
        "copies",
        "near-duplicates fill its top",
        "near-duplicates left out before the top is cut, or fewer overlapping chunks",
        above={COPIES: COPIED},
    ),
    Rule(
        "long passages",
        "the relevant passages that it misses are longer than those it finds",
        "shorter chunks (raggs chunks eval), an embedder or reranker that reads that far",
        above={DOUBLINGS: LONGER},
    ),
    Rule(
        "short passages",
        "the relevant passages that it misses are shorter than those it finds",
        "larger chunks, or chunks that carry their titles and sections (breadcrumbs)",
        below={DOUBLINGS: -LONGER},
    ),
)

OF_TWO: tuple[Rule, ...] = (
    Rule(
        "hybridise",
        "the other finds relevant passages that it misses",
        "fuse them (RRF): what each finds alone enters one list",
        above={ALONE: MISSED},
    ),
)

AGAINST: tuple[Rule, ...] = (
    Rule(
        "reranker",
        "nDCG falls while recall holds: found as before, in a worse order",
        RERANKER,
        below={NDCG: 0.0},
        above={RECALL: HELD},
        beside=(DEEP,),
    ),
    Rule(
        "reranker past the cutoff",
        "recall falls at the cutoff while it holds in the pool: found as before, and put too low",
        RERANKER,
        below={RECALL: 0.0},
        above={DEEP: HELD},
        beside=(NDCG,),
    ),
    Rule(
        "coverage",
        "recall falls in the whole pool: it finds less",
        KNOBS[1],
        below={DEEP: 0.0},
        beside=(RECALL, NDCG),
    ),
)
