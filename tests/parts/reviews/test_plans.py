"""A plan's file: what is written is read back, and what is no plan is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.base.errors import DataError, NotFoundError
from raggs.parts.reviews import PlanItem, read_plan, write_plan


def item(doc_id: str, passage: str) -> PlanItem:
    return PlanItem(
        qid="q1", query="a" * 32, doc_id=doc_id, passage=passage * 32, worth=0.5, chance=None, seconds=9.5, why="open"
    )


def test_what_is_written_is_read_in_its_order(tmp_path: Path) -> None:
    items = [item("d2", "b"), item("d1", "c")]
    assert write_plan(tmp_path / "plan.jsonl", items).rows == 2
    assert read_plan(tmp_path / "plan.jsonl") == items


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the plan is empty"),
        ('{"v": 1, "qid": "q1"}\n', "query"),
        ("@item\n@item\n", "occur twice"),
        ("no json\n", "JSON"),
    ],
)
def test_what_is_no_plan(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "plan.jsonl"
    path.write_text(text.replace("@item", item("d1", "b").model_dump_json()))
    with pytest.raises(DataError, match=said) as caught:
        read_plan(path)
    assert str(path) in str(caught.value)


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_plan(tmp_path / "plan.jsonl")
