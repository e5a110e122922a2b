"""Whether the lists that a judge is to order fit into what its model reads, before anything is paid.

A list that does not fit is refused by the provider, at no cost, each time: a ranking without answers. What is known
beforehand is the mean passage, and what litellm's list says of the model; passages that are much longer than others
may still fail, as any call may.
"""

from __future__ import annotations

from raggs.app.services import RunServices
from raggs.base.errors import ConfigError
from raggs.llm.prices import estimate_tokens, likely_tokens, longest_prompt
from raggs.prompts import FALLBACK
from raggs.stages.rankconfig import LONGEST, RankConfig


def require_room(services: RunServices, config: RankConfig, question: int, passage: int) -> None:
    """Find out whether the longest lists fit, of passages and questions of so many tokens, estimated.

    Raises:
        ConfigError: they do not, by the model's place in litellm's list.
    """
    length = LONGEST if config.batch_size == "auto" else config.batch_size
    length = min(length, services.config.merge.depth, len(services.passages))
    prompt = question + estimate_tokens(services.prompts["order"].text(FALLBACK))
    for model in services.judge.models:
        room = longest_prompt(model)
        if not room or likely_tokens(prompt + length * passage) <= room:
            continue
        fitting = max(0, (room - likely_tokens(prompt)) // max(1, likely_tokens(passage)))
        remedy = f"set rank.batch_size to {fitting} or less" if fitting > 1 else "take a model that reads more"
        raise ConfigError(
            f"rank: lists of {length} passages of about {likely_tokens(passage):,} tokens do not fit into the "
            f"{room:,} tokens that {model} reads",
            remedy=remedy,
        )
