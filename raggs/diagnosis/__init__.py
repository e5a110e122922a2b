"""Diagnoses: controlled probes that show why retrieval fails, so that you know what to vary in a sweep.

base     the base class of a diagnosis, and the `Bench` that gives access to its inputs
models   diagnose/<kind>.json, and parts of findings that several kinds share
store    the folder of reports

Each diagnosis is a package here and one line in the table below. To add a diagnosis, write:

    the package in raggs/diagnosis    class Mine(Diagnosis[MineFound]): Config, Result, TITLE, NEEDS, TIME, and the
                                      methods of `raggs.diagnosis.base.Diagnosis`; it returns typed findings
    its mathematics in raggs/stats    pure functions
    its command                       a line in the table of raggs/cli/app.py; flags come from its Config
    its page in docs/how-to/diagnose
    its tests in tests/diagnosis      with a `contract_case` (tests/diagnosis/test_contract.py)

Tables and plots are computed only from the findings, so a report read from disk looks the same as a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.diagnosis.base import Diagnosis, DiagnosisFindings

FOLDER = "diagnose"  # folder of reports, in the run directory or in the current directory
REGISTRY: Registry[Diagnosis[DiagnosisFindings]] = Registry(
    "diagnosis",
    "diagnoses",
    "raggs.diagnosis.base:Diagnosis",
    {
        "names": "raggs.diagnosis.names:NamesDiagnosis",
        "precision": "raggs.diagnosis.precision:PrecisionDiagnosis",
        "noise": "raggs.diagnosis.noise:NoiseDiagnosis",
        "judge": "raggs.diagnosis.judge:JudgeDiagnosis",
        "depth": "raggs.diagnosis.depth:DepthDiagnosis",
        "retrieval": "raggs.diagnosis.retrieval:RetrievalDiagnosis",
        "index": "raggs.diagnosis.index:IndexDiagnosis",
    },
)
