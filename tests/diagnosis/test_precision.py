"""Small worlds where it is known what rounding ties, whom the order of the file favours, and who owes a lead to it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.onnx_models import write_cross_encoder

from raggs.app.diagnose import DiagnoseRequest, run_diagnosis
from raggs.base.errors import DataError, NotFoundError, PrerequisiteError, RaggsError, UsageError
from raggs.diagnosis.precision.measuring import PrecisionFindings, PrecisionSystemPart

QUESTIONS, CANDIDATES = 12, 10
SUBJECTS = ("wing", "lift", "plate", "boundary layer", "slipstream", "cat", "mat", "transition")


def world(folder: Path) -> Path:
    """A golden set in the layout of BEIR; of each question the first of ten candidates in the file is relevant."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    asked = [{"_id": f"q{n:02}", "text": f"how is the {SUBJECTS[n % 8]} measured {n}?"} for n in range(QUESTIONS)]
    held = [
        {
            "_id": f"q{n:02}-{place}",
            "title": "",
            "text": f"the {SUBJECTS[(n + place) % 8]} on the {SUBJECTS[place % 8]} {n}.",
        }
        for n in range(QUESTIONS)
        for place in range(CANDIDATES)
    ]
    for name, rows in (("queries", asked), ("corpus", held)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [f"q{n:02}\tq{n:02}-{place}\t{int(place == 0)}" for n in range(QUESTIONS) for place in range(CANDIDATES)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    return folder


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(tmp_path_factory.mktemp("golden"))


def system(golden: Path, name: str, scores: list[float], *, by_score: bool = False) -> str:
    """A file of lists: each question's candidates in the order of the corpus, or of their scores."""
    places = sorted(range(CANDIDATES), key=lambda place: -scores[place]) if by_score else range(CANDIDATES)
    lines = [f"q{n:02} Q0 q{n:02}-{place} 1 {scores[place]} {name}" for n in range(QUESTIONS) for place in places]
    path = golden / f"{name}{'-sorted' * by_score}.trec"
    path.write_text("\n".join(lines) + "\n")
    return f"{name}={path}"


TIED = [0.9 + 1e-5 * (3 * place % 10) for place in range(CANDIDATES)]  # all one in bf16; the relevant one last in f32
CLEAR = [0.5, 0.9, *(0.4 - 0.03 * place for place in range(8))]  # the relevant one second, at any precision


def found(golden: Path, out: Path, **given: Any) -> PrecisionFindings:
    settings = {key: given.pop(key) for key in list(given) if key not in ("embedders", "rerankers")}
    usual = {"measures": ("ndcg", "mrr"), "deepest": 10}
    part = run_diagnosis(
        DiagnoseRequest("precision", None, {**usual, **settings}, golden=golden, out=out, **given)
    ).found
    assert isinstance(part, PrecisionFindings)
    return part


def of(part: PrecisionFindings, name: str, precision: str) -> PrecisionSystemPart:
    return next(each for each in part.systems if (each.name, each.precision) == (name, precision))


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """An embedder and a reranker of this machine, and a run whose dense retrieval is in bf16."""
    write_cross_encoder(folder / "model")
    golden = world(folder / "golden")
    parts = {name: {"type": "jsonl", "path": str(golden / f"{name}.jsonl")} for name in ("corpus", "queries")}
    dense = {"type": "dense", "scoring": {"dtype": "bf16", "high_precision": False}}
    judge = {"judge": {"type": "qrels", "path": str(golden / "qrels" / "test.tsv")}}
    config = {"name": "small", "workspace": "runs", **parts, "judge": judge, "retrieve": {"retrievers": [dense]}}
    (folder / "raggs.yaml").write_text(json.dumps(config))
    settings = {"measures": ("ndcg", "recall"), "deepest": 20, "candidates": 10}
    models = {"embedders": ["wordllama"], "rerankers": [f"onnx:{folder / 'model'}"]}
    return {"config": folder / "raggs.yaml", "golden": golden / "qrels" / "test.tsv", **models, "settings": settings}


def test_rounded_scores_tie_and_who_stands_first_in_the_file_gains(golden: Path, tmp_path: Path) -> None:
    part = found(golden, tmp_path, runs=(system(golden, "tied", TIED), system(golden, "clear", CLEAR)))
    full, tied = of(part, "tied", "f32"), of(part, "tied", "bf16")
    assert (full.largest, tied.largest) == (1, CANDIDATES)
    assert [each.precision for each in part.systems[:3]] == ["f32", "f16", "bf16"]  # no last step is known of a file
    mrr = tied.at[1]
    expected = sum(1 / rank for rank in range(1, 11)) / 10
    assert (mrr.oblivious, mrr.expected, mrr.least, mrr.most) == pytest.approx((1.0, expected, 0.1, 1.0), abs=1e-6)
    assert (mrr.range, mrr.bias, mrr.moved) == pytest.approx((0.9, 1 - expected, QUESTIONS))
    assert full.at[1].range == 0.0
    assert tied.curves[1].expected[2] == pytest.approx((1 + 1 / 2 + 1 / 3) / 10, abs=1e-6)


def test_a_lead_by_the_order_of_ties_is_lost_by_expectation_and_labels_leak(golden: Path, tmp_path: Path) -> None:
    part = found(golden, tmp_path, runs=(system(golden, "tied", TIED), system(golden, "clear", CLEAR)))
    turns = [each for each in part.reversals if each.precision == "bf16"]
    assert {(each.first, each.second, each.measure) for each in turns} == {
        ("tied", "clear", "ndcg@10"),
        ("tied", "clear", "mrr@10"),
    }
    assert all(each.oblivious > 0 > each.expected for each in turns)
    assert part.favours == 1
    assert all((leak.up, leak.down) == (QUESTIONS, 0) and leak.p < 0.01 for leak in part.leaks)
    assert re.fullmatch(
        r"In bf16 \(16-bit numbers\), scores of tied depend on the order of ties: mrr@10 varies by "
        r"90\.00 points, and 1 pair of systems changes places; ties in the run files "
        r"leak labels: relevant passages come first\. "
        r"First report .*\.",
        part.verdict,
    ), part.verdict


def test_the_order_of_a_file_that_is_sorted_by_score_says_nothing_of_labels(golden: Path, tmp_path: Path) -> None:
    part = found(golden, tmp_path, runs=(system(golden, "tied", TIED, by_score=True),))
    assert all(each.sorted for each in part.systems)
    assert (part.leaks, part.favours) == ((), 0)


def test_logits_are_told_apart_where_their_last_step_is_not_rounded(golden: Path, tmp_path: Path) -> None:
    logits = [4.0 + 2**-5 * ((3 * place + 5) % 10) for place in range(CANDIDATES)]  # bf16 holds each of them
    part = found(golden, tmp_path, runs=(system(golden, "m", logits),), scores="logit", limit=1.0)
    assert {each.form for each in part.systems} == {"sigmoid"}
    assert of(part, "m", "bf16").largest > 1 == of(part, "m", "bf16+HPS").largest
    assert of(part, "m", "bf16").at[0].range > of(part, "m", "bf16+HPS").at[0].range == 0.0
    assert part.passed is True  # what is configured is f32
    assert part.verdict.endswith(". First compute the last step in float32, which removes this dependence.")


def test_what_the_configuration_names_is_held_against_the_limit(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    case = contract_case(tmp_path, request)
    case |= {"rerankers": (), "settings": {**case["settings"], "limit": 0.0}, "out": tmp_path / "out"}
    part = run_diagnosis(DiagnoseRequest("precision", **{name: case[name] for name in case if name != "kind"})).found
    assert isinstance(part, PrecisionFindings)
    assert [each.precision for each in part.systems if each.configured] == ["bf16"]
    assert part.passed is all(tied.range == 0.0 for tied in of(part, "wordllama", "bf16").at)


@pytest.mark.parametrize(("outputs", "form"), [(1, "sigmoid"), (2, "softmax")])
def test_a_reranker_is_scored_by_its_own_last_step(golden: Path, tmp_path: Path, outputs: int, form: str) -> None:
    write_cross_encoder(tmp_path / "model", outputs)
    name = f"onnx:{tmp_path / 'model'}"
    part = found(golden, tmp_path / "out", rerankers=[name], candidates=10)
    own = [each for each in part.systems if each.name != "wordllama"]
    assert [each.precision for each in own] == ["f32", "f16", "f16+HPS", "bf16", "bf16+HPS"]
    assert {each.form for each in own} == {form}
    assert [each.configured for each in own] == [True, False, False, False, False]
    assert {each.form for each in part.systems if each.name == "wordllama"} == {"product"}


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"measures": ("bpref",)}, UsageError, "is not defined for bpref"),
        ({"measures": ("ra_nwg",)}, UsageError, "ra_nwg needs grades from 1 to 5"),
        ({"measures": ("ndcg@5",)}, UsageError, "contains a cutoff"),
        ({"measures": ()}, UsageError, "measures"),
        ({"runs": ("none.trec",)}, NotFoundError, "none.trec"),
        ({"runs": ("strange",)}, DataError, "has no query in common"),
        ({"runs": ("foreign",)}, DataError, "hardly contain judged passages"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(
    golden: Path, tmp_path: Path, given: dict[str, Any], error: type[RaggsError], said: str
) -> None:
    if given.get("runs") == ("strange",):
        (tmp_path / "strange.trec").write_text("other Q0 d 1 0.5 x\n")
        given = {"runs": (str(tmp_path / "strange.trec"),)}
    if given.get("runs") == ("foreign",):
        (tmp_path / "foreign.trec").write_text("".join(f"q{at:02} Q0 elsewhere 1 0.5 x\n" for at in range(QUESTIONS)))
        given = {"runs": (str(tmp_path / "foreign.trec"),)}
    with pytest.raises(error, match=said):
        found(golden, tmp_path, **given)


def test_an_embedder_that_gives_no_vectors_is_a_sentence(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blank_vectors.py").write_text("def embed(texts):\n    return [[0.0] * 8 for _ in texts]\n")
    monkeypatch.syspath_prepend(tmp_path)
    for kind in ("precision", "index"):
        request = DiagnoseRequest(
            kind, golden=golden, embedders=["python:blank_vectors:embed:dims=8"], out=tmp_path / kind
        )
        with pytest.raises(DataError, match=f"the embedder returns no vector for any of {QUESTIONS} queries"):
            run_diagnosis(request)


def test_without_labels_or_a_corpus_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="needs a golden set"):
        run_diagnosis(DiagnoseRequest("precision", out=tmp_path))
    (tmp_path / "qrels.txt").write_text("q 0 d 4\n")
    with pytest.raises(PrerequisiteError, match="needs a corpus"):
        run_diagnosis(DiagnoseRequest("precision", golden=tmp_path / "qrels.txt", out=tmp_path))


def test_the_command_has_a_flag_for_each_setting(golden: Path, tmp_path: Path) -> None:
    words = [
        "diagnose",
        "precision",
        "--golden",
        str(golden),
        "--out",
        str(tmp_path),
        "--run",
        system(golden, "t", TIED),
    ]
    flags = ["-m", "mrr, recall", "-k", "3", "--deepest", "5", "--candidates", "7", "--scores", "score", "--limit", "2"]
    shown = invoke(*words, *flags, "--json")
    report = json.loads(shown.stdout)
    own = {"measures": ["mrr", "recall"], "cutoff": 3, "deepest": 5, "candidates": 7, "scores": "score", "limit": 2.0}
    assert {name: value for name, value in report["settings"].items() if name != "runs"} == own
    assert report["found"]["passed"] is True
    assert "Published results" in (tmp_path / "precision.md").read_text()
    assert (tmp_path / "precision-mrr.svg").exists() and (tmp_path / "precision-range.svg").exists()


def test_two_logits_of_a_file_are_a_softmax(golden: Path, tmp_path: Path) -> None:
    """Both logits in 16 bits, one softmax in 32: far fewer ties than the softmax in 16 bits gives."""
    rows = ["qid,doc_id,logit_no,logit_yes"]
    rows += [
        f"q{question:02},q{question:02}-{place},{-6 + 0.5 * (place % 3)},{6 + 0.125 * place}"
        for question in range(QUESTIONS)
        for place in range(CANDIDATES)
    ]
    file = tmp_path / "qwen.csv"
    file.write_text("\n".join(rows) + "\n")
    result = found(golden, tmp_path / "out", runs=(str(file),), scores="logits")
    parts = {(part.dtype, part.hps): part for part in result.systems}
    assert {part.form for part in result.systems} == {"softmax"}
    assert parts["bf16", False].at[0].range > parts["bf16", True].at[0].range
    with pytest.raises(DataError, match="logit_no"):
        (tmp_path / "one.csv").write_text("qid,doc_id,logit_yes\nq00,q00-0,1\n")
        found(golden, tmp_path / "other", runs=(str(tmp_path / "one.csv"),), scores="logits")
    with pytest.raises(DataError, match="two logits per passage"):
        (tmp_path / "a.trec").write_text("q00 Q0 q00-0 1 2.0 a\n")
        found(golden, tmp_path / "third", runs=(str(tmp_path / "a.trec"),), scores="logits")
