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
    others = "pydantic raggs.cli.runs raggs.cli.eval_options raggs.cli.sweeps"
    assert (
        loaded(f"numpy raggs.base.artifacts raggs.parts.workspace {others} {PROVIDERS}", "init", str(tmp_path / "d"))
        == "[]"
    )
    assert (tmp_path / "d" / "raggs.yaml").is_file()


def test_a_first_run_loads_no_provider_and_no_package_whose_files_are_enough(tmp_path: Path) -> None:
    loaded("", "init", str(tmp_path))
    packages = "wordllama scipy networkx dask diskcache dotenv rich.progress"
    unused = "raggs.stats.question_wording raggs.parts.reviews raggs.parts.chunkers.sentence"
    assert loaded(f"{unused} {packages} {PROVIDERS}", "run", str(tmp_path / "raggs.yaml")) == "[]"


def test_what_a_first_run_loads_stays_little(tmp_path: Path) -> None:
    """Modules of all packages; a command that needs more is measured before the number grows."""
    count = SCRIPT.replace("print([", "print(len(sys.modules), [")
    for most, *arguments in ((220, "init", str(tmp_path)), (907, "run", str(tmp_path / "raggs.yaml"))):
        done = subprocess.run(
            [sys.executable, "-c", count, "", *map(str, arguments)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout.split()[0]) <= most, arguments[0]


def test_a_report_that_compares_systems_loads_the_distributions_alone(tmp_path: Path) -> None:
    """Each of the packages takes as long to import as the report of a small set to write."""
    (tmp_path / "qrels.txt").write_text("".join(f"q{n} 0 d{n} {4 + n % 2}\nq{n} 0 e{n} 1\n" for n in range(9)))
    for name, step in (("a", 1), ("b", 2)):
        lines = (f"q{n} Q0 {'de'[(n * step + k) % 2]}{n} {k + 1} {2 - k} x\n" for n in range(9) for k in (0, 1))
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    runs = [word for name in "ab" for word in ("--run", f"{name}={tmp_path / f'{name}.trec'}")]
    heavy = "scipy.stats scipy.special scipy.linalg filelock raggs.app.corrections raggs.app.judge_check"
    asked = ["report", str(tmp_path / "qrels.txt"), *runs, "--out", str(tmp_path / "report.html")]
    assert loaded(heavy, *asked) == "[]"
    assert loaded("scipy", *asked) == "['scipy']", "the tests were made"
