"""Every measure by its name: one class each, in a file of its own or beside its next of kin."""

from __future__ import annotations

from raggs.metrics.measure import Measure
from raggs.metrics.measures.bpref import Bpref
from raggs.metrics.measures.ceilings import PctProcNRecall4, PctProcRaNwg, ProcNRecall4, ProcRaNwg
from raggs.metrics.measures.containment import Containment
from raggs.metrics.measures.hit import Found, Hit
from raggs.metrics.measures.hit_all import HitAll
from raggs.metrics.measures.map import Map
from raggs.metrics.measures.mrr import Mrr
from raggs.metrics.measures.n_recall import NRecall4, NRecall5
from raggs.metrics.measures.ndcg import Ndcg, NdcgExp
from raggs.metrics.measures.novel import RaNwgNovel
from raggs.metrics.measures.ra_nwg import RaNwg
from raggs.metrics.measures.rbp import Rbp
from raggs.metrics.measures.robustness import Robustness
from raggs.metrics.measures.sets import F1, Precision, Recall
from raggs.metrics.measures.shares import Harm, Holes, Judged, Precision4
from raggs.metrics.measures.udcg import Udcg

_ALL: tuple[type[Measure], ...] = (
    RaNwg, NRecall4, NRecall5, Precision4, Harm, HitAll, Holes, Judged, ProcRaNwg, ProcNRecall4, PctProcRaNwg,
    PctProcNRecall4, RaNwgNovel, Udcg, Hit, Found, Recall, Precision, F1, Mrr, Map, Ndcg, NdcgExp, Rbp, Containment,
    Bpref, Robustness,
)  # fmt: skip

MEASURES: dict[str, type[Measure]] = {measure.NAME: measure for measure in _ALL}
ALIASES: dict[str, str] = {alias: measure.NAME for measure in _ALL for alias in measure.ALIASES}
