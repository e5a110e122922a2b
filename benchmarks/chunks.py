"""Compare chunk evaluation with Chroma's report, and the time of scoring with plain loops.

    python benchmarks/chunks.py rows FOLDER [--model models/minilm] [--row 1] [--out DIR]
    python benchmarks/chunks.py scoring FOLDER

FOLDER has the report's data: `corpora/*.md` and `questions.csv`. `rows` chunks the documents as in five rows of the
report's table, and scores as its code does (`--reference-compat`): number of chunks, and precision_omega, which does
not depend on embeddings. With --model (see minilm.py) it also computes recall, precision and IoU at 5, in about 15
minutes for all rows. The sizes differ from those in the report's table. "200" of TokenText is 222 tokens of cl100k.
Recursive counts WordPieces with the two marks that the tokenizer adds around each piece, and two more for each join.

`scoring` measures the processor time of scoring without embedding, and that of plain loops over queries, excerpts and
chunks. Both are repeated with four times the queries and chunks. It also measures the peak memory of raggs.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.cache import Cache
from raggs.chunking.documents import ChunkedDocuments, Documents, chunk_documents, read_documents
from raggs.chunking.questions import ReferencedQuestions, place_questions
from raggs.metrics.spans import ChunkTargets, DocumentOffsets, ReferenceColumns, Scores, Spans, score, summary
from raggs.metrics.spans import LengthScale as Lengths
from raggs.parts import queries
from raggs.parts.chunkers import Chunker
from raggs.parts.chunkers.recursive import RecursiveChunker
from raggs.parts.chunkers.sentence import TokenChunker
from raggs.parts.embedders.onnx import OnnxEmbedder
from raggs.parts.embedders.vector_cache import KeptEmbedder
from raggs.parts.indexes.exact import search
from raggs.parts.workspace import open_queries

K = 5
TOKENS = 256  # input limit of the model


@dataclass(frozen=True)
class Row:
    """A row of the report's table: recall, precision, omega and IoU in %, printed and reproduced by other code."""

    name: str
    size: int
    overlap: int
    chunks: int
    printed: tuple[float, float, float, float]
    reproduced: tuple[float, float, float, float]

    def chunker(self, tokenizer: Path | None) -> Chunker | None:
        """Return the chunker of the report, or None if it needs the model's tokenizer and there is none."""
        if self.name.startswith("TokenText"):
            return TokenChunker(TokenChunker.Config(size=self.size, overlap=self.overlap))
        if tokenizer is None:
            return None
        settings = {"size": self.size, "overlap": self.overlap, "tokenizer": tokenizer, "special_tokens": True}
        return RecursiveChunker(RecursiveChunker.Config.model_validate(settings))


ROWS = (
    Row("TokenText 200/0", 222, 0, 1481, (76.6, 4.1, 19.1, 4.1), (77.01, 4.12, 19.07, 4.10)),
    Row("TokenText 250/0", 278, 0, 1182, (77.1, 3.3, 16.4, 3.3), (77.12, 3.33, 16.41, 3.32)),
    Row("TokenText 250/125", 278, 139, 2359, (82.4, 3.6, 11.4, 3.5), (83.43, 3.59, 11.35, 3.58)),
    Row("Recursive 200/0", 200, 0, 2523, (75.7, 6.5, 31.2, 6.5), (76.11, 6.52, 31.16, 6.48)),
    Row("Recursive 250/125", 250, 125, 2542, (78.7, 4.9, 21.9, 4.9), (78.73, 4.95, 21.86, 4.93)),
)
SHOWN = ("recall", "precision", "precision_omega", "iou")
WITHIN = (0.25, 0.05, 0.05, 0.05)  # tolerated differences from the reproduced figures


@dataclass(frozen=True)
class Data:
    """The report's documents and questions."""

    documents: Documents
    asked: ReferencedQuestions
    line: DocumentOffsets

    @classmethod
    def of(cls, folder: Path) -> Data:
        documents, path = read_documents(folder / "corpora"), folder / "questions.csv"
        reader = queries.REGISTRY.load("csv").Config.model_validate({"path": path})
        return cls(
            documents, place_questions(open_queries(reader), documents, path), DocumentOffsets.of(documents.lengths)
        )

    def target(self, found: ChunkedDocuments) -> ChunkTargets:
        return ChunkTargets(self.asked.questions, found.spans, self.line, Lengths.characters(), compat=True)


