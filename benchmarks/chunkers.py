"""Measure the processor time, elapsed time, speed and peak memory of each chunker on a folder of texts.

    python benchmarks/chunkers.py FOLDER [--pattern "*.md"]

The first call on a short text, which loads vocabularies and models, is not counted, and no vector is cached. Times
are those of the fastest of three passes. Peak memory is measured in a separate pass, without the texts.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

from raggs.parts import chunkers
from raggs.parts.chunkers import Chunk, Chunker, ChunkerContext, Document
from raggs.parts.workspace import Workspace

PASSES = 3

SETTINGS: tuple[dict[str, object], ...] = (
    {"type": "paragraphs"},
    {"type": "markdown"},
    {"type": "recursive", "size": 800, "unit": "characters"},
    {"type": "recursive", "size": 200},
    {"type": "recursive", "size": 200, "unit": "o200k"},
    {"type": "token", "size": 200},
    {"type": "sentence", "size": 200, "overlap": 70},
    {"type": "semantic"},
    {"type": "semantic", "max_size": 400},
    {"type": "cluster", "size": 200},
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pattern", default="*.md")
    options = parser.parse_args()
    documents = [
        Document(path.read_bytes().decode(), path.name) for path in sorted(options.folder.glob(options.pattern))
    ]
    megabytes = sum(len(document.text.encode()) for document in documents) / 1e6
    print(f"{len(documents)} documents, {megabytes:.2f} MB\n")
    print("| chunker | chunks | median characters | seconds | elapsed, s | MB/s | peak, MB |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        for settings in SETTINGS:
            config = chunkers.REGISTRY.load(str(settings["type"])).Config.model_validate(settings)
            chunker = chunkers.REGISTRY.of(config)(config, ChunkerContext(workspace.embedder))
            print(row(settings, chunker, documents, megabytes), flush=True)
        workspace.close()


def row(settings: dict[str, object], chunker: Chunker, documents: Sequence[Document], megabytes: float) -> str:
    """Return a row of the table."""
    list(chunker.chunk(Document("A short text. And more.")))
    times = []
    for _ in range(PASSES):
        began, clock = time.process_time(), time.perf_counter()
        found = chunks_of(chunker, documents)
        times.append((time.process_time() - began, time.perf_counter() - clock))
    seconds, clock = map(min, zip(*times, strict=True))
    size = statistics.median(len(chunk.text) for chunk in found)
    count = len(found)
    del found
    tracemalloc.start()
    chunks_of(chunker, documents)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    name = " ".join(str(value) for value in settings.values())
    return (
        f"| {name} | {count:,} | {size:,.0f} | {seconds:.2f} | {clock:.2f} | {megabytes / seconds:.1f} | {peak:.0f} |"
    )


def chunks_of(chunker: Chunker, documents: Sequence[Document]) -> list[Chunk]:
    return [chunk for document in documents for chunk in chunker.chunk(document)]


if __name__ == "__main__":
    main()
