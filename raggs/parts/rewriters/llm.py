"""Queries restated by a language model. If a rewrite fails, the run stops, because there is no fallback."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.errors import ProviderError
from raggs.base.settings import Causes, PromptName
from raggs.base.text import clean_unicode, one_line
from raggs.base.types import JsonObject
from raggs.llm import ChatRequest, Parameters
from raggs.parts.rewriters import Rewriter, RewriterContext
from raggs.prompts import Prompt, load_prompt

REWRITE_TOKENS = 100
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}


class LlmRewriter(Rewriter):
    """Restates the information need with a language model, in the language of the query."""

    class Config(AdapterConfig):
        type: Literal["llm"] = "llm"
        model: str = Field(min_length=1, description='provider and model, for example "openai/gpt-5-mini"')
        prompt: PromptName = Field("rewrite@1", description="name of a prompt, or path of a Markdown file")
        parameters: Parameters = Field(
            default_factory=dict, description="call parameters; they override llm.parameters"
        )

    config: Config

    def __init__(self, config: Config, context: RewriterContext) -> None:
        super().__init__(config)
        self._llm = context.llm
        self._prompt: Prompt = load_prompt(config.prompt, "rewrite")

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """Return everything that affects a rewrite: model, parameters, text of the prompt."""
        own = self._llm.settings.causes_for(self.models).get("models")
        return {**self.own_causes(), "prompt": self._prompt.sha256, **({"llm": {"models": own}} if own else {})}

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        reply = await self._llm.ask(
            ChatRequest(
                qid=query.qid,
                model=self.config.model,
                messages=self._prompt.render(language, query=self._llm.guard(text)),
                schema=SCHEMA,
                schema_name="rewrite",
                check=check_rewrite,
                max_output_tokens=REWRITE_TOKENS,
                parameters=self.config.parameters,
            )
        )
        if reply.value is None:
            raise ProviderError(
                f"query {query.qid} could not be rewritten: {reply.error}",
                remedy="run the command again (paid answers are cached), or set embed.rewrite to clean or none",
            )
        return reply.value


def check_rewrite(answer: JsonObject) -> str:
    """Return the rewritten query on one line.

    Raises:
        ValueError: the answer contains no text.
    """
    found = answer.get("query")
    rewrite = one_line(clean_unicode(found)) if isinstance(found, str) else ""
    if not rewrite:
        raise ValueError('"query" must be text, and not empty')
    return rewrite
