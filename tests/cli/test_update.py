"""`raggs update` against a real server: what is judged, what is carried over, and what a killed update leaves."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest
from support.cli import call
from support.forging import edit_file, edit_manifest
from support.llm_server import KEY, LLMServer
from support.paying import paying
from support.project import ARTIFACTS, Project, begin, environment, raggs, write_lines

from raggs.base.files import hash_file
from raggs.runs.manifests.models import RunManifest

ENV = {"OPENAI_API_KEY": KEY}


def truth(query: str, passage: str) -> int:
    """A grade by the words that both have."""
    return min(5, 1 + len(set(query.lower().split()) & set(passage.lower().replace(".", "").split())))


def rows(project: Project, name: str = "corpus") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.folder / f"{name}.jsonl").read_text().splitlines()]


def edit_documents(project: Project) -> None:
    """Edit one passage, move one, remove one, add one, and reuse an id for another text."""
    found = rows(project)
    found[0]["text"] += " A brook and a cedar are near the amber."
    found[1]["_id"] = "moved"
    del found[2]
    found[5]["text"], found[5]["title"] = "Bread needs flour, water, salt and time to rise slowly.", "bread"
    found.append({"_id": "added", "title": "amber", "text": "The amber near the flint is new."})
    write_lines(project.folder / "corpus.jsonl", found)


def manifest(folder: Path) -> RunManifest:
    return RunManifest.model_validate_json((folder / "manifest.json").read_text())


def labels(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "judge.jsonl").read_text().splitlines()]


def artifacts(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.jsonl").read_bytes() for name in (*ARTIFACTS, "rank.queries")}


def update(project: Project, *more: object, of: str = "demo", code: int = 0):
    return call("update", project.folder / "runs" / of, "-c", project.config, *more, code=code, env=ENV)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, LLMServer]]:
    """A finished golden set whose documents have changed since."""
    with LLMServer(truth=truth) as server:
        project = paying(tmp_path_factory.mktemp("update") / "own", server)
        call("run", "-c", project.config, "-q", env=ENV)
        edit_documents(project)
        yield project, server


@pytest.fixture
def own(made: tuple[Project, LLMServer], tmp_path: Path) -> tuple[Project, LLMServer]:
    """The same in a folder of its own."""
    project, server = made
    server.paid_twice.clear()
    server._answered.clear()  # each copy has a cache of its own
    return project.copied(tmp_path / "copy"), server


def test_the_plan_is_printed_and_nothing_is_written(own: tuple[Project, LLMServer]) -> None:
    project, server = own
    before, folders = server.count, sorted((project.folder / "runs").iterdir())
    shown = update(project, "--dry-run")
    assert server.count == before
    assert sorted((project.folder / "runs").iterdir()) == folders
    assert "labels are carried over" in shown.stdout
    assert "1 id with unrelated new texts" in shown.stdout.replace("\n", " ")
    assert "next: raggs update" in shown.stdout
    assert len(shown.stdout.splitlines()) <= 25
    assert len(shown.stdout.split()) <= 200
    plan = json.loads(update(project, "--dry-run", "--json").stdout)
    assert plan["lineage"]["corpus"] == {"unchanged": 20, "moved": 1, "edited": 2, "new": 1, "gone": 1}
    assert plan["lineage"]["queries"]["unchanged"] == 3
    assert plan["reused_ids"] == ["p006"]
    assert plan["judging"] > 0
    assert plan["usd"] > 0


def test_only_changed_passages_are_judged(own: tuple[Project, LLMServer]) -> None:
    project, server = own
    plan = json.loads(update(project, "--dry-run", "--json").stdout)
    update(project, "--yes")
    folder = project.folder / "runs" / "demo.2"
    found = [label for label in labels(folder) if label["duplicate_of"] is None]
    judged = [label for label in found if "carried" not in label]
    assert len(judged) == plan["judging"]
    known = {(label["qid"], label["doc_id"]) for label in labels(project.run)}
    again = {label["doc_id"] for label in judged if (label["qid"], label["doc_id"]) in known}
    assert again == {"p000"}
    assert "added" in {label["doc_id"] for label in judged}
    moved = [label for label in found if label["doc_id"] == "moved" and (label["qid"], "p001") in known]
    assert moved
    assert all(label["carried"]["how"] == "moved" and label["carried"]["doc_ids"] == ["p001"] for label in moved)
    lineage, parent = manifest(folder).lineage, manifest(project.run)
    assert lineage is not None
    assert lineage.parent == parent.version
    assert lineage.counts is not None
    assert sum(lineage.counts.carried.values()) == len(found) - len(judged)
    assert sum(lineage.counts.judged.values()) == len(judged)
    assert not server.paid_twice


def test_audit_diff_and_eval_name_the_version(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    assert "Audit passed" in call("audit", folder).stdout
    told = call("diff", project.run, folder).stdout.replace("\n", " ")
    assert "NEW: version 2" in told
    notes = json.loads(call("diff", project.run, folder, "--json").stdout)["notes"]
    assert any("OLD is the parent of NEW" in note for note in notes)
    report = json.loads(call("eval", "-g", folder, "-r", folder, "--json").stdout)
    assert report["golden"]["version"]["version"] == manifest(folder).version
    assert report["golden"]["version"]["number"] == 2
    call("export", folder, "-o", project.folder / "beir", "-f", "beir", "-q")
    exported = json.loads(call("eval", "-g", project.folder / "beir", "-r", folder, "--json").stdout)
    assert exported["golden"]["version"] == report["golden"]["version"]
    first = json.loads(call("eval", "-g", project.run, "-r", project.run, "--json").stdout)
    assert "version" not in first["golden"]


def test_unchanged_inputs_cost_nothing_and_give_the_same_ranking(tmp_path: Path) -> None:
    with LLMServer(truth=truth) as server:
        project = paying(tmp_path / "own", server)
        call("run", "-c", project.config, "-q", env=ENV)
        rmtree(project.folder / "runs" / ".cache")  # without paid answers and without the earlier corpus
        before = server.count
        update(project, "-q")
        assert server.count == before
    old, new = (artifacts(project.folder / "runs" / name) for name in ("demo", "demo.2"))
    assert {name for name in old if old[name] != new[name]} == {"judge", "rank.journal"}
    assert "Audit passed" in call("audit", project.folder / "runs" / "demo.2").stdout


@pytest.mark.parametrize("number", [1, 4, 9])
def test_a_killed_update_ends_with_the_same_bytes_and_pays_nothing_twice(
    made: tuple[Project, LLMServer], tmp_path: Path, number: int
) -> None:
    project, server = made[0].copied(tmp_path / "whole"), made[1]
    update(project, "-q")
    expected = artifacts(project.folder / "runs" / "demo.2")
    killed = made[0].copied(tmp_path / "killed")
    killed.change(llm={"concurrency": 1})  # with more, the answers of other calls may be on their way
    server.paid_twice.clear()
    server._answered.clear()  # the first update made the same requests, with a cache of its own
    start = server.count

    def kill(asked: int, _body: dict[str, Any]) -> str | None:
        if asked + 1 - start < number:
            return None
        os.kill(process.pid, signal.SIGKILL)
        return "500"  # nobody hears an answer

    server.fault_for = kill
    process = begin("update", killed.run, "-c", killed.config, "-q", env=environment(**ENV))
    try:
        assert process.end().code == -9
    finally:
        server.fault_for = None
    update(killed, "-q")
    assert artifacts(killed.folder / "runs" / "demo.2") == expected
    assert not server.paid_twice
    lineages = [manifest(each.folder / "runs" / "demo.2").lineage for each in (project, killed)]
    assert lineages[0] == lineages[1]
    assert "Audit passed" in call("audit", killed.folder / "runs" / "demo.2").stdout


def test_a_third_version_names_both_before_it(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    write_lines(project.folder / "corpus.jsonl", rows(project)[:-1])
    update(project, "-q", of="demo.2")
    third = manifest(project.folder / "runs" / "demo.3").lineage
    assert third is not None
    assert third.number == 3
    assert third.ancestors == (manifest(project.run).version,)
    assert "Audit passed" in call("audit", project.folder / "runs" / "demo.3").stdout


def test_a_finished_version_is_not_replaced(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    assert "0 made now" not in update(project).stdout  # nothing changed: the counts stay
    write_lines(project.folder / "corpus.jsonl", rows(project)[3:])
    said = update(project, code=2).stderr
    assert "is a finished version" in said
    assert "update this version: raggs update" in said


def test_raggs_run_does_not_judge_carried_labels_again(own: tuple[Project, LLMServer]) -> None:
    project, server = own
    update(project, "-q")
    before = server.count
    said = call("run", "-c", project.config, "--run-id", "demo.2", "--yes", code=5, env=ENV).stderr
    assert "made by raggs update" in said
    assert server.count == before


def test_changed_queries(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    asked = rows(project, "queries")
    asked[0]["_id"] = "renamed"
    asked[1]["text"] += " Exactly?"
    write_lines(project.folder / "queries.jsonl", [*asked[:2], {"_id": "q77", "text": "Which pearl is by the maple?"}])
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    counts = manifest(folder).lineage.queries.model_dump()
    assert counts == {"unchanged": 0, "renamed": 1, "edited": 1, "new": 1, "gone": 1}
    carried = [label for label in labels(folder) if "carried" in label]
    assert {label["qid"] for label in carried} == {"renamed"}
    assert {label["carried"]["qid"] for label in carried} == {"q00"}
    assert "Audit passed" in call("audit", folder).stdout


@pytest.mark.parametrize(
    "settings",
    [{"samples": 3}, {"group": 4}, {"stop_after": 3}, {"canaries": 0.1}, {"group": 3, "samples": 2}],
    ids=str,
)
def test_ways_of_judging(tmp_path: Path, settings: dict[str, Any]) -> None:
    with LLMServer(truth=truth) as server:
        project = paying(tmp_path / "own", server)
        project.change(judge=settings)
        call("run", "-c", project.config, "-q", env=ENV)
        edit_documents(project)
        update(project, "-q")
        assert "Audit passed" in call("audit", project.folder / "runs" / "demo.2").stdout


def test_without_a_ranking(tmp_path: Path) -> None:
    with LLMServer(truth=truth) as server:
        project = paying(tmp_path / "own", server)
        project.change(rank=None)
        call("run", "-c", project.config, "-q", env=ENV)
        edit_documents(project)
        update(project, "-q")
        assert "Audit passed" in call("audit", project.folder / "runs" / "demo.2").stdout


def test_a_budget_stops_an_update_and_a_higher_one_resumes_it(own: tuple[Project, LLMServer]) -> None:
    project, server = own
    said = update(project, "--max-calls", 2, "-q", code=7).stderr
    assert "--max-calls" in said or "budget.max_calls" in said
    update(project, "-q")
    assert not server.paid_twice
    assert "Audit passed" in call("audit", project.folder / "runs" / "demo.2").stdout


def test_the_earlier_corpus_may_be_missing(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    for path in (project.folder / "runs" / ".cache").rglob("passages.sqlite"):
        path.unlink()
    shown = update(project, "--dry-run").stdout.replace("\n", " ")
    assert "the earlier corpus is not in the cache" in shown
    assert json.loads(update(project, "--dry-run", "--json").stdout)["lineage"]["corpus"]["new"] is None


# --- hostile inputs ---


def findings(folder: Path) -> str:
    return call("audit", folder, "--json", code=5).stdout


def forge(folder: Path, before: bytes, after: bytes) -> None:
    """Change labels as a forger would who knows how hashes, checksums and seals are made."""
    edit_file(folder, "judge.jsonl", lambda data: data.replace(before, after), reseal=True)
    for sums in (folder / ".sums").glob("*.crc32"):
        sums.unlink()


def reforge(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    edit_manifest(folder, edit, reseal=True)


def test_a_forged_parent_is_found(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    edit_file(project.run, "judge.jsonl", lambda data: data.replace(b'"reason":"', b'"reason":"so ', 1), reseal=True)
    said = findings(folder)
    assert "is not the version that was updated" in said


def test_a_forged_label_is_found(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    forge(folder, b'"doc_ids":["p001"]', b'"doc_ids":["p007"]')
    assert "is not in" in findings(folder)


def test_a_label_forged_in_both_files_differs_from_the_parent(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    mark = b'"doc_ids":["p001"]'
    path = folder / "carried.labels.jsonl"
    path.write_bytes(path.read_bytes().replace(mark, b'"doc_ids":["p007"]'))
    forge(folder, mark, b'"doc_ids":["p007"]')
    reforge(folder, lambda content: content["lineage"].update(labels=hash_file(path)))
    said = findings(folder)
    assert "p007" in said


def test_cycles_in_the_lineage(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    own_version = manifest(folder).version
    reforge(folder, lambda content: content["lineage"].update(ancestors=[own_version]))
    assert "is its own ancestor" in findings(folder)
    said = update(project, of="demo.2", code=5).stderr
    assert "its lineage is a cycle" in said
    assert "restore the run directories" in said


def test_a_parent_that_is_the_set_itself(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    reforge(folder, lambda content: content["lineage"].update(folder="."))
    assert "is its own ancestor" in findings(folder)


def test_labels_without_a_lineage(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    reforge(folder, lambda content: content.pop("lineage"))
    assert "the manifest has no lineage" in findings(folder)


def test_a_missing_parent_is_not_checked(own: tuple[Project, LLMServer], tmp_path: Path) -> None:
    project, _ = own
    update(project, "-q")
    alone = copytree(project.folder / "runs" / "demo.2", tmp_path / "elsewhere" / "demo.2")
    said = call("audit", alone).stdout.replace("\n", " ")
    assert "Audit passed" in said
    assert "the carried labels, because the parent version" in said


def test_what_cannot_be_updated(own: tuple[Project, LLMServer], tmp_path: Path) -> None:
    project, _ = own
    assert "no run here" in call("update", tmp_path / "nothing", "-c", project.config, code=4).stderr
    assert "another run directory than its parent" in update(project, "--run-id", "demo", code=2).stderr
    call("run", "-c", project.config, "--run-id", "other", "--to", "merge", "-q", env=ENV)
    assert "already contains another run" in update(project, "--run-id", "other", code=2).stderr
    assert "is not finished" in update(project, of="other", code=5).stderr


def test_a_damaged_file_of_carried_labels(own: tuple[Project, LLMServer]) -> None:
    project, _ = own
    update(project, "-q")
    folder = project.folder / "runs" / "demo.2"
    (folder / "carried.labels.jsonl").write_text('{"qid": "q00"}\n')
    assert "differs from the file that raggs update wrote" in findings(folder)


def test_help_has_examples() -> None:
    assert "raggs update runs/demo --config raggs.yaml --dry-run" in raggs("update", "--help").stdout


def test_queries_that_depend_on_changed_documents_are_named(tmp_path: Path) -> None:
    for name, words in (("january", "The fee is 4 euros."), ("july", "The fee is 5 euros.")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "fees.md").write_text(f"# Fees\n\n{words}\n", encoding="utf-8")
        (folder / "hours.md").write_text("# Hours\n\nWe open at nine.\n", encoding="utf-8")
        config = f"name: set\ncorpus: {{type: folder, path: {name}}}\nqueries: {{type: jsonl, path: queries.jsonl}}\n"
        config += "judge: {judge: {type: nuggets}}\nretrieve: {retrievers: [{type: bm25, k: 5}]}\nrank: null\n"
        (tmp_path / f"{name}.yaml").write_text(config, encoding="utf-8")
    queries = [
        {"_id": "fee", "text": "What is the fee?", "nuggets": ["euros"], "evidence": [["fees.md#1"]]},
        {"_id": "open", "text": "When do you open?", "nuggets": ["nine"], "depends_on": ["hours.md"]},
        {"_id": "lost", "text": "Where is the fee office?", "nuggets": ["fee"], "depends_on": ["office.md"]},
    ]
    write_lines(tmp_path / "queries.jsonl", queries)
    assert raggs("run", "--config", tmp_path / "january.yaml", "-q").returncode == 0
    plan = raggs("update", tmp_path / "runs" / "set", "--config", tmp_path / "july.yaml")
    assert "changed or are gone: fee (fees.md#1), lost (office.md)" in " ".join(plan.stdout.split()), plan.stderr
    version = tmp_path / "runs" / "set.2"
    lineage = manifest(version).lineage
    assert lineage is not None and lineage.dependent == {"fee": ("fees.md#1",), "lost": ("office.md",)}
    scored = raggs("eval", "-g", version, "-r", version)
    assert "changed or are gone: fee, lost." in " ".join(scored.stdout.split())
    assert raggs("audit", version).returncode == 0
