"""Print the size and the structure of the code as one table, with targets.

Usage: ``python benchmarks/house.py [FOLDER] [--commands]``. FOLDER is a package's folder; the default is ``raggs``.
`--commands` also runs four commands of that package and counts the functions that they call (see `callpaths.py`).

How the figures are counted:

- A code line holds code. Blank lines, comments and docstrings do not count.
- A line does work unless it belongs to an import, decorator, signature, class head, class field or constant of a
  module.
- An import counts anywhere, also inside of a function. Only imports for type checking do not count for cycles.
- If a package exports a name, a module that imports the name from the package is an importer of the module that
  defines it.
- A public class has no underscore at the start of its name. Two nested classes called `Config` may share that name.
- The length of a function is its code lines and one line for its head.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
import tomllib
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx
from callpaths import COMMANDS, count_commands

Function = ast.FunctionDef | ast.AsyncFunctionDef
WORDS = {"Any": r"\bAny\b", "cast(": r"\bcast\(", "type: ignore": r"type: ignore"}
SMALL = 50  # code lines below which a module is small

# Groups of packages with the code lines and modules to be reached. A module belongs to the first name of its dotted
# path that a group lists. The last group takes what no other one lists.
GROUPS: dict[str, tuple[int, int]] = {
    "cli": (3100, 22),
    "app": (5300, 36),
    "diagnosis diagnose probes noises perturbers": (5900, 44),
    "sweeps sweep decision correction": (4200, 26),
    "evaluation evaluate diffs reporting report": (3200, 26),
    "metrics stats agreement spans fusion pruning": (3100, 28),
    "manifests pipeline execution run": (2700, 20),
    "stages workspace questions prompts": (2700, 20),
    "ranking": (1250, 9),
    "llm": (2600, 14),
    "judges askers": (1900, 17),
    "golden readers exporters importers": (3000, 26),
    "corpora documents queries chunkers chunking": (2900, 28),
    "embedders rerankers retrievers rewriters localmodels": (1950, 22),
    "indexes elastic": (1650, 11),
    "reviewing reviews review": (1600, 11),
    "config testing base and the rest": (2230, 21),
}


@dataclass(frozen=True)
class Module:
    """One parsed file: its dotted name, its syntax tree and the numbers of its code lines."""

    name: str
    path: Path
    source: str
    tree: ast.Module
    lines: frozenset[int]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def is_private(self) -> bool:
        return any(part.startswith("_") and part != "__main__" for part in self.name.split("."))

    @cached_property
    def imports(self) -> Sequence[ast.Import | ast.ImportFrom]:
        """The imports at the start, without those for type checking."""
        return list(_imports(self.tree.body, late=False))

    @cached_property
    def late_imports(self) -> Sequence[ast.Import | ast.ImportFrom]:
        """The same with those inside of functions."""
        return list(_imports(self.tree.body, late=True))

    @cached_property
    def working(self) -> int:
        """The number of code lines that do work."""
        return len(self.lines - set(_declaring_lines(self.tree)))


def read_module(path: Path, root: Path) -> Module:
    """Parse one file of the package whose folder is `root`."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, path, source, tree, frozenset(code_lines(source) - set(_docstring_lines(tree))))


def code_lines(source: str) -> set[int]:
    """Return the numbers of the lines that hold a token other than a comment."""
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skip:
            found.update(range(token.start[0], token.end[0] + 1))
    return found


def _lines(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what directly below a node is no expression: only there are definitions and imports."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        found = getattr(node, name, ())
        if isinstance(found, list):  # the body of a lambda is an expression
            yield from found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and every statement inside it."""
    waiting = deque([node])
    while waiting:
        found = waiting.popleft()
        waiting.extend(statements(found))
        yield found


def _docstring_lines(tree: ast.AST) -> Iterator[int]:
    for node in walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node, clean=False) is not None:
            yield from _lines(node.body[0])


def _declaring_lines(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of imports, decorators, signatures, heads and fields of classes, and constants of modules."""
    for node in walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _lines(node)
        elif isinstance(node, ast.ClassDef | Function):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield from range(first, max(node.body[0].lineno, node.lineno + 1))
        if isinstance(node, ast.Module | ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.Assign | ast.AnnAssign):
                    yield from _lines(each)


def _imports(nodes: Iterable[ast.AST], late: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.orelse, late)
        elif late or isinstance(node, ast.If | ast.Try):
            yield from _imports(statements(node), late)


def imports(module: Module, late: bool) -> Iterator[tuple[str, str]]:
    """Yield the package and the name of each import, such as ("raggs.golden", "base").

    Args:
        late: also yield imports inside of functions.
    """

    for node in module.late_imports if late else module.imports:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        else:
            base = node.module or ""
            if node.level:
                stem = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
                base = ".".join([*stem[: len(stem) - node.level + 1], *([node.module] if node.module else [])])
            yield from ((base, alias.name) for alias in node.names)


def functions(tree: ast.AST, public: bool = True) -> Iterator[tuple[Function, bool]]:
    """Yield every function, and whether it is public. A function inside of a function is not public."""
    for node in statements(tree):
        if isinstance(node, Function):
            yield node, public and not node.name.startswith("_")
            yield from functions(node, False)
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, public and not node.name.startswith("_"))
        else:
            yield from functions(node, public)


