"""The rewriter that rewrites nothing."""

from __future__ import annotations

from typing import Literal

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.parts.rewriters.base import Rewriter


class NoRewriter(Rewriter):
    """Search for the question as it stands."""

    BY_RULE = True

    class Config(AdapterConfig):
        type: Literal["none"] = "none"

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """The question as it is."""
        return text
