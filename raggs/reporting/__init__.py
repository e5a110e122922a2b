"""The report of a golden set as one HTML file, for the meeting where the decision falls: sections, one file each.

A section takes `Facts` (what was opened and scored before) and gives typed data, which its template draws. Nothing is
scored here, and sentences are those of the screen and of Markdown: a section takes them from `raggs.evaluation`,
`raggs.sweeps` and `raggs.runs.manifests.words` and writes none of its own where one exists.

    sections/mine.py      class Mine(ReportSection): NAME = "mine", TITLE, data(facts) -> a `Part`, None: nothing to say
    sections/mine.html    its template: `data` is the part; macros of `page/macros.html` draw tables, figures, chips
    sections/mine.css     if it needs any; and sections/mine.js, which reads the part's JSON by `raggs.data("mine")`
                          where the section says SCRIPTED = True

`raggs.table` (page.js) draws a table that sorts, its rows as they come into view; `raggs.link(qid)` leads to a question
(`raggs.asks(qid, text)` with its text), and the section "questions" hears by `raggs.listen` which one is wanted.

And a line in the table below, whose order is that of the page. What users wrote (titles, ids, questions, passages,
notes) is hostile: templates escape all of it, scripts set it as `textContent`, and the page's policy lets no script run
but its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.reporting.base import ReportSection

REGISTRY: Registry[ReportSection] = Registry(
    "section",
    "sections",
    "raggs.reporting.base:ReportSection",
    {
        "decision": "raggs.reporting.sections.decision:Decision",
        "losses": "raggs.reporting.sections.results:Losses",
        "systems": "raggs.reporting.sections.results:Systems",
        "sweeps": "raggs.reporting.sections.results:Sweeps",
        "diagnoses": "raggs.reporting.sections.results:Diagnoses",
        "questions": "raggs.reporting.sections.questions:QuestionsSection",
        "golden": "raggs.reporting.sections.provenance:Golden",
        "provenance": "raggs.reporting.sections.provenance:Provenance",
    },
)
