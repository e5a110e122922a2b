"""Whether a system and the judgments are about the same passages: what tells that scores say nothing.

Runs say which corpus they searched; files do not, so lists that hardly meet the judgments are a reason to doubt. A
list of another corpus scores near nothing, and advice to retrieve better would be advice to do the wrong thing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raggs.base.errors import DataError
from raggs.base.jsontypes import Number
from raggs.golden.judgments import Judgments
from raggs.golden.places import same_documents
from raggs.golden.systems import System
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.names import parse_measure

if TYPE_CHECKING:
    from raggs.evaluation.study import Study

HOLES = 0.5  # of the shown passages; above it, most of what a score is about is not known
MET = 0.1  # of the queries with a list, those where it holds a judged passage
HARMLESS = 0.1  # holes beside which harm says so

ELSEWHERE = (
    "evaluate it against a set of its own corpus; if the ids do mean the same texts, export its lists "
    "(raggs export --format trec) and name the file"
)
RECUT = "both are cut from the same documents: --project carries the grades over by their places"


def check_corpus(judgments: Judgments, system: System) -> None:
    """Refuse lists from another corpus than the judgments are about.

    Raises:
        DataError: both are known, and differ.
    """
    if other := system.origin.other_corpus(judgments.origin):
        recut = same_documents(judgments.source, system.source)
        raise DataError(
            f"was retrieved from another corpus than {judgments.source} was judged on (content {other}), so equal ids "
            "mean other texts",
            where=system.source,
            remedy=RECUT if recut else ELSEWHERE,
        )


def doubt_of(study: Study, system: str) -> str:
    """Why the scores of a system say little; empty where nothing speaks for that.

    Labels that are all relevant leave the rest unjudged by custom, so that holes tell nothing beside them.
    """
    hits, k = study.hits[system], min(study.scoring.cutoffs)
    if hits.reading is not None:
        return _unreached(study, system, hits, k)
    if said := stranger(study.judgments.source, system, hits):
        return f"{said} Its scores say nothing"
    holes = holes_at(hits, k)
    if holes is None or holes <= HOLES or not judges_both(hits.qrels):
        return ""
    return (
        f"{system}: {holes:.0%} of what its top {k} shows is unjudged and counts as not relevant, so its scores say "
        "little: is it of another corpus, or were its lists never pooled? --bounds shows what they could be"
    )


def stranger(source: str, system: str, hits: Hits) -> str:
    """That the lists of a system hardly meet the judgments of a set; empty where they do."""
    met = met_share(hits)
    if met >= MET:
        return ""
    return (
        f"{system}: the ids of {source} hardly occur in its lists (of {met:.0%} of its queries any does): is it of "
        "another corpus, or are its passages named or cut in another way?"
    )


def _unreached(study: Study, system: str, hits: Hits, k: int) -> str:
    """The same of a set whose grades were carried over to the system's own corpus, so that it is no stranger."""
    holes = holes_at(hits, k)
    if holes is None or holes <= HOLES:
        return ""
    return (
        f"{system}: {holes:.0%} of what its top {k} shows holds too little judged text for a grade, so its scores say "
        f"little: the pool of {study.judgments.source} did not reach there; --bounds shows what they could be"
    )


def met_share(hits: Hits) -> float:
    """Of the queries with a list, the share where it holds a judged passage at any rank."""
    met = np.bincount(hits.query, minlength=len(hits.length)) > 0
    return float(met[hits.returned].mean())


def holes_at(hits: Hits, k: int) -> Number:
    """The mean share of unjudged passages in the top k of the queries with a list."""
    found = parse_measure(f"holes@{k}").values(hits)[hits.returned]
    return float(found.mean()) if len(found) else None


def harmless_note(study: Study, system: str) -> str:
    """What harm@k leaves out, where that is much; empty where harm was not asked for."""
    asked = [named for named in study.scoring.measures if named.measure.NAME == "harm" and named.measure.k]
    for named in asked:
        holes = holes_at(study.hits[system], named.measure.cutoff)
        if holes is not None and holes > HARMLESS:
            return (
                f"{named.name} counts unjudged passages as harmless, and {holes:.0%} of what {system} shows there is "
                "unjudged: its harm may be larger"
            )
    return ""


def judges_both(qrels: Qrels) -> bool:
    """Whether passages were judged not relevant, too. Otherwise an unjudged passage is not relevant by custom."""
    judged = qrels.grade[qrels.grade >= 0]
    return bool((judged < qrels.scale.relevant).any())
