"""Query expansion: a language model writes texts that are searched together with the query.

HyDE (Gao et al., Precise Zero-Shot Dense Retrieval without Relevance Labels, 2023): the model writes passages that
answer the query. Their facts may be wrong, because raggs uses only their words and vectors. Multi-query: the model
states the query in other words.

The vector of an expanded query is the mean of the unit vectors of the query and its added texts. For exact dense
search, this orders passages by the sum of their similarities to all of these texts. Lexical retrievers get the query,
`repeat_query` times, followed by the added texts. BM25 adds the scores of words, so it also orders by a sum.
Rerankers and judges read the query without added texts, and so do search services and Python functions.

The query itself is cleaned by the rules of the rewriter `clean`. If a call fails, the run stops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from raggs.base.artifacts import Query
from raggs.base.settings import Causes, PromptName
from raggs.base.text import clean_unicode, one_line, plural
from raggs.base.types import JsonObject, as_list
from raggs.parts.rewriters import Expansion
from raggs.parts.rewriters.clean import CleanRewriter, strip_politeness
from raggs.parts.rewriters.llm import ModelConfig, ModelRewriter

MAX_TEXTS = 10
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"texts": {"type": "array", "items": {"type": "string"}}},
    "required": ["texts"],
    "additionalProperties": False,
}


class ExpandingConfig(ModelConfig):
    """Settings common to both kinds of expansion; each has its own default `prompt` and number of texts."""

    texts: int = Field(ge=1, le=MAX_TEXTS, description="number of added texts")
    repeat_query: int = Field(
        1, ge=1, le=20, description="how often lexical retrievers get the query itself, to weight it against the texts"
    )


class ExpandingRewriter(ModelRewriter):
    """Adds texts of a language model to the cleaned query. `TOKENS` is the usual length of a text."""

    Config: ClassVar[type[ExpandingConfig]]
    SCHEMA = SCHEMA
    TOKENS: ClassVar[int]

    config: ExpandingConfig

    def placeholders(self, text: str) -> tuple[str, ...]:
        return (" ".join(["word"] * self.TOKENS),) * self.config.texts

    @property
    def repeats(self) -> int:
        return self.config.repeat_query

    def causes(self) -> Causes:
        """Return everything that affects the texts, also the rules of `clean`."""
        return {**super().causes(), "clean": CleanRewriter.VERSION}

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """Return the query without courtesies and small talk, in its original words."""
        return strip_politeness(text)

    async def _texts(self, query: Query, text: str, language: str) -> tuple[str, ...]:
        count = self.config.texts
        check: Callable[[JsonObject], tuple[str, ...]] = partial(read_texts, count=count)
        fields = {"query": self._llm.guard(text), "count": str(count)}
        return await self._call(query.qid, language, check, count * self.TOKENS, **fields)


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
