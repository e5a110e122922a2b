"""The six stages in their order: embed, retrieve, merge, judge, prune, rank. None imports another.

base              what a stage is, and the services that it may use; `pipeline`: stages in order
embed .. rank     one module per stage
ordered           work on many items at once, with results in the items' order
canaries          hidden control items for a judge
judge_health      figures of the judge stage; `rank_config`, `rank_health`: settings and figures of the rank stage
replay            the state of a ranking as the fold of its journal
waves             rankings that share one budget
questions         the second pipeline: questions from documents
"""

from __future__ import annotations

from raggs.base.artifacts import ARTIFACTS
from raggs.stages.pipeline import Pipeline

GOLDEN = Pipeline(
    "golden",
    "raggs.stages",
    ("embed", "retrieve", "merge", "judge", "prune", "rank"),
    ARTIFACTS,
    optional=frozenset({"rank"}),
)
