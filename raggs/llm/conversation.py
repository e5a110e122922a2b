"""One question until its answer can be used: ask, check, and ask again with a correction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from raggs.llm.answers import Unusable, correction, read_completion
from raggs.llm.caller import LIMITS, Call, Caller
from raggs.llm.faults import Fault, Treatment
from raggs.llm.messages import Message, Reply, Request, Usage
from raggs.llm.provider import Completion

if TYPE_CHECKING:
    from raggs.llm.batch_caller import BatchCaller

T = TypeVar("T")
LONGER = 4  # times the length of an answer that was cut off


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """A reply, what its answers cost, and how many corrections it took."""

    reply: Reply[T]
    usage: Usage
    repairs: int


async def converse(
    caller: Caller | BatchCaller, request: Request[T], parameters: Mapping[str, Any], max_repairs: int, key: str = ""
) -> Outcome[T]:
    """Ask at most 1 + `max_repairs` times.

    An answer that was cut off is asked for again with room for a longer one; of any other one the model is told what
    is wrong with it.

    Raises:
        RaggsError: what must stop the run (see `raggs.llm.faults`), or the budget.
    """
    messages: list[Message] = list(request.messages)
    used, raw, error = Usage(), None, ""
    for repairs in range(max_repairs + 1):
        call = Call(request.model, messages, parameters, response_format(request), request.max_output_tokens, key)
        try:
            with caller.outage.watch():
                completion = await caller.call(call)
        except Fault as fault:
            if fault.treatment is Treatment.STOP:
                raise fault.error from None
            return Outcome(Reply(None, str(fault.error), raw), used, repairs)
        used += _cost(caller, request.model, completion)
        raw = completion.content or completion.refusal or ""
        try:
            return Outcome(Reply(read_completion(completion, request.check), None, raw), used, repairs)
        except Unusable as problem:
            error = f"the answer cannot be used: {problem}"
            if problem.truncated:
                parameters = _with_longer_answer(parameters, call, completion)
            else:
                messages = [*request.messages, correction(problem)]
    return Outcome(Reply(None, error, raw), used, max_repairs)


def response_format(request: Request[Any]) -> dict[str, Any]:
    """The wish for structured output, in OpenAI's form, which litellm translates for other providers."""
    wanted = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
    return {"type": "json_schema", "json_schema": wanted}


def _cost(caller: Caller | BatchCaller, model: str, completion: Completion) -> Usage:
    sent, received = completion.prompt_tokens or 0, completion.completion_tokens or 0
    return Usage(prompt_tokens=sent, completion_tokens=received, usd=caller.price(model).usd(sent, received))


def _with_longer_answer(parameters: Mapping[str, Any], call: Call, completion: Completion) -> dict[str, Any]:
    name = next((name for name in LIMITS if name in parameters), "max_tokens")
    return {**parameters, name: LONGER * max(call.expected_tokens, completion.completion_tokens or 0)}
