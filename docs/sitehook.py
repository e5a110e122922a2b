"""Hooks of mkdocs: pages keep the paths and anchors that they have in the repository.

The README, the examples and the results are outside of docs/, and pages link to them by relative paths. So each page of
the site has its path from the root of the repository, and anchors follow GitHub's rule. A link to a source file or a
folder leads to a generated page with its contents. docs/generate.py makes the pages that repeat the code.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from generate import generated_pages, with_measures

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "examples/*.md",
    "examples/*/README.md",
    "benchmarks/*.md",
    "benchmarks/results/*.md",
    "skills/*/*.md",
)
PICTURES = ("docs/**/*.svg", "docs/**/*.png", "docs/site.css")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)\)")
CODE = re.compile(r"`[^`]+`")


def on_config(config: Any) -> None:
    """Name anchors as GitHub does, so that links work on both."""
    config["mdx_configs"]["toc"] = {**config["mdx_configs"].get("toc", {}), "slugify": slug}


def slug(heading: str, between: str) -> str:
    """Return the anchor of a heading: ``How to add …`` becomes ``how-to-add-``."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", between)


def on_files(files: Files, config: Any) -> Files:
    """Return the files of the theme and all pages, by their paths in the repository."""
    own = [each for each in files if each.src_dir != config["docs_dir"]]
    return Files([*own, *(File.generated(config, name, content=text) for name, text in contents().items())])


def contents() -> dict[str, str | bytes]:
    """Return all pages and pictures by path, with a page for each source file or folder that is linked."""
    found = {path: (ROOT / path).read_text(encoding="utf-8") for path in _paths(*PAGES)} | generated_pages()
    found["docs/reference/metrics.md"] = with_measures(found["docs/reference/metrics.md"])
    linked = {_target(path, link) for path, text in found.items() for link in LINK.findall(text)}
    shown = {path for path in linked if _code(path)}
    pages = {path: LINK.sub(lambda link, path=path: _led(path, link, shown), text) for path, text in found.items()}
    pictures = {path: (ROOT / path).read_bytes() for path in _paths(*PICTURES)}
    pages = {path: "\n".join(map(_bare_bars, text.split("\n"))) for path, text in pages.items()}
    return {**pages, **pictures, **{f"{path}.md": _listing(ROOT / path) for path in sorted(shown)}}


def _bare_bars(line: str) -> str:
    """Return a row of a table without the backslashes before bars in code, which GitHub needs and mkdocs would show."""
    return CODE.sub(lambda code: code[0].replace(r"\|", "|"), line) if line.startswith("|") else line


def _paths(*patterns: str) -> Iterator[str]:
    for pattern in patterns:
        yield from (path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob(pattern)))


def _target(page: str, link: str) -> str:
    return os.path.normpath(Path(page).parent / link)


def _code(path: str) -> bool:
    return (ROOT / path).exists() and Path(path).suffix not in (".md", ".svg", ".png")


def _led(page: str, link: re.Match[str], shown: set[str]) -> str:
    return f"]({link[1].rstrip('/')}.md)" if _target(page, link[1]) in shown else link[0]


def _listing(path: Path) -> str:
    if path.suffix == ".ipynb":
        return _notebook(json.loads(path.read_text(encoding="utf-8")))
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    parts = (f"## {each.name}\n\n````{each.suffix[1:]}\n{each.read_text(encoding='utf-8')}\n````" for each in files)
    return "\n\n".join((f"# {path.relative_to(ROOT).as_posix()}", *parts)) + "\n"


def _notebook(notebook: dict[str, Any]) -> str:
    """Return the cells of a notebook with their stored outputs: pictures, tables and printed text."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"````python\n{source}\n````")
        for output in cell.get("outputs", ()):
            data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
            if svg := data.get("image/svg+xml"):
                label = re.search(r'aria-label="([^"]*)"', svg)
                link = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
                parts.append(f'<img alt="{label[1] if label else ""}" src="{link}">')
            elif "text/html" in data:
                parts.append(data["text/html"])
            else:
                text = data.get("text/plain") or "".join(output.get("text", ()))
                parts.append(f"````text\n{text.rstrip()}\n````")
    return "\n\n".join(parts) + "\n"
