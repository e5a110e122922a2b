"""Questions restated by a language model."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from raggs.registry import Adapter
from raggs.rewriters.base import RewriterContext
from raggs.settings import Settings


class LlmRewriter(Adapter):
    """The information need, restated by a language model."""

    class Config(Settings):
        type: Literal["llm"] = "llm"
        model: str = Field(min_length=1, description='provider and model, such as "openai/gpt-5-mini"')
        prompt: str = Field("rewrite@1", description="name of a prompt, or path of a file")
        parameters: dict[str, Any] = Field(default_factory=dict, description="completion parameters")

    def __init__(self, config: Config, context: RewriterContext) -> None:
        self.config = config
        self.context = context