def classes(tree: ast.AST, nested: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the name of every class, and whether it is inside of another class."""
    for node in statements(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, nested
        yield from classes(node, nested or isinstance(node, ast.ClassDef))


def is_stub(node: Function) -> bool:
    """Return whether a function has no body but a docstring or an ellipsis, as in a protocol."""
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in node.body)


def length(node: Function, lines: frozenset[int]) -> int:
    """Return the length of a function in lines."""
    first = node.body[0].lineno
    return sum(number in lines for number in range(first, (node.end_lineno or first) + 1)) + 1


@dataclass(frozen=True)
class House:
    """Figures of a package.

    Attributes:
        modules: each module, by its dotted name.
        sizes: all lines of each module, by its dotted name.
        lengths: lines and dotted name of each function.
        documented: for each public function whether it has a docstring.
        counts: lines that hold each of `WORDS`.
        imported: the modules of the package that each module imports anywhere, also inside of functions.
        cycles: groups of modules that import each other at module level.
        late_cycles: the same, if imports inside of functions count as well.
        importers: the modules that use each module.
    """

    modules: Mapping[str, Module]
    sizes: Mapping[str, int]
    lengths: Sequence[tuple[int, str]]
    documented: Sequence[bool]
    counts: Mapping[str, int]
    imported: Mapping[str, frozenset[str]]
    cycles: Sequence[frozenset[str]]
    late_cycles: Sequence[frozenset[str]]
    importers: Mapping[str, frozenset[str]]

    @property
    def mean(self) -> float:
        """The mean length of a function, in lines."""
        return sum(size for size, _ in self.lengths) / len(self.lengths)

    @property
    def working_share(self) -> float:
        """The share of code lines that do work."""
        return sum(each.working for each in self.modules.values()) / sum(len(m.lines) for m in self.modules.values())

    @property
    def entries(self) -> frozenset[str]:
        """The packages and modules at the top of the package."""
        return frozenset(name.split(".")[1] for name in self.modules if name.count(".") and "__" not in name)

    @property
    def shared_names(self) -> dict[str, int]:
        """Names that more than one class has, with the number of these classes."""
        found = (each for module in self.modules.values() for each in classes(module.tree))
        names = Counter(name for name, nested in found if not (nested and name == "Config"))
        return {name: count for name, count in names.items() if count > 1}

    @property
    def one_word_classes(self) -> int:
        """The number of one-word names that public classes have."""
        names = {name for module in self.modules.values() for name, nested in classes(module.tree) if not nested}
        return sum(bool(re.fullmatch("[A-Z][a-z0-9]*", name)) for name in names)

    @property
    def small(self) -> list[str]:
        """Modules with fewer code lines than `SMALL` that are neither a package's own nor that of a registered part."""
        sources = "\n".join(module.source for module in self.modules.values())
        registered = set(re.findall(r'"([\w.]+):\w+"', sources))
        return [
            name
            for name, module in self.modules.items()
            if len(module.lines) < SMALL and not module.is_package and name not in registered
        ]

    @property
    def single_importers(self) -> list[str]:
        """Modules that exactly one module uses."""
        return [name for name, found in self.importers.items() if len(found) == 1]

    @property
    def longest_chain(self) -> list[str]:
        """The longest chain of top entries, each of which imports the next one."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        for module, wanted in self.imported.items():
            pairs = ((module.split(".")[1:2], name.split(".")[1:2]) for name in wanted)
            graph.add_edges_from((one[0], other[0]) for one, other in pairs if one and other and one != other)
        merged = nx.condensation(graph)
        return ["+".join(sorted(merged.nodes[each]["members"])) for each in nx.dag_longest_path(merged)]


def look(root: Path) -> House:
    """Read every module below `root`, the folder of a package."""
    modules = {each.name: each for each in (read_module(path, root) for path in sorted(root.rglob("*.py")))}
    lengths: list[tuple[int, str]] = []
    documented: list[bool] = []
    counts = dict.fromkeys(WORDS, 0)
    for name, module in modules.items():
        for word, pattern in WORDS.items():
            if re.search(pattern, module.source):
                written = (line for line in module.source.splitlines() if not line.startswith("from typing import"))
                counts[word] += sum(bool(re.search(pattern, line)) for line in written)
        for node, public in functions(module.tree):
            lengths.append((length(node, module.lines), f"{name}.{node.name}"))
            if public and not module.is_private and not is_stub(node):
                documented.append(ast.get_docstring(node) is not None)
    imported = {name: frozenset(_targets(module, modules, late=True)) for name, module in modules.items()}
    at_start = {name: frozenset(_targets(module, modules, late=False)) for name, module in modules.items()}
    sizes = {name: module.source.count("\n") for name, module in modules.items()}
    return House(
        modules, sizes, lengths, documented, counts, imported, _cycles(at_start), _cycles(imported), _importers(modules)
    )


def _targets(module: Module, modules: Mapping[str, Module], late: bool) -> Iterator[str]:
    """Yield the modules of the package that a module imports."""
    for base, name in imports(module, late):
        target = f"{base}.{name}" if f"{base}.{name}" in modules else base
        if target in modules and target != module.name:
            yield target


def _cycles(graph: Mapping[str, frozenset[str]]) -> list[frozenset[str]]:
    edges: nx.DiGraph[str] = nx.DiGraph([(name, wanted) for name, every in graph.items() for wanted in every])
    return [frozenset(group) for group in nx.strongly_connected_components(edges) if len(group) > 1]


def _importers(modules: Mapping[str, Module]) -> dict[str, frozenset[str]]:
    exported = {
        (module.name, name): base
        for module in modules.values()
        if module.is_package
        for base, name in imports(module, late=False)
        if base in modules
    }
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for base, name in imports(module, late=True):
            target = exported.get((base, name), f"{base}.{name}" if f"{base}.{name}" in modules else base)
            if (
                target in modules
                and target != module.name
                and not (module.is_package and (module.name, name) in exported)
            ):
                found[target].add(module.name)
    return {name: frozenset(users) for name, users in found.items()}


def contract_layers(root: Path) -> int:
    """Return the number of layers that pyproject.toml declares, or 0 if there is no such file."""
    file = root.parent / "pyproject.toml"
    contracts = tomllib.loads(file.read_text())["tool"]["importlinter"]["contracts"] if file.is_file() else []
    return sum(
        len(each["layers"]) for each in contracts if each["type"] == "layers" and each["containers"] == ["raggs"]
    )


def group_of(module: str) -> str:
    """Return the group of `GROUPS` that a module belongs to."""
    by_package = {package: group for group in GROUPS for package in group.split()}
    parts = module.split(".")[1:]
    return next((by_package[part] for part in parts if part in by_package), list(GROUPS)[-1])


def size_rows(house: House) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of code lines and modules: per group of packages, and in total."""
    lines, modules = Counter[str](), Counter[str]()
    for name, module in house.modules.items():
        lines[group_of(name)] += len(module.lines)
        modules[group_of(name)] += 1
    for group, (most, files) in GROUPS.items():
        yield group, f"{lines[group]:,} in {modules[group]}", f"{most:,} in {files}"
    yield "total code lines, modules", f"{lines.total():,} in {modules.total()}", "52,000 in 380"


def shape_rows(house: House, root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of all other figures that nothing needs to run for."""
    shared, chain = house.shared_names, house.longest_chain
    over = [name for size, name in house.lengths if size > 60]
    yield "share of code lines that do work", f"{house.working_share:.1%}", "58%"
    yield "entries at the top of the package", f"{len(house.entries)}", "20"
    yield "layers of the import contract", f"{contract_layers(root)}", "10"
    yield "longest chain of packages", f"{len(chain)}", "10"
    yield "class names used twice, classes", f"{len(shared)}, {sum(shared.values())}", "10"
    yield "one-word names of public classes", f"{house.one_word_classes}", ""
    yield f"modules below {SMALL} code lines", f"{len(house.small)}", ""
    yield "modules with exactly one importer", f"{len(house.single_importers)}", ""
    yield "import cycles, with late imports", f"{len(house.cycles)}, {len(house.late_cycles)}", "0, 0"
    yield "modules over 700 lines", f"{sum(size > 700 for size in house.sizes.values())}", "0"
    yield "functions, mean lines, over 60 lines", f"{len(house.lengths):,}, {house.mean:.2f}, {len(over)}", "0 over 60"
    yield "public functions with a docstring", f"{sum(house.documented) / len(house.documented):.1%}", "85%"
    yield "lines with " + ", ".join(house.counts), ", ".join(str(count) for count in house.counts.values()), ""


def command_rows(root: Path) -> Iterator[tuple[str, str, str]]:
    """Run the commands and yield the functions, modules and packages that they call, and the depth of calls."""
    for command, found in count_commands(root).items():
        functions, modules, depth = COMMANDS[command].most
        yield f"{command}: functions, modules, packages, depth", str(found), f"{functions}, {modules}, -, {depth}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Print the size and the shape of a package as one table.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("raggs"), help="Folder of the package.")
    parser.add_argument(
        "--commands", action="store_true", help="Run four commands and count the functions that they call."
    )
    given = parser.parse_args()
    root = given.folder.resolve()
    house = look(root)
    print(f"{'figure':54} {'now':>18}  target")
    for name, now, target in [*size_rows(house), *shape_rows(house, root)]:
        print(f"{name:54} {now:>18}  {target}", flush=True)
    for name, now, target in command_rows(root) if given.commands else ():
        print(f"{name:54} {now:>18}  {target}", flush=True)
    for group in house.late_cycles:
        print(f"cycle: {', '.join(sorted(group))}")


if __name__ == "__main__":
    main()
