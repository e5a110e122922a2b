"""The HTML report of a golden set, in one file: one class per section.

base, page            base class of sections; rendering of sections to one HTML file with a strict content policy
sections              the sections, with their templates, styles and scripts
figures               SVG figures
surveying             statistics of a golden set: labels, pools, sources, languages

A section receives `ReportFacts`, which are already opened and scored, and returns typed data for its template. No
scores are computed here. Sentences are taken from `raggs.evaluation`, `raggs.sweeps` and
`raggs.runs.manifests.messages` if available there. To add a section, create in the folder `sections`:

    mine.py      class Mine(ReportSection): NAME = "mine", TITLE, data(facts) -> a `ReportPart`; None omits the section
    mine.html    its template: `data` is the part; macros of `page/macros.html` render tables, figures, chips
    mine.css     optional; and mine.js, which reads the part's JSON by `raggs.data("mine")` if SCRIPTED = True

`raggs.table` (page.js) renders a sortable table, row by row as it becomes visible. `raggs.link(qid)` links to a query
(`raggs.asks(qid)` includes its text). The section "questions" receives the selected query by `raggs.listen`.

Then add a line to the table below, which defines the order of the page. All user content (titles, ids, queries,
passages, notes) is untrusted: templates escape it, scripts set it as `textContent`, and the content policy blocks
other scripts.
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
