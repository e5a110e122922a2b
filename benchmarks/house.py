"""The shape of the code in figures: ``python benchmarks/house.py [FOLDER]``, one line each, nothing is run.

Cycles are counted among modules by their imports at module level (imports for type checking left out). A function's
length is its lines without docstring, comments and blank lines; a public function is one whose name, class and module
do not begin with an underscore.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

Function = ast.FunctionDef | ast.AsyncFunctionDef
WORDS = {"Any": r"\bAny\b", "cast(": r"\bcast\(", "type: ignore": r"type: ignore"}


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def top_imports(tree: ast.Module, name: str, package: bool) -> Iterator[str]:
    """Modules that importing this one imports, as written."""

    def walk(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in nodes:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                yield from walk(node.orelse)
            elif isinstance(node, ast.If | ast.Try):
                yield from walk(node.body)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                yield node

    for node in walk(tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                stem = name.split(".") if package else name.split(".")[:-1]
                base = ".".join(stem[: len(stem) - node.level + 1] + ([node.module] if node.module else []))
            for alias in node.names:
                yield f"{base}.{alias.name}"


def code_lines(source: str) -> set[int]:
    """Numbers of the lines that hold code."""
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skip:
            found.update(range(token.start[0], token.end[0] + 1))
    return found


def functions(tree: ast.AST, public: bool = True) -> Iterator[tuple[Function, bool]]:
    """Every function, and whether it is public. Functions inside of functions are counted, and are not public."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node, public and not node.name.startswith("_")
            yield from functions(node, False)
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, public and not node.name.startswith("_"))
        else:
            yield from functions(node, public)


def is_stub(node: Function) -> bool:
    """A protocol's method: its contract is its class's, or stands in its docstring."""
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in node.body)


def length(node: Function, lines: set[int]) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    first = body[0].lineno if body else node.lineno
    return sum(number in lines for number in range(first, (node.end_lineno or first) + 1)) + 1


@dataclass(frozen=True)
class House:
    """What was counted.

    Attributes:
        sizes: lines of each module, by its dotted name.
        lengths: lines and dotted name of each function.
        documented: for each public function whether it has a docstring.
        counts: lines that hold each of `WORDS`.
        imported: the modules of the package that each module imports anywhere, also inside of functions.
        cycles: groups of modules that import each other at module level.
    """

    sizes: Mapping[str, int]
    lengths: Sequence[tuple[int, str]]
    documented: Sequence[bool]
    counts: Mapping[str, int]
    imported: Mapping[str, frozenset[str]]
    cycles: Sequence[frozenset[str]]

    @property
    def mean(self) -> float:
        """The mean length of a function, in lines."""
        return sum(size for size, _ in self.lengths) / len(self.lengths)


def anywhere(tree: ast.AST, root: str, modules: Collection[str]) -> Iterator[str]:
    """Modules of `root` that a tree imports by `from ... import`, wherever that stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == root:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module


def look(root: Path) -> House:
    """Read every module below `root`, the folder of a package."""
    modules = {module_name(path, root): path for path in sorted(root.rglob("*.py"))}
    graph: nx.DiGraph[str] = nx.DiGraph()
    sizes: dict[str, int] = {}
    lengths: list[tuple[int, str]] = []
    documented: list[bool] = []
    counts = dict.fromkeys(WORDS, 0)
    imported: dict[str, frozenset[str]] = {}
    for name, path in modules.items():
        source = path.read_text(encoding="utf-8")
        tree, lines = ast.parse(source), code_lines(source)
        sizes[name] = source.count("\n")
        for word, pattern in WORDS.items():
            written = (line for line in source.splitlines() if not line.startswith("from typing import"))
            counts[word] += sum(bool(re.search(pattern, line)) for line in written)
        for wanted in top_imports(tree, name, path.name == "__init__.py"):
            target = wanted if wanted in modules else wanted.rpartition(".")[0]
            if target in modules and target != name:
                graph.add_edge(name, target)
        imported[name] = frozenset(anywhere(tree, root.name, modules))
        private_module = any(part.startswith("_") and part != "__main__" for part in name.split("."))
        for node, public in functions(tree):
            lengths.append((length(node, lines), f"{name}.{node.name}"))
            if public and not private_module and not is_stub(node):
                documented.append(ast.get_docstring(node) is not None)
    cycles = [frozenset(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    return House(sizes, lengths, documented, counts, imported, cycles)


def main() -> None:
    house = look(Path(sys.argv[1] if len(sys.argv) > 1 else "raggs").resolve())
    sizes, lengths, documented = house.sizes, house.lengths, house.documented
    print(f"modules {len(sizes)}, lines {sum(sizes.values()):,}, functions {len(lengths):,}")
    print(f"import cycles {len(house.cycles)}{''.join(f'; {sorted(group)}' for group in house.cycles)}")
    print("modules over 300 lines:", ", ".join(f"{k} {v}" for k, v in sizes.items() if v > 300) or "none")
    print(f"mean function {house.mean:.2f} lines; over 60:", ", ".join(w for s, w in lengths if s > 60) or "none")
    print(f"longest: {', '.join(f'{where} {size}' for size, where in sorted(lengths)[-3:])}")
    print("lines with " + ", ".join(f"{word!r}: {count}" for word, count in house.counts.items()))
    print(f"public functions with a docstring {sum(documented) / len(documented):.1%} of {len(documented):,}")
    for name in sorted(house.imported, key=lambda name: -len(house.imported[name]))[:5]:
        print(f"imports of raggs in {name}: {len(house.imported[name])}")


if __name__ == "__main__":
    main()
