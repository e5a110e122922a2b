"""The pipeline that makes questions of documents: sample, ask, verify, filter. Each is one file; none knows another.

Windows of the documents are chosen, somebody makes a question of each, its excerpts are looked for word for word, and
duplicates and excerpts that are about something else go.

Imports: stages, askers, retrievers, embedders, indexes, asking, leaves.
"""

from __future__ import annotations

from raggs.questions.records import ARTIFACTS
from raggs.stages.pipeline import Pipeline

QUESTIONS = Pipeline(
    "questions",
    "raggs.questions",
    ("sample", "ask", "verify", "filter"),
    ARTIFACTS,
    stopped="the questions that are done can be used",
    command="raggs questions --config CONFIG",
    beside="give another name: --set name=NAME",
)
