"""A language model as judge."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from raggs.judges.base import JudgeContext
from raggs.registry import Adapter
from raggs.settings import Settings


class LiteLLMJudge(Adapter):
    """Any language model, through litellm."""

    USES_LLM: ClassVar[bool] = True

    class Config(Settings):
        type: Literal["litellm"] = "litellm"
        model: str = Field(min_length=1, description='provider and model, such as "openai/gpt-5-mini"')
        parameters: dict[str, Any] = Field(default_factory=dict, description="completion parameters")

    def __init__(self, config: Config, context: JudgeContext) -> None:
        self.config = config
        self.context = context
