from __future__ import annotations

from support.studies import elsewhere, reported

from raggs.evaluation.analyses.robustness import Sensitivity


def test_sensitivity_lists_the_points_where_the_order_changes():
    report = reported(Sensitivity())
    assert len(report.sensitivity) == 24
    assert Sensitivity().section(report).sentences == (
        "RA-nWG's parameters: the order of the systems changes at 0 of 24 points of the grid",
    )
    assert Sensitivity().section(report).table is None
    moved = report.sensitivity[3].model_copy(update={"swapped": (("good", "poor"),), "order": ("poor", "good")})
    section = Sensitivity().section(report.model_copy(update={"sensitivity": (*report.sensitivity[:3], moved)}))
    assert section.sentences[0].endswith("changes at 1 of 4 points of the grid")
    assert [cell.text for cell in section.table.rows[0]] == ["0", "1", "0.2", "poor > good"]
    assert elsewhere(Sensitivity()).sensitivity == ()
