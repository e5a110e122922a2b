"""Compare vector indexes with exact search, and with the library that they use.

    python benchmarks/ann.py vectors [--rows 500000]    synthetic vectors around centres: recall, times, bytes
    python benchmarks/ann.py labels FOLDER              folder with corpus.jsonl, queries.jsonl, qrels.trec
    python benchmarks/ann.py robustness [FOLDER]        distribution of the losses at equal mean recall

`vectors` searches one query at a time on one thread with k = 50. Recall is the share of the exact 10, 20 and 30
nearest vectors among those of an index. Milliseconds are medians over alternating passes, as elapsed time and as
processor time, because other work slows the former. The lines below the table compare with faiss and an HNSW graph of
the same settings at k = 10. `labels` embeds texts with WordLlama and measures quality by the human labels. Settings
are the defaults, except for --construction.

`robustness` runs `raggs diagnose index` on many vectors. They are synthetic (--rows), or come from the texts below a
folder (.md, .txt, .jsonl). Texts are divided into windows of --words words, each --step words after the previous one,
and embedded with WordLlama. 2,000 of them are queries and not in the indexes. --questions is a file with one more
query per line.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
from ir_measures import R, nDCG

from raggs.app.diagnose import diagnose
from raggs.base.artifacts import Passage
from raggs.base.cache import Cache
from raggs.base.document import markdown
from raggs.base.precision import PrecisionSettings
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.indexes import REGISTRY, IndexFacts, OpenIndex
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.vectors import VectorIndex, open_vectors

DIMS, K, QUERIES, PASSES = 256, 50, 1000, 5
CUTOFFS = (10, 20, 30)
CENTRES, INNER, BASES, BLOCK = 2000, 24, 64, 20_000
INDEXES: Mapping[str, dict[str, object]] = {
    "flat": {"type": "flat"},
    "hnsw f32": {"type": "hnsw"},
    "hnsw f32 not rescored": {"type": "hnsw", "reorder": False},
    "hnsw int8": {"type": "hnsw", "quantize": "int8"},
    "hnsw int8 not rescored": {"type": "hnsw", "quantize": "int8", "reorder": False},
    "ivf": {"type": "ivf"},
    "ivf nprobe 64": {"type": "ivf", "nprobe": 64},
    "ivf pq 64": {"type": "ivf", "pq": 64, "nprobe": 64},
    "ivf pq 64 not rescored": {"type": "ivf", "pq": 64, "nprobe": 64, "reorder": 0},
}
GOOD = 3  # lowest grade that counts as relevant for recall on Cranfield


@dataclass(frozen=True)
class Timed:
    """Milliseconds per query: elapsed and processor time."""

    wall: float
    cpu: float


# --- vectors ---


def made_up(rows: int, seed: int) -> np.ndarray:
    """Return unit vectors around centres of very unequal size, shape (rows, DIMS)."""
    centres = np.random.default_rng(1).standard_normal((CENTRES, DIMS), dtype=np.float32) / DIMS**0.5
    bases = np.random.default_rng(2).standard_normal((BASES, INNER, DIMS), dtype=np.float32) / DIMS**0.5
    rng, found = np.random.default_rng([3, seed]), np.empty((rows, DIMS), np.float32)
    for start in range(0, rows, BLOCK):
        part = found[start : start + BLOCK]
        chosen = rng.zipf(1.3, len(part)) % CENTRES
        part[:] = centres[chosen] + 0.05 * rng.standard_normal(part.shape, dtype=np.float32) / DIMS**0.5
        inner = 0.25 * rng.standard_normal((len(part), INNER), dtype=np.float32)
        for base in range(BASES):
            mine = chosen % BASES == base
            part[mine] += inner[mine] @ bases[base]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return found


def opened(store: PassageStore, folder: Path, matrix: np.ndarray) -> VectorIndex:
    """Return the matrix as the vectors of a corpus."""
    return open_vectors(Cache(folder), "made-up/1", DIMS, store, lambda texts: matrix[[int(text) for text in texts]])


def index_of(settings: Mapping[str, object], vectors: VectorIndex) -> OpenIndex:
    adapter = REGISTRY.load(str(settings["type"]))
    return adapter(adapter.Config(**settings)).open(vectors, None, PrecisionSettings())


def one_by_one(search: Callable[[np.ndarray], object], queries: np.ndarray) -> Timed:
    """Return the median milliseconds per query, searched one at a time."""
    walls, cpus = [], []
    for row in range(len(queries)):
        wall, cpu = time.perf_counter(), time.process_time()
        search(queries[row : row + 1])
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
    return Timed(1000 * statistics.median(walls), 1000 * statistics.median(cpus))


def take_turns(searches: Mapping[str, Callable[[np.ndarray], object]], queries: np.ndarray) -> dict[str, Timed]:
    """Return the median pass of each search. Each pass runs all searches once, and the first pass is not counted."""
    passes: dict[str, list[Timed]] = {name: [] for name in searches}
    for number in range(PASSES + 1):
        for name, search in searches.items():
            # Exact search takes tens of milliseconds for any query.
            found = one_by_one(search, queries[:50] if name == "flat" else queries)
            if number:
                passes[name].append(found)
    return {
        name: Timed(statistics.median(each.wall for each in found), statistics.median(each.cpu for each in found))
        for name, found in passes.items()
    }


def recall(found: np.ndarray, truth: np.ndarray, k: int) -> float:
    """Return the share of the first k of `truth` among the first k of `found`, as the mean over queries."""
    pairs = zip(found[:, :k].tolist(), truth[:, :k].tolist(), strict=True)
    return float(np.mean([len({*mine} & {*known}) / k for mine, known in pairs]))


def run_vectors(rows: int, folder: Path, construction: int, names: Sequence[str], own_graph: bool) -> None:
    matrix, queries = made_up(rows, 0), made_up(QUERIES, 1)
    path = folder / "passages.sqlite"
    source = (Passage(doc_id=f"d{number:07}", text=str(number)) for number in range(rows))
    with PassageStore.open(path) if path.exists() else PassageStore.build(path, source) as store:
        vectors = opened(store, folder, matrix)
        graph = {"ef_construction": construction}
        indexes = {
            name: index_of(settings | (graph if settings["type"] == "hnsw" else {}), vectors)
            for name, settings in INDEXES.items()
            if name in names
        }
        truth = indexes["flat"].search(queries, K).positions
        times = take_turns({name: _searching(index, K) for name, index in indexes.items()}, queries)
        print(f"{rows:,} vectors of {DIMS} dimensions, {QUERIES:,} queries one at a time, k = {K}.\n")
        print(
            "| index | recall@10 | recall@20 | recall@30 | ms per query | CPU ms | CPU time relative to flat "
            "| build, s | MB |"
            "\n|---|" + "---:|" * 8
        )
        for name, index in indexes.items():
            found = index.search(queries, K).positions
            shares = [recall(found, truth, k) for k in CUTOFFS]
            print(row(name, index.facts, shares, times[name], times["flat"]), flush=True)
        kept = max(
            vectors.cache.folder.glob("hnsw-*/index"), key=lambda file: file.stat().st_size
        )  # the graph of floats
        compare_with_faiss(indexes["hnsw f32"], built(matrix, construction) if own_graph else kept, queries, truth)


def _searching(index: OpenIndex, k: int) -> Callable[[np.ndarray], object]:
    return lambda query: index.search(query, k)


def row(name: str, facts: IndexFacts, shares: Sequence[float], took: Timed, flat: Timed) -> str:
    """Return a row of the table."""
    cells = [f"{share:.4f}" for share in shares]
    return (
        f"| {name} | {' | '.join(cells)} | {took.wall:.3f} | {took.cpu:.3f} | {took.cpu / flat.cpu - 1:+.1%} "
        f"| {facts.build_s:.0f} | {facts.bytes / 1e6:,.0f} |"
    )


def built(matrix: np.ndarray, construction: int) -> Any:
    """Build a graph with faiss only, from all rows at once."""
    import faiss  # raggs has set it to one thread

    began = time.process_time()
    graph = faiss.index_factory(DIMS, f"HNSW{REGISTRY.load('hnsw').Config().m}", faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = construction
    graph.add(matrix)
    print(f"\nfaiss builds the graph in {time.process_time() - began:.0f} s of CPU")
    return graph


def compare_with_faiss(index: OpenIndex, graph: Path | Any, queries: np.ndarray, truth: np.ndarray) -> None:
    """Compare with faiss only, which keeps the graph in memory and does not compute exact scores.

    Args:
        graph: path of a graph of raggs, or a graph of faiss.
    """
    import faiss

    bare = faiss.read_index(str(graph)) if isinstance(graph, Path) else graph
    bare.hnsw.efSearch = REGISTRY.load("hnsw").Config().ef
    times = take_turns({"raggs": _searching(index, 10), "faiss": lambda query: bare.search(query, 10)}, queries)
    mine, theirs = (
        recall(found, truth, 10) for found in (index.search(queries, 10).positions, bare.search(queries, 10)[1])
    )
    print("\n| HNSW, k = 10 | raggs | faiss only | ratio |\n|---|---:|---:|---:|")
    print(f"| recall@10 | {mine:.4f} | {theirs:.4f} | |")
    for name, field in (("elapsed", "wall"), ("CPU", "cpu")):
        ours, its = getattr(times["raggs"], field), getattr(times["faiss"], field)
        rates = f"{1000 / ours:,.0f} | {1000 / its:,.0f}"
        print(f"| queries per second, one at a time, {name} | {rates} | {its / ours:.3f} |")
    ours, its = all_at_once(lambda: index.search(queries, 10)), all_at_once(lambda: bare.search(queries, 10))
    rates = f"{len(queries) / ours:,.0f} | {len(queries) / its:,.0f}"
    print(f"| queries per second, {len(queries):,} in one call, CPU | {rates} | {its / ours:.3f} |")


def all_at_once(search: Callable[[], object]) -> float:
    """Return the median seconds of processor time over a few passes."""
    took = []
    for _ in range(PASSES):
        began = time.process_time()
        search()
        took.append(time.process_time() - began)
    return statistics.median(took)


# --- labels ---


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def run_labels(folder: Path) -> None:
    embedder, measures = WordLlamaEmbedder(WordLlamaEmbedder.Config()), [nDCG @ 10, nDCG @ 30, R(rel=GOOD) @ 30]
    questions = list(rows_of(folder / "queries.jsonl"))
    qrels = list(ir_measures.read_trec_qrels(str(folder / "qrels.trec")))
    passages = (
        Passage(doc_id=each["_id"], title=each.get("title", ""), text=each["text"] or "-")
        for each in rows_of(folder / "corpus.jsonl")
    )
    print("| index | " + " | ".join(map(str, measures)) + " | ms per query |\n|---|" + "---:|" * (len(measures) + 1))
    with (
        tempfile.TemporaryDirectory() as name,
        PassageStore.build(Path(name) / "p.sqlite", passages) as store,
    ):
        vectors = open_vectors(Cache(Path(name)), embedder.identity, embedder.dims, store, embedder.embed)
        queries = embedder.embed([each["text"] for each in questions])
        indexes = {each: index_of(settings, vectors) for each, settings in INDEXES.items()}
        times = take_turns({each: _searching(index, K) for each, index in indexes.items()}, queries)
        flat: dict[object, float] = {}
        for each, index in indexes.items():
            found = index.search(queries, K)
            run = [
                ir_measures.ScoredDoc(question["_id"], store.ids_at([place])[0], float(score))
                for question, places, scores in zip(questions, found.positions, found.scores, strict=True)
                for place, score in zip(places.tolist(), scores, strict=True)
                if place >= 0
            ]
            values = ir_measures.calc_aggregate(measures, qrels, run)
            flat = flat or values
            cells = [f"{values[measure]:.4f} ({values[measure] / flat[measure] - 1:+.1%})" for measure in measures]
            print(f"| {each} | {' | '.join(cells)} | {times[each].wall:.3f} |", flush=True)


# --- robustness ---

CURVES = ("hnsw:ef_construction={construction}", "ivf:lists=1024", "ivf:lists=1024:pq=64")
ASKED = 2000


def windows(folder: Path, words: int, step: int) -> list[str]:
    """Return all distinct windows over the words of the files below a folder."""
    found: dict[str, None] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".md", ".txt"):
            texts = [path.read_text(encoding="utf-8")]
        elif path.suffix == ".jsonl":
            texts = [each.get("text") or "" for each in rows_of(path)]
        else:
            continue
        for text in texts:
            split = text.split()
            found |= dict.fromkeys(" ".join(split[at : at + words]) for at in range(0, len(split), step))
    return [text for text in found if len(text.split()) == words]


def run_robustness(options: argparse.Namespace, folder: Path) -> None:
    embedder, asked = WordLlamaEmbedder(WordLlamaEmbedder.Config()), options.questions
    if options.folder is None:
        matrix, what = made_up(options.rows, 0), "synthetic vectors"
    else:
        matrix = embedder.embed(windows(options.folder, options.words, options.step))
        what = f"windows of {options.words} words, {options.step} words apart, embedded with WordLlama"
    np.save(folder / "vectors.npy", matrix)
    if asked is not None:
        np.save(folder / "queries.npy", embedder.embed(asked.read_text(encoding="utf-8").splitlines()))
    began, used = time.perf_counter(), time.process_time()
    result = diagnose(
        "index",
        out=folder,
        indexes=[each.format(construction=options.construction) for each in CURVES],
        held_out=ASKED,
        k=[10],
        timed=300,
        vectors=folder / "vectors.npy",
        queries=None if asked is None else folder / "queries.npy",
    )
    took, cpu = time.perf_counter() - began, time.process_time() - used
    print(f"{len(matrix):,} {what}; {took:.0f} s, {cpu:.0f} s of CPU")
    shown = tuple(each for each in result.document.sections if each.title.startswith(("At", "Minus", "Share by")))
    print(markdown(replace(result.document, sections=shown, notes=()), glossary=False))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("vectors", "labels", "robustness"))
    parser.add_argument("folder", type=Path, nargs="?", help="labelled collection, or folder of texts")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--construction", type=int, default=200, help="ef_construction of the graphs")
    parser.add_argument("--indexes", default=",".join(INDEXES), help="names of indexes, separated by commas")
    parser.add_argument(
        "--same-graph", action="store_true", help="faiss reads the graph of raggs and does not build one"
    )
    parser.add_argument("--keep", type=Path, help="folder in which vectors and indexes are kept")
    parser.add_argument("--words", type=int, default=12, help="words per window")
    parser.add_argument("--step", type=int, default=4, help="words between the starts of two windows")
    parser.add_argument("--questions", type=Path, help="file with one query per line")
    options = parser.parse_args(arguments)
    if options.what == "robustness":
        with tempfile.TemporaryDirectory() as name:
            place = options.keep or Path(name)
            place.mkdir(parents=True, exist_ok=True)
            run_robustness(options, place)
        return
    if options.what == "labels":
        if options.folder is None:
            parser.error("labels needs a folder")
        run_labels(options.folder)
        return
    names, own = options.indexes.split(","), not options.same_graph
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        run_vectors(options.rows, options.keep, options.construction, names, own)
    else:
        with tempfile.TemporaryDirectory() as name:
            run_vectors(options.rows, Path(name), options.construction, names, own)


if __name__ == "__main__":
    main()
