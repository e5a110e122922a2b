"""The package has the layers of docs/architecture.md and stays below ceilings of size."""

from __future__ import annotations

import ast
import gc
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from raggs.app.housekeeping import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
RAGGS = ROOT / "raggs"
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = sorted(path.parent.name for path in RAGGS.glob("*/__init__.py"))
MODULE_LINES = 500  # code lines: without blanks, comments and docstrings
MOST = {
    "code lines": 70_100,
    "modules": 394,
    "class names used twice": 0,
    "import cycles with late imports": 0,
    "modules below 50 code lines": 43,
}
MODULES = sorted(path.stem for path in RAGGS.glob("*.py") if path.stem not in ("__init__", "__main__"))

sys.path.insert(0, str(ROOT / "benchmarks"))
try:
    from house import House, imports, look
finally:
    sys.path.remove(str(ROOT / "benchmarks"))


@cache
def house() -> House:
    gc.disable()  # none of the millions of nodes is garbage
    try:
        return look(RAGGS)
    finally:
        gc.enable()


@cache
def documented_layers() -> list[set[str]]:
    """The packages of each layer, top layer first, from the table | layer | `package` `package` | content |."""
    lines = PAGE.read_text(encoding="utf-8").split("| layer |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [set(re.findall(r"`(\w+)`", line.strip("|").split("|")[1])) for line in lines]


def contract_layers() -> list[set[str]]:
    """The same from the contract of import-linter."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    found = next(contract for contract in linter["contracts"] if contract.get("containers") == ["raggs"])
    return [set(re.split(r"\s*[|:]\s*", layer)) for layer in found["layers"]]


def test_the_page_and_the_contract_name_the_same_layers() -> None:
    assert documented_layers() == contract_layers(), (
        "the table of layers in docs/architecture.md and the contract in pyproject.toml must name the same packages in "
        "the same order, one row per layer"
    )
    named = [package for layer in documented_layers() for package in layer]
    assert sorted(named) == sorted({*PACKAGES, *MODULES})


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is_for(package: str) -> None:
    text = ast.get_docstring(ast.parse((RAGGS / package / "__init__.py").read_text(encoding="utf-8"))) or ""
    first = text.split("\n\n", 1)[0]
    assert len(first.split()) > 3 and first.rstrip().endswith((".", "?")), (
        f"raggs/{package}/__init__.py: its docstring opens with one sentence that says what the package is for"
    )


def test_the_package_stays_small() -> None:
    """Ceilings that only fall; `python benchmarks/house.py` prints the figures beside their targets."""
    found = house()
    assert len(found.entries) <= 20
    assert len(contract_layers()) <= 10
    figures = {
        "code lines": sum(len(module.lines) for module in found.modules.values()),
        "modules": len(found.modules),
        "class names used twice": len(found.shared_names),
        "import cycles with late imports": len(found.late_cycles),
        "modules below 50 code lines": len(found.small),
    }
    over = {name: (figure, MOST[name]) for name, figure in figures.items() if figure > MOST[name]}
    assert not over, f"figure and ceiling; find a module, class or function that should carry the addition: {over}"


def test_no_module_is_long() -> None:
    long = {name: len(module.lines) for name, module in house().modules.items() if len(module.lines) > MODULE_LINES}
    assert not long, f"modules over {MODULE_LINES} code lines; take something out of: {long}"


def test_functions_are_short() -> None:
    long = {name: size for size, name in house().lengths if size > 60}
    assert not long, f"functions over 60 lines: {long}"


def test_no_import_runs_in_a_circle() -> None:
    assert not house().cycles, f"modules that import each other: {[sorted(group) for group in house().cycles]}"


def test_most_public_functions_have_a_docstring() -> None:
    assert sum(house().documented) / len(house().documented) >= 0.85, "python benchmarks/house.py counts them"


def test_what_types_cannot_see_is_rare() -> None:
    most = {"Any": 149, "cast(": 0, "type: ignore": 5}  # what there is; they may only fall
    over = {word: count for word, count in house().counts.items() if count > most[word]}
    assert not over, f"more lines than {most}: {over}"


def test_the_path_of_one_query_is_short_and_exists() -> None:
    """The page's list of files from the YAML to rank.jsonl."""
    part = PAGE.read_text(encoding="utf-8").split("## The path of one query", 1)[1].split("\n## ", 1)[0]
    files = re.findall(r"^\d+\. `(raggs/[\w/]+\.py)`", part, re.MULTILINE)
    assert 1 < len(files) <= 8
    missing = [file for file in files if not (ROOT / file).is_file()]
    assert not missing, f"docs/architecture.md sends a reader to {missing}"


@cache
def imported_anywhere() -> set[str]:
    """Top packages that some module imports, by a statement or by `import_module`."""
    found: set[str] = set()
    for module in house().modules.values():
        found.update(base for base, _ in imports(module, late=True))
        for node in ast.walk(module.tree) if "import_module" in module.source else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
                found.update(each.value for each in node.args if isinstance(each, ast.Constant))
    return {name.partition(".")[0] for name in found}


def test_every_extra_that_the_doctor_names_is_used() -> None:
    """An extra without code behind it would be installed for nothing."""
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert EXTRAS.keys() <= offered.keys()
    unused = {extra: module for extra, module in EXTRAS.items() if module not in imported_anywhere()}
    assert not unused, f"doctor's EXTRAS names what nothing imports: {unused}"
