"""Under which keys the cache holds an answer.

A model is its provider's name, its own and, where the user says that two servers differ, its `model_id`. Where it is
asked is no part of it: the same model behind another port gives the same answers. Earlier versions thought otherwise
and had the address in the key, so what they paid for at an address is looked for there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from raggs.base.hashing import hash_value
from raggs.llm.prices import address_of, provider_of
from raggs.llm.settings import LLMSettings


class Keys(NamedTuple):
    """The key of an answer; and the one under which an earlier version kept it, where that is another one."""

    own: str
    earlier: str | None = None


def keys_of(model: str, settings: LLMSettings, parts: Mapping[str, object]) -> Keys:
    """The keys of what `model` answers. `parts`: all else that can change the answer."""
    named = {"provider": provider_of(model), "model": model, **parts}
    model_id = settings.of(model).model_id
    own = hash_value({**named, "address": None, **({"model_id": model_id} if model_id else {})})
    address = address_of(model, settings.base_of(model))
    return Keys(own, None if address is None else hash_value({**named, "address": address}))
