"""The pipeline that makes questions of documents: sample, ask, verify, filter. Each is one file; none knows another.

Windows of the documents are chosen, somebody makes a question of each, its excerpts are looked for word for word, and
duplicates and excerpts that are about something else go.
"""

from __future__ import annotations

from raggs.stages.pipeline import Pipeline
from raggs.stages.questions.records import ARTIFACTS

QUESTIONS = Pipeline(
    "questions",
    "raggs.stages.questions",
    ("sample", "ask", "verify", "filter"),
    ARTIFACTS,
    stopped="the questions that are done can be used",
    command="raggs questions --config CONFIG",
    beside="give another name: --set name=NAME",
)
