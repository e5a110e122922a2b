"""Draws the plots of docs/how-to/compare-configurations.md: runs the sweep of examples/sweep and copies its SVG files.

`python docs/sweepplots.py` is offline and takes some seconds; waits differ from machine to machine, so the files do.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from raggs.app.run import run
from raggs.app.sweep import load_sweep, sweep
from raggs.config.load import load_config

HERE = Path(__file__).parent
TARGET = HERE / "how-to" / "sweep"
CHANGES = ("axes.k=[10, 20, 30, 40, 50]", "limits.latency_ms=3", "limits.usd_per_1k=null")


def draw(folder: Path) -> list[Path]:
    """Make the golden set and the sweep in `folder`; returns the files that were copied."""
    for name in ("quickstart", "sweep"):
        ignored = shutil.ignore_patterns("runs", "sweeps")
        shutil.copytree(HERE.parent / "examples" / name, folder / name, ignore=ignored)
    run(load_config(folder / "quickstart" / "raggs.yaml"))
    found = sweep(load_sweep(folder / "sweep" / "sweep.yaml", CHANGES))
    TARGET.mkdir(exist_ok=True)
    return [Path(shutil.copy(path, TARGET)) for path in sorted(found.folder.glob("*.svg"))]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.stdout.write("".join(f"{path}\n" for path in draw(Path(made))))
