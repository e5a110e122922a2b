"""An audit of a sweep: nothing to say of what raggs wrote, a finding for each lie."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.sweeping import SweepProject, make_sweep

from raggs.app.audit import audit
from raggs.errors import UsageError
from raggs.hashing import hash_file
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


def test_a_page_says_where_its_words_are_told_and_one_of_an_earlier_form_is_derived_as_it_was(folder: Path) -> None:
    page, report = folder / "sweep.md", folder / "sweep.json"
    line = "\nwords: raggs explain WORD, or docs/glossary.md\n"
    assert page.read_text().endswith(line)
    old = json.loads(report.read_text())
    assert old.pop("page") == 2
    report.write_text(json.dumps(old, indent=2, ensure_ascii=False) + "\n")
    page.write_text(page.read_text().removesuffix(line))
    rehash(folder)
    assert audit(folder).findings == ()
    page.write_text(page.read_text() + line)
    rehash(folder)
    assert [finding.file for finding in audit(folder).findings] == ["sweep.md"]


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
    "timings": (edit_timings, "systems.jsonl"),
    "a price": (edit_row(lambda row: row["cost"].update(total=0.0)), "systems.jsonl"),
    "a page": (lambda folder: (folder / "sweep.md").write_text("# All is well\n"), "sweep.md"),
}


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
    assert any("golden set is not where" in each for each in found.unchecked)


@pytest.mark.parametrize("text", ["{", '{"kind": "sweep"}', '{"kind": "sweep", "v": 1, "name": []}'])
def test_a_damaged_manifest_is_a_finding(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    assert not audit(folder).ok


def test_a_lock_is_for_runs(folder: Path) -> None:
    with pytest.raises(UsageError):
        audit(folder, lock=folder / "golden.lock")
