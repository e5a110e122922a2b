"""How many calls of a model there may be that is asked where another one sends for it: the good judge of a cascade.

Before the first run only the least and the most are known; after it, the share that was sent for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raggs.base.health import JudgeHealth
from raggs.parts.workshop import Calls
from raggs.runs.manifests.models import Estimate
from raggs.runs.manifests.store import RunStore


def _share_sent_for(store: RunStore) -> float | None:
    """On what share of the passages the good judge of a run's cascade was asked; None where nobody knows."""
    lock = store.manifest().stages.get("judge") if store.exists else None
    found = lock.health.cascade if lock is not None and isinstance(lock.health, JudgeHealth) else None
    return None if found is None else found.asked.rate


def bounded(line: Estimate, each: Calls, store: RunStore) -> Estimate:
    """A line of the most calls that there may be, with the least, and with those that the run's share comes to.

    Args:
        each: calls for one answer.
    """
    if line.exact or each.least == each.most:
        return line
    share = _share_sent_for(store)
    expected = None if share is None else round(share * line.calls / each.most)
    least = round(line.calls * each.least / each.most)
    likely = line.likely_usd
    if likely is not None and line.calls:  # half of what lies between, until the share is known
        likely *= ((least + line.calls) / 2 if expected is None else expected) / line.calls
    return line.model_copy(update={"least": least, "expected": expected, "likely_usd": likely})


def sent_for_advice(lines: Sequence[Estimate]) -> Iterator[str]:
    """What there is to say of such lines among others, and where the model alone would cost less."""
    for line in lines:
        if line.least is None:
            continue
        yield sent_for_words(line)
        others = [other.usd for other in lines if other.stage == line.stage and other is not line]
        likely = line.usd_for(line.least if line.expected is None else line.expected)
        if line.usd is None or likely is None or None in others:
            continue
        if (whole := likely + sum(usd or 0.0 for usd in others)) > line.usd:
            at_least = "at least " if line.expected is None else ""
            yield f"that does not pay: {line.who} alone would cost ${line.usd:,.4f}, both {at_least}${whole:,.4f}"


def sent_for_words(line: Estimate) -> str:
    """The calls and the money of such a line, from, to, and as they are to be expected."""
    least, expected = line.least or 0, line.expected
    usd = [line.usd_for(calls) for calls in (least, line.calls)]
    money = "" if None in usd else f", ${usd[0]:,.4f} to ${usd[1]:,.4f}"
    found = f"{line.who} is asked where a cheap judge sends for it: {least:,} to {line.calls:,} calls{money}"
    if expected is None:
        return f"{found}; the first run tells how many"
    likely = line.usd_for(expected)
    return f"{found}; about {expected:,}{'' if likely is None else f', ${likely:,.4f}'} by the share so far"
