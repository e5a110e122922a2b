"""Query expansion: a language model writes texts that are searched together with the query.

HyDE (Gao et al., Precise Zero-Shot Dense Retrieval without Relevance Labels, 2023): the model writes passages that
answer the query. Their facts may be wrong; only their words and vectors are used. Multi-query: the model states the
query in other words.

The vector of an expanded query is the mean of the unit vectors of the query and its added texts. For exact dense
search, this orders passages by the sum of their similarities to all of these texts. Lexical retrievers get the query,
`repeat_query` times, and the added texts. BM25 adds the scores of words, so it also orders by a sum. Rerankers and
judges read the query without added texts, and so do search services and Python functions.

The query itself is cleaned by the rules of the rewriter `clean`. If a call fails, the run stops, because there is no
fallback.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.errors import ProviderError
from raggs.base.settings import Causes, PromptName
from raggs.base.text import clean_unicode, one_line, plural
from raggs.base.types import JsonObject, as_list
from raggs.llm import ChatRequest, Parameters
from raggs.parts.rewriters import Expansion, Rewriter, RewriterContext
from raggs.parts.rewriters.clean import CleanRewriter, strip_politeness
from raggs.prompts import Prompt, load_prompt

MAX_TEXTS = 10
SCHEMA = {
    "type": "object",
    "properties": {"texts": {"type": "array", "items": {"type": "string"}}},
    "required": ["texts"],
    "additionalProperties": False,
}


class ExpandingConfig(AdapterConfig):
    """Settings common to both kinds of expansion; each has its own default `prompt` and number of texts."""

    model: str = Field(min_length=1, description='provider and model, for example "openai/gpt-5-mini"')
    prompt: PromptName = Field(description="name of a prompt, or path of a Markdown file")
    parameters: Parameters = Field(default_factory=dict, description="call parameters; they override llm.parameters")
    texts: int = Field(ge=1, le=MAX_TEXTS, description="number of added texts")
    repeat_query: int = Field(
        1, ge=1, le=20, description="how often lexical retrievers get the query itself, to weight it against the texts"
    )


class ExpandingRewriter(Rewriter):
    """Adds texts of a language model to the cleaned query. `TOKENS` is the usual length of a text."""

    Config: ClassVar[type[ExpandingConfig]]
    TOKENS: ClassVar[int]

    config: ExpandingConfig

    def __init__(self, config: ExpandingConfig, context: RewriterContext) -> None:
        super().__init__(config)
        self._llm = context.llm
        self._prompt: Prompt = load_prompt(config.prompt, self.TASK)

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def placeholders(self, text: str) -> tuple[str, ...]:
        return (" ".join(["word"] * self.TOKENS),) * self.config.texts

    @property
    def repeats(self) -> int:
        return self.config.repeat_query

    def causes(self) -> Causes:
        """Return everything that affects the texts: model, parameters, text of the prompt, rules of `clean`."""
        own = self._llm.settings.causes_for(self.models).get("models")
        found = {**self.own_causes(), "prompt": self._prompt.sha256, "clean": CleanRewriter.VERSION}
        return {**found, **({"llm": {"models": own}} if own else {})}

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """Return the query without small talk, in its original words."""
        return strip_politeness(text)

    async def _texts(self, query: Query, text: str, language: str) -> tuple[str, ...]:
        """Return the texts of the model.

        Raises:
            ProviderError: the model returned no usable answer.
        """
        count = self.config.texts
        check: Callable[[JsonObject], tuple[str, ...]] = partial(read_texts, count=count)
        reply = await self._llm.ask(
            ChatRequest(
                qid=query.qid,
                model=self.config.model,
                messages=self._prompt.render(language, query=self._llm.guard(text), count=str(count)),
                schema=SCHEMA,
                schema_name=self.TASK,
                check=check,
                max_output_tokens=count * self.TOKENS,
                parameters=self.config.parameters,
            )
        )
        if reply.value is None:
            raise ProviderError(
                f"query {query.qid} could not be expanded: {reply.error}",
                remedy="run the command again (paid answers are cached), or choose another rewriter",
            )
        return reply.value


class HydeRewriter(ExpandingRewriter):
    """Adds passages that a language model wrote in answer to the query (HyDE)."""

    TASK = "hyde"
    TOKENS = 200

    class Config(ExpandingConfig):
        type: Literal["hyde"] = "hyde"
        prompt: PromptName = Field("hyde@1", description="name of a prompt, or path of a Markdown file")
        texts: int = Field(1, ge=1, le=MAX_TEXTS, description="number of passages, written in one call")

    async def expand(self, query: Query, text: str, language: str) -> Expansion:
        return Expansion(hypothetical=await self._texts(query, text, language))


class MultiQueryRewriter(ExpandingRewriter):
    """Adds other wordings of the query by a language model (multi-query retrieval)."""

    TASK = "multi_query"
    TOKENS = 60

    class Config(ExpandingConfig):
        type: Literal["multi_query"] = "multi_query"
        prompt: PromptName = Field("multi_query@1", description="name of a prompt, or path of a Markdown file")
        texts: int = Field(3, ge=1, le=MAX_TEXTS, description="number of wordings, written in one call")

    async def expand(self, query: Query, text: str, language: str) -> Expansion:
        return Expansion(variants=await self._texts(query, text, language))


def read_texts(answer: JsonObject, count: int) -> tuple[str, ...]:
    """Return the first `count` texts of an answer, each on one line.

    Raises:
        ValueError: the answer has fewer texts, or one of them is empty or not a text.
    """
    found = as_list(answer.get("texts"))
    texts = [one_line(clean_unicode(each)) if isinstance(each, str) else "" for each in found[:count]]
    if len(texts) < count or not all(texts):
        raise ValueError(f'"texts" must contain {plural(count, "text")}, and none of them empty')
    return tuple(texts)
