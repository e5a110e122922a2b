"""A sweep from YAML to choice: right lists, nothing done twice, failures named, other limits without work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.onnx_models import write_cross_encoder, write_embedder
from support.sweeping import make_sweep

from raggs.app.audit import audit
from raggs.app.eval_request import EvalRequest, JudgedFiles, MeasureRequest
from raggs.app.evaluate import evaluate
from raggs.app.sweep import choose_again, load_sweep, plan_sweep, sweep
from raggs.base.errors import ConfigError, DataError, NotFoundError, RaggsError
from raggs.parts.retrievers.bm25 import Bm25Retriever
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.sweeps.store import SweepManifest, SweepStore


def test_every_system_has_lists_scores_times_and_costs(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    report = project.sweep().report
    assert len(report.systems) == 6
    for row in report.systems:
        assert row.failed is None
        assert row.latency.total is not None
        assert row.latency.total.p50 <= row.latency.total.p95
        assert row.cost is not None
        assert row.cost.total == 0
        assert (project.out / str(row.file)).is_file()
        assert row.scores["ra_nwg@5"].valid <= 6
    assert report.choice.winner in report.front
    assert {path.name for path in project.out.iterdir()} == {
        "manifest.json", "runs", "sweep.csv", "sweep.json", "sweep.md", "systems.jsonl", "timings.jsonl",
        "front.svg", "quality-over-k.svg", "latency-over-k.svg", "effects.svg",
    }  # fmt: skip


def test_scores_are_those_of_raggs_eval_on_the_runs_that_it_writes(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    report = project.sweep().report
    files = tuple(f"{row.name}={project.out / str(row.file)}" for row in report.systems)
    wanted = ("ra_nwg", "n_recall4", "ndcg", "holes")
    measured = evaluate(EvalRequest(JudgedFiles(tmp_path / "qrels.txt", files), MeasureRequest(wanted, (5, 10)))).report
    for part in measured.systems:
        ours = report.system(part.name).scores
        for measure, score in part.scores.items():
            assert ours[measure] == score, (part.name, measure)


def test_lists_are_those_of_the_retriever_itself_and_their_first_k(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    project.sweep()
    runs = {path.stem: path.read_text().splitlines() for path in (project.out / "runs").glob("*.trec")}
    for mode in ("dense+wordllama", "lexical", "hybrid+wordllama"):
        long = [line.split() for line in runs[f"{mode}+k20"]]
        short = [line.split() for line in runs[f"{mode}+k10"]]
        assert [row[:4] for row in long if int(row[3]) <= 10] == [row[:4] for row in short]


def test_a_part_that_systems_share_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    for retriever in (Bm25Retriever, DenseRetriever):
        whole = retriever.search

        def search(self, queries, whole=whole):  # type: ignore[no-untyped-def]
            asked.append(len(queries))
            return whole(self, queries)

        monkeypatch.setattr(retriever, "search", search)
    project = make_sweep(tmp_path, latency={"passes": 1, "warmup": 0, "queries": 1})
    project.sweep()
    assert sorted(asked, reverse=True)[:5] == [6, 6, 6, 6, 1]  # dense and bm25 at 20, and at 100 for the hybrids


def test_nothing_changed_nothing_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_sweep(tmp_path)
    first = project.sweep()
    before = {path: path.stat().st_mtime_ns for path in project.out.rglob("*")}
    monkeypatch.setattr(DenseRetriever, "search", None)
    again = project.sweep()
    assert again.unchanged
    assert again.report == first.report
    assert before == {path: path.stat().st_mtime_ns for path in project.out.rglob("*")}


def test_a_file_that_was_edited_is_made_again(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    project.sweep()
    before = project.files()
    for name in ("runs/lexical+k10.trec", "sweep.json"):
        (project.out / name).write_text("")
        assert not project.sweep().unchanged
        assert project.files() == before


def kept_lists(folder: Path) -> list[Path]:
    """The files of the cache that hold lists, not times."""
    files = sorted((folder / "runs" / ".cache" / "sweeps").glob("*.jsonl"))
    return [path for path in files if '"hits"' in path.read_text()]


def reverse_hits(folder: Path) -> None:
    for path in kept_lists(folder):
        first, *lines = path.read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        scores = [[score for _, score in row["hits"]] for row in rows]
        for row, known in zip(rows, scores, strict=True):
            docs = [doc for doc, _ in reversed(row["hits"])]
            row["hits"] = list(zip(docs, known, strict=True))
        text = "\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        path.write_text(f"{first}\n{text}\n")


def exchange_files(folder: Path) -> None:
    one, two = kept_lists(folder)[:2]
    texts = one.read_text(), two.read_text()
    one.write_text(texts[1])
    two.write_text(texts[0])


def cut_files(folder: Path) -> None:
    for path in kept_lists(folder):
        path.write_text(path.read_text().rsplit("\n", 2)[0] + "\n")


def reverse_vectors(folder: Path) -> None:
    (path,) = (folder / "runs" / ".cache" / "vectors").glob("*/vectors.f32")
    path.write_bytes(np.frombuffer(path.read_bytes(), "<f4").reshape(-1, 64)[::-1].tobytes())
    for kept in kept_lists(folder):
        kept.unlink()


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("damage", [reverse_hits, exchange_files, cut_files, reverse_vectors])
def test_a_damaged_cache_is_told_and_changes_no_score(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    project = make_sweep(tmp_path, axes={"mode": ["dense", "lexical"], "k": [10]})
    project.call("--quiet")
    before = project.files()
    damage(tmp_path)
    for path in project.out.rglob("*.*"):
        path.unlink()
    said = project.said()
    assert ("changed since raggs stored" in said) == (damage is not reverse_vectors)
    assert ("vectors.f32: altered" in said) == (damage is reverse_vectors)
    assert project.files() == before
    assert audit(project.out).ok
    for path in project.out.rglob("*.*"):
        path.unlink()
    again = project.said()
    assert "changed" not in again and project.files() == before


def test_timings_that_were_edited_are_not_used(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes={"mode": "lexical", "k": [10]})
    project.call("--quiet")
    path = project.out / "timings.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["ms"] = dict.fromkeys(row["ms"], 1e6)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = project.said()
    assert "timings.jsonl: changed after the sweep wrote it" in said and "everything is timed again" in said
    assert all(value < 1e6 for row in SweepStore(project.out).timings() for value in row.ms.values())


def test_a_system_that_is_taken_out_leaves_no_file_behind(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    project.sweep()
    project.change(axes={"mode": "lexical", "k": [10]})
    assert len(project.sweep().report.systems) == 1
    assert [path.name for path in (project.out / "runs").iterdir()] == ["lexical.trec"]
    assert [path.name for path in project.out.glob("*.svg")] == ["front.svg"]


def test_other_limits_choose_again_and_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_sweep(tmp_path)
    report = project.sweep().report
    before = {path: path.read_bytes() for path in project.out.rglob("*") if path.is_file()}
    monkeypatch.setattr(DenseRetriever, "search", None)
    waits = {row.name: row.latency.total.p95 for row in report.systems if row.latency.total}
    fastest = min(waits.values())
    chosen = choose_again(load_sweep(project.config, [f"limits.latency_ms={fastest}"])).report.choice
    assert chosen.winner is not None
    assert waits[chosen.winner] <= fastest
    assert len(chosen.excluded) == 5
    none = choose_again(load_sweep(project.config, ["limits.latency_ms=0.000001"])).report.choice
    assert none.winner is None
    assert "meets the limits" in none.sentence
    assert before == {path: path.read_bytes() for path in project.out.rglob("*") if path.is_file()}


def test_a_system_of_ones_own_is_scored_as_it_stands(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    project.sweep()
    copy = tmp_path / "theirs.trec"
    copy.write_bytes((project.out / "runs" / "lexical+k20.trec").read_bytes())
    project.change(axes={"mode": ["lexical", {"type": "runfile", "path": "theirs.trec"}], "k": [20]})
    report = project.sweep().report
    assert report.system("runfile-theirs").scores == report.system("lexical").scores
    assert report.system("runfile-theirs").latency.total is None


def test_a_reranker_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def turned(query, passages):\n    return list(range(len(passages)))\n"
        "def broken(query, passages):\n    raise RuntimeError('no light')\n"
    )
    rerankers = ["none", *({"type": "python", "callable": f"mine:{name}"} for name in ("turned", "broken"))]
    project = make_sweep(tmp_path, axes={"mode": "lexical", "k": [10], "reranker": rerankers}, duplicates=None)
    report = project.sweep().report
    assert [bool(row.failed) for row in report.systems] == [False, False, True]
    assert "no light" in str(report.systems[2].failed)
    assert any("unfinished" in note for note in report.notes)
    plain, turned = ((project.out / str(row.file)).read_text().splitlines() for row in report.systems[:2])
    ours = [line.split()[2] for line in plain if line.startswith("q00")]
    theirs = [line.split()[2] for line in turned if line.startswith("q00")]
    assert theirs == ours[::-1]


def test_the_plan_names_systems_and_asks_nobody(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    plan = plan_sweep(load_sweep(project.config))
    assert len(plan.systems) == plan.lists == 6
    assert plan.kept == 0
    assert plan.paid == ()
    project.sweep()
    assert plan_sweep(load_sweep(project.config)).kept == 6


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize(
    ("keys", "error", "said"),
    [
        ({"golden": "nowhere"}, NotFoundError, "no golden set"),
        ({"queries": {"type": "jsonl", "path": "other.jsonl"}}, DataError, "has no judgments for any of the queries"),
        ({"corpus": {"type": "jsonl", "path": "foreign.jsonl"}}, DataError, "is about another corpus"),
        ({"axes": {"mode": "denes"}}, ConfigError, "'denes' is no mode"),
        ({"axes": {"embedder": "wordlama"}}, ConfigError, "unknown type 'wordlama'"),
        ({"axes": {"k": []}}, ConfigError, "axes.k: needs at least 1, and there are 0"),
        ({"axes": {"k": [0]}}, ConfigError, "greater than or equal to 1"),
        ({"quality": ["ndgc@5"]}, RaggsError, "did you mean 'ndcg'"),
        ({"axis": {}}, ConfigError, "unknown key 'axis'"),
    ],
)
def test_bad_input_is_a_sentence(tmp_path: Path, keys: dict[str, object], error: type[RaggsError], said: str) -> None:
    project = make_sweep(tmp_path, **keys)
    (tmp_path / "other.jsonl").write_text(json.dumps({"_id": "x1", "text": "What?"}) + "\n")
    (tmp_path / "foreign.jsonl").write_text(json.dumps({"_id": "z1", "text": "Something else."}) + "\n")
    with pytest.raises(error) as caught:
        sweep(project.config)
    assert said in str(caught.value)
    assert not project.out.exists()


def test_halving_gives_up_what_is_worse_beyond_doubt_and_keeps_the_winner(tmp_path: Path) -> None:
    (tmp_path / "searchers.py").write_text(
        "def grade(text):\n    return int(text.split()[1].rstrip(':'))\n"
        "def search(query, k):\n"
        "    number = int(query.split()[-1])\n"
        "    graded = sorted((-((number * 13 + p * 29) % 5), f'p{p:03}') for p in range(40))\n"
        "    return [doc for _, doc in graded][:k]\n"
        "def worst(query, k):\n    return search(query, 40)[::-1][:k]\n"
    )
    systems = {
        name: {"mode": {"type": "python", "callable": f"searchers:{call}"}, "k": 10}
        for name, call in (("best", "search"), ("worst", "worst"))
    }
    grid = {"mode": {"type": "python", "callable": "searchers:search"}, "k": 9}
    project = make_sweep(tmp_path, count=60, size=40, judged=40, axes=grid, systems=systems, quality=["ndcg@10"])
    lines = [json.dumps({"_id": f"q{n:02}", "text": f"question {n}"}) + "\n" for n in range(60)]
    (tmp_path / "queries.jsonl").write_text("".join(lines))
    whole = project.sweep().report
    project.change(name="half", search={"type": "halving", "queries": [20, 40, "all"]})
    half = sweep(project.config).report
    assert whole.choice.winner == half.choice.winner
    gone = {row.name: row for row in half.systems if row.dropped}
    assert list(gone) == ["worst"]
    assert "significantly" in str(gone["worst"].dropped)
    assert gone["worst"].file is None
    assert half.system("best").scores == whole.system("best").scores
    project.change(name="limited", limits={"latency_ms": 10_000})
    limited = sweep(project.config).report
    assert limited.choice.winner == whole.choice.winner
    assert [row.name for row in limited.systems if row.dropped] == ["worst"]


def test_halving_keeps_a_system_that_unjudged_passages_could_make_the_best(tmp_path: Path) -> None:
    """The two show nothing that is relevant as labels stand; of one of them, nothing has a label."""
    (tmp_path / "open_searchers.py").write_text(
        "def search(query, k):\n"
        "    number = int(query.split()[-1])\n"
        "    graded = sorted((-((number * 13 + p * 29) % 5), f'p{p:03}') for p in range(40))\n"
        "    return [doc for _, doc in graded][:k]\n"
        "def worst(query, k):\n    return search(query, 40)[::-1][:k]\n"
        "def unknown(query, k):\n    return [f'p{p:03}' for p in range(40, 60)][:k]\n"
    )
    systems = {
        name: {"mode": {"type": "python", "callable": f"open_searchers:{name}"}, "k": 10}
        for name in ("worst", "unknown")
    }
    grid = {"mode": {"type": "python", "callable": "open_searchers:search"}, "k": 10}
    project = make_sweep(tmp_path, count=60, size=60, judged=40, axes=grid, systems=systems, quality=["ndcg@10"])
    lines = [json.dumps({"_id": f"q{n:02}", "text": f"question {n}"}) + "\n" for n in range(60)]
    (tmp_path / "queries.jsonl").write_text("".join(lines))
    project.change(search={"type": "halving", "queries": [20, 40, "all"]})
    report = sweep(project.config).report
    assert [row.name for row in report.systems if row.dropped] == ["worst"]
    kept = report.system("unknown")
    assert kept.file is not None and kept.scores["ndcg@10"].mean == 0
    assert "inconclusive: 100% of the top 10 of unknown is unjudged" in str(kept.undecided)
    assert any(note.startswith("unknown was not given up early: worse than ") for note in report.notes)
    assert any(note.startswith("next: ") for note in report.notes)
    assert audit(project.out).ok


def test_questions_are_embedded_as_questions_and_pairs_are_read_by_a_model_of_this_machine(tmp_path: Path) -> None:
    """Words that a model wants in front of questions do what the same words in the questions do."""
    project = make_sweep(tmp_path)
    write_embedder(project.config.parent / "embedder")
    write_cross_encoder(project.config.parent / "pairs")
    axes = {"mode": "dense", "k": [10], "reranker": ["none", {"type": "onnx", "path": "pairs"}]}
    lists = []
    for name, prefix in (("with", "cedar cedar "), ("without", "")):
        embedder = {"type": "onnx", "path": "embedder", "query_prefix": prefix, "passage_prefix": "a "}
        project.change(name=name, axes={**axes, "embedder": embedder})
        if not prefix:
            rows = [json.loads(line) for line in (tmp_path / "queries.jsonl").read_text().splitlines()]
            lines = [json.dumps({**row, "text": f"cedar cedar {row['text']}"}) for row in rows]
            (tmp_path / "queries.jsonl").write_text("\n".join(lines) + "\n")
        report = project.sweep().report
        assert not [row.failed for row in report.systems if row.failed]
        runs = {row.name: (project.out.parent / name / str(row.file)).read_text() for row in report.systems}
        lists.append([text for system, text in sorted(runs.items()) if "pairs" not in system and "onnx" in system])
        assert any(row.latency.rerank is not None and row.latency.rerank.p50 > 0 for row in report.systems)
    assert lists[0] and lists[0] == lists[1], [row.name for row in report.systems]


def test_an_index_is_held_against_the_exact_one(tmp_path: Path) -> None:
    index = ["flat", {"type": "hnsw", "m": 4, "ef": 10}]
    project = make_sweep(tmp_path, axes={"mode": ["dense"], "index": index, "k": [10]}, measures=["recall", "map"])
    report = project.sweep().report
    (found,) = report.deltas
    flat, hnsw = report.systems
    assert (found.system, found.exact) == (hnsw.name, flat.name)
    for measure, share in found.quality.items():
        before, after = flat.scores[measure].mean, hnsw.scores[measure].mean
        assert before and after is not None
        assert share == pytest.approx((after - before) / before)
    assert {"recall@5", "recall@10", "map@5"} <= set(report.measures)
    assert hnsw.memory is not None
    assert hnsw.memory.kind.startswith("hnsw")


def test_costs_that_hardly_differ_put_nobody_on_the_front(tmp_path: Path) -> None:
    far = {"passes": 1, "warmup": 0, "queries": 3, "jitter_ms": 1e9}
    project = make_sweep(tmp_path, prices={"generator": {"input": 1}}, latency=far, cost_jitter=0)
    wide = project.sweep().report
    assert wide.cost_jitter == 0
    costs = {row.name: row.cost.total for row in wide.systems if row.cost}
    assert len({costs[name] for name in wide.front}) > 1, "some are there for their price"
    project.change(cost_jitter=0.99)
    close = project.sweep()
    assert not close.unchanged
    assert set(close.report.front) < set(wide.front)
    assert close.report.choice == wide.choice
    assert [row.scores for row in close.report.systems] == [row.scores for row in wide.systems]
    assert audit(project.out).ok
    path = project.out / "manifest.json"
    manifest = SweepManifest.model_validate_json(path.read_bytes())
    before = {key: value for key, value in manifest.config.items() if key != "cost_jitter"}
    path.write_text(manifest.model_copy(update={"config": before}).sealed().model_dump_json(indent=2))
    assert "sweep.json" in {finding.file for finding in audit(project.out).findings}, "it had no jitter of costs"
