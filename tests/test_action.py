"""The GitHub Action and the skill for coding agents: their steps run in a shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
SKILL = (ROOT / "skills" / "raggs" / "SKILL.md").read_text(encoding="utf-8")
SEARCHED = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def shell(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub runs a step with `shell: bash`."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": SEARCHED, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


class GateWorkflow:
    """Runs the steps of the action with these inputs, except those that other actions carry out."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        defaults = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
        self.inputs = {**defaults, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        assert self.inputs.keys() == defaults.keys()
        self.folder, self.summary, self.output = folder, folder / "summary.md", folder / "output.txt"

    def value(self, text: str) -> str:
        known = {f"inputs.{name}": value for name, value in self.inputs.items()} | {"github.action_path": str(ROOT)}
        return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: known[found[1]], text)

    def step(self, name: str, **environment: str) -> subprocess.CompletedProcess[str]:
        step = next(each for each in ACTION["runs"]["steps"] if each.get("name") == name)
        own = {key: self.value(value) for key, value in step.get("env", {}).items()}
        files = {"GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output), "GITHUB_ACTIONS": "true"}
        return shell(step["run"], self.folder, **own, **files, **environment)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The starter project, run and exported as the skill describes it."""
    folder = tmp_path_factory.mktemp("project")
    blocks = re.findall(r"^```bash\n(.*?)^```$", SKILL, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    for block in blocks:
        done = shell(block, folder)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return folder / "rag-eval"


def test_the_skill_leads_to_a_set_a_report_and_a_baseline(project):
    assert (project / "report.html").stat().st_size > 10_000
    assert (project / "golden.lock").is_file()
    assert (project / "baseline" / "eval.json").is_file()


def test_the_skill_has_a_name_and_a_description_for_agents():
    _, front, _ = SKILL.split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["name"] == "raggs"
    assert 50 < len(about["description"]) <= 1024


def test_the_workflow_of_the_skill_names_inputs_of_the_action():
    block = next(
        each for each in re.findall(r"^```yaml\n(.*?)^```$", SKILL, re.DOTALL | re.MULTILINE) if "jobs" in each
    )
    given = yaml.safe_load(block)["jobs"]["retrieval"]["steps"][1]["with"]
    assert given.keys() <= ACTION["inputs"].keys()
    required = {name for name, each in ACTION["inputs"].items() if each.get("required")}
    assert required <= given.keys()


def test_the_gate_passes_and_writes_its_results(project, tmp_path):
    shutil.copytree(project, tmp_path / "rag-eval")
    gate = GateWorkflow(
        tmp_path,
        golden="rag-eval/golden",
        config="rag-eval/raggs.yaml",
        run="rag-eval/runs/demo",
        lock="rag-eval/golden.lock",
        baseline="rag-eval/baseline/eval.json",
        fail_under="ndcg@10=0.01\nrecall@10=0.01\n",
    )
    for name in ("Retrieve", "Evaluate"):
        done = gate.step(name)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert gate.output.read_text() == "result=eval/eval.json\n"
    assert (tmp_path / "eval" / "eval.json").is_file()
    assert (tmp_path / "eval" / "junit.xml").is_file()
    assert "ndcg@10" in gate.summary.read_text()


def test_the_gate_fails_below_a_minimum_and_on_several_systems(project, tmp_path):
    shutil.copytree(project, tmp_path / "rag-eval")
    gate = GateWorkflow(
        tmp_path,
        golden="rag-eval/golden",
        run="one=rag-eval/runs/demo\n\ntwo=rag-eval/runs/demo",
        fail_under="ndcg@10=1",
    )
    done = gate.step("Evaluate")
    assert done.returncode == 7, f"{done.stdout}\n{done.stderr}"
    assert (tmp_path / "eval" / "eval.json").is_file()
    assert "two" in gate.summary.read_text()


def test_inputs_are_data_not_shell(project, tmp_path):
    shutil.copytree(project, tmp_path / "rag-eval")
    gate = GateWorkflow(tmp_path, golden="$(touch hacked)", run="`touch hacked`; touch hacked")
    assert gate.step("Evaluate").returncode != 0
    assert not (tmp_path / "hacked").exists()


def test_the_installation_takes_this_checkout(tmp_path):
    target = tmp_path / "packages"
    install = {"PIP_NO_DEPS": "1", "PIP_TARGET": str(target), "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}
    done = GateWorkflow(tmp_path, golden="g", run="r").step("Install raggs", **install)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert (target / "raggs" / "__init__.py").is_file()
