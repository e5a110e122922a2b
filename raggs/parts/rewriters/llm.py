"""Rewriters that call a language model. If a call fails, the run stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, TypeVar

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

T = TypeVar("T")
REWRITE_TOKENS = 100
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}


class ModelConfig(AdapterConfig):
    """Settings common to rewriters that call a language model; each has its own default `prompt`."""

    model: str = Field(min_length=1, description='provider and model, for example "openai/gpt-5-mini"')
    prompt: PromptName = Field(description="name of a prompt, or path of a Markdown file")
    parameters: Parameters = Field(default_factory=dict, description="call parameters; they override llm.parameters")


class ModelRewriter(Rewriter):
    """Calls a language model."""

    Config: ClassVar[type[ModelConfig]]
    SCHEMA: ClassVar[JsonObject]  # JSON Schema of an answer
    config: ModelConfig

    def __init__(self, config: ModelConfig, context: RewriterContext) -> None:
        super().__init__(config)
        self._llm = context.llm
        self._prompt: Prompt = load_prompt(config.prompt, self.TASK)

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """Return everything that affects an answer: settings, code version, prompt, settings of the model."""
        own = self._llm.settings.causes_for(self.models).get("models")
        return {**self.own_causes(), "prompt": self._prompt.sha256, **({"llm": {"models": own}} if own else {})}

    async def _call(
        self, qid: str, language: str, check: Callable[[JsonObject], T], max_output_tokens: int, **fields: str
    ) -> T:
        """Return the answer of the model, converted by `check`; the prompt contains `fields`.

        Raises:
            ProviderError: the model returned no usable answer.
        """
        reply = await self._llm.ask(
            ChatRequest(
                qid=qid,
                model=self.config.model,
                messages=self._prompt.render(language, **fields),
                schema=self.SCHEMA,
                schema_name=self.TASK,
                check=check,
                max_output_tokens=max_output_tokens,
                parameters=self.config.parameters,
            )
        )
        if reply.value is None:
            raise ProviderError(
                f"query {qid} could not be rewritten: {reply.error}",
                remedy="run the command again (paid answers are cached), or choose the rewriter clean or none",
            )
        return reply.value


class LlmRewriter(ModelRewriter):
    """Restates the information need with a language model, in the language of the query."""

    TASK: ClassVar[PromptUse] = "rewrite"
    SCHEMA = SCHEMA

    class Config(ModelConfig):
        type: Literal["llm"] = "llm"
        prompt: PromptName = Field("rewrite@1", description="name of a prompt, or path of a Markdown file")

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        return await self._call(query.qid, language, check_rewrite, REWRITE_TOKENS, query=self._llm.guard(text))


class ConversationRewriter(LlmRewriter):
    """Restates the last turn of a conversation as a query that is understood without the earlier turns.

    Polite phrases of queries without earlier turns are removed by rule, without a call.
    """

    TASK = "standalone"
    READS_HISTORY = True

    class Config(LlmRewriter.Config):
        type: Literal["conversation"] = "conversation"  # type: ignore[assignment]  # another name than that of the base
        prompt: PromptName = Field("standalone@1", description="name of a prompt, or path of a Markdown file")

    def causes(self) -> Causes:
        """Return everything that affects a rewrite, also the rules of `clean`."""
        return {**super().causes(), "clean": CleanRewriter.VERSION}

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        if not query.history:
            return strip_politeness(text)
        guard = self._llm.guard
        fields = {"query": guard(text), "history": guard(query.earlier_turns)}
        return await self._call(query.qid, language, check_rewrite, REWRITE_TOKENS, **fields)


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
