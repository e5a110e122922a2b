"""A reranker over all questions, side by side where a provider is asked; near-duplicates are not read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from raggs.base.artifacts import EmbedRecord, Passage
from raggs.base.errors import BudgetError, ProviderError
from raggs.base.progress import Building
from raggs.base.text import plural
from raggs.parts.rerankers.base import RerankerConfig, Reranking
from raggs.parts.workshop import Passages, Reranker
from raggs.ranking.fusion.duplicates import group_duplicates
from raggs.sweeps.once import all_or_none
from raggs.sweeps.partstore import Lists
from raggs.sweeps.world import World


async def rerank_all(
    world: World, passages: Passages, reranker: Reranker, candidates: Lists, records: Mapping[str, EmbedRecord]
) -> Mapping[str, Reranking]:
    """What a reranker makes of every question's candidates.

    Args:
        passages: of which the candidates are.
        records: the questions, by id.

    Raises:
        RaggsError: as the reranker; what was paid for is kept.
    """
    done = 0
    ahead = asyncio.Semaphore(world.config.llm.concurrency if reranker.models else 1)

    async def one(qid: str) -> Reranking:
        nonlocal done
        async with ahead:
            read = _unlike(world, passages, [doc for doc, _ in candidates[qid]])
            found = await reranker.rerank(records[qid].rewrite, records[qid].language, read)
        done += 1
        world.hear(Building("reranked questions", done, len(candidates)))
        return found

    return dict(zip(candidates, await all_or_none(map(one, candidates)), strict=True))


def require_whole(found: Mapping[str, Reranking]) -> None:
    """Refuse lists of which a part stayed in its old order because a question to the model failed.

    Raises:
        ProviderError: there is one; its score would say nothing of the reranker.
    """
    if lost := {qid: each.problems[0] for qid, each in found.items() if each.problems}:
        qid, problem = next(iter(lost.items()))
        raise ProviderError(
            f"{len(lost)} of {plural(len(found), 'list')} could not be reranked whole: query {qid}: {problem}",
            remedy="run again: what was paid is cached",
        )


def probe(
    world: World,
    passages: Passages,
    spec: RerankerConfig,
    rerankings: Mapping[str, Reranking],
    records: Sequence[EmbedRecord],
) -> Iterator[tuple[str, float]]:
    """Milliseconds of a paid reranker that is asked some questions again, one at a time; those that fail are left out.

    Args:
        rerankings: by id of the question, what it made of the candidates before.
    """
    reranker = world.workshop.reranker(spec, keeps=False)
    for record in records:
        docs = [each.doc_id for each in rerankings[record.qid].ranked]
        found = passages.get(docs)
        with suppress(BudgetError, ProviderError):
            asked = reranker.rerank(record.rewrite, record.language, [found[doc] for doc in docs])
            if (took := world.workshop.loop.run(asked).ms) is not None:
                yield record.qid, round(took, 4)


def _unlike(world: World, passages: Passages, docs: Sequence[str]) -> list[Passage]:
    """The passages of some ids, without near-duplicates of better ones."""
    found, likeness = passages.get(docs), world.config.duplicates
    read = [found[doc] for doc in docs]
    if likeness is None:
        return read
    leaders = group_duplicates([passage.content for passage in read], likeness)
    return [passage for at, passage in enumerate(read) if leaders[at] == at]
