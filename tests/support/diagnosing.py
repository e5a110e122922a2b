"""A kind of diagnosis that is small enough for tests: how long the vectors of some texts are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from raggs.base.document import Cell, Section, Table
from raggs.diagnosis.base import Bench, Diagnosis, DiagnosisConfig, DiagnosisFindings
from raggs.evaluation.models import ReportPart
from raggs.evaluation.svg import SHAPES, Drawing

NAME = "tiny"
TARGET = "support.diagnosing:Tiny"
TEXTS = ("a dog", "a cat", "two dogs", "no cat")


class Row(ReportPart):
    text: str
    total: float


class TinyFound(DiagnosisFindings):
    rows: Mapping[str, tuple[Row, ...]] = Field(description="by embedder")


class TinyConfig(DiagnosisConfig):
    type: Literal["tiny"] = "tiny"
    texts: int = Field(4, ge=1, le=4, description="how many texts are embedded")


class Tiny(Diagnosis[TinyFound]):
    """Sums of the vectors of some texts."""

    Config = TinyConfig
    Result = TinyFound
    TITLE = "What do vectors add up to?"
    NEEDS = ("embedder",)
    TAKES = ("golden",)
    TIME = "seconds"
    config: TinyConfig
    made: ClassVar[list[str]] = []  # parts that were not kept

    def forecast(self, bench: Bench) -> tuple[str, ...]:
        for embedder in bench.embedders.values():
            if embedder.models:
                embedder.embed(TEXTS[: self.config.texts])
        return (f"{self.config.texts} texts embedded",)

    def measure(self, bench: Bench) -> TinyFound:
        rows = {name: tuple(self._rows(bench, name)) for name in bench.embedders}
        return TinyFound(verdict="Vectors add up.", passed=None, rows=rows)

    def _rows(self, bench: Bench, name: str) -> list[Row]:
        embedder = bench.embedders[name]

        def make() -> list[Row]:
            self.made.append(name)
            texts = TEXTS[: self.config.texts]
            return [Row(text=text, total=float(sum(v))) for text, v in zip(texts, embedder.embed(texts), strict=True)]

        return bench.kept([NAME, self.own_causes(), embedder.causes()], Row, make)

    def rests_on(self, found: TinyFound) -> int:
        return self.config.texts + 6

    def sections(self, found: TinyFound) -> tuple[Section, ...]:
        rows = tuple(
            (Cell(name), Cell(row.text), Cell(row.total, "score")) for name, each in found.rows.items() for row in each
        )
        return (Section("Sums", (), Table(("embedder", "text", "sum"), rows)),)

    def plots(self, found: TinyFound) -> Mapping[str, str]:
        drawing = Drawing("sums")
        for at, row in enumerate(row for each in found.rows.values() for row in each):
            drawing.text(40, drawing.top + 20 * (at + 1), f"{row.total:.3f}")
            drawing.shape(26, drawing.top + 20 * (at + 1) - 4, SHAPES[0], "mark s0", row.text)
        return {"sums": drawing.svg()}
