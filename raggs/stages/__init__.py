"""The six stages in order: embed, retrieve, merge, judge, prune, rank. No stage imports another.

base              interface of a stage and the services that it can use
pipeline          ordered list of stages and their artifacts
embed .. rank     one module per stage
ordered           concurrent work on many items, with results in the order of the items
canaries          hidden control items for a judge
judge_health      statistics of the judge stage
rank_config       settings of the rank stage
rank_health       statistics of the rank stage
replay            state of a ranking, computed from its journal
waves             rankings that share one budget
questions         the second pipeline: generate questions from documents
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
