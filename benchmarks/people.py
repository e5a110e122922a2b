"""What people's reading buys: scores corrected for what a judge gets wrong, and verdicts sure soonest.

    python benchmarks/people.py coverage FOLDER [--worlds 1000] [--draw questions] [--shares 0.2]
    python benchmarks/people.py impact FOLDER [--worlds 20]
    python benchmarks/people.py answers FOLDER [--worlds 30]

FOLDER holds a labelled collection: corpus.jsonl, queries.jsonl, qrels.trec. The tables are in results/people.md.
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
