"""Measure golden sets that are updated: agreement of carried labels, and calls compared with a set from scratch.

    python benchmarks/living.py --data FOLDER --out benchmarks/results/living.md     two hours on one core
    python benchmarks/living.py --data FOLDER --histories 1 --questions 8            a minute

FOLDER has `chunking/` and `cranfield/`. In each history (`living_worlds.py`), raggs makes a golden set of the first
version of the documents. It updates the set to the second version with `raggs update`, and makes another set of the
second version from scratch with the same judge. The tables compare the labels of both sets on the passages with a
carried label, the judge's calls, and the order of eight systems by both sets. ± is the standard error over histories.

The judge's error depends on the text. *Same judge*: an unchanged text gets the same grade, so only edited passages
can differ. *Independent judge*: a judge with independent errors grades the same passages. The agreement of two such
judges (test-retest) is an upper limit for any labels.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from living_worlds import CURRENT, Judge, World, change, chunking_world, cranfield_world

from raggs.app.run import run
from raggs.app.update import planned
from raggs.base.artifacts import JudgeRecord, MergeRecord, RetrieveRecord
from raggs.base.hashing import generator
from raggs.config.load import LoadedConfig, load_config
from raggs.golden.judgments import Judgments
from raggs.golden.sources import open_golden
from raggs.metrics.columns import Run
from raggs.metrics.evaluate import measure_hits
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measures
from raggs.ranking.fusion import fuse, make_fusion
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.stats.agreement import cohen_kappa
from raggs.stats.order_agreement import kendall_tau_b, tau_ap

FOLDER = Path(__file__).resolve().parent
CHURNS = (0.05, 0.2, 0.5)
ADDED = 0.1
CORPORA = ("state_of_the_union", "wikitexts", "chatlogs", "finance")
MEASURE = "ndcg@10"
RETEST = 999  # seed of the judge with independent errors
JUDGE = {"type": "python", "callable": "living_worlds:grade", "order": "living_worlds:order", "folder": str(FOLDER)}
Lists = dict[str, list[tuple[str, float]]]


@dataclass(frozen=True)
class Outcome:
    """Figures of one history; shares are between 0 and 1."""

    carried: float  # share of the new version's labels that were carried over
    agree: float
    kappa: float
    edited: float  # agreement of the labels of edited passages that were carried over; NaN without any
    edited_count: float  # their share of the carried labels
    retest: float  # agreement of two judges with independent errors on the carried passages
    retest_kappa: float
    other: float  # agreement of the carried labels with such a judge
    grades: float  # calls for grades, as a share of a full run
    orders: float
    calls: float
    tau: float
    gap: float  # largest difference of a system's score by both sets
    order: float  # AP correlation of the updated order with the true one, mean over queries
    full_order: float  # of the order from scratch


def config(folder: Path, name: str, documents: Mapping[str, str], world: World) -> LoadedConfig:
    """Write the files of a run, and return its configuration."""
    chunked = any(len(text) > 1200 for text in documents.values())
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    if chunked:
        for title, text in documents.items():
            (place / f"{title}.md").write_text(text)
        corpus = {"type": "folder", "path": str(place), "chunker": {"type": "recursive", "size": 150}}
    else:
        rows = [json.dumps({"_id": title, "text": text or "-"}) for title, text in sorted(documents.items())]
        (place / "corpus.jsonl").write_text("\n".join(rows) + "\n")
        corpus = {"type": "jsonl", "path": str(place / "corpus.jsonl")}
    asked = [json.dumps({"_id": qid, "text": text, "language": "en"}) for qid, text in world.queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked) + "\n")
    settings = {
        "name": name,
        "workspace": str(folder / "runs"),
        "corpus": corpus,
        "queries": {"type": "jsonl", "path": str(folder / "queries.jsonl")},
        "embed": {"embedder": {"type": "wordllama"}},
        "retrieve": {"retrievers": [{"type": "bm25", "k": 30}, {"type": "dense", "k": 30}]},
        "judge": {"judge": JUDGE},
        "prune": {"min_keep": 15, "max_keep": 25},
        "rank": {"top": 10, "max_calls": 40},
    }
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(settings))
    return load_config(file)


def play(world: World, churn: float, seed: int, folder: Path) -> Outcome:
    """Make the first version, update it, and judge the second version from scratch."""
    history = change(world, churn, ADDED, seed)
    judge = Judge(world, seed)
    CURRENT[:] = [judge]
    run(config(folder, "old", history.before, world))
    judge.calls = {"grade": 0, "order": 0}
    with planned(folder / "runs" / "old", config(folder, "new", history.after, world), run_id="updated") as update:
        update.run()
    spent, judge.calls = judge.calls, {"grade": 0, "order": 0}
    run(config(folder, "new", history.after, world))
    return compare(open_run(folder / "runs" / "updated"), open_run(folder / "runs" / "new"), judge, spent)


def compare(updated: OpenedRun, full: OpenedRun, judge: Judge, spent: Mapping[str, int]) -> Outcome:
    again = {(each.qid, each.doc_id): each.grade for each in full.typed("judge", JudgeRecord)}
    texts = {(each.qid, each.doc_id): each.passage.content for each in updated.typed("merge", MergeRecord)}
    labels = [each for each in updated.typed("judge", JudgeRecord) if each.duplicate_of is None and each.grade]
    carried = [each for each in labels if each.carried]
    old = np.array([each.grade for each in carried])
    new = np.array([again[each.qid, each.doc_id] for each in carried])
    edited = np.array([each.carried.how in ("kept", "irrelevant") for each in carried if each.carried])
    draws = [
        np.array([judge.graded(each.qid, texts[each.qid, each.doc_id], seed) for each in carried])
        for seed in (RETEST, RETEST + 1)
    ]
    scores = [system_scores(each.folder, updated) for each in (updated, full)]
    total = sum(judge.calls.values())
    return Outcome(
        carried=len(carried) / len(labels),
        agree=float((old == new).mean()),
        kappa=kappa(old, new),
        edited=float((old == new)[edited].mean()) if edited.any() else math.nan,
        edited_count=float(edited.mean()),
        retest=float((draws[0] == draws[1]).mean()),
        retest_kappa=kappa(draws[0], draws[1]),
        other=float((old == draws[0]).mean()),
        grades=spent["grade"] / judge.calls["grade"],
        orders=spent["order"] / max(1, judge.calls["order"]),
        calls=sum(spent.values()) / total,
        tau=kendall_tau_b(*({str(place): score for place, score in enumerate(each)} for each in scores)),
        gap=float(np.abs(scores[0] - scores[1]).max()),
        order=order_quality(updated, judge, texts),
        full_order=order_quality(full, judge, texts),
    )


def order_quality(run_: OpenedRun, judge: Judge, texts: Mapping[tuple[str, str], str]) -> float:
    """Return the mean AP correlation of the rankings of a run with the true utilities of the same passages."""
    found = []
    for qid, records in run_.golden():
        ranked = [record.doc_id for record in records if not record.unordered and (qid, record.doc_id) in texts]
        if len(ranked) > 1:
            utility = {doc_id: judge.utility(qid, texts[qid, doc_id]) for doc_id in ranked}
            found.append(tau_ap(sorted(ranked, key=lambda doc_id: -utility[doc_id]), ranked))
    return float(np.mean(found))


def kappa(one: np.ndarray, other: np.ndarray) -> float:
    return float(cohen_kappa(one, other, weights="quadratic", labels=(1, 2, 3, 4, 5), seed=1).value)


def systems(run_: OpenedRun) -> dict[str, Run]:
    """Return eight systems over the lists of a run: its retrievers, fusions, and lists with errors."""
    lists: dict[str, Lists] = {}
    for record in run_.typed("retrieve", RetrieveRecord):
        lists.setdefault(record.retriever, {}).setdefault(record.qid, []).append((record.doc_id, record.score))
    bm25, dense = lists["bm25"], lists["dense"]

    def fused(weight: float) -> Lists:
        found = {}
        for qid in bm25:
            both = {"bm25": bm25[qid], "dense": dense.get(qid, [])}
            items = fuse(both, make_fusion("rrf"), weights={"bm25": weight, "dense": 1.0})
            found[qid] = [(item.doc_id, item.score) for item in items]
        return found

    def lossy(found: Lists, share: float) -> Lists:
        kept = {}
        for qid, hits in found.items():
            draw = generator(0, "lossy", share, qid)
            kept[qid] = [hit for hit in hits if draw.random() > share] or hits[-1:]
        return kept

    even = fused(1.0)
    every = {"bm25": bm25, "dense": dense, "fused": even, "words": fused(3.0), "vectors": fused(0.3)}
    every |= {"lossy": lossy(even, 0.15), "lossier": lossy(even, 0.3), "lossiest": lossy(bm25, 0.5)}
    return {name: Run.of({qid: dict(hits) for qid, hits in each.items()}) for name, each in every.items()}


def system_scores(golden: Path, lists: OpenedRun) -> np.ndarray:
    judgments: Judgments = open_golden(golden).judgments()
    measures = parse_measures([MEASURE])
    found = [measure_hits(find_hits(judgments.qrels, each), measures) for each in systems(lists).values()]
    return np.array([float(np.nanmean(each.values[0])) for each in found])


def mean(values: Sequence[float], digits: int = 3) -> str:
    known = np.array([value for value in values if not math.isnan(value)])
    if not len(known):
        return "–"
    error = known.std(ddof=1) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    return f"{known.mean():.{digits}f} ±{error:.{digits}f}"


def tables(found: Mapping[tuple[str, float], Sequence[Outcome]]) -> Iterator[str]:
    """Yield the tables as Markdown."""
    head = ("corpus", "churn", "carried", "agreement", "kappa", "edited passages", "their agreement", "test-retest")
    yield f"| {' | '.join((*head, 'its kappa', 'independent judge'))} |"
    yield "|---" * (len(head) + 2) + "|"
    for (name, churn), each in found.items():
        columns = ("carried", "agree", "kappa", "edited_count", "edited", "retest", "retest_kappa", "other")
        cells = [mean([getattr(one, column) for one in each]) for column in columns]
        yield f"| {name} | {churn:.0%} | {' | '.join(cells)} |"
    yield ""
    head = ("corpus", "churn", "calls", "calls for grades", "calls for orders", "tau of 8 systems")
    yield f"| {' | '.join((*head, 'largest change of a score', 'order', 'order, from scratch'))} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (name, churn), each in found.items():
        columns = ("calls", "grades", "orders", "tau", "gap", "order", "full_order")
        cells = [mean([getattr(one, column) for one in each]) for column in columns]
        yield f"| {name} | {churn:.0%} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--histories", type=int, default=5)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--churns", type=float, nargs="+", default=CHURNS)
    parser.add_argument("--worlds", nargs="+", default=["chunking", "cranfield"])
    asked = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    found: dict[tuple[str, float], list[Outcome]] = {}
    for name in asked.worlds:
        for churn in asked.churns:
            for number in range(asked.histories):
                seed = asked.seed + number
                if name == "chunking":
                    world = chunking_world(asked.data / "chunking", CORPORA, asked.questions, seed)
                else:
                    world = cranfield_world(asked.data / "cranfield", asked.questions, seed)
                with tempfile.TemporaryDirectory() as folder:
                    found.setdefault((name, churn), []).append(play(world, churn, seed, Path(folder)))
                print(name, churn, seed, found[name, churn][-1], file=sys.stderr, flush=True)
    text = "\n".join(tables(found))
    if asked.out is None:
        print(text)
        return
    begin, end = "<!-- begin: tables -->", "<!-- end: tables -->"
    head, _, rest = asked.out.read_text().partition(begin)
    asked.out.write_text(f"{head}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
