"""Why retrieval fails, as diagnoses found it: their verdicts first, then the tables and plots of each."""

from __future__ import annotations

from typing import Literal

from raggs.diagnosis.models import DiagnosisReport
from raggs.evaluation.document import Document
from raggs.evaluation.models import Part
from raggs.evaluation.svg import inlined
from raggs.reporting.base import Facts, ReportSection
from raggs.reporting.figures import Figure

State = Literal["good", "bad", "none"]
WORDS: dict[State, str] = {"good": "holds", "bad": "does not hold", "none": "measured"}


class DiagnosisPart(Part):
    """One diagnosis, as its page has it. `state`: of its verdict, `word`: the same for people."""

    kind: str
    verdict: str
    state: State
    word: str
    document: Document
    figures: tuple[Figure, ...]


class DiagnosesPart(Part):
    """All of them, and why some files are left out."""

    diagnoses: tuple[DiagnosisPart, ...]
    said: tuple[str, ...]


class Diagnoses(ReportSection):
    """What do small controlled probes say of the embedder, the reranker, the index and the set?"""

    NAME = "diagnoses"
    TITLE = "Diagnoses"

    def data(self, facts: Facts) -> DiagnosesPart | None:
        """None where nothing was diagnosed. One whose tables show passages is left out where these may not be."""
        if not facts.diagnoses and not facts.undiagnosed:
            return None
        from raggs.diagnosis.layout import shows_passages  # late: most reports are of no diagnosis

        shown = [each for each in facts.diagnoses if facts.texts or not shows_passages(each)]
        hidden = [each.kind for each in facts.diagnoses if each not in shown]
        said = [f"{kind}: left out, since it shows passages" for kind in hidden]
        return DiagnosesPart(diagnoses=tuple(map(_part, shown)), said=(*facts.undiagnosed, *said))


def _part(report: DiagnosisReport) -> DiagnosisPart:
    from raggs.diagnosis.layout import found_in, lay_out, plots

    found = found_in(report)
    state: State = "none" if found.passed is None else "good" if found.passed else "bad"
    drawn = (Figure(words=_words(report.kind, name), svg=inlined(svg)) for name, svg in plots(report).items())
    return DiagnosisPart(
        kind=report.kind,
        verdict=found.verdict,
        state=state,
        word=WORDS[state],
        document=lay_out(report),
        figures=tuple(drawn),
    )


def _words(kind: str, file: str) -> str:
    """What a plot shows, by its file."""
    return file.removesuffix(".svg").removeprefix(f"{kind}-").replace("-", " ")
