"""`raggs diagnose index` as a whole: what it keeps, tunes, chooses and draws."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.cli import invoke
from support.vectors import clusters, crowds

from raggs.app.diagnose import DiagnoseRequest, DiagnosisResult, diagnose, forecast_diagnosis
from raggs.base.errors import DataError, PrerequisiteError, RaggsError, UsageError
from raggs.config.load import load_config
from raggs.diagnosis.base import kind_of
from raggs.diagnosis.index import measuring
from raggs.diagnosis.index.models import IndexFindings

QUICK: dict[str, object] = {"k": (10,), "held_out": 100, "timed": 5, "rounds": 1}
INDEXES = ["hnsw:m=4:ef_construction=20", "ivf:lists=40"]


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Times stand still: they are the one thing that no two measurements have alike."""
    np.save(folder / "v.npy", crowds(400, 8, groups=50))
    patch = pytest.MonkeyPatch()
    request.addfinalizer(patch.undo)
    patch.setattr("raggs.diagnosis.index.measuring.seconds_of", lambda *_: measuring.SearchTime(0.01, 0.01))
    patch.setattr("raggs.diagnosis.index.measuring.load_now", lambda: None)
    patch.setattr("raggs.base.cache.time", SimpleNamespace(perf_counter=lambda: 0.0, time_ns=lambda: 0))
    return {"settings": {"vectors": folder / "v.npy", "indexes": ["hnsw:m=4", "ivf:lists=8"], "k": [5], "tune": 0.2}}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    np.save(folder / "v.npy", crowds(2000, 16, groups=200))
    np.save(folder / "q.npy", crowds(200, 16, seed=1, groups=200))
    return folder


def run(files: Path, out: Path | None = None, **settings: object) -> DiagnosisResult:
    given = {"indexes": INDEXES, **QUICK, **settings}
    return diagnose("index", out=out or files / "out", vectors=files / "v.npy", queries=files / "q.npy", **given)


def found_by(files: Path, **settings: object) -> IndexFindings:
    found = run(files, **settings).found
    assert isinstance(found, IndexFindings)
    return found


def test_questions_and_held_out_passages_are_asked_of_indexes_without_these(files: Path) -> None:
    found = found_by(files)
    assert [(part.origin, part.questions) for part in found.asked] == [("questions", 200), ("held-out passages", 100)]
    assert found.rows == 1900
    assert {(part.origin, part.index) for part in found.points} == {
        (origin, name) for origin in ("questions", "held-out passages") for name in INDEXES
    }


