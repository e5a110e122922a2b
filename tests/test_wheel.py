"""The wheel, as a user gets it: built, installed in a fresh environment, run from outside the checkout.

Takes a minute and the package index, so it runs where RAGGS_WHEEL_TEST is set (the CI script sets it).
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("raggs/runs/manifests/store.py", "raggs/stages/rank.py", "raggs/diagnosis/names/people.txt", "raggs/py.typed")

pytestmark = pytest.mark.skipif(
    not os.environ.get("RAGGS_WHEEL_TEST"), reason="set RAGGS_WHEEL_TEST=1 (a minute, package index)"
)


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

    quickstart = tmp_path / "quickstart"
    quickstart.mkdir()
    for file in (ROOT / "examples" / "quickstart").iterdir():
        if file.is_file():
            (quickstart / file.name).write_bytes(file.read_bytes())
    call(raggs, "run", "--config", "quickstart/raggs.yaml", cwd=tmp_path)
    assert "Nothing to do" in call(raggs, "run", "--config", "quickstart/raggs.yaml", cwd=tmp_path)
