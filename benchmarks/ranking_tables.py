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
LABELS = {  # names in tables; the names in the code are part of the random seeds
    "single shot": "one list of 40",
    "4 shots + Borda": "4 lists of 40 + Borda",
    "bayes patient": "bayes, `saving: 0.005`",
    "invalid 2 %": "invalid 2%",
    "invalid 10 %": "invalid 10%",
    **{f"{size} a call": f"{size} passages per call" for size in (3, 5, 8, 10)},
}


class Plan(NamedTuple):
    """The methods, judges and budgets of a run."""

    judges: tuple[str, ...]
    budgets: tuple[int, ...]
    studies: bool  # whether to compare batch sizes and rounds
    seed: int


class Key(NamedTuple):
    """A row of a table."""

    study: str
    judge: str
    method: str
    budget: int


Values = dict[str, float]
Played = dict[Key, Values]
Rows = dict[Key, list[Values]]  # one per query


def mean_error(sample: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error; NaN for the error of a single value."""
    array = np.asarray(sample)
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size)) if array.size > 1 else math.nan


def plain(sample: Sequence[float]) -> str:
    mean, error = mean_error(sample)
    return f"{mean:.3f} ± {error:.3f}"


def signed(sample: Sequence[float]) -> str:
    mean, error = mean_error(sample)
    return f"{mean:+.3f} ± {error:.3f}"


def label(name: str) -> str:
    """Return the name of a method or judge in tables."""
    return LABELS.get(name, name)


def column(found: Sequence[Values], name: str) -> list[float]:
    return [one[name] for one in found]


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(head), "|".join("---" for _ in head), *(" | ".join(row) for row in body)]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)


def order_table(rows: Rows, study: str, judge: str) -> str:
    """Return a table with a row per method and number of calls."""
    keys = [key for key in rows if key[:2] == (study, judge)]
    keys.sort(key=lambda key: sum(other.method == key.method and other.budget < key.budget for other in keys))
    body = []
    for key in keys:
        calls, ms = (mean_error(column(rows[key], name))[0] for name in ("calls", "ms"))
        body.append(
            [label(key.method), f"{calls:.0f}", *(plain(column(rows[key], name)) for name in ORDER), f"{ms:.1f}"]
        )
    return table(["method", "calls", *HEADS, "ms/call"], body)


def difference_table(rows: Rows, plan: Plan) -> str:
    """Return a table: `bayes` minus `online`, minus the best other method, and minus the best method with long lists.

    The best is chosen per measure by its mean on the same queries. So its score is slightly too high.
    """
    body = []
    for judge, budget in itertools.product(plan.judges, plan.budgets):
        ours = rows[Key("methods", judge, "bayes", budget)]
        played = {key: found for key, found in rows.items() if key[:2] == ("methods", judge) and key.method != "bayes"}
        equal = {key.method: found for key, found in played.items() if key.budget == budget}
        long = {key.method: found for key, found in played.items() if key.method in LONG_LISTS}
        start = [label(judge), str(budget)]
        body.append([*start, "online", *(signed(_difference(ours, equal["online"], name)) for name in ORDER)])
        body.append([*start, "best other", *(_difference_from_best(ours, equal, name) for name in ORDER)])
        body.append([*start, "best with lists of 40", *(_difference_from_best(ours, long, name) for name in ORDER)])
    return table(["judge", "calls", "bayes minus", *HEADS], body)


def _difference_from_best(ours: Sequence[Values], others: dict[str, list[Values]], name: str) -> str:
    best = _best(others, name)
    return f"{signed(_difference(ours, others[best], name))} ({label(best)})"


def _best(others: dict[str, list[Values]], name: str) -> str:
    return max(sorted(others), key=lambda method: mean_error(column(others[method], name))[0])


def _difference(ours: Sequence[Values], theirs: Sequence[Values], name: str) -> list[float]:
    return [one[name] - other[name] for one, other in zip(ours, theirs, strict=True)]


def confidence_table(rows: Rows, study: str) -> str:
    """Compare locks, inversions and intervals with the truth; ratios and shares are those of sums over all queries."""
    body = []
    for key, found in rows.items():
        if key.study == study and "locks" in found[0]:
            sums = {name: sum(column(found, name)) for name in ("locks", "wrong", "expected", "actual", "calls")}
            body.append(
                [
                    *(label(key.judge), label(key.method), f"{sums['calls'] / len(found):.0f}"),
                    *(f"{sums['locks'] / len(found):.0f}", f"{100 * sums['wrong'] / max(sums['locks'], 1):.2f}"),
                    f"{sums['expected'] / len(found):.1f} / {sums['actual'] / len(found):.1f}"
                    f" = {sums['expected'] / max(sums['actual'], 1e-9):.2f}",
                    f"{100 * mean_error(column(found, 'coverage'))[0]:.1f}",
                    f"{mean_error(column(found, 'width'))[0]:.1f}",
                    f"{mean_error(column(found, 'topological'))[0]:+.4f}",
                ]
            )
    calibration = ["inversions, expected / actual", "coverage, %", "interval width", "gain in tau20 by locks"]
    return table(["judge", "engine", "calls", "locks", "false locks, %", *calibration], body)


def report(rows: Rows, plan: Plan, about: str) -> str:
    """Return all tables as Markdown."""
    parts = [about]
    for judge in plan.judges:
        parts += [f"### Orders, {label(judge)} judge", order_table(rows, "methods", judge)]
    parts += ["### Paired differences", difference_table(rows, plan)]
    parts += ["### Confidence", confidence_table(rows, "methods")]
    parts += ["### With a stopping rule", *_by_judge(rows, "stop", plan), confidence_table(rows, "stop")]
    if plan.studies:
        parts += ["### Passages per call, at equal numbers of passages read", *_by_judge(rows, "batch", plan)]
        parts += ["### Batches per round", *_by_judge(rows, "rounds", plan)]
    return "\n\n".join(parts)


def _by_judge(rows: Rows, study: str, plan: Plan) -> Iterator[str]:
    for judge in plan.judges:
        if any(key[:2] == (study, judge) for key in rows):
            yield f"Judge: {label(judge)}."
            yield order_table(rows, study, judge)


def put_between_markers(page: str, tables: str) -> str:
    """Return `page` with another region between the markers.

    Raises:
        ValueError: the page does not have both markers once, in their order.
    """
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(page)) != 1 or page.count(BEGIN) != 1:
        raise ValueError(f"the page needs one region {BEGIN} ... {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", page)
