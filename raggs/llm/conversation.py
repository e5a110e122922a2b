"""One question until its answer can be used: ask, check, and ask again with a correction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from raggs.llm.answers import Unusable, correction, read_completion
from raggs.llm.caller import Caller
from raggs.llm.calls import LIMITS, ChatCall
from raggs.llm.faults import Fault, Treatment
from raggs.llm.ledger import CallLedger
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
    caller: Caller | BatchCaller,
    ledger: CallLedger,
    request: Request[T],
    parameters: Mapping[str, Any],
    max_repairs: int,
    key: str,
) -> Outcome[T]:
    """Ask at most 1 + `max_repairs` times.

    An answer that was cut off is asked for again with room for a longer one; of any other one the model is told what
    is wrong with it. `key`: of the answer in the cache, for batches.

    Raises:
        RaggsError: what must stop the run (see `raggs.llm.faults`), or the budget.
    """
    messages: list[Message] = list(request.messages)
    used, raw, error, form = Usage(), None, "", response_format(request)
    for repairs in range(max_repairs + 1):
        call = ChatCall(request.model, parameters, messages, form, request.max_output_tokens, key)
        with ledger.call(request.model, request.schema_name) as trace:
            try:
                completion = await caller.call(call, trace)
            except Fault as fault:
                trace.outcome = "failed"
                if fault.treatment is Treatment.STOP:
                    raise fault.error from None
                return Outcome(Reply(None, str(fault.error), raw), used, repairs)
            used += trace.used
            raw = completion.content or completion.refusal or ""
            try:
                value = read_completion(completion, request.check)
            except Unusable as problem:
                trace.outcome, error = "unusable", f"the answer cannot be used: {problem}"
                if problem.truncated:
                    parameters = _with_longer_answer(parameters, call, completion)
                else:
                    messages = [*request.messages, correction(problem)]
                continue
            trace.outcome = "answered"
            return Outcome(Reply(value, None, raw), used, repairs)
    return Outcome(Reply(None, error, raw), used, max_repairs)


def response_format(request: Request[Any]) -> dict[str, Any]:
    """The wish for structured output, in OpenAI's form, which litellm translates for other providers."""
    wanted = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
    return {"type": "json_schema", "json_schema": wanted}


def _with_longer_answer(parameters: Mapping[str, Any], call: ChatCall, completion: Completion) -> dict[str, Any]:
    name = next((name for name in LIMITS if name in parameters), "max_tokens")
    return {**parameters, name: LONGER * max(call.expected_tokens, completion.completion_tokens or 0)}
