"""What an order costs a judge besides the passages that it is shown, so that the length of lists can follow prices.

Tokens are as `estimate_tokens` counts them. What a model thinks before it answers is not in it: nobody knows how that
grows with a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from raggs.base.tokens import BYTES_PER_TOKEN
from raggs.llm.prices import LIKELY_BYTES, estimate_tokens, remembered_tokens
from raggs.llm.settings import Price


@dataclass(frozen=True)
class OrderPrice:
    """In tokens sent. The values are those of a judge whose price is not known.

    Attributes:
        instructions: of the prompt and the form of the answer; fewer where the provider remembers them for less.
        dearer: what a token of the answer costs.
        usd: what a million tokens sent cost; 0 where that is not known.
    """

    instructions: float = 250.0
    dearer: float = 4.0
    usd: float = 0.0

    @classmethod
    def together(cls, prices: Iterable[OrderPrice]) -> OrderPrice:
        """Of several that are asked the same, by what each costs; typical where none is known."""
        known = [price for price in prices if price.usd]
        if not known:
            return TYPICAL
        usd = sum(price.usd for price in known)
        instructions = sum(price.usd * price.instructions for price in known) / usd
        return cls(instructions, sum(price.usd * price.dearer for price in known) / usd, usd)


TYPICAL = OrderPrice()


def order_price(model: str, price: Price | None, system: str, rest: str) -> OrderPrice:
    """By the price of `model`; typical where that is unknown, or nothing is paid by the token.

    Args:
        system: what all prompts begin with.
        rest: the other words of the prompt, and the form of the answer.
    """
    if price is None or not price.input or not price.output:
        return TYPICAL
    sent = estimate_tokens(system) + estimate_tokens(rest)
    remembered = remembered_tokens(model, system) * LIKELY_BYTES / BYTES_PER_TOKEN  # as `estimate_tokens` counts
    spared = price.discount(round(remembered)) / price.input * 1_000_000
    return OrderPrice(max(0.0, sent - spared), price.output / price.input, price.input)
