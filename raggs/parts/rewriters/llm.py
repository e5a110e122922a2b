"""Queries restated by a language model. If a rewrite fails, the run stops, because there is no fallback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.errors import ProviderError
from raggs.base.settings import Causes, PromptName
from raggs.base.text import clean_unicode, one_line
from raggs.base.types import JsonObject
from raggs.llm import ChatRequest, Parameters
from raggs.parts.rewriters import Rewriter, RewriterContext
from raggs.parts.rewriters.clean import CleanRewriter, strip_politeness
from raggs.prompts import Prompt, PromptUse, load_prompt

REWRITE_TOKENS = 100
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}


class LlmRewriter(Rewriter):
    """Restates the information need with a language model, in the language of the query."""

    TASK: ClassVar[PromptUse] = "rewrite"

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
        self._prompt: Prompt = load_prompt(config.prompt, self.TASK)

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """Return everything that affects a rewrite: model, parameters, text of the prompt."""
        own = self._llm.settings.causes_for(self.models).get("models")
        return {**self.own_causes(), "prompt": self._prompt.sha256, **({"llm": {"models": own}} if own else {})}

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        return await self._restated(query.qid, language, {"query": self._llm.guard(text)})

    async def _restated(self, qid: str, language: str, fields: Mapping[str, str]) -> str:
        """Return the query that the model wrote for the fields of the prompt.

        Raises:
            ProviderError: the model returned no usable answer.
        """
        reply = await self._llm.ask(
            ChatRequest(
                qid=qid,
                model=self.config.model,
                messages=self._prompt.render(language, **fields),
                schema=SCHEMA,
                schema_name=self.TASK,
                check=check_rewrite,
                max_output_tokens=REWRITE_TOKENS,
                parameters=self.config.parameters,
            )
        )
        if reply.value is None:
            raise ProviderError(
                f"query {qid} could not be rewritten: {reply.error}",
                remedy="run the command again (paid answers are cached), or set embed.rewrite to clean or none",
            )
        return reply.value


class ConversationRewriter(LlmRewriter):
    """Makes a query from the last turn of a conversation that is understood without the earlier turns.

    Queries without earlier turns are cleaned by the rules of `clean`, without a call.
    """

    TASK = "standalone"
    READS_HISTORY = True

    class Config(LlmRewriter.Config):
        type: Literal["conversation"] = "conversation"  # type: ignore[assignment]  # another name than that of the base
        prompt: PromptName = Field("standalone@1", description="name of a prompt, or path of a Markdown file")

    def causes(self) -> Causes:
        """Return everything that affects a rewrite: model, parameters, text of the prompt, rules of `clean`."""
        return {**super().causes(), "clean": CleanRewriter.VERSION}

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        if not query.history:
            return strip_politeness(text)
        guard = self._llm.guard
        return await self._restated(query.qid, language, {"query": guard(text), "history": guard(query.earlier_turns)})


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
