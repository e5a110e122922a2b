"""Check that all dependencies of raggs have wheels for each Python and platform, and measure the size of the core.

    python benchmarks/installs.py [--uv uv] [--extra ann] [--size]

uv resolves `pyproject.toml` for each platform with wheels only, and needs the package index. `--extra` adds an extra.
`--size` also installs the core for this machine into a temporary environment and measures it. The script fails if a
target of GOALS does not resolve. The macOS version is 14, because uv's default, 13, has no wheel of wordllama for
arm64.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
GOALS = {
    "Linux x86_64": "x86_64-manylinux_2_28",
    "Linux aarch64": "aarch64-manylinux_2_28",
    "macOS arm64": "aarch64-apple-darwin",
    "Windows x86_64": "x86_64-pc-windows-msvc",
}
OTHERS = {
    "macOS x86_64": "x86_64-apple-darwin",
    "Windows arm64": "aarch64-pc-windows-msvc",
    "Linux x86_64 musl": "x86_64-unknown-linux-musl",
}


def resolve(uv: str, python: str, platform: str, extras: list[str]) -> tuple[list[str], str]:
    """Return the resolved packages, or none and uv's reason."""
    command = [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:"]
    command += ["--python-platform", platform, "--python-version", python, *(f"--extra={each}" for each in extras)]
    environment = os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
    done = subprocess.run(
        [*command, str(ROOT / "pyproject.toml")], capture_output=True, text=True, env=environment, check=False
    )
    return [line for line in done.stdout.splitlines() if "==" in line], " ".join(done.stderr.split())[:160]


def measure(uv: str) -> str:
    """Return the size of the core on this machine, and its largest packages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "env"
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, ROOT], check=True)
        (site,) = folder.rglob("site-packages")
        sizes = {each.name: size_of(each) for each in site.iterdir()}
        packages = sum(each.endswith(".dist-info") for each in sizes)
    largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:6]
    parts = ", ".join(f"{each} {sizes[each] / 1e6:.0f}" for each in largest)
    return f"{sum(sizes.values()) / 1e6:.0f} MB, {packages} packages with raggs; largest (MB): {parts}"


def size_of(path: Path) -> int:
    return sum(each.stat().st_size for each in ([path] if path.is_file() else path.rglob("*")) if each.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--size", action="store_true")
    options = parser.parse_args()
    failed = False
    print("| platform | " + " | ".join(PYTHONS) + " |\n|---|" + "---|" * len(PYTHONS))
    for name, platform in (GOALS | OTHERS).items():
        cells, reasons = [], []
        for python in PYTHONS:
            found, why = resolve(options.uv, python, platform, options.extra)
            failed |= not found and name in GOALS
            embedder = "wordllama" if any(each.startswith("wordllama==") for each in found) else "lsa"
            cells.append(f"{len(found)}, {embedder}" if found else "fails")
            reasons += [] if found else [f"{name}, {python}: {why}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        print(*reasons, sep="\n", end="\n" if reasons else "", file=sys.stderr)
    if options.size:
        print(measure(options.uv))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
