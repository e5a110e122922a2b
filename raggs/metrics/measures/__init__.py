"""Measures by name: one class each, in a file of its own or beside its next of kin (see `raggs.metrics.measure`)."""

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
        "ra_nwg": "raggs.metrics.measures.ra_nwg:RaNwg",
        "n_recall4": "raggs.metrics.measures.n_recall:NRecall4",
        "n_recall5": "raggs.metrics.measures.n_recall:NRecall5",
        "precision4": "raggs.metrics.measures.shares:Precision4",
        "harm": "raggs.metrics.measures.shares:Harm",
        "hit_all": "raggs.metrics.measures.hit_all:HitAll",
        "holes": "raggs.metrics.measures.shares:Holes",
        "judged": "raggs.metrics.measures.shares:Judged",
        "unj": "raggs.metrics.measures.shares:Unjudged",
        "proc_ra_nwg": "raggs.metrics.measures.ceilings:ProcRaNwg",
        "proc_n_recall4": "raggs.metrics.measures.ceilings:ProcNRecall4",
        "proc_n_recall5": "raggs.metrics.measures.ceilings:ProcNRecall5",
        "pct_proc_ra_nwg": "raggs.metrics.measures.ceilings:PctProcRaNwg",
        "pct_proc_n_recall4": "raggs.metrics.measures.ceilings:PctProcNRecall4",
        "pct_proc_n_recall5": "raggs.metrics.measures.ceilings:PctProcNRecall5",
        "span_recall4": "raggs.metrics.measures.span4:SpanRecall4",
        "span_precision4": "raggs.metrics.measures.span4:SpanPrecision4",
        "ra_nwg_novel": "raggs.metrics.measures.novel:RaNwgNovel",
        "alpha_ndcg": "raggs.metrics.measures.alpha_ndcg:AlphaNdcg",
        "nrbp": "raggs.metrics.measures.nrbp:Nrbp",
        "net_utility": "raggs.metrics.measures.net_utility:NetUtility",
        "hit": "raggs.metrics.measures.hit:Hit",
        "hits": "raggs.metrics.measures.hit:Found",
        "recall": "raggs.metrics.measures.sets:Recall",
        "precision": "raggs.metrics.measures.sets:Precision",
        "f1": "raggs.metrics.measures.sets:F1",
        "set_p": "raggs.metrics.measures.sets:SetPrecision",
        "set_f": "raggs.metrics.measures.sets:SetF",
        "rprec": "raggs.metrics.measures.sets:RPrecision",
        "iprec": "raggs.metrics.measures.iprec:InterpolatedPrecision",
        "mrr": "raggs.metrics.measures.mrr:Mrr",
        "map": "raggs.metrics.measures.map:Map",
        "ndcg": "raggs.metrics.measures.ndcg:Ndcg",
        "ndcg_exp": "raggs.metrics.measures.ndcg:NdcgExp",
        "ndcg[utility]": "raggs.metrics.measures.utility:NdcgUtility",
        "ra_nwg[utility]": "raggs.metrics.measures.utility:RaNwgUtility",
        "recall[utility]": "raggs.metrics.measures.utility:RecallUtility",
        "err": "raggs.metrics.measures.err:ExpectedReciprocalRank",
        "inst": "raggs.metrics.measures.inst:Inst",
        "compat": "raggs.metrics.measures.compat:Compatibility",
        "rbp": "raggs.metrics.measures.rbp:Rbp",
        "containment": "raggs.metrics.measures.containment:Containment",
        "bpref": "raggs.metrics.measures.bpref:Bpref",
        "infap": "raggs.metrics.measures.infap:InferredAp",
        "robustness": "raggs.metrics.measures.robustness:Robustness",
    },
)


@cache
def aliases(*, packages: bool = False) -> dict[str, str]:
    """Names by their other names.

    Args:
        packages: also those of measures that packages add; of such as cannot be loaded none are known.
    """
    found: dict[str, str] = {}
    for name in REGISTRY if packages else REGISTRY.builtin:
        try:
            found.update(dict.fromkeys(REGISTRY.load(name).ALIASES, name))
        except PrerequisiteError:
            continue
    return found
