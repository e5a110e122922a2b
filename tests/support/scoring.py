"""A small evaluation on disk, and `raggs eval` in this process."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from click.testing import Result

from support.cli import invoke

QRELS = "q1 0 doc-3 5\nq1 0 doc-9 4\nq1 0 doc-1 2\nq2 0 doc-2 5\nq2 0 doc-7 1\nq3 0 doc-5 4\n"
RUN = (
    "q1 Q0 doc-7 1 5.0 a\nq1 Q0 doc-3 2 4.0 a\nq1 Q0 doc-1 3 3.0 a\nq1 Q0 doc-9 4 2.0 a\nq1 Q0 doc-2 5 1.0 a\n"
    "q2 Q0 doc-2 1 9.0 a\nq2 Q0 doc-8 2 8.0 a\nq3 Q0 doc-8 1 2.5 a\nq3 Q0 doc-5 2 1.5 a\n"
)
BETTER = RUN.replace("doc-7 1 5.0", "doc-7 1 0.5").replace(
    "q3 Q0 doc-8 1 2.5", "q3 Q0 doc-8 1 0.5"
)  # puts what is judged before what is not
SAMPLES = "samples:\n- id: s1\n  expected_output: [doc-3, doc-9]\n- id: s2\n  expected_output: {doc-1: 3, doc-2: 1}\n"
OUTPUTS = (
    '{"id": "s1", "output": {"retrieved": [{"id": "doc-7"}, {"id": "doc-3"}, {"id": "doc-1"}, {"id": "doc-9"}, '
    '{"id": "doc-2"}]}}\n{"id": "s2", "output": ["doc-2", "doc-1"]}\n'
)


def write(folder: Path, **files: str | bytes) -> None:
    """Files by name, with ``__`` for a dot; ``.gz`` is compressed."""
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" and isinstance(content, str) else data)


def raggs_eval(*arguments: object) -> Result:
    return invoke("eval", *arguments)


def scored(*arguments: object) -> dict[str, Any]:
    """What `raggs eval --json` prints, once it ended well."""
    result = raggs_eval(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def means(report: dict[str, Any], system: int = 0) -> dict[str, float]:
    """The means of a system by measure."""
    return {name: score["mean"] for name, score in report["systems"][system]["scores"].items()}
