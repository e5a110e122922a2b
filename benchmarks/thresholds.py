"""Find the thresholds with which an embedder keeps the queries that Chroma's report kept.

    python benchmarks/thresholds.py QUESTIONS.csv [--embedder wordllama]

Each of its 472 queries passed the report's thresholds with text-embedding-3-large. The thresholds of another embedder
should keep nearly all of them: the 5th percentile of the lowest cosine with an excerpt, and the 99th percentile of
the highest cosine with an earlier query. The program also prints the cosines of queries with excerpts of other
queries, which should be dropped.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from raggs.chunking.models import parse_spec
from raggs.parts import embedders, queries
from raggs.parts.embedders import EmbedderConfig
from raggs.parts.queries import format_of
from raggs.parts.workspace import Workspace, open_queries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--embedder", default="wordllama")
    options = parser.parse_args()
    config = queries.REGISTRY.load(format_of(options.questions)).Config.model_validate({"path": options.questions})
    found = list(open_queries(config).values())
    with tempfile.TemporaryDirectory() as folder:
        embedder = Workspace(Path(folder)).embedder(parse_spec(options.embedder, embedders.REGISTRY, EmbedderConfig))
        questions = embedder.embed_queries([query.text for query in found])
        excerpts = embedder.embed([reference.text for query in found for reference in query.references])
    owner = np.array([number for number, query in enumerate(found) for _ in query.references])
    cosines = questions @ excerpts.T
    own = owner[None, :] == np.arange(len(found))[:, None]
    lowest = np.where(own, cosines, np.inf).min(axis=1)
    nearest = np.tril(questions @ questions.T, -1)[1:].max(axis=1)
    print_percentiles("lowest cosine with an excerpt", lowest, (1, 5, 10, 50))
    print_percentiles("cosine with excerpts of others", cosines[~own], (50, 90, 99))
    print_percentiles("highest cosine with an earlier question", nearest, (50, 90, 95, 99))


def print_percentiles(what: str, values: np.ndarray, percentiles: tuple[int, ...]) -> None:
    print(what + ": " + ", ".join(f"p{each} {np.percentile(values, each):.3f}" for each in percentiles))


if __name__ == "__main__":
    main()
