"""PROC and %PROC in a run's manifest: those of an evaluation, derived again by an audit, no reason to write."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import call
from support.forging import edit_manifest
from support.project import Project, make_project


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    found = make_project(tmp_path_factory.mktemp("ceilings") / "demo")
    call("run", "--config", found.config, "--quiet")
    return found


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def test_the_manifest_holds_the_ceilings_of_an_evaluation(made: Project, tmp_path: Path) -> None:
    found = made.manifest()["stages"]["judge"]["ceilings"]
    assert set(found) == {"bm25", "dense", "fused"}
    call("eval", "-g", made.run, "-r", made.run, "--out", tmp_path / "e", "--quiet")
    for system in json.loads((tmp_path / "e" / "eval.json").read_text())["systems"]:
        evaluated = {part["measure"]: part for part in system["bottleneck"]}
        assert "ra_nwg@10" in evaluated
        for part in found[system["name"]]:
            if part["measure"] in evaluated:
                wanted = evaluated[part["measure"]]
                figures = (wanted["pool"], wanted["actual"], wanted["ceiling"], wanted["of_means"])
                assert (part["pool"], part["score"], part["proc"], part["pct_proc"]) == figures
    assert {part["measure"] for part in found["bm25"]} >= {"ra_nwg@10", "ra_nwg@30", "n_recall4@10", "n_recall5@30"}


def test_a_run_with_nothing_to_do_changes_no_byte(made: Project) -> None:
    before = hashes(made.run)
    call("run", "--config", made.config, "--quiet")
    assert hashes(made.run) == before


def test_a_finished_run_without_ceilings_stays_as_it_is(made: Project, tmp_path: Path) -> None:
    other = make_project(tmp_path / "demo")
    call("run", "--config", other.config, "--quiet")
    edit_manifest(other.run, lambda content: content["stages"]["judge"].pop("ceilings"), reseal=True)
    before = hashes(other.run)
    call("run", "--config", other.config, "--quiet")
    call("audit", other.run)
    assert hashes(other.run) == before


def test_an_audit_derives_them_again(tmp_path: Path) -> None:
    other = make_project(tmp_path / "demo")
    call("run", "--config", other.config, "--quiet")

    def forge(content: dict[str, Any]) -> None:
        content["stages"]["judge"]["ceilings"]["dense"][0]["proc"] = 0.125

    edit_manifest(other.run, forge, reseal=True)
    found = " ".join(call("audit", other.run, code=5).stdout.split())
    assert "stage judge: the ceilings of dense differ from those of the artifacts" in found
