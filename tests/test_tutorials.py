"""Run the tutorials of docs/start from start to end, and compare the printed output with the pages.

Every ``bash`` block of a page runs in one shell. A block without a language directly after it shows the printed output;
a last line of ``…`` omits the rest. ``python tests/test_tutorials.py`` writes the current output into the pages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from support.forks import shell_command
from support.reviewing import speak

from raggs.app.review_pool import draw_of_plan
from raggs.base.artifacts import MergeRecord
from raggs.parts.reviews import note_draw, read_plan

ROOT = Path(__file__).resolve().parents[1]
START = ROOT / "docs" / "start"
HOW_TO = ROOT / "docs" / "how-to"
GUIDES = ("queries-from-traces.md", "update-a-golden-set.md")
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
REST = "…"
CHANGING = [
    (re.compile(r"\b\d+\.\d+ s\b"), "N s"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b"), "DATE"),
    (re.compile(r"\b(?=\w*\d)[0-9a-f]{12}\b"), "HASH"),
]


class Step(NamedTuple):
    """A block of commands; `output` is the start and end of the printed output in the page."""

    commands: str
    output: tuple[int, int] | None


def steps(page: str, languages: tuple[str, ...] = ("bash",)) -> Iterator[Step]:
    """Yield the blocks of commands of a page."""
    blocks = list(BLOCK.finditer(page))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] in languages:
            shown = following is not None and not following[1] and not page[block.end() : following.start()].strip()
            yield Step(block[2], following.span(2) if shown and following is not None else None)


def run_steps(found: list[Step], folder: Path, **environment: str) -> list[str]:
    """Run blocks of commands in one shell; return what each printed, without the path of the folder."""
    commands = folder / ".commands"
    commands.mkdir(exist_ok=True)
    (commands / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (commands / "python").chmod(0o755)
    script = "".join(f"{step.commands}\nprintf '\\036'\n" for step in found)
    path = f"{commands}:{os.environ['PATH']}"
    with shell_command(commands / "raggs"):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return [each.strip("\n").replace(f"{folder}/", "") for each in done.stdout.split("\x1e")[:-1]]


def shortened(printed: str, shown: str) -> str:
    """Return as much of the output as a page shows."""
    lines = [line.rstrip() for line in printed.splitlines()]
    if shown.rstrip().endswith(REST):
        lines = [*lines[: len(shown.rstrip().splitlines()) - 1], REST]
    return "\n".join(lines) + "\n"


def stable(text: str) -> str:
    """Replace seconds and dates."""
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text


def rewritten(path: Path, folder: Path) -> str:
    """Return a page with the current output of its commands."""
    page = path.read_text(encoding="utf-8")
    found = list(steps(page))
    if path.name == "human-labels.md":
        first = run_steps(found[:1], folder)
        grade_plan(folder / "manual")
        printed = first + run_steps(found[1:], folder / "manual")
    else:
        printed = run_steps(found, folder)
    for step, output in reversed(list(zip(found, printed, strict=True))):
        if step.output is not None:
            start, end = step.output
            if stable(shortened(output, page[start:end])) != stable(page[start:end]):
                page = page[:start] + shortened(output, page[start:end]) + page[end:]
    return page


def prepared(name: str, folder: Path) -> Path:
    """Return a page and copy into the folder what it starts from."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("runs", "sweeps"))
    if name == "human-labels.md":
        run_steps(list(steps((START / "evaluate-your-retriever.md").read_text(encoding="utf-8"))), folder)
    return README if name == "README.md" else HOW_TO / name if name in GUIDES else START / name


def grade_plan(project: Path) -> None:
    """Grade the passages of a plan as an annotator would in the browser, less generously than the judge."""
    items = read_plan(project / "plan.jsonl")
    drawn = draw_of_plan(items)
    assert drawn is not None
    note_draw(project / "reviews", drawn)
    planned = {(item.qid, item.doc_id): place for place, item in enumerate(items)}

    def grade(record: MergeRecord, judged: int | None) -> int:
        strict = planned[record.qid, record.doc_id] % 3 == 0
        return max(1, (judged or 1) - 1) if strict else judged or 1

    speak(
        project / "runs" / "manual", project / "reviews", grade, reads=lambda each: (each.qid, each.doc_id) in planned
    )


TUTORIALS = (
    "first-golden-set.md",
    "evaluate-your-retriever.md",
    "human-labels.md",
    "compare-two-systems.md",
    "keep-a-set-current.md",
)


@pytest.mark.parametrize("name", TUTORIALS + GUIDES)
def test_a_tutorial_runs_and_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    path = prepared(name, tmp_path)
    page = path.read_text(encoding="utf-8")
    assert rewritten(path, tmp_path) == page, "python tests/test_tutorials.py writes the current output"


def test_the_model_of_the_tutorial_costs_less_than_its_budget(tmp_path: Path) -> None:
    from support.llm_server import KEY, LLMServer

    page = (prepared("evaluate-your-retriever.md", tmp_path)).read_text(encoding="utf-8")
    first, *_ = steps(page)
    paid = list(steps(page, ("sh",)))
    with LLMServer() as server:
        run_steps([first], tmp_path)
        forecast, built = run_steps(paid, tmp_path / "manual", OPENAI_API_KEY=KEY, RAGGS__LLM__API_BASE=server.url)
    cost = re.search(r"expected about \$([\d.]+), at most \$([\d.]+)", forecast)
    assert cost is not None and float(cost[1]) < float(cost[2]) < 2
    assert f"about ${cost[1]}" in page and f"${cost[2]}. The bound assumes that all pools are full" in " ".join(
        page.split()
    )
    assert "runs/manual" in built


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the corpus of the quickstart is this Python's own reference"
)
def test_the_result_in_the_readme_is_real(tmp_path: Path) -> None:
    prepared("README.md", tmp_path)
    assert readme(tmp_path) == README.read_text(encoding="utf-8")


def readme(folder: Path) -> str:
    """Return the README with the current output of its `raggs eval`."""
    page = README.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(page))
    command, shown = next((one, two) for one, two in pairwise(blocks) if "raggs eval" in one[2])
    words = next(line for line in command[2].splitlines() if line.startswith("raggs eval"))
    built = Step("raggs run --config examples/quickstart/raggs.yaml", None)
    *_, printed = run_steps([built, Step(words, None)], folder)
    return page[: shown.start(2)] + shortened(printed, shown[2]) + page[shown.end(2) :]


def test_extras_that_pages_install_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = set[str]()
    pages = [path for part in ("docs", "examples", "benchmarks") for path in (ROOT / part).rglob("*.md")]
    for path in [README, ROOT / "CONTRIBUTING.md", *pages]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pip install [\"']?raggs\b", text), f"{path.name}: raggs is on no package index"
        named |= {
            each for found in re.findall(r'pip install (?:-e )?"\.\[([\w,]+)\]"', text) for each in found.split(",")
        }
    assert named <= set(extras)
    described = set(re.findall(r"^\| `(\w+)` \|", (START / "install.md").read_text("utf-8"), re.MULTILINE))
    assert described == set(extras)


if __name__ == "__main__":
    for tutorial in sys.argv[1:] or [*TUTORIALS, "README.md"]:
        with tempfile.TemporaryDirectory() as scratch:
            page_path = prepared(tutorial, Path(scratch))
            current = (readme if page_path == README else partial(rewritten, page_path))(Path(scratch))
            page_path.write_text(current, encoding="utf-8")
