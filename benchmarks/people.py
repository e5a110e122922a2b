"""Measure corrected scores, the choice of passages to label, and the mean of several answers of a judge.

    python benchmarks/people.py coverage FOLDER [--worlds 1000] [--draw queries] [--shares 0.2]
    python benchmarks/people.py impact FOLDER [--worlds 20]
    python benchmarks/people.py answers FOLDER [--worlds 30]

FOLDER is a labelled collection: corpus.jsonl, queries.jsonl, qrels.trec. The tables are in results/people.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import people_answers
import people_coverage
import people_impact

SECTIONS: dict[str, Callable[[Sequence[str]], None]] = {
    "coverage": people_coverage.main,
    "impact": people_impact.main,
    "answers": people_answers.main,
}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in SECTIONS:
        sys.exit(f"{__doc__}\nname a section: {', '.join(SECTIONS)}")
    SECTIONS[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
