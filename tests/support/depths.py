"""Made-up worlds for depth: questions that are easy or hard, whose lists are known rank by rank.

Of an easy question the relevant passages stand at ranks 1 to 5, of a hard one most of them beyond the base. Vectors say
so by themselves: no model is asked. In a world that helps hard questions show small margins; in one that does not,
margins have nothing to do with it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import yaml

from support.project import write_lines

QUESTIONS, PASSAGES = 60, 24
BASE, DEEP = 12, 24
EASY, HARD = (1, 2, 3, 4, 5), (3, 14, 16, 18, 20)

CODE = """
import math, re

SLOPES = {slopes}
COUNT = len(SLOPES)

def embed(texts):
    rows = []
    for text in texts:
        numbers = [int(found) for found in re.findall(r"\\d+", text)]
        row = [0.0] * (COUNT + 1)
        if "passage" in text:
            near = 0.9 - SLOPES[numbers[0]] * numbers[1]
            row[numbers[0]], row[COUNT] = near, math.sqrt(1 - near * near)
        else:
            row[numbers[0]] = 1.0
        rows.append(row)
    return rows

def rerank(query, passages):
    return [(8.0 if " at 1," in text else 1.0) if "good" in text else 0.0 for text in passages]  # sure of easy ones
"""


def hard_ones() -> frozenset[int]:
    """The questions that gain by depth."""
    return frozenset(random.Random(1).sample(range(QUESTIONS), QUESTIONS // 3))


def make_depths(folder: Path, module: str, *, helps: bool, **sections: Any) -> Path:
    """A run's configuration over such a world, with labels beside it; the configuration's path.

    Args:
        module: a name for the module of vectors and scores, which no other test has.
        helps: whether margins tell who is hard.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hard, shown = hard_ones(), hard_ones()
    if not helps:
        shown = frozenset(random.Random(2).sample(range(QUESTIONS), QUESTIONS // 3))
    slopes = [round((0.004 if number in shown else 0.02) + 0.00003 * number, 6) for number in range(QUESTIONS)]
    (folder / f"{module}.py").write_text(CODE.replace("{slopes}", repr(slopes)))
    good = {number: HARD if number in hard else EASY for number in range(QUESTIONS)}
    pairs = [(number, rank) for number in range(QUESTIONS) for rank in range(1, PASSAGES + 1)]
    write_lines(folder / "corpus.jsonl", [_passage(number, rank, rank in good[number]) for number, rank in pairs])
    asked = [{"_id": f"q{number:02}", "text": f"which is number {number}"} for number in range(QUESTIONS)]
    write_lines(folder / "queries.jsonl", asked)
    labels = [f"q{number:02} 0 p{number:02}-{rank:02} {5 if rank in good[number] else 1}\n" for number, rank in pairs]
    (folder / "qrels.txt").write_text("".join(labels))
    settings = {
        "name": "depths",
        "corpus": {"type": "jsonl", "path": "corpus.jsonl"},
        "queries": {"type": "jsonl", "path": "queries.jsonl"},
        "embed": {
            "embedder": {"type": "python", "callable": f"{module}:embed", "folder": ".", "dims": QUESTIONS + 1},
            "rewrite": {"type": "none"},
        },
        "retrieve": {"retrievers": [{"type": "dense"}]},
        "judge": {"judge": {"type": "qrels", "path": "qrels.txt"}},
        **sections,
    }
    (folder / "raggs.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    return folder / "raggs.yaml"


def _passage(number: int, rank: int, good: bool) -> dict[str, str]:
    word = "good" if good else "other"
    return {"_id": f"p{number:02}-{rank:02}", "title": "", "text": f"passage of {number} at {rank}, {word}"}
