import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import Judged, P, nDCG
from support.golden import GivenGolden

from raggs.base.artifacts import RankRecord
from raggs.golden.base import GoldenQuery
from raggs.golden.formats.trec import TrecExporter, top_lines

ORDERS = {"q1": ["d10", "d1", "d9", "d3"], "q10": ["é/7", "d3", "d1"], "q2": ["d5"]}


@pytest.fixture
def files(golden, tmp_path):
    return {path.name: path for path in TrecExporter().write(golden(), tmp_path)}


def as_trec_eval_sorts(lines: list[str]) -> dict[str, list[str]]:
    """By falling score, ties by falling docid; ranks are ignored."""
    rows: dict[str, list[tuple[float, str]]] = {}
    for line in lines:
        qid, _, doc_id, _, score, _ = line.split()
        rows.setdefault(qid, []).append((float(score), doc_id))
    return {qid: [doc_id for _, doc_id in sorted(found, reverse=True)] for qid, found in rows.items()}


def test_qrels_hold_the_graded_passages_and_no_comments(files):
    lines = files["qrels.txt"].read_text().splitlines()
    assert lines == [
        "q1 0 d9 1",
        "q1 0 d1 4",
        "q1 0 d10 3",
        "q1 0 d3 0",
        "q1 0 d3b 0",
        "q10 0 d3 3",
        "q10 0 é/7 2",
        "q10 0 d1 0",
        "q2 0 d5 2",
    ]


def test_the_run_is_the_top_in_our_order(files):
    lines = files["run.trec"].read_text().splitlines()
    assert lines[0] == "q1 Q0 d10 1 4 raggs-my-test"
    assert as_trec_eval_sorts(lines) == ORDERS
    assert all(len(line.split()) == 6 for line in lines)


def test_ir_measures_reads_both_and_keeps_the_order(files):
    qrels = list(ir_measures.read_trec_qrels(str(files["qrels.txt"])))
    run = list(ir_measures.read_trec_run(str(files["run.trec"])))
    assert {(q.query_id, q.doc_id): q.relevance for q in qrels}["q10", "é/7"] == 2
    for qid, order in ORDERS.items():
        scored = sorted((d for d in run if d.query_id == qid), key=lambda d: -d.score)
        assert [d.doc_id for d in scored] == order
    measured = ir_measures.calc_aggregate([nDCG @ 10, Judged @ 4, P(rel=3) @ 1], qrels, run)
    assert measured[P(rel=3) @ 1] == pytest.approx(1 / 3)
    assert measured[Judged @ 4] == 1
    assert measured[nDCG @ 10] == pytest.approx(expected_ndcg(), abs=1e-6)


def expected_ndcg() -> float:
    def dcg(grades):
        return sum(
            grade / log2 for grade, log2 in zip(grades, (1, 1.5849625007, 2, 2.3219280949, 2.5849625007), strict=False)
        )

    one = dcg([3, 4, 1, 0]) / dcg([4, 3, 1, 0, 0])
    ten = dcg([2, 3, 0]) / dcg([3, 2, 0])
    return (one + ten + 1) / 3


@given(st.permutations([f"d{number}" for number in range(25)]), st.integers(1, 30), st.text(min_size=1, max_size=12))
def test_any_order_survives_the_score_column(order, top, name):
    ranking = tuple(
        RankRecord(
            qid="q",
            rank=rank,
            doc_id=doc_id,
            grade=3,
            score=1.0,
            sigma=1,
            confidence=0.5,
            exposures=0,
            rank_low=1,
            rank_high=9,
            membership=1,
        )
        for rank, doc_id in enumerate(order, start=1)
    )
    lines = list(top_lines(GivenGolden(name, top, [GoldenQuery("q", None, order=ranking)])))
    assert as_trec_eval_sorts(lines) == {"q": order[:top]}
