"""The work and the reference of each part in `parts.py`. Preparation is not measured.

A reference is the same work on half of the input, or what the standard library needs for the same text. Inputs are
synthetic with fixed seeds. Files are written to an empty folder.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
import sys
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.judging import judge, passage, query, written

from raggs.base.cache import Cache
from raggs.base.text import clean_passage
from raggs.base.trec import read_scored
from raggs.llm.ledger import CallLedger, LedgerLine
from raggs.llm.messages import Answerer
from raggs.parts import chunkers
from raggs.parts.chunkers import Document
from raggs.parts.chunkers.paragraphs import pack_paragraphs
from raggs.parts.chunkers.recursive import RecursiveChunker
from raggs.parts.indexes.exact import search
from raggs.parts.indexes.lexical import Parameters, open_lexical
from raggs.parts.indexes.passages import PassageStore
from raggs.ranking.fusion import group_duplicates

WORD = re.compile(r"\w+")

Work = Callable[[], object]


class Pair(NamedTuple):
    work: Work
    reference: Work


def grown(make: Callable[[int], Work], size: int, times: int = 2) -> Pair:
    """Return the work on `times` the input, with the work on an input of `size` as reference."""
    return Pair(make(times * size), make(size))


def prose(count: int, words: int, seed: int = 1) -> list[str]:
    """Return texts of this many words, in which few words are frequent."""
    rng = random.Random(seed)
    return [" ".join(f"w{int(rng.paretovariate(0.7))}" for _ in range(words)) for _ in range(count)]


def finding_words(texts: Sequence[str]) -> Work:
    return lambda: [WORD.findall(text.casefold()) for text in texts]


def grading(words: int) -> Work:
    """Grade fifty passages against an excerpt of a third of their length, with a new judge."""
    question = query(references=[{"text": prose(1, words // 3, seed=2)[0]}])
    passages = [passage(f"d{number}", text) for number, text in enumerate(prose(50, words))]

    async def work() -> None:
        who = judge("reference")
        for each in passages:
            await who.grade(question, each)

    return lambda: asyncio.run(work())


def grading_versus_words() -> Pair:
    return Pair(grading(200), finding_words(prose(50, 200)))


def ordering(folder: Path) -> Pair:
    """Draw noisy orders of five. The reference seeds `random.Random` with the same names, draws and sorts."""
    who = judge("qrels", path=written(folder / "qrels.txt", "q1 0 d1 5"), beta=3.0)
    batches = [[passage(f"x{number + step}", "x") for step in range(5)] for number in range(200)]
    names = [f"q1 {' '.join(each.doc_id for each in batch)}" for batch in batches]

    async def work() -> None:
        for batch in batches:
            await who.order(query("q1"), batch)

    def reference() -> None:
        for name in names:
            draw = random.Random(name)
            sorted(draw.expovariate(1.0) for _ in range(5))

    return Pair(lambda: asyncio.run(work()), reference)


def run_file(folder: Path, lines: int) -> Path:
    """Write a run with a thousand hits per query."""
    rows = (f"q{row // 1000} Q0 doc{row % 1000} {row % 1000} {30 - row % 1000 / 100} tag" for row in range(lines))
    return written(folder / f"{lines}.trec", *rows)


def reading(folder: Path, lines: int) -> Work:
    path = run_file(folder, lines)
    return lambda: sum(1 for _ in read_scored(path))


def reading_versus_split(folder: Path) -> Pair:
    path = run_file(folder, 20_000)

    def reference() -> None:
        with path.open(encoding="utf-8") as file:
            for line in file:
                float(line.split()[4])

    return Pair(reading(folder, 20_000), reference)


def booking(folder: Path) -> Pair:
    """Count a cached answer in the ledger. The reference writes a line of JSON."""
    ledger = CallLedger(folder / "ledger.jsonl", "judge")
    account = ledger.account("q1")
    line = LedgerLine(time="2026-01-01T00:00:00Z", stage="judge", qid="q1", model="m", task="grade", outcome="cached")
    plain, answerer = line.model_dump(mode="json"), Answerer.of("m", {})
    return Pair(lambda: ledger.hit(account, "m", "grade", 0.25, answerer), lambda: json.dumps(plain))


def pool(count: int) -> list[str]:
    """Group passages of 200 words. Three in ten repeat another one except for the last three words."""
    copies = 3 * count // 10
    base = prose(count - copies, 200)
    return base + [text.rsplit(" ", 3)[0] + " x y z" for text in base[:copies]]


def grouping(count: int) -> Work:
    texts = pool(count)
    return lambda: group_duplicates(texts, 0.95)


def grouping_versus_words() -> Pair:
    return Pair(grouping(100), finding_words(pool(100)))


def searching(rows: int, asked: int = 8) -> Work:
    """Search the ten nearest vectors of 256 dimensions."""
    vectors = np.random.default_rng(1).standard_normal((rows, 256), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ranks, queries = np.arange(rows, dtype=np.int32), vectors[:asked]
    return lambda: search(vectors, ranks, queries, 10)


def searching_equals(rows: int) -> Work:
    """Search equal vectors, which all tie with the tenth."""
    vectors = np.full((rows, 256), 1 / 16, dtype=np.float32)
    return lambda: search(vectors, np.arange(rows, dtype=np.int32), vectors[:8], 10)


def searching_versus_itself(asked: int) -> Pair:
    """Return the same search as work and reference, for the ratio of thread times."""
    work = searching(16_384, asked)
    return Pair(work, work)


def store(folder: Path, count: int) -> Path:
    path = folder / f"{count}.sqlite"
    PassageStore.build(path, (passage(f"d{n}", text) for n, text in enumerate(prose(count, 40)))).close()
    return path


def opening_store(folder: Path, count: int) -> Work:
    path = store(folder, count)
    return lambda: PassageStore.open(path).close()


def opening_versus_sqlite(folder: Path) -> Pair:
    path = store(folder, 2000)

    def reference() -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("SELECT * FROM meta").fetchall()

    return Pair(lambda: PassageStore.open(path).close(), reference)


def opening_index(folder: Path) -> Pair:
    """Open an existing BM25 index. The reference reads its corpus as lines of JSON."""
    path = store(folder, 2000)
    with PassageStore.open(path) as passages:
        rows = [json.dumps({"_id": each.doc_id, "text": each.text}) for each in passages]

    def work() -> None:
        with PassageStore.open(path) as passages:
            open_lexical(Cache(folder), passages, Parameters(k1=1.2, b=0.75, language="en"))

    work()  # builds the index
    return Pair(work, lambda: [json.loads(row) for row in rows])


def packing(unit: str, after: str = "") -> Pair:
    """Divide a text that repeats one unit into paragraphs."""

    def make(size: int) -> Work:
        source = unit * size + after
        return lambda: pack_paragraphs(source)

    return grown(make, 25_000)


def chunking(kind: str, unit: str) -> Pair:
    """Chunk a text that repeats one unit, with a chunker that counts characters."""
    adapter = chunkers.REGISTRY.load(kind)
    chunker = adapter(adapter.Config.model_validate({"type": kind, "unit": "characters"}))

    def make(size: int) -> Work:
        document = Document(unit * (size // len(unit)))
        return lambda: list(chunker.chunk(document))

    return grown(make, 50_000)


def chunking_versus_words() -> Pair:
    text = "\n\n".join(". ".join(prose(4, 20, seed)) for seed in range(50))
    chunker = RecursiveChunker(RecursiveChunker.Config(size=800, unit="characters"))
    return Pair(lambda: list(chunker.chunk(Document(text))), finding_words([text]))


def packing_versus_words() -> Pair:
    text = "\n\n".join(". ".join(prose(4, 20, seed)) for seed in range(50))
    return Pair(lambda: pack_paragraphs(text), finding_words([text]))


def cleaning_versus_words(accent: str, raw: bool = False) -> Pair:
    """Clean passages of 200 words in several lines with accents. The reference finds their words."""
    texts = [text.replace(" w1 ", f" {accent}\n") for text in prose(50, 200)]
    texts = [unicodedata.normalize("NFD", text) for text in texts] if raw else texts
    return Pair(lambda: [clean_passage(text) for text in texts], finding_words(texts))
