"""A run of synthetic texts for benchmarks that count calls, with pools of `POOL` passages that are not pruned.

A benchmark passes the sections of the configuration that it varies.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

POOL = 20  # passages per query
MODEL = "openai/bench"


def texts(count: int, words: int, seed: int) -> list[str]:
    """Return texts of synthetic and some English words.

    Without English words, raggs would load its language model, which takes half a second.
    """
    known = [f"w{number}" for number in range(400)] + 20 * ["what", "is", "the", "use", "of"]
    draw = random.Random(seed)
    return [" ".join(draw.choices(known, k=words)) for _ in range(count)]


def lay_out(folder: Path, corpus: list[str], questions: list[str], **sections: object) -> Path:
    """Write the inputs and a configuration, in which `sections` replace the defaults. Return its path."""
    for file, rows in (("corpus.jsonl", corpus), ("queries.jsonl", questions)):
        lines = (json.dumps({"_id": f"{file[0]}{at:03}", "text": text}) + "\n" for at, text in enumerate(rows))
        (folder / file).write_text("".join(lines))
    settings = {
        "name": "bench",
        "corpus": {"type": "jsonl", "path": "corpus.jsonl"},
        "queries": {"type": "jsonl", "path": "queries.jsonl"},
        "retrieve": {"retrievers": [{"type": "bm25", "k": POOL}]},
        "merge": {"depth": POOL},
        "judge": {"judge": {"type": "litellm", "model": MODEL}},
        "prune": {"min_keep": POOL, "max_keep": POOL},
    }
    config = folder / "raggs.yaml"
    config.write_text(json.dumps({**settings, **sections}))
    return config
