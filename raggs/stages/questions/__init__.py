"""The pipeline that generates questions from documents: sample, ask, verify, filter. The stages are independent
modules.

The pipeline samples windows of the documents and has a model or rule write a question for each. It then searches for
the excerpts verbatim, and removes duplicates and questions with off-topic excerpts.
"""

from __future__ import annotations

from raggs.stages.pipeline import Pipeline
from raggs.stages.questions.records import ARTIFACTS

QUESTIONS = Pipeline(
    "questions",
    "raggs.stages.questions",
    ("sample", "ask", "verify", "filter"),
    ARTIFACTS,
    stopped="finished questions can be used",
    command="raggs questions --config CONFIG",
    beside="give another name: --set name=NAME",
)
