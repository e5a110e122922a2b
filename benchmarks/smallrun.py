"""A run of made-up texts for the benchmarks that count calls: pools of `POOL` passages, of which none is pruned.

What a benchmark varies it gives as sections of the configuration; the rest is the same for all.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

POOL = 20  # passages of a query
MODEL = "openai/bench"


def texts(count: int, words: int, seed: int) -> list[str]:
    """Texts of made-up words, and English ones between them.

    Without these the trained identifier of languages would be asked, whose model takes half a second to load.
    """
    known = [f"w{number}" for number in range(400)] + 20 * ["what", "is", "the", "use", "of"]
    draw = random.Random(seed)
    return [" ".join(draw.choices(known, k=words)) for _ in range(count)]


def lay_out(folder: Path, corpus: list[str], questions: list[str], **sections: object) -> Path:
    """The configuration's path, with its inputs beside it; `sections` take the place of these."""
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
