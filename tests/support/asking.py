"""A small folder of documents, and the road from it to questions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from raggs.base.artifacts import Query
from raggs.parts import queries
from raggs.parts.corpora.folder import FolderConfig, FolderCorpus
from raggs.parts.queries import format_of
from raggs.parts.workspace import open_queries

THINGS = (
    *("anchor", "beacon", "compass", "dredger", "engine", "ferry", "gangway"),
    *("harbour", "inlet", "jetty", "keel", "lantern", "mooring"),
)
USES = ("stopping ships", "guiding boats", "finding the way", "clearing channels", "moving vessels", "crossing rivers")


def document(number: int) -> str:
    """A Markdown text of headings, definitions and steps, about 1,500 characters."""
    lines = [f"# Manual {number}", ""]
    for step, thing in enumerate(THINGS):
        use = USES[(step + number) % len(USES)]
        lines += [
            f"## The {thing} of class {number}",
            "",
            f"The {thing} of class {number} is a device for {use} that weighs {number * 13 + step} kilograms.",
            f"To set up the {thing}, open valve {step + number} first, then turn the handle {step + 2} times.",
            "",
        ]
    return "\n".join(lines)


def make_documents(folder: Path, count: int = 6) -> Path:
    """A folder of that many documents, one of them in a folder of its own."""
    (folder / "deep").mkdir(parents=True)
    for number in range(count):
        path = folder / ("deep" if number == 0 else "") / f"manual{number}.md"
        path.write_text(document(number), encoding="utf-8")
    return folder


def make_config(folder: Path, count: int = 6, **sections: Any) -> Path:
    """Documents and a configuration that asks about them; its path."""
    make_documents(folder / "docs", count)
    settings: dict[str, Any] = {
        "name": "demo",
        "corpus": {"type": "folder", "path": "docs"},
        "queries": {"type": "jsonl", "path": "questions.jsonl"},
        "judge": {"judge": {"type": "reference"}},
        "rank": {"top": 5, "max_calls": 4},
        "questions": {"sample": {"n": 20, "window": 600}, "filter": {"excerpt": 0.1, "duplicate": 0.99}},
    }
    for name, value in sections.items():
        settings[name] = {**settings.get(name, {}), **value} if isinstance(value, dict) else value
    path = folder / "raggs.yaml"
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return path


def texts_of(folder: Path) -> dict[str, str]:
    """The documents of a folder by their names."""
    return {each.source: each.text for each in FolderCorpus(FolderConfig(path=folder)).documents()}


def misplaced(asked: Iterable[Query], folder: Path) -> list[str]:
    """Excerpts that do not stand where they say."""
    texts = texts_of(folder)
    return [
        f"{query.qid}: {reference.text}"
        for query in asked
        for reference in query.references
        if reference.span is None
        or texts[reference.span.source][reference.span.start : reference.span.end] != reference.text
    ]


def read_questions(path: Path) -> list[Query]:
    """The questions of a file, by its ending."""
    config = queries.REGISTRY.load(format_of(path)).Config.model_validate({"path": path})
    return list(open_queries(config).values())


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
