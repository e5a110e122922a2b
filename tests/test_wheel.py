"""The wheel, as a user gets it: built, installed in a fresh environment, run from outside the checkout.

Takes a minute and the package index, so it runs where RAGGS_WHEEL_TEST is set (the CI script sets it).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("raggs/runs/manifests/store.py", "raggs/stages/rank.py", "raggs/diagnosis/names/people.txt", "raggs/py.typed")

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("RAGGS_WHEEL_TEST"), reason="set RAGGS_WHEEL_TEST=1 (a minute, package index)"
    ),
    pytest.mark.timeout(900),
]


def call(*command: object, cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_runs_a_whole_pipeline_outside_the_checkout(tmp_path: Path) -> None:
    # By way of the sdist, so that what the sdist lacks is missed here and not by a packager.
    call(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    files = (path for path in (ROOT / "raggs").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    data = {path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".py"}
    assert set(NEEDED) | data <= set(names), "templates, word lists and pages are data of the package"
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"raggs"}

    call(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    call(python, "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    raggs = tmp_path / "env" / "bin" / "raggs"
    call(raggs, "init", "demo", cwd=tmp_path)
    call(raggs, "run", "--config", "demo/raggs.yaml", cwd=tmp_path)
    (run,) = (path.parent for path in (tmp_path / "demo" / "runs").glob("*/manifest.json"))
    assert "Audit passed" in call(raggs, "audit", run, cwd=tmp_path)

    assert _run_quickstart(raggs, tmp_path / "bundled") == "wordllama"
    call(python, "-m", "pip", "uninstall", "-q", "-y", "wordllama", "safetensors", cwd=tmp_path)
    assert _run_quickstart(raggs, tmp_path / "elsewhere") == "lsa", "as on a platform for which wordllama has no wheel"
    again = [str(raggs), "run", "--config", "bundled/raggs.yaml"]
    refused = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert refused.returncode == 3 and "the default embedder wordllama" in refused.stderr


def _run_quickstart(raggs: Path, folder: Path) -> str:
    """Run the quickstart twice in a new folder, audit it, and return the type of its embedder."""
    folder.mkdir()
    for file in (ROOT / "examples" / "quickstart").iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    call(raggs, "run", "--config", "raggs.yaml", cwd=folder)
    assert "Nothing to do" in call(raggs, "run", "--config", "raggs.yaml", cwd=folder)
    assert "Audit passed" in call(raggs, "audit", "runs/quickstart", cwd=folder)
    manifest = json.loads((folder / "runs" / "quickstart" / "manifest.json").read_text())
    return str(manifest["stages"]["embed"]["params"]["embedder"]["type"])
