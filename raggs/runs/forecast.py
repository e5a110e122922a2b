"""Forecasts: expected calls, tokens and cost of a run, from a dry run that calls no model.

The real components do the work with the models of `raggs.llm.rehearsal`, which answer from the cache and count missing
answers. Some calls depend on missing answers and are estimated here: the candidates of a reranker, and the calls of a
ranking after the first missing answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from raggs.base.artifacts import JournalRecord, Passage, Query
from raggs.base.errors import ProviderError
from raggs.base.text import clean_unicode, one_line
from raggs.llm.messages import written_unasked
from raggs.llm.rehearsal import CallEstimate, DryRunLLM
from raggs.parts.indexes.passages import Passages
from raggs.parts.rerankers import Reranker
from raggs.parts.rewriters import Rewriter
from raggs.runs.manifests.models import CostEstimate
from raggs.stages.embed import prepare
from raggs.stages.replay import Batch, RankingProcess

RERANK = "rerank"  # stage name for the calls of rerankers, if no other is given
ANSWERS = {"rewrite": 40, "split": 30}  # expected output tokens by task, if this is less than the reserved number


def line_of(
    llm: DryRunLLM, stage: str, model: str, asked: CallEstimate, length: tuple[int, int] | None = None
) -> CostEstimate:
    """Return the estimate for one model and stage.

    Args:
        length: tokens of an answer, and how many of them are hidden, if better known than the reserved number.
    """
    answers = asked.answers if length is None else asked.calls * length[0]
    home, price = llm.settings.base_of(model) is None, llm.price(model)
    written = asked.calls * written_unasked(model, asked.tokens // asked.calls, home=home) if asked.calls else 0
    usd = None if price is None else price.most_usd(asked.tokens, answers, asked.searches, written)
    return CostEstimate(
        stage=stage,
        calls=asked.calls,
        cached=asked.known,
        input_tokens=asked.tokens,
        output_tokens=answers,
        hidden_tokens=asked.hidden if length is None else length[1],
        repairs=llm.settings.max_repairs if answers or length else 0,
        usd=usd if asked.paid else 0.0,
        exact=not asked.guessed,
        who=model,
    )


def lines_of(llm: DryRunLLM) -> Iterator[CostEstimate]:
    """Yield an estimate for each stage, model and task with calls. If the stage is empty, the task replaces it."""
    for (stage, model, task), asked in llm.all_asked.items():
        short = (ANSWERS[task] + asked.hidden, asked.hidden) if task in ANSWERS else None
        yield line_of(llm, stage or task, model, asked, short)


def typical(texts: Collection[str]) -> str:
    """Return the text whose length is nearest to the mean, as a typical text."""
    mean = sum(map(len, texts)) / max(1, len(texts))
    return min(texts, key=lambda text: abs(len(text) - mean), default="")


async def rewritten(queries: Iterable[Query], rewriter: Rewriter, usual: str) -> list[str]:
    """Return the texts to search for. A query without a cached rewrite is used itself. `usual` is the default
    language.
    """
    texts = []
    for query in queries:
        text = one_line(clean_unicode(query.text))
        with suppress(ProviderError):  # raised for an answer that is not cached
            text = (await prepare(query, rewriter, usual)).rewrite
        texts.append(text)
    return texts


def count_reranking(
    loop: asyncio.Runner,
    llm: DryRunLLM,
    reranker: Reranker,
    queries: Collection[str],
    passages: Passages,
    candidates: int,
    *,
    times: int | None = None,
) -> None:
    """Count the maximum number of calls and tokens for reranking; nothing if the reranker is free.

    The candidates are unknown before the search, so a sample of the corpus replaces them.

    Args:
        reranker: a reranker made with `llm`.
        candidates: number of passages per query.
        times: number of queries that are reranked (default: all of `queries`).
    """
    if not reranker.models:
        return
    shown = [Passage(doc_id=str(number), text=text) for number, text in enumerate(passages.sample(candidates))]
    with llm.standing_for(len(queries) if times is None else times), suppress(ProviderError):
        loop.run(reranker.reader.rerank(typical(queries), "en", shown))


async def follow(
    llm: DryRunLLM,
    course: RankingProcess,
    rounds: Iterable[Sequence[Batch]],
    answer: Callable[[Batch], Awaitable[JournalRecord | None]],
    most: int,
) -> int:
    """Return how many of at most `most` calls of a ranking may follow the first missing answer."""
    for batches in rounds:
        before = llm.missing
        entries = [entry for batch in batches if (entry := await answer(batch)) is not None]
        if len(entries) < len(batches) or llm.missing > before:  # a panel can continue without a member
            return max(0, most - course.asked)
        course.learn(entries)
    return 0
