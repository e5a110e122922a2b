"""The rewriter that rewrites nothing."""

from __future__ import annotations

from typing import Any, Literal

from raggs.artifacts import Query
from raggs.registry import Adapter, adapter_causes
from raggs.settings import Settings


class NoRewriter(Adapter):
    """Search for the question as it stands."""

    class Config(Settings):
        type: Literal["none"] = "none"

    def __init__(self, config: Config, context: Any = None) -> None:
        self.config = config

    def causes(self) -> dict[str, Any]:
        return adapter_causes(type(self), self.config)

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        return text
