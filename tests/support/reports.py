"""Facts for a report's sections from a small world in memory, without a run."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.evaluation.analyses.comparisons import Comparisons
from raggs.evaluation.models import EvalReport
from raggs.golden.base import GoldenQuery, LabelRecord
from raggs.reporting.base import JudgeValidation, ReportFacts
from support.golden import GivenGolden
from support.studies import LABELS, reported


def facts(report: EvalReport | None = None, **changed: object) -> ReportFacts:
    """Of two systems on three queries, without a run; `changed` are fields of `ReportFacts`."""
    given: dict[str, object] = {
        "place": "runs/demo",
        "golden": GivenGolden("demo", 4, list(_queries()), provenance=None),
        "run": None,
        "report": report or reported(Comparisons("poor")),
        "missing": "",
        "sweeps": (),
        "people": JudgeValidation(),
        "texts": True,
        "command": "raggs report runs/demo",
        **changed,
    }
    return ReportFacts(**given)  # type: ignore[arg-type]


def _queries() -> Iterator[GoldenQuery]:
    for qid, labels in LABELS.items():
        yield GoldenQuery(
            qid, None, grades=tuple(LabelRecord(qid=qid, doc_id=doc, grade=grade) for doc, grade in labels.items())
        )
