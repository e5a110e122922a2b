"""What the first two commands of a newcomer load: nothing that they do not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from typer.testing import CliRunner
from raggs.cli.app import app

assert CliRunner().invoke(app, sys.argv[1:]).exit_code == 0
print(*sys.modules)
"""
PROVIDERS = "litellm openai aiohttp httpx requests elasticsearch distributed"


def loaded(*arguments: str) -> list[str]:
    """The modules that a process holds after a command."""
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def among(names: str, modules: list[str]) -> list[str]:
    return [name for name in names.split() if name in modules]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("first") / "d"


@pytest.fixture(scope="module")
def by_init(folder: Path) -> list[str]:
    return loaded("init", str(folder))


@pytest.fixture(scope="module")
def by_run(folder: Path, by_init: list[str]) -> list[str]:
    return loaded("run", str(folder / "raggs.yaml"))


def test_a_starter_is_made_without_what_a_run_needs(folder: Path, by_init: list[str]) -> None:
    others = "pydantic raggs.cli.runs raggs.cli.eval_options raggs.cli.sweeps"
    assert among(f"numpy raggs.base.artifacts raggs.parts.workspace {others} {PROVIDERS}", by_init) == []
    assert (folder / "raggs.yaml").is_file()


def test_a_first_run_loads_no_provider_and_no_package_whose_files_are_enough(by_run: list[str]) -> None:
    packages = "wordllama scipy.special scipy.stats dask diskcache dotenv rich.progress"
    unused = "raggs.stats.question_wording raggs.parts.reviews raggs.parts.chunkers.sentence"
    assert among(f"{unused} {packages} {PROVIDERS}", by_run) == []


def test_what_a_first_run_loads_stays_little(by_init: list[str], by_run: list[str]) -> None:
    """Modules of all packages; a command that needs more is measured before the number grows."""
    assert len(by_init) <= 220
    assert len(by_run) <= 1360  # 330 of them belong to networkx, which checks the final order


def test_a_report_that_compares_systems_loads_no_statistics_of_scipy(tmp_path: Path) -> None:
    """Each of the packages takes as long to import as the report of a small set to write."""
    (tmp_path / "qrels.txt").write_text("".join(f"q{n} 0 d{n} {4 + n % 2}\nq{n} 0 e{n} 1\n" for n in range(9)))
    for name, step in (("a", 1), ("b", 2)):
        lines = (f"q{n} Q0 {'de'[(n * step + k) % 2]}{n} {k + 1} {2 - k} x\n" for n in range(9) for k in (0, 1))
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    runs = [word for name in "ab" for word in ("--run", f"{name}={tmp_path / f'{name}.trec'}")]
    heavy = "scipy.special scipy.stats scipy.linalg filelock raggs.app.corrections raggs.app.judge_check"
    asked = ["report", str(tmp_path / "qrels.txt"), *runs, "--out", str(tmp_path / "report.html")]
    modules = loaded(*asked)
    assert among(heavy, modules) == []
    assert "raggs.stats.distributions" in modules, "the tests were made"
