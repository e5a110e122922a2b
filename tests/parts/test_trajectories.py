"""Several searches of a task, read as one list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.parts.run_files import read_run

STEPS = st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4), min_size=1, max_size=4)


def run_of(path: Path, rows: list[object]):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return read_run(path)


def lists(run) -> dict[str, list[str]]:
    found: dict[str, list[tuple[float, str]]] = {}
    for row in range(len(run.query)):
        found.setdefault(run.qids[run.query[row]], []).append((-float(run.score[row]), run.docs.text(row)))
    return {qid: [doc for _, doc in sorted(rows)] for qid, rows in found.items()}


@given(STEPS, st.randoms())
def test_passages_are_in_the_order_of_first_appearance(tmp_path_factory, steps, random) -> None:
    rows = [{"qid": "t", "step": number, "doc_ids": docs} for number, docs in enumerate(steps)]
    random.shuffle(rows)
    run = run_of(tmp_path_factory.mktemp("runs") / "agent.jsonl", rows)
    expected = [*dict.fromkeys(doc for docs in steps for doc in docs)]
    assert lists(run) == ({"t": expected} if expected else {})
    assert (run.tasks.searches, run.tasks.usd) == (len(steps), None)


def test_the_cost_is_the_mean_over_tasks(tmp_path: Path) -> None:
    rows = [
        {"query_id": 7, "step": 1, "doc_ids": ["a"], "cost": 0.5},
        {"query_id": 7, "step": 2, "doc_ids": [], "cost": 0},
        {"query_id": 8, "step": 1, "doc_ids": ["a", 12], "cost": 0.25},
    ]
    run = run_of(tmp_path / "agent.jsonl", rows)
    assert lists(run) == {"7": ["a"], "8": ["a", "12"]}
    assert (run.tasks.searches, run.tasks.usd) == (1.5, 0.375)


GOOD = {"qid": "t", "step": 1, "doc_ids": ["a"]}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (GOOD, "step 1 occurs twice"),
        ({**GOOD, "step": "2"}, "not a whole number"),
        ({**GOOD, "step": True}, "not a whole number"),
        ({**GOOD, "step": 2, "doc_ids": "a"}, "not a list"),
        ({**GOOD, "step": 2, "doc_ids": ["a", "a"]}, "a passage twice"),
        ({**GOOD, "step": 2, "doc_ids": ["a b"]}, "white space"),
        ({**GOOD, "step": 2, "cost": -1}, "not a number of at least 0"),
        ({"step": 2, "doc_ids": []}, "no qid"),
    ],
)
def test_wrong_searches_name_file_and_line(row: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words) as caught:
        run_of(tmp_path / "agent.jsonl", [GOOD, row])
    assert caught.value.line == 2
