"""What calls to language models took: one value, from the call itself to the lock of a stage and the sums of a run.

Values add and subtract: `after - before` is what lies between. Nothing here knows prices, files or providers.
"""

from __future__ import annotations

from operator import not_
from typing import Self

from pydantic import Field

from raggs.base.artifacts import Frozen


class Spending(Frozen):
    """What was spent with providers, and what the cache saved."""

    calls: int = Field(0, description="requests sent, retries and corrections included")
    cached: int = Field(0, description="answers that cost nothing: cached, or shared with the same question in flight")
    prompt_tokens: int = 0
    cached_tokens: int = Field(
        0, exclude_if=not_, description="of `prompt_tokens`, those that providers say they remembered"
    )
    completion_tokens: int = 0
    usd: float = Field(0.0, description="at the prices that are known, less `discount_usd`")
    discount_usd: float = Field(
        0.0, exclude_if=not_, description="what the remembered tokens cost less; below 0 where writing them cost more"
    )
    saved_usd: float = Field(0.0, description="what the cached answers had cost")
    own_usd: float = Field(
        0.0, exclude_if=not_, description="of `saved_usd`, answers that this run had paid for itself and read again"
    )
    repaired: int = Field(0, description="answers that became valid only after a corrective message")

    def __add__(self, other: Self) -> Self:
        theirs = other.__dict__
        return type(self)(**{name: mine + theirs[name] for name, mine in self.__dict__.items()})

    def __sub__(self, other: Self) -> Self:
        theirs = other.__dict__
        return type(self)(**{name: mine - theirs[name] for name, mine in self.__dict__.items()})
