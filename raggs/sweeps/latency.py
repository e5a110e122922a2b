"""From timings to what a question waits for: medians over rounds, sums over steps, percentiles over questions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from raggs.sweeps.models import LatencyPart, Spread, StepKind, Timing


def sample(qids: Sequence[str], count: int) -> list[str]:
    """At most `count` questions, evenly spread over all."""
    count = min(count, len(qids))
    return [qids[at * len(qids) // count] for at in range(count)]


def latency_of(
    steps: Mapping[StepKind, Sequence[str]], timings: Iterable[Timing], questions: Sequence[str]
) -> LatencyPart:
    """What is known of a system's waiting.

    A question that a step was not timed for counts at the step's median.

    Args:
        steps: by kind, the keys of what is done one after the other.
        timings: of these and other steps.
        questions: over which percentiles are taken.

    Returns:
        A kind with a step that was never timed is None, and so is the total.
    """
    wanted = {key for keys in steps.values() for key in keys}
    rounds: dict[str, list[Timing]] = {}
    for timing in timings:
        if timing.step in wanted:
            rounds.setdefault(timing.step, []).append(timing)
    parts: dict[StepKind, Spread] = {}
    for kind, keys in steps.items():
        if (spread := _spread(keys, rounds, questions)) is not None:
            parts[kind] = spread
    everything = [key for keys in steps.values() for key in keys]
    return LatencyPart(
        embed=parts.get("embed"),
        retrieve=parts.get("retrieve"),
        rerank=parts.get("rerank"),
        total=_spread(everything, rounds, questions) if parts.keys() == steps.keys() else None,
    )


def _spread(keys: Sequence[str], rounds: Mapping[str, Sequence[Timing]], questions: Sequence[str]) -> Spread | None:
    """Percentiles of the sum of some steps; None where one was never timed, or there is none."""
    if not keys or not all(rounds.get(key) for key in keys):
        return None
    total, calls = np.zeros(len(questions)), 0
    for key in keys:
        ms = _by_question(rounds[key])
        usual = median(ms.values())
        total += [ms.get(qid, usual) for qid in questions]
        calls = max(calls, sum(len(timing.ms) for timing in rounds[key]))
    p50, p95 = np.percentile(total, [50, 95]).tolist()
    return Spread(p50=p50, p95=p95, calls=calls, paid=any(timing.paid for key in keys for timing in rounds[key]))


def _by_question(rounds: Sequence[Timing]) -> dict[str, float]:
    """The median over rounds."""
    qids = {qid for timing in rounds for qid in timing.ms}
    return {qid: median(timing.ms[qid] for timing in rounds if qid in timing.ms) for qid in qids}
