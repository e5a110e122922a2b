"""What a system costs for 1,000 questions, and what it holds in memory.

Tokens are counted, not assumed; money is what was paid, or what the price list says of the tokens. A price that nobody
knows is None, and so is every sum with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from raggs.decision.costs import generator_usd
from raggs.jsonl import read_torn
from raggs.jsontypes import Number
from raggs.llm.ledger import REMEDY, LedgerLine
from raggs.sweeps.grid import System
from raggs.sweeps.models import CostPart
from raggs.sweeps.once import Once
from raggs.sweeps.parts import PREPARING, Parts
from raggs.sweeps.partstore import Final
from raggs.sweeps.world import GENERATOR, World
from raggs.tokens import count_tokens

QUERIES = 1000
MILLION = 1_000_000


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
        parts = (self._embed(system, fmean(asked)), self._rerank(system, final), self._generate(context))
        return CostPart(
            embed=parts[0],
            rerank=parts[1],
            generate=parts[2],
            total=None if None in parts else sum(each or 0.0 for each in parts),
            question_tokens=fmean(asked),
            candidate_tokens=fmean(read) if read else None,
            candidate_tokens_sd=pstdev(read) if read else None,
            context_tokens=context,
        )

    def _question_tokens(self, system: System) -> list[int]:
        return [count_tokens([record.rewrite])[0] for record in self._parts.prepared(system.rewrite)]

    def _embed(self, system: System, tokens: float) -> Number:
        """Rewriting, by what it took; and embedding, by the price of the question's tokens."""
        total = 0.0
        for model in self._world.workshop.rewriter(system.rewrite).models:
            total += self._paid(PREPARING, model)
        models = () if system.embedder is None else self._parts.embedder(system.embedder).models
        for model in models:
            price = self._world.workshop.llm.price(model)
            if price is None:
                return None
            texts = (
                2 if system.depth and system.depth.when.rewrite is not None else 1
            )  # the question as it was asked, too
            total += QUERIES * texts * tokens * price.input / MILLION
        return total

    def _rerank(self, system: System, final: Final) -> Number:
        if system.own is not None and any(map(self._parts.paid, self._parts.searches(system))):
            return None  # whose calls are shared with no other system, and counted for none
        if system.reranker is None or final.rerankings is None:
            return 0.0
        for model in self._parts.reranker(system.reranker).models:
            if self._world.workshop.llm.price(model) is None:
                return None
        return QUERIES * fmean(found.usd for found in final.rerankings.values())

    def _generate(self, context: Number) -> Number:
        price = self._world.config.prices.get(GENERATOR)
        if price is None or price.input is None:
            return 0.0
        return None if context is None else generator_usd(1, context, price.input)

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
