"""The notebooks of examples/notebooks, executed in a kernel as Jupyter does it.

They are stored with their outputs. ``python tests/test_notebooks.py`` executes them and stores the current outputs.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))
MAX_BYTES = 500_000
PLACES = re.compile(r"/(tmp|home|root|work|Users)/|[A-Z]:\\")


def execute(folder: Path) -> dict[Path, Any]:
    """Execute all notebooks side by side in copies of examples/runs; return them with their outputs."""
    import nbclient
    import nbformat

    async def executed(path: Path) -> Any:
        place = folder / path.stem
        shutil.copytree(EXAMPLES / "runs", place, ignore=shutil.ignore_patterns("runs"))
        notebook = nbformat.read(path, as_version=4)
        resources = {"metadata": {"path": str(place)}}
        client = nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources=resources, record_timing=False
        )
        await client.async_execute()
        for output in (each for cell in notebook.cells for each in cell.get("outputs", ())):
            if len(output.get("data", ())) > 1:
                del output["data"]["text/plain"]  # the representation of an object, which no notebook displays
        notebook.metadata = {
            "kernelspec": notebook.metadata["kernelspec"],
            "language_info": {"name": "python"},
        }
        return notebook

    async def together() -> list[Any]:
        return await asyncio.gather(*map(executed, NOTEBOOKS))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Jupyter's packages warn about themselves
        return dict(zip(NOTEBOOKS, asyncio.run(together()), strict=True))


def outputs(notebook: Any) -> list[Any]:
    """Return what each cell shows."""
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_notebooks_open_with_a_picture_and_are_small() -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat reads notebooks: pip install raggs[dev]")
    readme = (EXAMPLES / "notebooks" / "README.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        first, *others = outputs(nbformat.reads(text, as_version=4))
        assert "image/svg+xml" in first[-1]["data"], f"{path.name}: the first cell shows a figure"
        assert all(others), f"{path.name}: each cell shows something"
        assert path.stat().st_size <= MAX_BYTES
        assert not PLACES.search(text), f"{path.name}: a path of one machine"
        assert not re.search(r"\d (ms|s|seconds)\b", text), f"{path.name}: a measured time"
        assert f"({path.name})" in readme


def test_the_stored_outputs_are_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat reads notebooks: pip install raggs[dev]")
    pytest.importorskip("nbclient", reason="nbclient runs notebooks: pip install raggs[dev]")
    pytest.importorskip("ipykernel", reason="ipykernel is what notebooks run in: pip install raggs[dev]")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    for path, notebook in execute(tmp_path).items():
        stored = nbformat.read(path, as_version=4)
        remedy = f"{path.name}: python tests/test_notebooks.py stores the current outputs"
        assert outputs(notebook) == outputs(stored), remedy


if __name__ == "__main__":
    import nbformat

    with tempfile.TemporaryDirectory() as scratch:
        for notebook_path, current in execute(Path(scratch)).items():
            nbformat.write(current, notebook_path)
            sys.stdout.write(f"{notebook_path.name}: {notebook_path.stat().st_size:,} bytes\n")
