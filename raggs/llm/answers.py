"""From a model's words to a checked value, or to the phrase that tells it what was wrong.

Nothing is coerced: a grade given as text is wrong, not a grade. Only a Markdown fence around the JSON is taken off,
since servers without structured output write one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from raggs.llm.messages import Message

if TYPE_CHECKING:
    from raggs.llm.provider import Completion

T = TypeVar("T")

MARKDOWN_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*?)\n?```\Z", re.DOTALL)


class Unusable(Exception):
    """An answer that gives no value; the message completes "your answer cannot be used: ..."."""

    def __init__(self, phrase: str, *, truncated: bool = False) -> None:
        super().__init__(phrase)
        self.truncated = truncated


def read_completion(completion: Completion, check: Callable[[Any], T]) -> T:
    """The checked value.

    Raises:
        Unusable: cut off, refused, empty, not JSON, or not what `check` wants.
    """
    if completion.finish == "length":
        raise Unusable("it was cut off at the limit of its length", truncated=True)
    if completion.refusal or completion.finish == "content_filter":
        raise Unusable("it is a refusal")
    return read_text(completion.content, check)


def read_text(raw: str, check: Callable[[Any], T]) -> T:
    """The checked value of an answer's text.

    Raises:
        Unusable: empty, not JSON, or not what `check` wants.
    """
    text = raw.strip()
    if fenced := MARKDOWN_FENCE.match(text):
        text = fenced.group(1)
    if not text:
        raise Unusable("it is empty")
    try:
        parsed = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError):
        raise Unusable("it is not one JSON object") from None
    if not isinstance(parsed, dict):
        raise Unusable("it is not one JSON object")
    try:
        return check(parsed)
    except ValueError as error:
        raise Unusable(str(error)) from None


def correction(problem: Unusable) -> Message:
    """What to add to the conversation, so that the next answer is better.

    The answer itself is not shown again: it may quote a passage, whose orders would then stand outside the fence.
    """
    asked = f"Your answer cannot be used: {problem}. Answer again: one JSON object of the form asked for, nothing else."
    return {"role": "user", "content": asked}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
