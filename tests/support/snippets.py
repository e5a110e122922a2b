"""The snippets of docs/how-to/import-export.md, run as they stand in a folder where the export is called `golden`."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "import-export.md"


def snippet(format_: str, number: int = 0) -> str:
    """The code under a format's heading; `number` counts its blocks from 0."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"\n## `{format_}`\n")
    section = rest.partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)[number]


def run_snippet(format_: str, number: int = 0, **given: object) -> dict[str, object]:
    """The names that a snippet leaves behind; the current folder holds `golden`."""
    names: dict[str, object] = dict(given)
    exec(compile(snippet(format_, number), f"{PAGE}: {format_}", "exec"), names)
    return names


def list_of(path: Path) -> dict[str, dict[str, float]]:
    """A TREC run as a dict, read without raggs."""
    found: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        qid, _, doc_id, _, score, _ = line.split()
        found.setdefault(qid, {})[doc_id] = float(score)
    return found
