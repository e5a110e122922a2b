"""The notebooks of examples/notebooks, executed in a kernel as Jupyter does it; they are kept without outputs."""

from __future__ import annotations

import asyncio
import json
import shutil
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


def test_notebooks_are_kept_without_outputs_and_told_of() -> None:
    told = (EXAMPLES / "notebooks" / "README.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not [cell for cell in cells if cell.get("outputs")], f"clear the outputs of {path.name}"
        assert f"({path.name})" in told


def test_the_notebooks_run_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient runs notebooks: pip install raggs[dev]")
    pytest.importorskip("ipykernel", reason="ipykernel is what notebooks run in: pip install raggs[dev]")
    import nbformat

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")

    async def shown(path: Path) -> str:
        folder = tmp_path / path.stem
        shutil.copytree(EXAMPLES / "runs", folder, ignore=shutil.ignore_patterns("runs"))
        notebook = nbformat.read(path, as_version=4)
        resources = {"metadata": {"path": str(folder)}}
        client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources)
        await client.async_execute()
        return json.dumps(notebook)

    async def both() -> list[str]:
        return await asyncio.gather(*map(shown, NOTEBOOKS))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Jupyter's packages warn about themselves
        found = dict(zip([path.stem for path in NOTEBOOKS], asyncio.run(both()), strict=True))
    assert "text/html" in found["evaluate"]
    assert "When do I get my money back?" in found["evaluate"]
    assert "a - b: " in found["choose"]
    assert "Recommendation" in found["choose"]
