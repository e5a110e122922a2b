"""What the first two commands of a newcomer load: nothing that they do not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from typer.testing import CliRunner
from raggs.cli.app import app

names = sys.argv.pop(1).split()
assert CliRunner().invoke(app, sys.argv[1:]).exit_code == 0
print([name for name in names if name in sys.modules])
"""
PROVIDERS = "litellm openai aiohttp httpx requests elasticsearch distributed"


def loaded(names: str, *arguments: str) -> str:
    """Which of `names` a process holds after a command."""
    command = [sys.executable, "-c", SCRIPT, names, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def test_a_starter_is_made_without_what_a_run_needs(tmp_path: Path) -> None:
    others = "pydantic raggs.cli.runs raggs.cli.evalflags raggs.cli.sweeps"
    assert loaded(f"numpy raggs.artifacts raggs.workshop {others} {PROVIDERS}", "init", str(tmp_path / "d")) == "[]"
    assert (tmp_path / "d" / "raggs.yaml").is_file()


def test_a_first_run_loads_no_provider_and_no_package_whose_files_are_enough(tmp_path: Path) -> None:
    loaded("", "init", str(tmp_path))
    packages = "wordllama scipy networkx dask diskcache dotenv rich.progress"
    unused = "raggs.asking.wording raggs.reviews.store raggs.chunkers.sentence"
    assert loaded(f"{unused} {packages} {PROVIDERS}", "run", str(tmp_path / "raggs.yaml")) == "[]"


def test_what_a_first_run_loads_stays_little(tmp_path: Path) -> None:
    """Modules of all packages; a command that needs more is measured before the number grows."""
    count = SCRIPT.replace("print([", "print(len(sys.modules), [")
    for most, *arguments in ((220, "init", str(tmp_path)), (850, "run", str(tmp_path / "raggs.yaml"))):
        done = subprocess.run(
            [sys.executable, "-c", count, "", *map(str, arguments)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout.split()[0]) <= most, arguments[0]
