"""What cannot be swept is one sentence, before or beside the systems that can be; never a stack trace."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.onnx_models import write_cross_encoder, write_embedder
from support.project import make_project
from support.sweeping import make_sweep

from raggs.app.run import run

FAST: dict[str, Any] = {"mode": "lexical", "k": [5]}


@pytest.fixture(autouse=True)
def _own_code() -> Iterator[None]:
    """Each test has a module `mine` of its own."""
    yield
    sys.modules.pop("mine", None)


def rerank(**settings: Any) -> dict[str, Any]:
    return {**FAST, "reranker": ["none", settings]}


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize(
    ("keys", "code", "said"),
    [
        ({"golden": "nowhere"}, 4, "no golden set — name a run directory or labels"),
        (
            {"axes": {"mode": "dense", "embedder": {"type": "onnx", "path": "model"}}},
            4,
            "lacks tokenizer.json",
        ),
        ({"axes": rerank(type="onnx", path="model")}, 4, "lacks tokenizer.json"),
        ({"axes": rerank(type="onnx", path="nowhere")}, 4, "model folder not found"),
        (
            {"axes": rerank(type="litellm", model="openai/nobody"), "budget": {"max_usd": 1}},
            5,
            "the price of openai/nobody is not known",
        ),
        ({"axes": {**FAST, "mode": "dense", "index": {"type": "ivf", "lists": 1000}}}, 5, "1,000 lists for 60 vectors"),
        ({"axes": FAST, "systems": {"lexical": {"mode": "lexical", "k": 7}}}, 5, "two systems are called 'lexical'"),
        ({"axes": FAST, "except": [{"mode": "lexical"}]}, 5, "no system is left"),
        ({"axes": FAST, "except": [{"modus": "lexical"}]}, 5, "'modus' is no axis"),
        ({"axes": FAST, "baseline": "lexicla"}, 5, "the baseline 'lexicla' is no system — did you mean 'lexical'?"),
        ({"name": "a/b"}, 5, "name: string should match"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], code: int, said: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    project = make_sweep(tmp_path, **keys)
    write_embedder(tmp_path / "model")
    write_cross_encoder(tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").unlink()
    assert said in project.said(code=code)
    assert not (project.out / "manifest.json").exists()


def test_a_missing_extra_is_told_with_its_line_for_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    project = make_sweep(tmp_path, axes=rerank(type="onnx", path="model"))
    write_cross_encoder(tmp_path / "model")
    assert 'pip install ".[local]" in a clone of raggs' in project.said(code=3)


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return [('p000', float('nan'))]", "nan"),
        ("return [('p000', float('inf'))]", "inf"),
        ("return [('p000', 'high')]", "high"),
        ("return [('elsewhere', 1.0)]", "elsewhere"),
        ("return []", "returned nothing for any query"),
        ("raise RuntimeError('no light')", "no light"),
    ],
)
def test_a_search_of_ones_own_that_fails_is_named_and_the_others_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    own = {"type": "python", "callable": "mine:search"}
    project = make_sweep(tmp_path, axes={**FAST, "mode": ["lexical", own]})
    (tmp_path / "mine.py").write_text(f"def search(query, k):\n    {body}\n")
    told = project.said("--quiet", code=7)
    assert "partly finished, without python-search" in told and said in told
    assert f"next: raggs sweep --config {project.config}" in told
    report = json.loads((project.out / "sweep.json").read_text())
    assert [bool(row["failed"]) for row in report["systems"]] == [False, True]
    assert report["systems"][0]["scores"]


@pytest.mark.parametrize("body", ["range(len(passages) - 1)", "[float('nan')] * len(passages)"])
def test_a_reranker_that_loses_passages_is_named(tmp_path: Path, body: str) -> None:
    project = make_sweep(tmp_path, axes=rerank(type="python", callable="mine:order"))
    (tmp_path / "mine.py").write_text(f"def order(query, passages):\n    return list({body})\n")
    assert "without lexical+python-order" in project.said("--quiet", code=7)


def test_patterns_that_match_nothing_are_told(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes=FAST, **{"except": [{"mode": "dense", "k": 5}, {"mode": "hybrid"}]})
    told = project.said("--dry-run")
    assert "`except` has {mode: dense, k: 5}, which no combination matches" in told
    assert "{mode: hybrid}" in told


def test_more_candidates_than_passages_are_all_passages(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes={"mode": ["dense", "hybrid"], "k": [20, 1000]})
    project.said("--quiet")
    for path in (project.out / "runs").glob("*k1000*"):
        assert len(path.read_text().splitlines()) == 6 * 60


def test_two_sweeps_in_one_folder_do_not_mix(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes={**FAST, "mode": {"type": "python", "callable": "mine:search"}})
    (tmp_path / "mine.py").write_text(
        "import subprocess, sys\n"
        "def search(query, k):\n"
        f"    command = [sys.executable, '-m', 'raggs', 'sweep', '--config', {str(project.config)!r}]\n"
        "    done = subprocess.run(command, capture_output=True, text=True)\n"
        f"    open({str(tmp_path / 'said')!r}, 'w').write(f'{{done.returncode}} {{done.stderr}}')\n"
        "    return ['p000']\n"
    )
    project.change(queries={"type": "jsonl", "path": "one.jsonl"}, latency={"passes": 1, "warmup": 0, "queries": 1})
    (tmp_path / "one.jsonl").write_text((tmp_path / "queries.jsonl").read_text().splitlines()[0] + "\n")
    project.said("--quiet")
    said = (tmp_path / "said").read_text()
    assert said.startswith("6") and "another raggs sweep is using this folder" in said


def test_a_runs_folder_is_not_written_into(tmp_path: Path) -> None:
    golden = make_project(tmp_path / "golden", queries=4, corpus=40)
    run(golden.config, stop="merge")
    before = {path: path.read_bytes() for path in golden.run.iterdir() if path.is_file()}
    project = make_sweep(tmp_path, axes=FAST, name="demo")
    project.change(folder="golden/runs")
    assert "this folder contains a run, not a sweep — choose another `name` or `folder`" in project.said(code=2)
    assert {path: path.read_bytes() for path in golden.run.iterdir() if path.is_file()} == before


def test_a_damaged_manifest_or_report_is_made_again(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes=FAST)
    project.said("--quiet")
    before = project.files()
    for name in ("manifest.json", "sweep.json", "systems.jsonl"):
        (project.out / name).write_text("{")
        project.said("--quiet")
        assert project.files() == before
        assert project.said().count("unchanged") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes=FAST)
    project.out.parent.mkdir(mode=0o500)
    assert "cannot be written" in project.said(code=6)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes=FAST)
    project.out.parent.write_text("")
    assert "cannot be written" in project.said(code=6)


def test_a_golden_run_of_another_corpus_is_refused_with_the_two_hashes(tmp_path: Path) -> None:
    golden = make_project(tmp_path / "golden", queries=4, corpus=40)
    run(golden.config)
    project = make_sweep(tmp_path, size=40, axes=FAST, golden="golden/runs/demo")
    project.said("--quiet", "--dry-run")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("amber", "umber"))
    project.change(corpus={"type": "jsonl", "path": "corpus.jsonl"})
    told = project.said(code=5)
    found = re.search(r"is about another corpus than .* \(content ([0-9a-f]{12}), here ([0-9a-f]{12})\)", told)
    assert found and found[1] != found[2], told


def test_an_index_that_does_not_fit_is_told_before_it_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.parts.indexes.approximate.room.available", lambda: 1024)
    project = make_sweep(tmp_path, axes={"mode": ["dense", "lexical"], "k": [5], "index": {"type": "hnsw"}})
    assert "building index hnsw" in project.said("--quiet", code=3)
    assert not (project.out / "runs").exists()


def test_labels_of_which_none_is_relevant(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes=FAST)
    (tmp_path / "qrels.txt").write_text("".join(f"q0{at} 0 p00{at} 0\n" for at in range(6)))
    assert "qrels.txt: no passage is relevant: the highest grade is 0" in project.said(code=5)