def rows(data: Data, model: Path | None, out: Path, wanted: Sequence[int]) -> bool:
    """Print the rows and return whether all of them agree."""
    print("| row | chunks | recall | precision | omega | IoU | within |\n|---|---|---|---|---|---|---|")
    good = True
    for row in (ROWS[number - 1] for number in wanted):
        chunker = row.chunker(model / "tokenizer.json" if model else None)
        if chunker is None:
            print(f"| {row.name} | needs --model for its tokenizer | | | | | |")
            continue
        found = chunk_documents(chunker, data.documents, compat=True)
        target = data.target(found)
        if model is None or not (model / "model.onnx").is_file():
            values = [None, None, 100 * summary(target.omega).mean, None]
        else:
            scores = score(target, retrieve(data, found, model, out), K)
            values = [100 * summary(scores.values[name]).mean for name in SHOWN]
        within = len(found.texts) == row.chunks and all(
            value is None or abs(value - aim) <= tolerance
            for value, aim, tolerance in zip(values, row.reproduced, WITHIN, strict=True)
        )
        good = good and within
        cells = [
            f"{'–' if value is None else f'{value:.2f}'} ({aim}; {printed})"
            for value, aim, printed in zip(values, row.reproduced, row.printed, strict=True)
        ]
        counted = f"{len(found.texts):,} ({row.chunks:,})"
        print(f"| {row.name} | {counted} | {' | '.join(cells)} | {'yes' if within else 'NO'} |", flush=True)
    print("\nin parentheses: reproduced from the report's data by other code; printed in the report")
    return good


def retrieve(data: Data, found: ChunkedDocuments, model: Path, out: Path) -> Ints:
    """Return the best chunks of each query by exact cosine."""
    embedder = OnnxEmbedder(OnnxEmbedder.Config(path=model, max_length=TOKENS), None)
    kept = KeptEmbedder(embedder, Cache(out))
    vectors, asked = kept.embed(found.texts), kept.embed(data.asked.texts)
    return search(vectors, np.arange(len(vectors), dtype=np.int32), asked, K).positions


# --- time -------------------------------------------------------------------------------------------------------

Range = tuple[int, int]


@dataclass(frozen=True)
class World:
    """Queries, chunks and retrieved chunks, as columns and as the lists for plain loops."""

    target: ChunkTargets
    retrieved: Ints
    references: list[list[tuple[int, int, int]]]
    chunks: list[tuple[int, int, int]]


def world(data: Data, found: ChunkedDocuments, times: int) -> World:
    """Return the data `times` times: copies of the documents, with the queries for each copy."""
    number = len(data.documents.texts)
    own, spans = data.asked.questions, found.spans
    shift = np.repeat(np.arange(times) * number, len(own.references))
    references = Spans(
        np.tile(own.references.document, times) + shift,
        np.tile(own.references.start, times),
        np.tile(own.references.end, times),
    )
    question = np.tile(own.question, times) + np.repeat(np.arange(times) * own.count, len(own.references))
    chunks = Spans(
        np.tile(spans.document, times) + np.repeat(np.arange(times) * number, len(spans)),
        np.tile(spans.start, times),
        np.tile(spans.end, times),
    )
    line = DocumentOffsets.of(data.documents.lengths * times)
    target = ChunkTargets(
        ReferenceColumns(own.count * times, references, question), chunks, line, Lengths.characters(), compat=True
    )
    retrieved = np.random.default_rng(1).integers(len(chunks), size=(own.count * times, K))
    listed: list[list[tuple[int, int, int]]] = [[] for _ in range(own.count * times)]
    for asked, *place in zip(question.tolist(), *map(np.ndarray.tolist, columns(references)), strict=True):
        listed[asked].append((place[0], place[1], place[2]))
    return World(target, retrieved, listed, list(zip(*map(np.ndarray.tolist, columns(chunks)), strict=True)))


