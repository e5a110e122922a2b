"""An audit of a sweep: nothing to say of what raggs wrote, a finding for each lie."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.sweeping import SweepProject, make_sweep

from raggs.app.audit import audit
from raggs.base.errors import UsageError
from raggs.base.files import hash_file
from raggs.sweeps.store import SweepManifest, SweepStore


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SweepProject:
    project = make_sweep(tmp_path_factory.mktemp("sweep"), prices={"generator": {"input": 1}})
    project.sweep()
    return project


@pytest.fixture
def folder(made: SweepProject, tmp_path: Path) -> Path:
    shutil.copytree(made.out, tmp_path / "stack")
    return tmp_path / "stack"


def rehash(folder: Path) -> None:
    """What a forger would do who knows of the hashes."""
    store = SweepStore(folder)
    manifest = store.manifest()
    files = {name: hash_file(folder / name) for name in manifest.files}
    manifest = manifest.model_copy(update={"files": files}).sealed()
    (folder / "manifest.json").write_text(manifest.model_dump_json(indent=2))


def test_what_raggs_wrote_is_what_it_says(folder: Path) -> None:
    found = audit(folder)
    assert found.ok
    assert found.records == 6
    assert not any("golden" in each for each in found.unchecked)


def test_a_page_says_where_its_words_are_explained(folder: Path) -> None:
    assert (folder / "sweep.md").read_text().endswith("\nwords: raggs explain WORD, or docs/reference/glossary.md\n")


def edit_list(folder: Path) -> None:
    path = next((folder / "runs").glob("*.trec"))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))


def edit_json(field: str, value: object):  # type: ignore[no-untyped-def]
    def edit(folder: Path) -> None:
        path = folder / "sweep.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), field: value}, indent=2) + "\n")

    return edit


def edit_row(change):  # type: ignore[no-untyped-def]
    def edit(folder: Path) -> None:
        path = folder / "systems.jsonl"
        first, *rest = path.read_text().splitlines()
        row = json.loads(first)
        change(row)
        path.write_text("\n".join([json.dumps(row, separators=(",", ":")), *rest]) + "\n")

    return edit


def edit_outcome(change):  # type: ignore[no-untyped-def]
    def edit(folder: Path) -> None:
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest["outcome"])
        path.write_text(json.dumps(manifest))

    return edit


def cheaper(row: dict[str, Any]) -> None:
    """Half the price, and amounts that fit to it."""
    row["cost"]["lines"][0]["price"] /= 2
    row["cost"].update(generate=row["cost"]["generate"] / 2, total=row["cost"]["total"] / 2)


def shorter(row: dict[str, Any]) -> None:
    """Fewer tokens at the same price, and amounts that fit to them."""
    row["cost"]["lines"][0]["per_query"] /= 4
    row["cost"].update(generate=row["cost"]["generate"] / 4, total=row["cost"]["total"] / 4)


def raise_ceilings(outcome: dict[str, Any]) -> None:
    for measures in outcome["ceilings"].values():
        measures["ra_nwg@5"]["pct_proc"] = 1.0


def edit_timings(folder: Path) -> None:
    path = folder / "timings.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["ms"] = {qid: 1.5 * value for qid, value in row["ms"].items()}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


LIES = {
    "a list": (edit_list, "systems.jsonl"),
    "the front": (edit_json("front", []), "sweep.json"),
    "the wins": (edit_json("wins", []), "sweep.json"),
    "a score": (edit_row(lambda row: row["scores"]["ra_nwg@5"].update(mean=0.99)), "systems.jsonl"),
    "the holes": (edit_row(lambda row: row["holes"].update({"5": 0.0})), "systems.jsonl"),
    "waiting": (edit_row(lambda row: row["latency"]["total"].update(p50=0.001)), "systems.jsonl"),
    "the tail": (edit_row(lambda row: row["latency"]["total"].update(p95=0.001)), "systems.jsonl"),
    "timings": (edit_timings, "systems.jsonl"),
    "a price": (edit_row(lambda row: row["cost"].update(total=0.0)), "systems.jsonl"),
    "all amounts together": (edit_row(lambda row: row["cost"].update(generate=0.001, total=0.001)), "systems.jsonl"),
    "a price for a token": (edit_row(cheaper), "systems.jsonl"),
    "tokens": (edit_row(shorter), "systems.jsonl"),
    "the generator left out": (
        edit_row(lambda row: row["cost"].update(lines=[], generate=0.0, total=0.0)),
        "systems.jsonl",
    ),
    "%PROC in the manifest": (edit_outcome(raise_ceilings), "manifest.json"),
    "the SLO in the manifest": (edit_outcome(lambda outcome: outcome["limits"].update(latency_ms=1)), "manifest.json"),
    "a frontier in the manifest": (edit_outcome(lambda outcome: outcome["frontiers"].pop()), "manifest.json"),
    "a page": (lambda folder: (folder / "sweep.md").write_text("# All is well\n"), "sweep.md"),
}


@pytest.mark.nightly(keep=8)
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("knows_of_hashes", [False, True])
def test_a_lie_is_found(folder: Path, lie: str, knows_of_hashes: bool) -> None:
    edit, file = LIES[lie]
    edit(folder)
    if knows_of_hashes:
        rehash(folder)
    found = audit(folder)
    assert not found.ok
    if knows_of_hashes:
        assert file in {finding.file for finding in found.findings}, found.findings


def test_an_edited_manifest_breaks_its_seal(folder: Path) -> None:
    path = folder / "manifest.json"
    settings = json.loads(path.read_text())
    settings["config"]["seed"] = 7
    path.write_text(json.dumps(settings))
    assert any("seal" in finding.message for finding in audit(folder).findings)


def test_without_its_golden_set_the_rest_is_checked_and_this_is_said(folder: Path) -> None:
    manifest = SweepStore(folder).manifest()
    config = {**manifest.config, "golden": "/nowhere"}
    moved: SweepManifest = manifest.model_copy(update={"config": config}).sealed()
    (folder / "manifest.json").write_text(moved.model_dump_json())
    found = audit(folder)
    assert found.ok
    assert any("golden set that the sweep read was moved" in each for each in found.unchecked)


@pytest.mark.parametrize("text", ["{", '{"kind": "sweep"}', '{"kind": "sweep", "v": 1, "name": []}'])
def test_a_damaged_manifest_is_a_finding(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    assert not audit(folder).ok


def test_a_lock_is_for_runs(folder: Path) -> None:
    with pytest.raises(UsageError):
        audit(folder, lock=folder / "golden.lock")


def test_the_manifest_holds_ceilings_frontiers_and_the_limits_of_the_choice(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, limits={"latency_ms": 10_000}, slos=[350, 0.000001])
    report = project.sweep().report
    outcome = json.loads((project.out / "manifest.json").read_text())["outcome"]
    assert outcome["limits"] == {"latency_ms": 10_000}
    assert (outcome["choice"], tuple(outcome["front"])) == (report.choice.winner, report.front)
    assert [part["slo_ms"] for part in outcome["frontiers"]] == [0.000001, 350, 10_000, None]
    assert [bool(part["front"]) for part in outcome["frontiers"]] == [False, True, True, True]
    for row in report.systems:
        for measure, found in outcome["ceilings"][row.name].items():
            assert found["score"] == row.scores[measure].mean
            assert found["proc"] == row.scores[f"proc_{measure}"].mean
            assert found["pct_proc"] == pytest.approx(found["score"] / found["proc"])
        assert set(outcome["ceilings"][row.name]) == {"ra_nwg@5", "n_recall4@5", "ra_nwg@10", "n_recall4@10"}
    assert audit(project.out).ok
