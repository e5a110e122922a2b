"""Generate the pages that repeat the code: artifacts, commands, configuration, glossary, and the list of metrics.

`mkdocs build` calls this through docs/sitehook.py. To print one page: ``python docs/generate.py configuration``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).parent))

from commandpage import commands
from configpage import configuration

from raggs.app.catalog import GLOSSARY_FILE, MeasureEntry, measure_entries
from raggs.base.artifacts import ARTIFACTS, Nugget, Placement, Reference, Span, Spending, artifact_file
from raggs.base.judge_health import (
    JudgeHealth,
    JudgingDepth,
    PairAgreement,
    PanelHealth,
    PanelMemberHealth,
    RankHealth,
    SelfAgreement,
    WilsonRate,
)
from raggs.llm.ledger import INTENTS_FILE as INTENTS
from raggs.llm.ledger import LEDGER_FILE as LEDGER
from raggs.llm.ledger import CallIntent, LedgerLine
from raggs.runs.manifests.models import LedgerMark, ManifestSeal, RunManifest, StageLock, StageOutput
from raggs.stages.questions.records import ARTIFACTS as QUESTION_ARTIFACTS
from raggs.stages.questions.records import Window

MEASURES = "<!-- list of measures: docs/generate.py makes it from the classes when the site is built -->\n"
HEAD = """# Artifacts

The files of a run directory and their fields. Each line of a JSONL file is one record in UTF-8. The files of finished
stages are sorted by query id. `raggs schema NAME` prints the JSON Schema of a file.
"""

QUESTIONS_HEAD = """# Artifacts of `raggs questions`

A run of `raggs questions` has these files, and a manifest and a ledger in the format described below. `written.json`
contains the sha256 of each file of questions that it wrote, by path."""

GLOSSARY_HEAD = """# Glossary

"""

INTENDED = """Requests that are about to be sent. The file exists while a process makes calls, and after it was killed.
The next run adds the remaining requests to the ledger with the outcome `unknown`. Such calls are possibly billed, and
count as spent."""
ACCOUNT = (
    "The ledger is append-only and is not an artifact: no stage depends on it. `raggs cost RUN` prints its totals."
)


def artifacts() -> str:
    """Return the page of artifacts, from their models."""
    parts = [HEAD]
    for name, model in ARTIFACTS.items():
        parts += [f"## {artifact_file(name)}", _text(model), _table(model)]
    parts.append(QUESTIONS_HEAD)
    for name, model in QUESTION_ARTIFACTS.items():
        parts += [f"## {artifact_file(name)}", _text(model), _table(model)]
    for part in (Reference, Nugget, Placement, Span, Window):
        parts += [f"### {part.__name__}", _text(part), _table(part)]
    parts += ["## manifest.json", _text(RunManifest), _table(RunManifest)]
    health = (
        JudgeHealth,
        JudgingDepth,
        SelfAgreement,
        PanelHealth,
        PanelMemberHealth,
        PairAgreement,
        RankHealth,
        WilsonRate,
    )
    for part in (StageLock, StageOutput, ManifestSeal, LedgerMark, Spending, *health):
        parts += [f"### {part.__name__}", _text(part), _table(part)]
    parts += [f"## {LEDGER}", _text(LedgerLine), ACCOUNT, _table(LedgerLine)]
    parts += [f"## {INTENTS}", INTENDED, _table(CallIntent)]
    return "\n\n".join(parts) + "\n"


def glossary() -> str:
    """Return the page of the glossary; metrics are in docs/reference/metrics.md."""
    return GLOSSARY_HEAD + GLOSSARY_FILE.read_text(encoding="utf-8")


def with_measures(text: str) -> str:
    """Return the page `text` with the list of measures in place of its mark."""
    head = "| metric | meaning | formula | range | better | parameters | ties | source |\n" + "|---" * 8 + "|\n"
    rows = "".join(_measure(entry) for _, entry in sorted(measure_entries().items()))
    return text.replace(MEASURES, head + rows)


def _measure(entry: MeasureEntry) -> str:
    low, high = ("" if bound is None else f"{bound:g}" for bound in entry.range)
    usual = ", ".join(key if value is None else f"{key}={value:g}" for key, value in entry.parameters.items())
    also = f" (also {', '.join(f'`{alias}`' for alias in entry.aliases)})" if entry.aliases else ""
    cells = [
        f"`{entry.written}`{also}",
        entry.summary + (" Grades 1 to 5 only." if entry.grades else ""),
        f"`{entry.formula}`",
        f"{low}..{high}",
        entry.better,
        usual,
        "yes" if entry.ties else "no",
        entry.source,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _text(model: type[BaseModel]) -> str:
    """Return the docstring of a record without the name of its file, as a sentence."""
    found = inspect.getdoc(model) or ""
    text = found.partition(": ")[2] or found
    return text[:1].upper() + text[1:]


def _table(model: type[BaseModel]) -> str:
    rows = ["| field | type | meaning |", "|---|---|---|"]
    rows += [f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in _fields(model)]
    return "\n".join(rows)


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    schema = model.model_json_schema()
    for name, field in schema["properties"].items():
        yield name, _kind(field), str(field.get("description", "")).replace("|", "\\|")


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_kind(option) for option in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "const" in field:
        return str(field["const"])
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"list of {_kind(field.get('items', {}))}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"map to {_kind(field['additionalProperties'])}"
    low, high = field.get("minimum"), field.get("maximum")
    bounds = (
        f" {low}"
        if low is not None and low == high
        else f" {low}..{high}"
        if high is not None
        else f" ≥ {low}"
        if low is not None
        else ""
    )
    return kind + bounds


PAGES = {"artifacts": artifacts, "commands": commands, "configuration": configuration, "glossary": glossary}


def generated_pages() -> dict[str, str]:
    """Return the text of each page that is made from the code, by its path."""
    return {f"docs/reference/{name}.md": make() for name, make in PAGES.items()}


if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]]())
