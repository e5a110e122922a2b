"""The rewriter that does nothing does nothing."""

from __future__ import annotations

import asyncio

from raggs.base.artifacts import Query
from raggs.parts.rewriters import NoRewriter


def test_the_text_stays():
    rewriter = NoRewriter(NoRewriter.Config())
    query = Query(qid="q1", text="Hi! What is it?")
    assert asyncio.run(rewriter.rewrite(query, "Hi! What is it?", "en")) == "Hi! What is it?"
