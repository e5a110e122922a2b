"""What to read next, as a document: what is expected of it, by measure, and the verdicts that are in doubt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from raggs.app.reviewplan import ReadingPlan, Verdict
from raggs.base.text import plural
from raggs.evaluation.document import Cell, Document, Legend, Section, Table
from raggs.runs.manifests.store import dump_json

SHOWN, TELLING = 10, 0.05
TERMS = (
    Legend("sure", "at most 5% that all labels by people would turn which of two systems is better"),
    Legend("turn", "the probability of that, by what is known of the judge"),
)


def lay_out_plan(plan: ReadingPlan) -> Document:
    """The document of a plan; nothing is computed here."""
    return Document("What to read next", _first(plan), tuple(_sections(plan)), tuple(_told(plan)))


def plan_json(plan: ReadingPlan) -> str:
    """All that is known but the items, which are in the file of the plan."""
    told = asdict(plan)
    return dump_json({**told, "items": len(plan.items), "before": len(plan.before)})


def _first(plan: ReadingPlan) -> Section:
    pairs, unsure = plan.pairs * len(plan.measures), plan.pairs * len(plan.measures) - sum(plan.sure)
    minutes = f"{plan.seconds / 60:.0f} minutes"
    return Section(
        "What to read next",
        (
            f"{round(unsure)} of {plural(pairs, 'verdict')} between {plural(len(plan.systems), 'system')} unsure now",
            f"{plural(len(plan.items), 'passage')} to read in about {minutes}, {plan.drawn} drawn at random",
            f"about {pairs - sum(plan.after):.1f} unsure afterwards, by expectation",
        ),
        Table(
            ("measure", "verdicts", "sure now", "sure afterwards"),
            tuple(
                (Cell(name), Cell(plan.pairs), Cell(round(now)), Cell(f"{after:.1f}"))
                for name, now, after in zip(plan.measures, plan.sure, plan.after, strict=True)
            ),
        ),
        terms=TERMS,
    )


def _sections(plan: ReadingPlan) -> Iterator[Section]:
    doubtful = [verdict for verdict in plan.verdicts if verdict.turned > TELLING]
    if not doubtful:
        return
    rows = tuple(map(_row, doubtful[:SHOWN]))
    more = len(doubtful) - len(rows)
    said = (f"and {more} more",) if more else ()
    yield Section("Verdicts in doubt", said, Table(("better", "worse", "measure", "difference", "turn", "after"), rows))


def _row(verdict: Verdict) -> tuple[Cell, ...]:
    chances = (Cell(f"{each:.0%}") for each in (verdict.turned, verdict.after))
    names = (Cell(verdict.better), Cell(verdict.worse), Cell(verdict.measure))
    return (*names, Cell(verdict.difference, "score"), *chances)


def _told(plan: ReadingPlan) -> Iterator[str]:
    if plan.learned:
        yield f"how far the judge errs is known from {plural(plan.learned, 'passage')} read at random, and a prior"
    else:
        yield "nobody has read at random yet: how far the judge errs is a prior, each grade off 5 times less likely"
    if plan.pace != 1:
        yield f"people take {plan.pace:.2g} times the usual 8 seconds and 24 characters a second"
    yield "sure of these questions; whether others would say the same, intervals of raggs eval tell"
    yield from plan.notes
