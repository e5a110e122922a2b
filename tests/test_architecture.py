"""The house is what docs/architecture.md and the packages say: its floors, who may import whom, and its figures."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from raggs.app.doctor import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
RAGGS = ROOT / "raggs"
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = sorted(path.parent.name for path in RAGGS.glob("*/__init__.py"))
MODULE_LINES = 700  # with blanks, comments and docstrings: about 500 lines of code
MODULES = sorted(path.stem for path in RAGGS.glob("*.py") if path.stem not in ("__init__", "__main__"))

sys.path.insert(0, str(ROOT / "benchmarks"))
try:
    from house import House, look
finally:
    sys.path.remove(str(ROOT / "benchmarks"))


@cache
def house() -> House:
    return look(RAGGS)


@cache
def floors() -> dict[str, tuple[str, ...]]:
    """The rooms of each floor, top floor first, as the page's table says: | `floor` | `room` `room` | words |."""
    lines = PAGE.read_text(encoding="utf-8").split("| floor |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {floor.strip("`"): tuple(re.findall(r"`(\w+)`", rooms)) for floor, rooms, _ in rows}


def layers() -> list[tuple[str, ...]]:
    """The same as import-linter's contract has it."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    found = next(contract for contract in linter["contracts"] if contract["type"] == "layers")
    return [tuple(re.split(r"\s*[|:]\s*", layer)) for layer in found["layers"]]


def floor_of(room: str) -> str:
    return next(floor for floor, rooms in floors().items() if room in rooms)


def declared(package: str) -> set[str]:
    """The floors and rooms that the sentence ``Imports: ...`` of a package's docstring names."""
    text = ast.get_docstring(ast.parse((RAGGS / package / "__init__.py").read_text(encoding="utf-8"))) or ""
    sentence = re.search(r"^Imports: ([\w,\s]+)\.$", text, re.MULTILINE)
    assert sentence is not None, (
        f'raggs/{package}/__init__.py: its docstring needs a line of the form "Imports: libraries, llm, leaves." that '
        f"names floors or rooms of the table in docs/architecture.md (or: Imports: nothing.)"
    )
    return set(re.split(r",\s+", sentence[1])) - {"nothing"}


@pytest.mark.parametrize("room", [*PACKAGES, *MODULES])
def test_the_page_names_every_room(room: str) -> None:
    held = [floor for floor, rooms in floors().items() if room in rooms]
    assert len(held) == 1, (
        f"raggs/{room} stands on {held or 'no floor'}: write `{room}` into one row of the table of floors in "
        "docs/architecture.md, and into the same layer in pyproject.toml"
    )


def test_the_page_names_no_room_that_is_not_there() -> None:
    named = {room for rooms in floors().values() for room in rooms}
    assert named == {*PACKAGES, *MODULES}, "take what is gone out of the table of floors in docs/architecture.md"


def test_the_floors_are_the_layers_that_the_linter_holds() -> None:
    assert [set(rooms) for rooms in floors().values()] == [set(layer) for layer in layers()], (
        "the table of floors in docs/architecture.md and the layers in pyproject.toml must name the same rooms in the "
        "same order, one row a layer"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is_for(package: str) -> None:
    text = ast.get_docstring(ast.parse((RAGGS / package / "__init__.py").read_text(encoding="utf-8"))) or ""
    first = text.split("\n\n", 1)[0]
    assert len(first.split()) > 3 and first.rstrip().endswith((".", "?")), (
        f"raggs/{package}/__init__.py: its docstring opens with one sentence that says what the package is for"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_what_it_says(package: str) -> None:
    order = list(floors())
    lower = order[order.index(floor_of(package)) + 1 :]
    allowed = set()
    for name in declared(package):
        rooms = floors().get(name, (name,))
        assert all(floor_of(room) in lower for room in rooms), (
            f"raggs/{package}/__init__.py: Imports names {name!r}, which is not on a floor below"
        )
        allowed.update(rooms)
    used = {
        (wanted.split(".")[1], module)
        for module, every in house().imported.items()
        for wanted in every
        if module.split(".")[1:2] == [package] and wanted.count(".") and wanted.split(".")[1] != package
    }
    known = {*PACKAGES, *MODULES}
    odd = sorted(f"{room} (in {module})" for room, module in used if room in known and room not in allowed)
    assert not odd, f'raggs/{package}/__init__.py: add to "Imports: ...", or do not import: {", ".join(odd)}'


def test_no_module_is_long() -> None:
    long = {name: size for name, size in house().sizes.items() if size > MODULE_LINES}
    assert not long, f"modules over {MODULE_LINES} lines; take something out of: {long}"


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


def test_a_way_through_the_house_is_short_and_there() -> None:
    """The page's list of files from the YAML to rank.jsonl."""
    part = PAGE.read_text(encoding="utf-8").split("## The way of one question", 1)[1].split("\n## ", 1)[0]
    files = re.findall(r"^\d+\. `(raggs/[\w/]+\.py)`", part, re.MULTILINE)
    assert 1 < len(files) <= 8
    missing = [file for file in files if not (ROOT / file).is_file()]
    assert not missing, f"docs/architecture.md sends a reader to {missing}"


@cache
def imported_anywhere() -> set[str]:
    """Top packages that some module imports, by a statement or by `import_module`."""
    found: set[str] = set()
    for path in RAGGS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
                found.update(each.value for each in node.args if isinstance(each, ast.Constant))
    return {name.partition(".")[0] for name in found}


def test_every_extra_that_the_doctor_names_is_used() -> None:
    """An extra without code behind it would be installed for nothing."""
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert EXTRAS.keys() <= offered.keys()
    unused = {extra: module for extra, module in EXTRAS.items() if module not in imported_anywhere()}
    assert not unused, f"doctor's EXTRAS names what nothing imports: {unused}"
