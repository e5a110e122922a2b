"""A sweep whose systems differ in how their documents are cut, with a golden run on one of the cuts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from raggs.app.run import run
from raggs.config.load import load_config
from support.project import WORDS, write_lines
from support.sweeping import SweepProject

SIZES = (40, 80)
GOLDEN = {"type": "recursive", "size": SIZES[0]}
PARAGRAPHS = 6


def paragraph(topic: int, number: int) -> str:
    """Two sentences that name their topic; the second holds the fact of its number."""
    word, other = WORDS[topic], WORDS[(topic + number) % 16]
    return (
        f"The {word} by the {other} is known in part {number} of the tale, where many walk slowly in the evening. "
        f"Fact {number} of the {word}: its colour in year {1900 + 16 * number + topic} was that of the {other}."
    )


def documents() -> dict[str, str]:
    return {
        f"{word}.md": f"# The {word}\n\n"
        + "\n\n".join(paragraph(topic, each) for each in range(1, PARAGRAPHS + 1))
        + "\n"
        for topic, word in enumerate(WORDS)
    }


def questions(count: int) -> list[dict[str, Any]]:
    found = []
    for topic in range(count):
        word, number = WORDS[topic], topic % PARAGRAPHS + 1
        fact = paragraph(topic, number).split(". ", 1)[1]
        source, text = f"{word}.md", documents()[f"{word}.md"]
        start = text.index(fact)
        span = {"source": source, "start": start, "end": start + len(fact)}
        references = [{"text": fact, "span": span}]
        found.append({"_id": f"q{topic:02}", "text": f"What is fact {number} of the {word}?", "references": references})
    return found


def make_cut_sweep(folder: Path, *, count: int = 6, **keys: Any) -> SweepProject:
    """Documents, a golden run over them cut at 40 tokens, and a sweep of that cut and of others."""
    (folder / "docs").mkdir(parents=True)
    for name, text in documents().items():
        (folder / "docs" / name).write_text(text)
    write_lines(folder / "queries.jsonl", questions(count))
    settings = {
        "name": "golden",
        "corpus": {"type": "folder", "path": "docs", "chunker": GOLDEN},
        "queries": {"type": "jsonl", "path": "queries.jsonl"},
        "retrieve": {"retrievers": [{"type": "bm25", "k": 20}]},
        "judge": {"judge": {"type": "reference"}},
        "prune": {"min_keep": 8, "max_keep": 16},
        "rank": {"top": 3, "max_calls": 4},
    }
    (folder / "raggs.yaml").write_text(yaml.safe_dump(settings))
    run(load_config(folder / "raggs.yaml"))
    project = SweepProject(folder)
    sweep = {
        "name": "stack",
        "golden": "runs/golden",
        "axes": {"chunker": [{"type": "recursive", "size": list(SIZES)}], "mode": ["lexical", "dense"], "k": [10, 20]},
        "cutoffs": [5, 10],
        "latency": {"passes": 1, "warmup": 0, "queries": 2},
        **keys,
    }
    project.config.write_text(yaml.safe_dump(sweep, sort_keys=False))
    return project
