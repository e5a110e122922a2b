"""Recompute every number of docs/reference/metrics.md twice: from its arithmetic and by the code."""

from __future__ import annotations

import ast
import doctest
import math
import operator
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from support.plain_measures import PLAIN

from raggs.metrics import evaluate, parse_measure
from raggs.metrics.measures import REGISTRY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"
VERDICTS = PAGE.parents[1] / "concepts" / "intervals-and-verdicts.md"
TEXT = PAGE.read_text(encoding="utf-8")
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
PLACED = {"span_recall4", "span_precision4"}  # need places: worked on projection.md
RANKED = {"ndcg[utility]", "ra_nwg[utility]", "recall[utility]"}  # need a ranking: worked in code
LONG = {"inst", "insq"}  # sums over a thousand places: worked in code
FUNCTIONS = {"log2": math.log2, "min": min}


class Example(NamedTuple):
    judged: dict[str, int]
    found: dict[str, float] | list[str]
    facets: dict[str, str]
    answer: float
    evidence: list[list[str]]


class Row(NamedTuple):
    measure: str
    by_hand: str
    value: str
    example: Example


def arithmetic(text):
    """The value of a formula of numbers, log2 and min; NaN for NA."""

    def value(node):
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.BinOp():
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
            case ast.Call(func=ast.Name(id=name)):
                return FUNCTIONS[name](*map(value, node.args))
        raise AssertionError(f"{text}: {ast.dump(node)}")

    return math.nan if text == "NA" else value(ast.parse(text, mode="eval").body)


def block(lines):
    """An example of passages with names."""
    parts = dict(line.split(maxsplit=1) for line in lines.strip().splitlines())
    pairs = {key: dict(part.partition("=")[::2] for part in parts.get(key, "").split()) for key in ("judged", "facets")}
    listed = parts["list"].split()
    scored = {doc: float(score) for doc, _, score in (part.partition("=") for part in listed) if score}
    order = list(scored or listed)
    rank = order.index(parts["answer"]) + 1 if "answer" in parts else math.nan
    sets = [members.split("+") for members in parts.get("evidence", "").split()]
    return Example({doc: int(g) for doc, g in pairs["judged"].items()}, scored or listed, pairs["facets"], rank, sets)


def graded(pool, shown):
    """An example of grades without names: each in the list takes a passage of the pool."""
    judged, free = {}, defaultdict(list)
    for number, grade in enumerate(map(int, pool.split())):
        judged[f"d{number}"] = grade
        free[str(grade)].append(f"d{number}")
    return Example(
        judged, [f"x{n}" if g == "-" else free[g].pop() for n, g in enumerate(shown.split())], {}, math.nan, []
    )


def cells(line):
    return [cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def worked():
    """All rows of tables with arithmetic, each with the example that stands before it."""
    example, header = None, []
    for part in re.findall(r"```example\n[^`]*```|^\|.*$|^$", TEXT, re.MULTILINE):
        if part.startswith("```"):
            example = block(part.partition("\n")[2].rstrip("`"))
        elif not part:
            header = []
        elif not header:
            header = cells(part)
        elif "by hand" in header and not part.startswith("|---"):
            row = dict(zip(header, cells(part), strict=True))
            mine = graded(row["pool"], row["list"]) if "pool" in row else example
            yield Row(row["metric"], row["by hand"], row["value"], mine)


ROWS = list(worked())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.measure)
def test_a_number_is_what_its_arithmetic_and_the_code_say(row):
    example = row.example
    ours = evaluate(
        {"q": example.judged},
        {"q": example.found},
        [row.measure],
        scale=(1, 5),
        facets=example.facets,
        answer_rank={"q": example.answer},
        evidence={"q": example.evidence},
    ).per_query[row.measure]["q"]
    assert ours == pytest.approx(arithmetic(row.by_hand), abs=1e-12, nan_ok=True)
    assert row.value == ("NA" if math.isnan(ours) else f"{round(ours, 4):g}")


def test_every_measure_with_a_plain_twin_is_worked_by_hand():
    worked_measures = {parse_measure(row.measure).measure.NAME for row in ROWS} | PLACED | RANKED | LONG
    assert set(PLAIN) <= worked_measures <= set(REGISTRY)


@pytest.mark.parametrize(("page", "least"), [(PAGE, 10), (VERDICTS, 10)], ids=["metrics", "verdicts"])
def test_the_code_on_the_page_runs(page, least):
    runner, output = doctest.DocTestRunner(), []
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, None, 0)
    assert len(test.examples) > least
    failed = runner.run(test, out=output.append).failed
    assert not failed, "".join(output)
