"""A small golden set with everything that exporters must get right, and a run for the tools that read exports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from support.golden import GivenGolden
from support.project import make_project

from raggs import load_config
from raggs import run as run_config
from raggs.app.eval_request import EvalRequest, JudgedFiles, MeasureRequest
from raggs.app.evaluate import evaluate
from raggs.app.export import export_run
from raggs.base.artifacts import Passage, Query, RankRecord
from raggs.golden.base import GoldenQuery, LabelRecord
from raggs.runs.manifests.open_run import open_run

# By query: fused order with grades (None: the judge failed), near-duplicates by representative, and the final order.
POOLS = {
    "q1": {"d9": 2, "d1": 5, "d10": 4, "d2": None, "d3": 1, "d3b": 1},
    "q10": {"d3": 4, "é/7": 3, "d1": 1},
    "q2": {"d5": 3},
}
DUPLICATES = {("q1", "d3b"): "d3"}
ORDERS = {"q1": ["d10", "d1", "d9", "d3", "d3b"], "q10": ["é/7", "d3", "d1"], "q2": ["d5"]}
TEXTS = {"d1": 'A "quoted"\ttext\nof two lines\u2028or three\x85or four', "é/7": "Élan vital"}


def text_of(doc_id: str) -> str:
    return TEXTS.get(doc_id, f"The text of {doc_id}.")


def pooled(qid: str) -> Iterator[Passage]:
    for doc_id in POOLS[qid]:
        yield Passage(doc_id=doc_id, title=f"Title {doc_id}" if doc_id != "d9" else "", text=text_of(doc_id))


def graded(qid: str) -> Iterator[LabelRecord]:
    for doc_id, grade in POOLS[qid].items():
        error = "no answer" if grade is None else None
        yield LabelRecord(
            qid=qid, doc_id=doc_id, grade=grade, judge="test", duplicate_of=DUPLICATES.get((qid, doc_id)), error=error
        )


def rank_records():
    for qid, order in ORDERS.items():
        for rank, doc_id in enumerate(order, start=1):
            yield RankRecord(
                qid=qid,
                rank=rank,
                doc_id=doc_id,
                grade=POOLS[qid][doc_id],
                score=3.25,
                sigma=0.5,
                confidence=0.75,
                rank_low=1,
                rank_high=9,
                membership=1,
                exposures=4,
                duplicate_of=DUPLICATES.get((qid, doc_id)),
            )


def judged_queries() -> Iterator[GoldenQuery]:
    orders = {qid: tuple(records) for qid, records in groupby(rank_records(), key=lambda record: record.qid)}
    for qid in sorted(POOLS):
        question = Query(qid=qid, text=f"What of {qid}?")
        yield GoldenQuery(qid, question, tuple(pooled(qid)), tuple(graded(qid)), orders[qid])


@pytest.fixture
def golden():
    return lambda given=None: GivenGolden("my test", 4, list(judged_queries()) if given is None else given)


@dataclass(frozen=True)
class Consumed:
    """A run, what it is exported to, and its scores."""

    run: Path

    def export(self, folder: Path, format_: str, **options: Any) -> Path:
        """`folder`/golden."""
        export_run(open_run(self.run), format_, folder / "golden", **options)
        return folder / "golden"

    def means(self, golden: Path, system: Path | str, *names: str) -> list[float]:
        """What `raggs eval` says of the one list that `system` is, or of that retriever of the run."""
        place = str(system) if isinstance(system, Path) else str(self.run)
        report = evaluate(EvalRequest(JudgedFiles(golden, (place,)), MeasureRequest(names))).report
        found = report.per_query[system if isinstance(system, str) else next(iter(report.per_query))]
        values = [list(found[measure].values()) for measure in report.measures[: len(names)]]
        assert all(None not in column for column in values), "a question for which tools say 0 and raggs nothing"
        return [fmean(value for value in column if value is not None) for column in values]


@pytest.fixture(scope="session")
def consumed(tmp_path_factory: pytest.TempPathFactory) -> Consumed:
    """What tests of other tools read; made once."""
    project = make_project(tmp_path_factory.mktemp("consumed"), queries=6, corpus=60, rank={"top": 5, "max_calls": 4})
    return Consumed(run_config(load_config(project.config)).store.folder)
