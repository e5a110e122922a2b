"""A sweep on the screen: no number is cut, whatever the width, and what is left out is named."""

from __future__ import annotations

import re
from io import StringIO

import pytest

from raggs.base.document import Cell, Legend, ReportDocument, ScoreRange, Section, Table
from raggs.cli.documents import show_sweep
from raggs.cli.screen import Screen

NAME = "hybrid+text-embedding-3-small-1536+hnsw-int8+k200+rerank-v3.5"
TABLE = Table(
    ("system", "ndcg@10", "p50", "per 1,000", "recall@10", "p95"),
    (
        (
            Cell(NAME),
            Cell(0.61234, "score", "", (ScoreRange(0.5, 0.7, "[]"),)),
            Cell("0.43 ms"),
            Cell("$12,345.67"),
            Cell(0.7, "score"),
            Cell("5.2 ms"),
        ),
    ),
)
TERMS = (Legend("ndcg", "gain"), Legend("[ ]", "interval"), Legend("recall", "share found"), Legend("p95", "slow"))
DOCUMENT = ReportDocument(
    "Sweep", Section("Systems", ("one system",), TABLE, (), TERMS), (Section("Which to ship", ("Ship it.",)),), ("so",)
)


def drawn(width: int) -> str:
    screen = Screen(width=width)
    screen.file = StringIO()
    show_sweep(DOCUMENT, screen)
    return screen.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_no_number_and_no_name_is_cut(width: int) -> None:
    text = drawn(width)
    assert "0.6123" in text
    assert "0.43 ms" in text
    assert "…" not in text
    assert "$12,345.67" in text or "not shown here" in text
    assert all(part in re.sub(r"\s+", "", text) for part in NAME.split("+"))
    assert all(len(line.rstrip()) <= width for line in text.splitlines() if "0.6123" in line)


def test_columns_without_room_are_named_and_not_explained() -> None:
    narrow, wide = drawn(80), drawn(160)
    assert "not shown (screen too narrow): recall@10, p95" in narrow.replace("\n", " ")
    assert "share found" not in narrow
    assert "share found" in wide
    assert "not shown" not in wide


def test_sections_stand_under_their_titles() -> None:
    assert "\nWhich to ship\nShip it.\n" in drawn(160)
