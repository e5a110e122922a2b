"""`raggs diagnose`: why retrieval fails, told by small controlled probes in minutes and before a sweep.

A kind is one file or package here and one line in the table below:

    raggs/diagnosis/mine.py      class Mine(Diagnosis[MineFound]): Config, Result, TITLE, NEEDS, TIME, and five methods
                                 (`base.py` says which); it works with a `Bench` and gives typed findings
    raggs/stats/mine.py   its mathematics, pure
    raggs/cli/diagnoses/mine.py  its command, a function of `DiagnosisFlags` and its own typed flags
    docs/diagnose/mine.md        its page
    tests/diagnosis/test_mine.py its tests, with a `contract_case` (tests/diagnosis/test_contract.py)

Tables and plots are drawn of the findings alone, so that what is read from the disk is shown as what was just measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.diagnosis.base import Diagnosis, Found

FOLDER = "diagnose"  # of reports, in a run's folder, or here where there is none
REGISTRY: Registry[Diagnosis[Found]] = Registry(
    "diagnosis",
    "diagnoses",
    "raggs.diagnosis.base:Diagnosis",
    {
        "names": "raggs.diagnosis.names:Names",
        "precision": "raggs.diagnosis.precision:PrecisionDiagnosis",
        "noise": "raggs.diagnosis.noise:NoiseDiagnosis",
        "judge": "raggs.diagnosis.judge:JudgeDiagnosis",
        "depth": "raggs.diagnosis.depth:Depth",
        "retrieval": "raggs.diagnosis.retrieval:Retrieval",
        "index": "raggs.diagnosis.index:IndexDiagnosis",
    },
)