def test_what_was_measured_is_measured_no_more(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(files)
    monkeypatch.setattr(measuring, "_measured", lambda *_: pytest.fail("measured again"))
    assert run(files).unchanged
    again = run(files, recall_levels=(0.85,))  # other readings of the same points
    assert not again.unchanged
    assert again.report.found["points"] == first.report.found["points"]
    with pytest.raises(pytest.fail.Exception, match="measured again"):
        run(files, k=(12,))


def test_a_kill_costs_one_point(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, done = measuring._measured, []

    def measured(*given: object) -> object:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(given)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(measuring, "_measured", measured)
    with pytest.raises(KeyboardInterrupt):
        run(files, tmp_path, indexes=INDEXES[:1])
    done.append(None)  # no more kills
    run(files, tmp_path, indexes=INDEXES[:1])
    recipes = [given[2].config for given in done if given is not None]
    settings = [config.ef for config in recipes if config.type == "hnsw"]
    assert len(settings) == len(set(settings)) > 3


def test_tuning_gives_the_least_effort_and_the_settings_to_write(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(files, indexes=INDEXES[1:], tune="5%", depth=30, held_out=0)
    part = IndexFindings.model_validate(found.report.found).tuned[0]
    assert (part.origin, part.depth, part.limit) == ("questions", 30, 0.05)
    assert found.passed is True
    assert part.yaml == f"index: {{type: ivf, lists: 40, nprobe: {part.effort}}}"
    within = {
        tried.effort: all(each.high is not None and each.high <= 0.05 for each in tried.losses.values())
        for tried in part.tried
    }
    assert list(part.tried[0].losses) == ["recall@10", "recall@30"]
    assert next(effort for effort, fits in within.items() if fits) == part.effort
    assert part.effort is not None and not within[part.effort - 1]  # halved down to it
    assert f"ivf:lists=40 with nprobe {part.effort}" in found.verdict
    monkeypatch.setattr(measuring.EffortTuner, "_row", lambda *_: pytest.fail("measured again"))
    run(files, indexes=INDEXES[1:], tune="5%", depth=30, held_out=0, recall_levels=(0.77,))


def test_where_no_effort_suffices_that_is_said(files: Path) -> None:
    found = run(files, indexes=INDEXES[1:], vary=["nprobe=1,2"], tune=0.001, depth=30)
    assert found.passed is False
    part = IndexFindings.model_validate(found.report.found).tuned[0]
    assert (part.effort, part.yaml) == (None, None)
    assert "no tested effort is certain to lose at most" in found.verdict[:1].lower() + found.verdict[1:]
    assert [tried.effort for tried in part.tried] == [1, 2]


def test_one_of_three_is_fixed_and_the_front_of_the_others_shown(files: Path) -> None:
    found = found_by(files, constraint="recall=0.8", robust_at=0.5, deltas=(0.3, 0.9))
    assert found.deltas == (0.3, 0.5, 0.9)
    front = found.front
    assert front is not None and front.front
    assert all(each.recall >= 0.8 for each in front.front)
    figure = kind_of("index").key_figure(found)
    assert figure is not None and "mean recall" in figure.label and re.fullmatch(r"[+-]\d+\.\d points", figure.value)
    pairs = [(each.robustness, each.qps) for each in front.front]
    assert all(not (one[0] <= other[0] and one[1] < other[1]) for one in pairs for other in pairs)
    assert front.reached <= front.points == len([part for part in found.points if part.origin == "questions"])
    unreached = found_by(files, constraint="qps=1e9")
    assert unreached.front is not None and not unreached.front.front


def test_where_nothing_is_compared_the_verdict_says_why(files: Path) -> None:
    alone = run(files, indexes=INDEXES[1:], held_out=0).verdict
    assert alone == "Only one index was measured, so a comparison is impossible."
    apart = run(files, vary=["nprobe=1", "ef=400"], held_out=0).verdict
    assert apart.startswith("No comparison: no two indexes were measured around the same mean recall")
    others = ["hnsw", "ivf:lists=40", "ivf:lists=41"]
    first = run(files, vary=["ef=400", "nprobe=1,2,4,8,16"], indexes=others, held_out=0).verdict
    assert first == "No comparison: hnsw has no mean recall in common with the others."
    whole = run(files, vary=["nprobe=40", "ef=400"], indexes=["hnsw", "ivf:lists=40"], held_out=0).verdict
    assert re.match(r"Every index finds at least \d+\.\d% of the nearest", whole), whole


def test_questions_that_get_least_are_named(files: Path) -> None:
    found = found_by(files, robust_at=0.5)
    assert [part.index for part in found.left_out] == INDEXES
    for part in found.left_out:
        same = (part.index, part.effort, "questions")
        point = next(each for each in found.points if (each.index, each.effort, each.origin) == same)
        assert part.share == pytest.approx(1 - (point.values["r0.5"].mean or 0.0))
        assert len(part.qids) == min(10, round(200 * part.share))


def test_any_registered_index_is_looked_at(files: Path) -> None:
    """Also one without an effort: it has one point, and nothing to tune."""
    found = found_by(files, indexes=["flat", INDEXES[1]], held_out=0, tune=0.05)
    exact = next(part for part in found.points if part.index == "flat")
    assert (exact.values["recall"].mean, exact.setting) == (1.0, "")
    assert not next(part for part in found.matched if part.index == "flat").bracketed
    assert [part.index for part in found.tuned] == INDEXES[1:]


def test_what_is_drawn_and_written(files: Path) -> None:
    result = run(files)
    assert not result.report.subject["embedders"]  # vectors of a file are nobody's
    page = (files / "out" / "index.md").read_text(encoding="utf-8")
    for words in (
        "At equal mean recall: K 10, questions",
        "Difference from hnsw:m=4",
        "not bracketed",
        "Points with a mean",
    ):
        assert words in page
    names = {file.name for file in result.files}
    for name in ("r0.3-10-questions", "r0.9-10-held-out", "deltas-10-questions", "qps-10-questions"):
        assert f"index-{name}.svg" in names
    assert "<svg" in (files / "out" / "index-qps-10-questions.svg").read_text(encoding="utf-8")


def test_settings_are_varied(files: Path) -> None:
    found = found_by(files, indexes=["ivf:lists=40:pq=4"], vary=["reorder=1,20", "nprobe=4,8"], held_out=0)
    assert [(part.index, part.effort) for part in found.points] == [
        ("ivf:lists=40:pq=4:reorder=1", 4),
        ("ivf:lists=40:pq=4:reorder=1", 8),
        ("ivf:lists=40:pq=4:reorder=20", 4),
        ("ivf:lists=40:pq=4:reorder=20", 8),
    ]
    first, _, third, _ = (part.values["recall"].mean or 0.0 for part in found.points)
    assert third > first  # more candidates of rough codes, more recall


# --- a corpus, its questions, a golden set, and answers -------------------------------------------------------


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("corpus"), np.random.default_rng(0)
    words = [a + b for a in ("tide", "rock", "wind", "corn", "lamp", "iron") for b in ("gate", "mill", "ship", "song")]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(500)]
    corpus = [json.dumps({"_id": f"d{at}", "text": text}) for at, text in enumerate(texts)]
    queries = [json.dumps({"_id": f"q{at}", "text": texts[7 * at]}) for at in range(60)]
    (folder / "corpus.jsonl").write_text("\n".join(corpus), encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(queries), encoding="utf-8")
    (folder / "qrels.txt").write_text("".join(f"q{at} 0 d{7 * at} 5\n" for at in range(60)), encoding="utf-8")
    (folder / "raggs.yaml").write_text(
        "name: one\ncorpus: {type: jsonl, path: corpus.jsonl}\nqueries: {type: jsonl, path: queries.jsonl}\n"
        "retrieve: {retrievers: [{type: dense, k: 35}]}\njudge: {judge: {type: qrels, path: qrels.txt}}\n",
        encoding="utf-8",
    )
    return folder


def of_corpus(config: Path, **settings: object) -> DiagnosisResult:
    given = {"indexes": ["ivf:lists=12"], **QUICK, "held_out": 20, **settings}
    loaded = load_config(config / "raggs.yaml")
    return diagnose("index", loaded, golden=config / "qrels.txt", out=config / "out", **given)


def test_a_loss_may_be_of_a_measure_by_a_golden_set(config: Path) -> None:
    result = of_corpus(config, tune="4%", measure="recall")
    found = IndexFindings.model_validate(result.report.found)
    part = found.tuned[0]
    assert part.depth == 35  # the dense retriever's
    assert list(part.tried[0].losses) == ["recall@10", "recall@30"]
    assert (part.effort, part.questions) == (1, 60)  # each question's own passage lies in the first list
    assert "ivf:lists=12 with nprobe 1, based on only 60 queries" in result.verdict
    page = (config / "out" / "index.md").read_text(encoding="utf-8")
    assert "even without any loss, 60 queries are too few: up to 5.0% of all queries may have a loss" in page
    assert found.source == "500 passages by wordllama"
    assert found.rows == 480


def test_delta_is_chosen_by_answers(config: Path) -> None:
    rows = ["qid,setting,correct"]
    for at in range(60):
        rows += [f"q{at},flat,1", f"q{at},ivf:lists=12:nprobe=1,{int(at % 4 > 0)}", f"q{at},ivf:lists=12:nprobe=12,1"]
    (config / "correct.csv").write_text("\n".join(rows), encoding="utf-8")
    result = of_corpus(config, correct=config / "correct.csv")
    found = IndexFindings.model_validate(result.report.found).delta
    assert found is not None and found.delta is not None
    assert {part.below for part in IndexFindings.model_validate(result.report.found).left_out} == {found.delta}
    assert sum(part.answers for part in found.bins) == 120
    assert found.bins[-1].recall == 1.0 and found.bins[-1].accuracy >= 0.9
    assert "Recall needed for correct answers" in (config / "out" / "index.md").read_text(encoding="utf-8")
    (config / "correct.csv").write_text("\n".join(rows[:-3]), encoding="utf-8")
    assert not of_corpus(config, correct=config / "correct.csv").unchanged  # the file's content counts


# --- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"vary": ["colour=1"]}, "no index has a setting 'colour'"),
        ({"vary": ["m"]}, "'m' is not a setting with values"),
        ({"vary": ["m=1"]}, "hnsw does not accept m=1"),
        ({"indexes": ["hsnw"]}, "unknown index 'hsnw'"),
        ({"indexes": ["ivf:lists=5000"]}, "more lists (5,000) than vectors (2,000)"),
        ({"indexes": ["ivf:pq=5"]}, "pq: 5 does not divide 16 dimensions"),
        ({"k": (1000,)}, "2,000 vectors are too few to test indexes for the nearest 1000; 4,000 are needed"),
        ({"tune": "1%", "depth": 20}, "depth 20 is smaller than the largest cutoff 30"),
        ({"constraint": "speed=3"}, "constraint.what"),
        ({"correct": Path("nowhere.csv")}, "no such file"),
        ({"measure": "recall"}, "needs a golden set"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(files: Path, settings: dict[str, object], said: str) -> None:
    with pytest.raises(RaggsError, match=re.escape(said)) as caught:
        run(files, **settings)
    assert caught.value.remedy


def test_without_faiss_the_command_that_brings_it_is_told(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(PrerequisiteError, match="index hnsw needs faiss-cpu, which is not installed") as caught:
        run(files, seed=5)
    assert caught.value.remedy == 'pip install ".[ann]" in a clone of raggs'


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("qid,correct\nq1,1", "no column setting"),
        ("qid,setting,correct\nq1,flat,maybe", "not a valid answer: q1,flat,maybe"),
        ("qid,setting,correct\nq1,flat,1\nq1,flat,0", "q1 occurs twice with flat"),
        ("qid,setting,correct\nq1,hnsw:ef=16,1", "add answers from the exact search"),
        ("qid,setting,correct\nq1,flat,1", "add answers from the exact search"),
    ],
)
def test_answers_that_cannot_be_read(files: Path, tmp_path: Path, rows: str, said: str) -> None:
    (tmp_path / "c.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(said)):
        run(files, correct=tmp_path / "c.csv")


def test_answers_need_queries_with_ids(files: Path, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("qid,setting,correct\nq1,flat,1\nq1,hnsw:ef=16,1", encoding="utf-8")
    with pytest.raises(UsageError, match=r"but vectors from files \(--vectors\) have none") as caught:
        run(files, tmp_path / "out", correct=tmp_path / "c.csv")
    assert caught.value.remedy == "omit --vectors and --queries, and pass --config or --golden"


def test_files_that_hold_no_vectors(files: Path, tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("no vectors", encoding="utf-8")
    np.save(tmp_path / "nan.npy", np.full((50, 4), np.nan))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "short.npy", clusters(50, 8))
    for name, said in (("text", "not a NumPy matrix"), ("nan", "NaN or infinity"), ("objects", "not a NumPy")):
        with pytest.raises(DataError, match=said):
            diagnose("index", out=tmp_path / "out", vectors=tmp_path / f"{name}.npy", **QUICK)
    with pytest.raises(DataError, match="query vectors have 8 dimensions, passage vectors 16"):
        diagnose("index", out=tmp_path / "o", vectors=files / "v.npy", queries=tmp_path / "short.npy", **QUICK)
    np.save(tmp_path / "zeros.npy", np.zeros((5, 16)))
    with pytest.raises(DataError, match="all vectors are zero"):
        diagnose("index", out=tmp_path / "o", vectors=files / "v.npy", queries=tmp_path / "zeros.npy", **QUICK)
    with pytest.raises(UsageError, match="no queries to search"):
        diagnose("index", out=tmp_path / "o", vectors=files / "v.npy", **{**QUICK, "held_out": 0})
    with pytest.raises(UsageError, match="--queries needs --vectors"):
        diagnose("index", out=tmp_path / "o", queries=files / "q.npy", **QUICK)


def test_the_command_line_and_its_forecast(files: Path, tmp_path: Path) -> None:
    words = ["diagnose", "index", "--vectors", str(files / "v.npy"), "--out", str(files / "out")]
    told = invoke(*words, "--index", "hnsw,ivf:lists=40", "--k", "10", "--dry-run")
    assert told.exit_code == 0, told.output
    assert "2,000 vectors of 16 dimensions indexed by hnsw, ivf:lists=40; 10 neighbours per query" in told.stdout
    usual = DiagnoseRequest("index", settings={"vectors": files / "v.npy"}, out=tmp_path)
    assert "hnsw, ivf, ivf:pq=4; 10 and 100 neighbours per query" in forecast_diagnosis(usual).what[0]
