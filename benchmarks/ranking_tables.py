"""The Markdown tables of `ranking.py`: means with standard errors, paired differences, calibration."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from ranking_methods import LONG_LISTS

BEGIN, END = "<!-- begin: tables -->", "<!-- end: tables -->"
ORDER = ("tau", "tau20", "ov20", "ov10", "ndcg")
HEADS = ("tau", "tau20", "ov20", "ov10", "nDCG@20")


class Plan(NamedTuple):
    """What is played in every world."""

    judges: tuple[str, ...]
    budgets: tuple[int, ...]
    studies: bool  # batch sizes and rounds too
    seed: int


class Key(NamedTuple):
    """A row of a table: what was played at how many calls."""

    study: str
    judge: str
    method: str
    budget: int


Values = dict[str, float]
Played = dict[Key, Values]
Rows = dict[Key, list[Values]]  # one for each query


def mean_error(sample: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; NaN for a single value's error."""
    array = np.asarray(sample)
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size)) if array.size > 1 else math.nan


def plain(sample: Sequence[float]) -> str:
    mean, error = mean_error(sample)
    return f"{mean:.3f} ±{error:.3f}"


def signed(sample: Sequence[float]) -> str:
    mean, error = mean_error(sample)
    return f"{mean:+.3f} ±{error:.3f}"


def column(found: Sequence[Values], name: str) -> list[float]:
    return [one[name] for one in found]


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(head), "|".join("---" for _ in head), *(" | ".join(row) for row in body)]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)


def order_table(rows: Rows, study: str, judge: str) -> str:
    """A row for each method and number of calls: the least of each method first, then the next."""
    keys = [key for key in rows if key[:2] == (study, judge)]
    keys.sort(key=lambda key: sum(other.method == key.method and other.budget < key.budget for other in keys))
    body = []
    for key in keys:
        calls, ms = (mean_error(column(rows[key], name))[0] for name in ("calls", "ms"))
        body.append([key.method, f"{calls:.0f}", *(plain(column(rows[key], name)) for name in ORDER), f"{ms:.1f}"])
    return table(["method", "calls", *HEADS, "ms/call"], body)


def difference_table(rows: Rows, plan: Plan) -> str:
    """`bayes` less `online`, less the best other at as many calls, and less the best long list.

    The best is chosen after the fact for each measure, by its mean on the same queries, which flatters it.
    """
    body = []
    for judge, budget in itertools.product(plan.judges, plan.budgets):
        ours = rows[Key("methods", judge, "bayes", budget)]
        played = {key: found for key, found in rows.items() if key[:2] == ("methods", judge) and key.method != "bayes"}
        equal = {key.method: found for key, found in played.items() if key.budget == budget}
        long = {key.method: found for key, found in played.items() if key.method in LONG_LISTS}
        start = [judge, str(budget)]
        body.append([*start, "online", *(signed(_less(ours, equal["online"], name)) for name in ORDER)])
        body.append([*start, "best other", *(_less_best(ours, equal, name) for name in ORDER)])
        body.append([*start, "best long list", *(_less_best(ours, long, name) for name in ORDER)])
    return table(["judge", "calls", "bayes less", *HEADS], body)


def _less_best(ours: Sequence[Values], others: dict[str, list[Values]], name: str) -> str:
    best = _best(others, name)
    return f"{signed(_less(ours, others[best], name))} ({best})"


def _best(others: dict[str, list[Values]], name: str) -> str:
    return max(sorted(others), key=lambda method: mean_error(column(others[method], name))[0])


def _less(ours: Sequence[Values], theirs: Sequence[Values], name: str) -> list[float]:
    return [one[name] - other[name] for one, other in zip(ours, theirs, strict=True)]


def confidence_table(rows: Rows, study: str) -> str:
    """What the engines promise against what is so. Ratios and shares are of sums over all queries."""
    body = []
    for key, found in rows.items():
        if key.study == study and "locks" in found[0]:
            sums = {name: sum(column(found, name)) for name in ("locks", "wrong", "expected", "actual", "calls")}
            body.append(
                [
                    *(key.judge, key.method, f"{sums['calls'] / len(found):.0f}"),
                    *(f"{sums['locks'] / len(found):.0f}", f"{100 * sums['wrong'] / max(sums['locks'], 1):.2f}"),
                    f"{sums['expected'] / len(found):.1f} / {sums['actual'] / len(found):.1f}"
                    f" = {sums['expected'] / max(sums['actual'], 1e-9):.2f}",
                    f"{100 * mean_error(column(found, 'coverage'))[0]:.1f}",
                    f"{mean_error(column(found, 'width'))[0]:.1f}",
                    f"{mean_error(column(found, 'topological'))[0]:+.4f}",
                ]
            )
    calibration = ["inversions: expected / actual", "95 % cover", "width", "locks on tau20"]
    return table(["judge", "engine", "calls", "locks", "wrong %", *calibration], body)


def report(rows: Rows, plan: Plan, about: str) -> str:
    """All tables, in Markdown."""
    parts = [about]
    for judge in plan.judges:
        parts += [f"### Orders, {judge} judge", order_table(rows, "methods", judge)]
    parts += ["### Paired differences", difference_table(rows, plan)]
    parts += ["### Confidence", confidence_table(rows, "methods")]
    parts += ["### At their own stop", *_by_judge(rows, "stop", plan), confidence_table(rows, "stop")]
    if plan.studies:
        parts += ["### Passages in a call, at equal passages shown", *_by_judge(rows, "batch", plan)]
        parts += ["### Batches in a round", *_by_judge(rows, "rounds", plan)]
    return "\n\n".join(parts)


def _by_judge(rows: Rows, study: str, plan: Plan) -> Iterator[str]:
    for judge in plan.judges:
        if any(key[:2] == (study, judge) for key in rows):
            yield f"Judge: {judge}."
            yield order_table(rows, study, judge)


def put_between_markers(page: str, tables: str) -> str:
    """`page` with the region between the markers replaced.

    Raises:
        ValueError: the page does not have both markers once, in their order.
    """
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(page)) != 1 or page.count(BEGIN) != 1:
        raise ValueError(f"the page needs one region {BEGIN} ... {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", page)
