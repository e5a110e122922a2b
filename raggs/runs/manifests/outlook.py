"""What would be asked of one model, as a line of a dry run."""

from __future__ import annotations

from raggs.llm.rehearsal import Asked
from raggs.llm.settings import Price
from raggs.runs.manifests.models import Estimate


def line_of(stage: str, model: str, asked: Asked, price: Price | None, *, answer: int = 0) -> Estimate:
    """What would be asked of one model for a stage or task.

    Args:
        price: of the model; None where it is not known.
        answer: tokens of each answer.
    """
    output = asked.calls * answer
    return Estimate(
        stage=stage,
        calls=asked.calls,
        cached=asked.known,
        input_tokens=asked.tokens,
        output_tokens=output,
        usd=None if price is None else price.usd(asked.tokens, output, asked.searches),
        exact=True,
        who=model,
    )
