"""Send a request until its answer is usable: call, parse, validate, and repeat with a correction.

Values are not coerced: a grade given as text is invalid. Only lone surrogates are replaced, and a Markdown fence around
the JSON is removed. Models without structured output often write such a fence. The answer to a decision request is
validated in the same way, and so are the log-probabilities of an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from raggs.base.artifacts import Spending
from raggs.base.text import replace_surrogates, sound_value
from raggs.base.types import Json, JsonObject
from raggs.llm.calls import LIMITS, Call, ChatCall, Completion, DecisionCall
from raggs.llm.faults import Fault, Treatment
from raggs.llm.messages import CallUsage, ChatRequest, DecisionRequest, Message, Reply

if TYPE_CHECKING:
    from raggs.llm.ledger import CallLedger, CallTrace, LedgerAccount
    from raggs.llm.messages import Answerer

T = TypeVar("T")
LONGER = 4  # new limit as a multiple of the length at which an answer was cut off
MARKDOWN_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*?)\n?```\Z", re.DOTALL)


class ChatCaller(Protocol):
    """Answers chat and decision calls, directly or by a batch."""

    async def call(self, call: Call[Completion], trace: CallTrace) -> Completion:
        """Return one answer, with counted or estimated tokens. The usage is recorded in `trace`.

        Raises:
            Fault: the call failed.
            RaggsError: the budget is used up, or the price is required and unknown.
        """
        ...


@dataclass(frozen=True)
class Exchange(Generic[T]):
    """A reply, the usage of all calls for it, and the model that gave the last answer."""

    reply: Reply[T]
    spent: Spending
    by: Answerer | None = None


class Unusable(Exception):
    """An answer without a usable value. The message completes "your answer cannot be used: ..."."""

    def __init__(self, phrase: str, *, truncated: bool = False) -> None:
        super().__init__(phrase)
        self.truncated = truncated


async def converse(
    caller: ChatCaller,
    ledger: CallLedger,
    account: LedgerAccount,
    request: ChatRequest[T] | DecisionRequest[T],
    parameters: Mapping[str, object],
    max_repairs: int,
    key: str,
    keep: Callable[[Exchange[T]], None],
) -> Exchange[T]:
    """Make at most 1 + `max_repairs` calls for one request. `caller` may retry each call.

    An answer that was cut off is requested again with a higher limit. Other invalid answers are each followed by a
    correction; a decision is requested again unchanged. `key` is the cache key of the answer, for batches. `keep`
    stores a valid answer before it is booked, so that a kill between the two steps loses no answer. In this case, the
    call counts as possibly billed.

    Raises:
        RaggsError: the run must stop (see `raggs.llm.faults`), or the budget is used up.
    """
    by: Answerer | None = None
    spent, took, raw, error = Spending(), CallUsage(), None, ""
    call = call_of(request, parameters, key)
    for repairs in range(max_repairs + 1):
        with ledger.call(account, request.model, request.schema_name) as trace:
            try:
                completion = await caller.call(call, trace)
            except Fault as fault:
                trace.outcome = "failed"
                if fault.treatment is Treatment.STOP:
                    raise fault.error from None
                rejected = fault.treatment is Treatment.FAIL
                words = replace_surrogates(str(fault.error))
                return Exchange(Reply(None, words, raw, took, rejected=rejected, answerer=_key(ledger, by)), spent, by)
            spent, took, by = spent + trace.spent, took + trace.took, completion.by
            content, free = completion.content, isinstance(request, ChatRequest) and request.logprobs > 0
            shown = completion.content_with_alternatives if free else content
            raw = replace_surrogates(shown or content or completion.refusal or "")
            try:
                value = read_completion(completion, request.check, logprobs=free)
            except Unusable as problem:
                trace.outcome, error = "unusable", f"the answer cannot be used: {problem}"
                call = _next_call(call, request, completion, problem)
                continue
            trace.outcome = "answered"
            trace.spent += Spending(repaired=int(repairs > 0))
            found = Exchange(Reply(value, None, raw, took, answerer=_key(ledger, by)), spent, by)
            keep(found)
            return found
    return Exchange(Reply(None, error, raw, took, unusable=True, answerer=_key(ledger, by)), spent, by)


def _key(ledger: CallLedger, by: Answerer | None) -> str:
    return "" if by is None else ledger.answerers.note(by)


def call_of(
    request: ChatRequest[T] | DecisionRequest[T], parameters: Mapping[str, object], key: str = ""
) -> ChatCall | DecisionCall:
    """Return the first call of a request. `key` is the cache key of the answer, for batches."""
    if isinstance(request, DecisionRequest):
        return DecisionCall(request.model, parameters, request.text, request.question)
    form, expected = response_format(request), request.max_output_tokens
    return ChatCall(request.model, parameters, list(request.messages), form, expected, key)


def _next_call(
    call: ChatCall | DecisionCall,
    request: ChatRequest[T] | DecisionRequest[T],
    completion: Completion,
    problem: Unusable,
) -> ChatCall | DecisionCall:
    """Return the call that follows an unusable answer."""
    if isinstance(call, DecisionCall) or isinstance(request, DecisionRequest):
        return call
    if problem.truncated:
        return replace(call, parameters=_with_longer_answer(call.parameters, call, completion))
    return replace(call, messages=[*request.messages, correction(problem, json_object=not request.logprobs)])


def response_format(request: ChatRequest[T]) -> dict[str, object]:
    """Return the request for structured output in OpenAI's form, which litellm translates for other providers; empty
    for an answer with log-probabilities, which is free text.
    """
    if request.logprobs:
        return {}
    wanted = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
    return {"type": "json_schema", "json_schema": wanted}


def read_completion(completion: Completion, check: Callable[[JsonObject], T], *, logprobs: bool = False) -> T:
    """Return the validated value of an answer. `logprobs`: whether log-probabilities were requested, so that the answer
    may end at its limit.

    Raises:
        Unusable: the answer is cut off, refused, empty, not one JSON object, or rejected by `check`, or it lacks the
            requested log-probabilities.
    """
    if completion.finish == "length" and not logprobs:
        raise Unusable("it was cut off at the limit of its length", truncated=True)
    if completion.refusal or completion.finish == "content_filter":
        raise Unusable("it is a refusal")
    if logprobs and not completion.alternatives:
        raise Unusable("it holds no log-probabilities")
    return read_text(completion.content_with_alternatives if logprobs else completion.content, check)


def read_text(raw: str, check: Callable[[JsonObject], T]) -> T:
    """Return the validated value of an answer's text.

    Raises:
        Unusable: the text is empty, not one JSON object, or rejected by `check`.
    """
    text = raw.strip()
    if fenced := MARKDOWN_FENCE.match(text):
        text = fenced.group(1)
    if not text:
        raise Unusable("it is empty")
    try:
        parsed = json.loads(text, object_pairs_hook=_unique_object, parse_constant=_constant)
    except (ValueError, RecursionError):
        raise Unusable("it is not one JSON object") from None
    if not isinstance(parsed, dict):
        raise Unusable("it is not one JSON object")
    try:
        return check({replace_surrogates(key): sound_value(value) for key, value in parsed.items()})
    except ValueError as error:
        raise Unusable(str(error)) from None


def correction(problem: Unusable, *, json_object: bool = True) -> Message:
    """Return the message that requests a better answer. `json_object`: whether the answer is a JSON object.

    The answer itself is not repeated: it may quote a passage, and instructions in the passage would then be outside the
    protective marks.
    """
    form = "one JSON object of the form asked for" if json_object else "in the form asked for"
    asked = f"Your answer cannot be used: {problem}. Answer again: {form}, nothing else."
    return {"role": "user", "content": asked}


def _with_longer_answer(parameters: Mapping[str, object], call: ChatCall, completion: Completion) -> dict[str, object]:
    name = next((name for name in LIMITS if name in parameters), "max_tokens")
    return {**parameters, name: LONGER * max(call.expected_tokens, completion.completion_tokens or 0)}


def _unique_object(pairs: list[tuple[str, Json]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")
