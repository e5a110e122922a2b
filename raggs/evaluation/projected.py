"""What a report says of a golden set that was carried over to passages cut in another way: by which rule, onto how many
passages, and how much of what was retrieved is judged at all."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.base.jsontypes import Number, number
from raggs.base.text import plural
from raggs.evaluation.models import ProjectionPart, Report, SystemPart
from raggs.golden.projecting import Projection
from raggs.metrics.hits import Hits

LOST = 0.05  # of the judged characters; what is lost at cuts is white space
FINER = 0.7  # of the length of judged passages; below it, grades are too coarse for a corpus


def projection_part(projection: Projection, hits: Hits, cutoff: int) -> ProjectionPart:
    """What is to be known of a projection, and of a system's lists up to a cutoff."""
    rule, found = projection.rule, projection.projected
    return ProjectionPart(
        corpus=projection.origin.corpus,
        judged_corpus=projection.judged.golden.origin.corpus,
        by=rule.by,
        least=rule.least,
        known=rule.known,
        proof=rule.proof,
        overlap=rule.overlap,
        passages=len(found.grade) - found.holes,
        holes=found.holes,
        judged_length=projection.lengths[0],
        length=projection.lengths[1],
        lost=projection.lost,
        cutoff=cutoff,
        judged=None if hits.reading is None else number(hits.reading.judged_share(cutoff)),
    )


def projections(report: Report) -> Iterator[str]:
    """A sentence on the rule, and one for all systems on which the set fell alike."""
    parts = {system.name: system.projection for system in report.systems if system.projection}
    for rule in dict.fromkeys(rule_words(part) for part in parts.values()):
        yield f"projected: {rule}"
    for said in dict.fromkeys(_fall(part) for part in parts.values()):
        names = [name for name, part in parts.items() if _fall(part) == said]
        shares = ", ".join(f"{name} {_share(parts[name].judged)}" for name in names)
        yield f"{said}; of the characters that the top {parts[names[0]].cutoff} shows are judged: {shares}"


def finer_note(part: SystemPart) -> str:
    """What a reader must know of a system whose passages are parts of judged ones; empty where they are not."""
    found = part.projection
    if found is None or found.length >= FINER * found.judged_length:
        return ""
    return (
        f"{part.name} is cut finer than what was judged ({found.length:,.0f} against {found.judged_length:,.0f} "
        "characters): every part of a good passage counts as good, so that its recall and ra_nwg are too low beside "
        "systems that are cut coarser; make the golden set at the finest cut"
    )


def rule_words(part: ProjectionPart) -> str:
    """The rule as a clause."""
    share = f"{part.least:.0%}"
    earned = {
        "cover": f"the highest grade of {share} of its judged characters, or of a judged passage it holds {share} of",
        "share": f"the highest grade of {share} of its judged characters",
        "mean": "the mean grade of its judged characters",
        "max": "the highest grade of its characters",
    }[part.by]
    shared = f"; where judged passages overlap, the {part.overlap} grade counts"
    return f"a passage gets {earned}{shared}; judged below {part.known:.0%} and graded below {part.proof}, it is a hole"


def _fall(part: ProjectionPart) -> str:
    """How the set fell on a corpus."""
    onto = f" onto the corpus {part.corpus[:12]}" if part.corpus else ""
    lost = f", {part.lost:.0%} of the judged text in no passage" if part.lost > LOST else ""
    return f"{plural(part.passages, 'passage')} with a grade and {plural(part.holes, 'hole')}{onto}{lost}"


def _share(share: Number) -> str:
    return "–" if share is None else f"{share:.0%}"
