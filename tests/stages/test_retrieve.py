"""Depth by signals of doubt: whom it sends deep, what is told of it, and what cannot be configured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.contracts import write_module
from support.project import Project, make_project

from raggs import load_config, run
from raggs.app.audit import audit
from raggs.app.status import status
from raggs.base.artifacts import RetrieveRecord
from raggs.base.errors import ConfigError
from raggs.parts.retrievers.depth import RoutingThresholds
from raggs.runs.manifests.open_run import open_run
from raggs.stages.retrieve import RetrieveConfig

BASE, DEEP = 12, 20
SCORE = """
READ = []

def rerank(query, passages):
    READ.append(len(passages))
    return [-float(len(text)) for text in passages]
"""


def routed(when: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"depth": {"type": "routed", "base": BASE, "deep": DEEP, "when": when}, **more}


def made(folder: Path, when: dict[str, Any], **more: Any) -> Project:
    retrievers = more.pop("retrievers", [{"type": "bm25"}, {"type": "dense"}])
    project = make_project(folder, retrieve={"retrievers": retrievers, "depth": routed(when)["depth"]}, **more)
    run(load_config(project.config))
    return project


def hits(project: Project) -> dict[tuple[str, str], list[RetrieveRecord]]:
    found: dict[tuple[str, str], list[RetrieveRecord]] = {}
    for record in open_run(project.run).typed("retrieve", RetrieveRecord):
        found.setdefault((record.qid, record.retriever), []).append(record)
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Of four questions two are searched deep, by their margins."""
    folder = tmp_path_factory.mktemp("routed")
    margins = sorted(
        records[0].score - records[9].score
        for (_, name), records in hits(made(folder / "first", {"head_margin": -1.0})).items()
        if name == "dense"
    )
    return made(folder / "second", {"head_margin": margins[1], "agreement": 0.0})


def test_questions_whose_signal_fires_have_long_lists_and_say_why(project: Project) -> None:
    found = hits(project)
    deep = {qid for (qid, _), records in found.items() if records[0].escalated}
    assert len(deep) == 2
    for (qid, name), records in found.items():
        assert all(record.escalated == (("head_margin",) if qid in deep else ()) for record in records)
        assert len(records) <= (DEEP if qid in deep else BASE)
        if name == "dense":
            assert len(records) == (DEEP if qid in deep else BASE)


def test_status_counts_them_and_show_says_which_and_the_audit_holds_them_against_the_records(project: Project) -> None:
    said = invoke("status", project.run, "--details").output
    assert "depth: 2 of 4 queries searched deeper (head_margin 2)" in said
    qid = next(qid for (qid, _), records in hits(project).items() if records[0].escalated)
    assert "searched deeper: head_margin" in invoke("show", project.run, qid, "--details").output
    assert not audit(project.run).findings
    manifest = project.run / "manifest.json"
    told = json.loads(manifest.read_text())
    told["stages"]["retrieve"]["counts"]["deeper"] = 3
    kept = manifest.read_bytes()
    manifest.write_text(json.dumps(told))
    try:
        assert any("counts differ from its records" in each.message for each in audit(project.run).findings)
    finally:
        manifest.write_bytes(kept)


def test_a_run_goes_on_where_it_was_and_other_thresholds_run_it_again(project: Project) -> None:
    assert not run(load_config(project.config)).ran
    (reason, *_) = status(project.run, project.config, ["retrieve.depth.when.head_margin=-1"]).plan["retrieve"]
    assert "depth.when.head_margin" in str(reason)


def test_without_depth_nothing_of_it_stands_in_lines_and_locks(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    run(load_config(project.config))
    assert b"escalated" not in (project.run / "retrieve.jsonl").read_bytes()
    assert "counts" not in project.manifest()["stages"]["retrieve"]
    assert "depth" not in project.manifest()["stages"]["retrieve"]["components"]["config"]


def test_a_reranker_reads_more_candidates_of_those_questions_alone(tmp_path: Path, request: Any) -> None:
    by = {"type": "python", "callable": f"{write_module(tmp_path, request, SCORE)}:rerank", "folder": str(tmp_path)}
    reranked = {"type": "reranked", "of": {"type": "dense"}, "by": by, "duplicates": None}
    project = made(tmp_path / "first", {"entropy": 0.0}, retrievers=[reranked])
    assert {len(records) for records in hits(project).values()} == {DEEP}
    project = made(tmp_path / "second", {"entropy": 1.0}, retrievers=[reranked])
    assert {len(records) for records in hits(project).values()} == {BASE}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"retrievers": [{"type": "bm25"}], **routed({"head_margin": 0.1})}, "needs a vector search"),
        ({"retrievers": [{"type": "dense"}], **routed({"agreement": 0.1})}, "needs a lexical search"),
        (routed({"entropy": 0.9}), "needs a reranker, but none is configured"),
        ({"retrievers": [{"type": "bm25", "k": 30}], **routed({"name": True})}, "has k 30, but depth sets 12 or 20"),
        (routed({}), "no signal has a threshold"),
        ({"depth": {"base": 50, "deep": 50, "when": {"name": True}}}, "must be greater than base"),
        ({"depth": {"base": 10, "when": {"tail_margin": 0.1}}}, "but base is 10"),
    ],
)
def test_what_cannot_be_is_said(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        RetrieveConfig.model_validate(settings)


def test_a_rewrite_that_nobody_makes_cannot_fire(tmp_path: Path) -> None:
    depth = routed({"rewrite": 0.1}, retrievers=[{"type": "bm25"}])
    project = make_project(tmp_path, retrieve=depth, embed={"rewrite": {"type": "none"}})
    with pytest.raises(ConfigError, match="because embed"):
        load_config(project.config)


def test_a_rewrite_far_from_its_question_fires(tmp_path: Path) -> None:
    rewriting = {"rewrite": {"type": "clean"}}
    project = made(tmp_path, {"rewrite": 1e-6}, embed=rewriting, retrievers=[{"type": "bm25"}])
    rewrites = [json.loads(line) for line in (project.run / "embed.jsonl").read_text().splitlines()]
    changed = {each["qid"] for each in rewrites if each["rewrite"] != each["text"]}
    assert {qid for (qid, _), records in hits(project).items() if records[0].escalated} == changed


def test_a_name_is_a_threshold_too() -> None:
    assert RoutingThresholds(name=True, entropy=0.5).thresholds == {"entropy": 0.5, "name": 1.0}
