"""What a system costs for 1,000 questions, and what it holds in memory.

Tokens are counted, not assumed; money is what was paid, or what the price list says of the tokens. A price that nobody
knows is None, and so is every sum with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, pstdev

from raggs.base.jsonl import read_torn
from raggs.base.jsontypes import Number
from raggs.base.tokens import count_tokens
from raggs.llm.ledger import REMEDY, LedgerLine
from raggs.sweeps.grid import System
from raggs.sweeps.models import CostLine, CostPart
from raggs.sweeps.once import Once
from raggs.sweeps.parts import PREPARING, Parts
from raggs.sweeps.partstore import Final
from raggs.sweeps.world import GENERATOR, World

QUERIES = 1000


class Costs:
    """Prices and counts, each token counted once.

    Args:
        world, parts: of the sweep.
    """

    def __init__(self, world: World, parts: Parts) -> None:
        self._world, self._parts = world, parts
        self._tokens: dict[str, dict[str, int]] = {}  # by cut of the corpus, of each passage
        self._asked = Once[list[int]]()

    def cost(self, system: System, final: Final) -> CostPart:
        """USD for 1,000 questions of a system."""
        asked = self._asked(system.rewrite, lambda: self._question_tokens(system))
        read = _candidate_tokens(final)
        context = self._context(system, final)
        lines = (*self._embed(system, fmean(asked)), *self._rerank(system, final), *self._generate(context))
        return CostPart.of(
            lines,
            question_tokens=fmean(asked),
            candidate_tokens=fmean(read) if read else None,
            candidate_tokens_sd=pstdev(read) if read else None,
            context_tokens=context,
        )

    def _question_tokens(self, system: System) -> list[int]:
        return [count_tokens([record.rewrite])[0] for record in self._parts.prepared(system.rewrite)]

    def _embed(self, system: System, tokens: float) -> Iterator[CostLine]:
        """Rewriting, by what it took; and embedding, by the price of the question's tokens."""
        for model in self._world.workshop.rewriter(system.rewrite).models:
            yield CostLine(step="embed", model=model, unit="answers", per_query=1, price=self._paid(PREPARING, model))
        twice = system.depth is not None and system.depth.when.rewrite is not None  # the question as it was asked, too
        for model in () if system.embedder is None else self._parts.embedder(system.embedder).models:
            price = self._world.workshop.llm.price(model)
            yield CostLine(
                step="embed",
                model=model,
                unit="tokens",
                per_query=(2 if twice else 1) * tokens,
                price=None if price is None else price.input,
            )

    def _rerank(self, system: System, final: Final) -> Iterator[CostLine]:
        if system.own is not None:
            for search in self._parts.searches(system):
                for model in self._parts.paid(search):  # whose calls are shared with no other system: none is counted
                    yield CostLine(step="rerank", model=model, unit="answers", per_query=1, price=None)
        if system.reranker is None or not final.rerankings:
            return
        reranker, found = self._parts.reranker(system.reranker), list(final.rerankings.values())
        prices = {model: self._world.workshop.llm.price(model) for model in reranker.models}
        for model, price in prices.items():
            if not reranker.reader.METERED or price is None:
                known = None not in prices.values()
                paid = 1000 * fmean(each.usd for each in found) / len(prices) if known else None
                yield CostLine(step="rerank", model=model, unit="answers", per_query=1, price=paid)
                continue
            tokens, searches = fmean(each.tokens for each in found), fmean(each.searches for each in found)
            yield CostLine(step="rerank", model=model, unit="tokens", per_query=tokens, price=price.input)
            if price.per_1k_searches:
                by_search = price.per_1k_searches
                yield CostLine(step="rerank", model=model, unit="searches", per_query=searches, price=by_search)

    def _generate(self, context: Number) -> Iterator[CostLine]:
        price = self._world.config.prices.get(GENERATOR)
        if price is not None and price.input is not None:
            known = None if context is None else price.input
            yield CostLine(step="generate", model=GENERATOR, unit="tokens", per_query=context or 0.0, price=known)

    def _context(self, system: System, final: Final) -> Number:
        """Mean tokens of the passages that the generator reads."""
        top = self._world.config.generator
        shown = [[doc for doc, _ in hits[:top]] for hits in final.lists.values()]
        tokens = self._tokens.setdefault(repr(system.chunker), {})
        missing = sorted({doc for docs in shown for doc in docs} - tokens.keys())
        if missing:
            found = self._world.passages_of(system.chunker).get(missing)
            tokens.update(zip(missing, count_tokens([found[doc].content for doc in missing]), strict=True))
        return fmean(sum(tokens[doc] for doc in docs) for docs in shown) if shown else None

    def _paid(self, stage: str, model: str) -> float:
        """USD for 1,000 answers of a model on one part, by the ledger; those from the cache at what they had cost."""
        usd, answers = 0.0, 0
        for line in read_torn(self._world.ledger, LedgerLine, REMEDY):
            if (line.stage, line.model) == (stage, model) and line.outcome in ("answered", "cached"):
                usd += line.usd + line.saved_usd
                answers += 1 if line.outcome == "answered" else line.cached
        return QUERIES * usd / answers if answers else 0.0


def _candidate_tokens(final: Final) -> Sequence[float]:
    """Tokens that a reranker read for a candidate, mean of each question; none where nobody counts them."""
    return [
        found.tokens / len(found.ranked) for found in (final.rerankings or {}).values() if found.tokens and found.ranked
    ]
