"""Draw the plots of docs/how-to/compare-configurations.md: run the sweep of examples/sweep and copy two SVG files.

`python docs/sweepplots.py` works offline and takes some seconds. Latencies, and so the files, differ between machines.
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
SHOWN = ("front.svg", "effects.svg")
CHANGES = ("axes.k=[10, 20, 30, 40, 50]", "limits.latency_ms=3", "limits.usd_per_1k=null")


def draw(folder: Path) -> list[Path]:
    """Run the golden set and the sweep in `folder`, and return the paths of the copied files."""
    for name in ("quickstart", "sweep"):
        ignored = shutil.ignore_patterns("runs", "sweeps")
        shutil.copytree(HERE.parent / "examples" / name, folder / name, ignore=ignored)
    run(load_config(folder / "quickstart" / "raggs.yaml"))
    found = sweep(load_sweep(folder / "sweep" / "sweep.yaml", CHANGES))
    TARGET.mkdir(exist_ok=True)
    return [Path(shutil.copy(path, TARGET)) for path in map(found.folder.joinpath, SHOWN)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.stdout.write("".join(f"{path}\n" for path in draw(Path(made))))
