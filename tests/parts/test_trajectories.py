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


TABLE = (
    "qid{0}step{0}docno{0}rank{0}score{0}cost\nt{0}2{0}c{0}1{0}9{0}0.5\nt{0}1{0}b{0}2{0}1{0}\nt{0}1{0}a{0}1{0}2{0}\n"
)


@pytest.mark.parametrize(("name", "between"), [("run.csv", ","), ("run.tsv", "\t"), ("run.csv", ";")])
def test_a_table_with_steps_is_merged_like_json_lines(name: str, between: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(TABLE.format(between) + between.join(["u", "1", "c", "1", "3", "0.25"]) + "\n", encoding="utf-8")
    run = read_run(path)
    assert lists(run) == {"t": ["a", "b", "c"], "u": ["c"]}
    assert (run.tasks.searches, run.tasks.usd) == (1.5, None), "step 1 of t states no cost"
    path.write_text(
        path.read_text(encoding="utf-8").replace(f"a{between}1{between}2{between}", f"a{between}1{between}2{between}1")
    )
    with pytest.raises(DataError, match="two rows state different costs"):
        read_run(path)
    path.write_text(
        path.read_text(encoding="utf-8").replace(f"b{between}2{between}1{between}", f"b{between}2{between}1{between}1")
    )
    assert read_run(path).tasks.usd == (1 + 0.5 + 0.25) / 2


@given(STEPS)
def test_both_formats_give_the_same_list(tmp_path_factory, steps) -> None:
    folder = tmp_path_factory.mktemp("runs")
    rows = [{"qid": "t", "step": number, "doc_ids": docs} for number, docs in enumerate(steps)]
    cells = [f"t,{n},{doc},{k},{-k}\n" for n, docs in enumerate(steps) for k, doc in enumerate(docs, start=1)]
    if not cells:
        return
    (folder / "run.csv").write_text("qid,step,doc_id,rank,score\n" + "".join(cells), encoding="utf-8")
    assert lists(read_run(folder / "run.csv")) == lists(run_of(folder / "agent.jsonl", rows))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("t,1,a,1,3", "query t, step 1 and passage a occur twice"),
        ("t,first,a,1,3", "its step 'first' is not a whole number"),
        ("t,-1,a,1,3", "its step '-1' is not a whole number"),
        ("t,,a,1,3", "its step '' is not a whole number"),
        ("t,2,a,1,nan", "score 'nan' is not a finite number"),
        ("t,2,a b,1,3", "white space"),
        (",2,a,1,3", "an id is empty"),
    ],
)
def test_wrong_rows_of_a_table_name_file_and_line(row: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text(f"qid,step,docno,rank,score\nt,1,a,1,3\n{row}\n", encoding="utf-8")
    with pytest.raises(DataError, match=words) as caught:
        read_run(path)
    assert caught.value.line == 3


def test_a_passage_may_occur_in_several_steps_but_scores_fall_with_the_rank(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("qid,step,docno,rank,score\nt,1,a,1,3\nt,2,a,2,1\nt,2,b,1,2\n", encoding="utf-8")
    assert lists(read_run(path)) == {"t": ["a", "b"]}
    path.write_text("qid,step,docno,rank,score\nt,1,a,1,1\nt,1,b,2,2\nt,1,c,3,3\n", encoding="utf-8")
    with pytest.raises(DataError, match="the scores rise with the rank"):
        read_run(path)
    path.write_text("qid,step,docno,rank,score\n", encoding="utf-8")
    with pytest.raises(DataError, match="contains no searches"):
        read_run(path)


@pytest.mark.parametrize("line", ["t 1 Q0 a 1 2.0 tag", "t Q0 a 1 2.0 tag 1"])
def test_a_trec_line_with_a_step_is_refused_with_the_format_to_use(line: str, tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match="7 columns instead of 6") as caught:
        read_run(path)
    assert "a table with the header qid,step,docno,rank,score" in (caught.value.remedy or "")
