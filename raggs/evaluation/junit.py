"""A report as JUnit XML, which CI servers show: a case for each gate, and for each measure of each system.

What is no character of XML is written as an escape: names come from others' files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from raggs.base.text import plural, visible
from raggs.evaluation.gates import Outcome
from raggs.evaluation.models import Report, ScorePart, SystemPart
from raggs.evaluation.words import score

NO_CHARACTERS = re.compile("[\ufffe\uffff]")


def junit_xml(report: Report, outcomes: Sequence[Outcome]) -> bytes:
    """The XML: first the gates, then a suite for each system; a measure without a value was skipped."""
    root = Element("testsuites", name="raggs eval")
    if outcomes:
        suite = _suite(root, "gates")
        for each in outcomes:
            _gate(suite, each)
    for system in report.systems:
        suite = _suite(root, system.name)
        for measure in report.measures:
            _score(suite, system, measure)
    return _written_out(root)


def junit_of_refusal(what: str, why: str) -> bytes:
    """The XML of an evaluation that was refused: one gate, which says why, and no score."""
    root = Element("testsuites", name="raggs eval")
    _gate(_suite(root, "gates"), Outcome(what, why, True))
    return _written_out(root)


def _written_out(root: Element) -> bytes:
    for element in (*root, root):
        for kind, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            element.set(kind, str(sum(1 for _ in element.iter(tag))))
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(root: Element, name: str) -> Element:
    return SubElement(root, "testsuite", name=_text(name), errors="0")


def _gate(suite: Element, found: Outcome) -> None:
    place = f"gates.{found.system}" if found.system else "gates"
    name = found.gate if not found.measure or found.measure in found.gate else f"{found.measure} {found.gate}"
    case = SubElement(suite, "testcase", classname=_text(place), name=_text(name))
    said = f"{found.said}; {found.remedy}" if found.remedy else found.said
    if found.failed:
        SubElement(case, "failure", message=_text(said), type="inconclusive" if found.inconclusive else "gate")
    elif found.inconclusive:
        SubElement(case, "skipped", message=_text(said))
    else:
        SubElement(case, "system-out").text = _text(found.said)


def _score(suite: Element, system: SystemPart, measure: str) -> None:
    case = SubElement(suite, "testcase", classname=_text(f"scores.{system.name}"), name=_text(measure))
    found = system.scores[measure]
    if found.mean is None:
        SubElement(case, "skipped", message="not defined for any query")
    else:
        SubElement(case, "system-out").text = _interval(found)


def _interval(found: ScorePart) -> str:
    interval = "" if found.low is None else f" [{score(found.low)}, {score(found.high)}]"
    return f"{score(found.mean)}{interval} over {plural(found.valid, 'query')}"


def _text(text: str) -> str:
    return NO_CHARACTERS.sub(lambda match: ascii(match[0])[1:-1], visible(text))
