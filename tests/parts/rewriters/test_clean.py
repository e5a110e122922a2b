"""What the rewriter `clean` is, and that it does what `stripping` does."""

from __future__ import annotations

import asyncio

from raggs.base.artifacts import Query
from raggs.parts.rewriters.clean import CleanRewriter


def test_the_rewriter_cleans():
    rewriter = CleanRewriter(CleanRewriter.Config())
    text = "Hello, how are you?"
    assert asyncio.run(rewriter.rewrite(Query(qid="q", text=text), text, "en")) == "how are you?"
