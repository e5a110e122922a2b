"""Registry of measures by name. Each measure is a class (see `raggs.metrics.measure`); related ones share a module."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from raggs.base.errors import PrerequisiteError
from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.metrics.measure import Measure

REGISTRY: Registry[Measure] = Registry(
    "measure",
    "measures",
    "raggs.metrics.measure:Measure",
    {
        "ra_nwg": "raggs.metrics.measures.gains:RaNwg",
        "n_recall4": "raggs.metrics.measures.gains:NRecall4",
        "n_recall5": "raggs.metrics.measures.gains:NRecall5",
        "precision4": "raggs.metrics.measures.sets:Precision4",
        "harm": "raggs.metrics.measures.sets:Harm",
        "hit_all": "raggs.metrics.measures.hits:HitAll",
        "holes": "raggs.metrics.measures.sets:Holes",
        "judged": "raggs.metrics.measures.sets:JudgedShare",
        "unj": "raggs.metrics.measures.sets:UnjudgedShare",
        "proc_ra_nwg": "raggs.metrics.measures.ceilings:ProcRaNwg",
        "proc_n_recall4": "raggs.metrics.measures.ceilings:ProcNRecall4",
        "proc_n_recall5": "raggs.metrics.measures.ceilings:ProcNRecall5",
        "pct_proc_ra_nwg": "raggs.metrics.measures.ceilings:PctProcRaNwg",
        "pct_proc_n_recall4": "raggs.metrics.measures.ceilings:PctProcNRecall4",
        "pct_proc_n_recall5": "raggs.metrics.measures.ceilings:PctProcNRecall5",
        "span_recall4": "raggs.metrics.measures.hits:SpanRecall4",
        "span_precision4": "raggs.metrics.measures.hits:SpanPrecision4",
        "ra_nwg_novel": "raggs.metrics.measures.novelty:RaNwgNovel",
        "evidence_recall": "raggs.metrics.measures.evidence:EvidenceRecall",
        "complete": "raggs.metrics.measures.evidence:Complete",
        "alpha_ndcg": "raggs.metrics.measures.novelty:AlphaNdcg",
        "nrbp": "raggs.metrics.measures.novelty:Nrbp",
        "net_utility": "raggs.metrics.measures.gains:NetUtility",
        "hit": "raggs.metrics.measures.hits:HitAny",
        "hits": "raggs.metrics.measures.hits:RelevantRetrieved",
        "recall": "raggs.metrics.measures.sets:Recall",
        "precision": "raggs.metrics.measures.sets:Precision",
        "f1": "raggs.metrics.measures.sets:F1",
        "set_p": "raggs.metrics.measures.sets:SetPrecision",
        "set_f": "raggs.metrics.measures.sets:SetF",
        "set_ap": "raggs.metrics.measures.sets:SetAp",
        "rprec": "raggs.metrics.measures.sets:RPrecision",
        "iprec": "raggs.metrics.measures.average:InterpolatedPrecision",
        "mrr": "raggs.metrics.measures.hits:Mrr",
        "map": "raggs.metrics.measures.average:Map",
        "ndcg": "raggs.metrics.measures.gains:Ndcg",
        "ndcg_exp": "raggs.metrics.measures.gains:NdcgExp",
        "ndcg[utility]": "raggs.metrics.measures.gains:NdcgUtility",
        "ra_nwg[utility]": "raggs.metrics.measures.gains:RaNwgUtility",
        "recall[utility]": "raggs.metrics.measures.gains:RecallUtility",
        "err": "raggs.metrics.measures.users:ExpectedReciprocalRank",
        "inst": "raggs.metrics.measures.users:Inst",
        "insq": "raggs.metrics.measures.users:Insq",
        "sdcg": "raggs.metrics.measures.users:Sdcg",
        "bpm": "raggs.metrics.measures.users:Bpm",
        "nerr8": "raggs.metrics.measures.users:Nerr8",
        "nerr9": "raggs.metrics.measures.users:Nerr9",
        "nerr10": "raggs.metrics.measures.users:Nerr10",
        "nerr11": "raggs.metrics.measures.users:Nerr11",
        "compat": "raggs.metrics.measures.users:Compatibility",
        "rbp": "raggs.metrics.measures.users:Rbp",
        "containment": "raggs.metrics.measures.hits:Containment",
        "bpref": "raggs.metrics.measures.average:Bpref",
        "accuracy": "raggs.metrics.measures.average:Accuracy",
        "infap": "raggs.metrics.measures.average:InferredAp",
        "robustness": "raggs.metrics.measures.ceilings:Robustness",
    },
)


@cache
def aliases(*, packages: bool = False) -> dict[str, str]:
    """Return the canonical name of each alias.

    Args:
        packages: whether to include measures of other installed packages; measures that cannot be loaded are skipped.
    """
    found: dict[str, str] = {}
    for name in REGISTRY if packages else REGISTRY.builtin:
        try:
            found.update(dict.fromkeys(REGISTRY.load(name).ALIASES, name))
        except PrerequisiteError:
            continue
    return found