def columns(spans: Spans) -> tuple[Ints, Ints, Ints]:
    return spans.document, spans.start, spans.end


def intersect(one: Range, other: Range) -> Range | None:
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start <= end else None


def merged(ranges: list[Range]) -> list[Range]:
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def without(ranges: list[Range], gone: Range) -> list[Range]:
    found: list[Range] = []
    for start, end in ranges:
        if end <= gone[0] or start >= gone[1]:
            found.append((start, end))
            continue
        if start < gone[0]:
            found.append((start, gone[0]))
        if end > gone[1]:
            found.append((gone[1], end))
    return found


def total(ranges: list[Range]) -> int:
    return sum(end - start for start, end in ranges)


def loops(given: World) -> list[list[float]]:
    """Return recall, precision, IoU and omega of each query, by comparing each chunk with each excerpt."""
    values = []
    for references, retrieved in zip(given.references, given.retrieved.tolist(), strict=True):
        held, unused, shown = _passed(references, given.chunks)
        omega = total(held) / total(merged([*shown, *unused]))
        held, unused, _ = _passed(references, [given.chunks[row] for row in retrieved])
        read = sum(given.chunks[row][2] - given.chunks[row][1] for row in retrieved)
        wanted, number = sum(end - start for _, start, end in references), total(held)
        values.append([number / wanted, number / read, number / (read + total(unused)), omega])
    return values


def _passed(
    references: list[tuple[int, int, int]], chunks: list[tuple[int, int, int]]
) -> tuple[list[Range], list[Range], list[Range]]:
    """Return the ranges of the excerpts inside and outside of the chunks, and the chunks that overlap them."""
    held: list[Range] = []
    unused, shown = [(start, end) for _, start, end in references], []
    for document, start, end in chunks:
        for other, first, last in references:
            if document == other and (both := intersect((start, end), (first, last))) is not None:
                unused = without(unused, both)
                held = merged([both, *held])
                shown = merged([(start, end), *shown])
    return held, unused, shown


def fresh(given: World) -> Scores:
    """Return the scores without cached values."""
    made = given.target
    return score(ChunkTargets(made.questions, made.chunks, made.line, made.ruler, made.compat), given.retrieved, K)


def best(work: Callable[[], object], turns: int) -> float:
    """Return the lowest processor time of several passes in milliseconds."""
    taken = []
    for _ in range(turns):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return 1000 * min(taken)


def peak(given: World) -> float:
    """Return the peak memory of scoring in megabytes, without its input."""
    tracemalloc.start()
    fresh(given)
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most


def scoring(data: Data) -> None:
    """Print the times."""
    found = chunk_documents(TokenChunker(TokenChunker.Config(size=222)), data.documents, compat=True)
    worlds = [world(data, found, times) for times in (1, 4)]
    print("| queries | chunks | raggs, ms | raggs, MB | loops, ms | ratio |\n|---|---|---|---|---|---|")
    for given in worlds:
        ours, theirs = best(lambda given=given: fresh(given), 9), best(lambda given=given: loops(given), 2)
        sizes = f"{given.target.questions.count:,} | {len(given.chunks):,}"
        print(f"| {sizes} | {ours:.1f} | {peak(given):.2f} | {theirs:.1f} | {theirs / ours:.0f} |", flush=True)
    scores = fresh(worlds[0]).values
    mine = np.stack([scores[name] for name in ("recall", "precision", "iou", "precision_omega")], axis=1)
    print(f"\nlargest difference of a value: {np.abs(mine - np.array(loops(worlds[0]))).max():.1e}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rows", "scoring"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--row", type=int, action="append", choices=range(1, len(ROWS) + 1))
    parser.add_argument("--out", type=Path, default=Path("chunks-vectors"), help="folder of cached vectors")
    given = parser.parse_args()
    data = Data.of(given.folder)
    if given.what == "scoring":
        scoring(data)
        return 0
    return 0 if rows(data, given.model, given.out, given.row or range(1, len(ROWS) + 1)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
