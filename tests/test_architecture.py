"""The package has the layers of docs/project/architecture.md and stays below ceilings of size."""

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
PAGE = ROOT / "docs" / "project" / "architecture.md"
PACKAGES = sorted(path.parent.name for path in RAGGS.glob("*/__init__.py"))
MODULE_LINES = 500  # code lines: without blanks, comments and docstrings
MOST = {
    "code lines": 84_950,
    "modules": 442,  # room for a part or two
    "class names used twice": 0,
    "import cycles with late imports": 0,
    "modules below 50 code lines": 14,
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
        "the layers of docs/project/architecture.md and the contract in pyproject.toml must name the same packages in "
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
    assert not missing, f"docs/project/architecture.md sends a reader to {missing}"


# Participles, quantifiers, adverbs and nouns that say nothing alone. The list may only grow.
MEANINGLESS = frozenset(
    """
    about above abroad across again against ahead alike alone along always among apart around asked asking asks
    awaited away back bare because before beginning begins begun behind believed below beside best between beyond
    binds bins blunt blurred book booked both bought bound broken came capped care carried checked chosen climbed
    clipped closed closest closing company compared counted course crossed cure cut deaf dear dearer decoded deepest
    derived differing done doubted doubtful doubts drawn drops each earlier echo edge either elided elsewhere ended
    ending endings ends enough escalated every everything fair fall fallback fallen falls far farthest favour few
    fewest filled finer finished fired fires first fits fitted fitting flattest fold folded folds foreign form forms
    found free fresh full fused fuzz gets given gone good grouped grown guard guess guessed half halved hardly
    harmless hear heavy held here highest hints holding holds hole how hows idle incited inside instead joined
    judged judging kept known labelled lacking lacks ladder land largest later leading leak learn learned least
    leave less little loaded lone long longest look looking loop loose loosest lost lots low lowered lowest loyalty
    made mannered many marked masked meanings meant merged met missed missing mixed more most mostly moved moves
    mute named narrow nats near nearer needed needs never news next nobody none noted nothing now numbered odds off
    offered once one ones only open opened opening other others ours outer outside over own packed paired parted
    passed patience peers people picks placed plain pooled promise put quoted raw reach reached reaching reads ready
    regained remember replaced resampled rest room rooted rough same says scored seen settled several shared sharing
    sharpen short shortest shown silent slack slim slots slow slowest small some sound speaks spent spoken stakes
    stamp standardized standing stands stated step still stranger strangers stride substituted sums sure swept tail
    taken taking tell telling there those tick tied tight tilt timed tiny together told trailing tries trimmed trust
    tuned turn turned turns twice two unaided unanswered unheard unknown unlike unlikely unread unseen unsound
    unsure untaught usual verified visible voices wait waits walk wanted way ways whence who whole wide widest with
    within without witnesses word worded words worth written wrong
    """.split()  # noqa: SIM905 - one word per line would take 350 lines
)


def test_no_name_is_a_word_that_says_nothing() -> None:
    """A stranger finds modules, classes, functions and constants by the word for what they hold."""
    found = []
    for place, module in house().modules.items():
        names = [place.rpartition(".")[2]]
        for node in module.tree.body:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    names.append(name)
                case ast.Assign(targets=targets):
                    names += [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.append(name)
        found += [f"{place}: {name}" for name in names if name.strip("_").lower() in MEANINGLESS]
    assert not found, f"name what it holds or does: {found}"


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
