"""Analyses of an evaluation: one file each, one line here. They may import the study, the report and the libraries.

The order here is the order of a report's sections. `USUAL` ones are done unasked, where their question arises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.evaluation.analyses.base import Analysis

REGISTRY: Registry[Analysis] = Registry(
    "analysis",
    "analyses",
    "raggs.evaluation.analyses.base:Analysis",
    {
        "comparisons": "raggs.evaluation.analyses.comparisons:Comparisons",
        "corrected": "raggs.evaluation.analyses.corrected:PeopleCorrection",
        "bottleneck": "raggs.evaluation.analyses.bottleneck:Bottleneck",
        "waterfall": "raggs.evaluation.analyses.waterfall:Waterfall",
        "depths": "raggs.evaluation.analyses.depths:Depths",
        "pooling": "raggs.evaluation.analyses.pooling:Pooling",
        "leave_one_out": "raggs.evaluation.analyses.leave_one_out:LeaveOneOut",
        "answers": "raggs.evaluation.analyses.answers:GivenAnswers",
        "ties": "raggs.evaluation.analyses.ties:TieRanges",
        "robustness": "raggs.evaluation.analyses.robustness:Robustness",
        "sensitivity": "raggs.evaluation.analyses.sensitivity:Sensitivity",
        "bounds": "raggs.evaluation.analyses.bounds:HoleBounds",
        "uncertainty": "raggs.evaluation.analyses.uncertainty:LabelDoubt",
    },
)
USUAL = ("comparisons", "bottleneck", "pooling", "answers", "ties")
