"""The HTML report of a golden set, in one file: sections, one class each.

base, page            what a section is; sections to one HTML file with a strict content policy
sections              the sections, with their templates, styles and scripts
figures               SVG figures; `sheets`: queries in the page as compact JSON
surveying             statistics of a golden set: labels, pools, sources, languages

A section takes `ReportFacts` (opened and scored before) and returns typed data, which its template draws. Nothing
is scored here. Sentences come from `raggs.evaluation`, `raggs.sweeps` and `raggs.runs.manifests.messages` if they exist
there. To add a section, write in the folder `sections`:

    mine.py      class Mine(ReportSection): NAME = "mine", TITLE, data(facts) -> a `Part`, or None: nothing to say
    mine.html    its template: `data` is the part; macros of `page/macros.html` draw tables, figures, chips
    mine.css     if needed; and mine.js, which reads the part's JSON by `raggs.data("mine")` if SCRIPTED = True

`raggs.table` (page.js) draws a sortable table whose rows are drawn as they come into view. `raggs.link(qid)` links to
a question (`raggs.asks(qid, text)` with its text), and the section "questions" learns by `raggs.listen` which one is
wanted.

Then add a line to the table below, whose order is that of the page. Everything that users wrote (titles, ids,
questions, passages, notes) is hostile: templates escape it, scripts set it as `textContent`, and the policy of the
page lets no other script run.
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
        "decision": "raggs.reporting.sections.decision:DecisionSection",
        "losses": "raggs.reporting.sections.results:LossesSection",
        "systems": "raggs.reporting.sections.results:SystemsSection",
        "sweeps": "raggs.reporting.sections.results:SweepsSection",
        "diagnoses": "raggs.reporting.sections.results:DiagnosesSection",
        "questions": "raggs.reporting.sections.questions:QuestionsSection",
        "golden": "raggs.reporting.sections.provenance:GoldenSection",
        "provenance": "raggs.reporting.sections.provenance:ProvenanceSection",
    },
)
