"""Forecasts: what models that ask nobody have counted, as lines of calls, tokens and money.

The real parts do the work with the models of `raggs.llm.rehearsal`: what was paid for is answered, what is missing is
counted. What depends on answers that are missing is counted here by questions that stand for others: the candidates of
a reranker, and the calls that a ranking may take after the first one that nobody has answered.
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

RERANK = "rerank"  # the stage of what rerankers are asked, where nothing else is said
ANSWERS = {"rewrite": 40, "split": 30}  # tokens of an answer by task, where less is likely than is reserved for it


def line_of(
    llm: DryRunLLM, stage: str, model: str, asked: CallEstimate, length: tuple[int, int] | None = None
) -> CostEstimate:
    """What was counted for one model and stage.

    Args:
        length: tokens of an answer and how many of them are hidden, where more is known than what is reserved for it.
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
    """A line for each stage, model and task of which anything was asked; without a stage the task stands for it."""
    for (stage, model, task), asked in llm.all_asked.items():
        short = (ANSWERS[task] + asked.hidden, asked.hidden) if task in ANSWERS else None
        yield line_of(llm, stage or task, model, asked, short)


def typical(texts: Collection[str]) -> str:
    """The text whose length is nearest to the mean, which stands for the others."""
    mean = sum(map(len, texts)) / max(1, len(texts))
    return min(texts, key=lambda text: abs(len(text) - mean), default="")


async def rewritten(queries: Iterable[Query], rewriter: Rewriter, usual: str) -> list[str]:
    """What is searched for; a question stands for a rewrite that nobody has made yet. `usual`: language of most."""
    texts = []
    for query in queries:
        text = one_line(clean_unicode(query.text))
        with suppress(ProviderError):  # what it says of an answer that nobody has given
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
    """Count what reranking takes at most; nothing where nobody is paid.

    Which passages are candidates is not known before they are searched, so that some of the corpus stand for them.

    Args:
        reranker: made with `llm`.
        times: how many queries are asked; all of `queries` where nothing is said.
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
    """How many calls of a ranking of at most `most` may come after those up to the first answer that is missing."""
    for batches in rounds:
        before = llm.missing
        entries = [entry for batch in batches if (entry := await answer(batch)) is not None]
        if len(entries) < len(batches) or llm.missing > before:  # a panel may do without a member
            return max(0, most - course.asked)
        course.learn(entries)
    return 0
