"""A report as JUnit XML: well formed whatever names hold, with a case for each gate and each score."""

from __future__ import annotations

from xml.etree import ElementTree

from raggs.evaluation.gates import GateOutcome, junit_xml
from raggs.evaluation.report import make_report
from raggs.evaluation.study import ScoringSettings
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.names import parse_measures

HOSTILE = 'a]]><failure/>&"\x1b[31m\x00\ud800\ufffe\u202e'


def test_names_from_files_are_text_and_every_case_is_there() -> None:
    judgments = Judgments("qrels", Qrels.of({"q1": {"good": 4, "poor": 1}}, GradeScale.of(1, 5)))
    systems = [NamedSystem(name, "file", Run.of({"q1": ["good", "poor"]})) for name in ("plain", HOSTILE)]
    report = make_report(judgments, systems, ScoringSettings(measures=parse_measures(["mrr", "n_recall5@10"])))
    outcomes = (
        GateOutcome("mrr at least 2", f"mrr of {HOSTILE} is 1.0000, below 2", True, HOSTILE, "mrr"),
        GateOutcome("mrr at least 0.5", "mrr of plain is 1.0000, wanted is at least 0.5", False, "plain", "mrr"),
    )
    root = ElementTree.fromstring(junit_xml(report, outcomes))
    assert root.attrib == {"name": "raggs eval", "tests": "6", "failures": "1", "skipped": "2"}
    gates, plain, hostile = root
    assert [case.attrib for case in gates][1] == {"classname": "gates.plain", "name": "mrr at least 0.5"}
    assert gates[0][0].attrib["message"] == (
        'mrr of a]]><failure/>&"\\x1b[31m\\x00\\ud800\\ufffe\\u202e is 1.0000, below 2'
    )
    assert (plain[0].attrib["name"], plain[0][0].text) == ("mrr", "1.0000 over 1 query")
    assert plain[1][0].tag == "skipped"  # nothing of grade 5 is known
    assert hostile.attrib["name"].startswith("a]]>")
