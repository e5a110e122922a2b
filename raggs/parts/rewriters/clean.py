"""Noise taken off a question by rules; the rules are `stripping`'s, what they know of a language is `chatter`'s."""

from __future__ import annotations

from typing import Literal

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.parts.rewriters.base import Rewriter


class CleanRewriter(Rewriter):
    """Take greetings, fillers, small talk, thanks and emoji off by rules (English and French)."""

    VERSION = 3
    BY_RULE = True

    class Config(AdapterConfig):
        type: Literal["clean"] = "clean"

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """The question without what surrounds it, in its own words."""
        from raggs.parts.rewriters.stripping import strip_politeness  # late: its patterns take a while to compile

        return strip_politeness(text)
