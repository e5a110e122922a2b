"""The golden set itself: label mix, pools, who found what, near-duplicates, languages, tokens, agreement, cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from raggs.base.text import plural
from raggs.evaluation.document import Cell, Row, Section, Table
from raggs.evaluation.models import Part
from raggs.reporting.base import Facts, ReportSection
from raggs.reporting.figures import Piece, stacked
from raggs.reporting.surveying import Labels, Pools, Spread, labels_of, languages_of
from raggs.runs.manifests.costs import Costs, LedgerSum

HEAD = ("over queries", "median", "mean", "least", "most")
SHADES = 5


class GoldenPart(Part):
    """All of the section; `shades`: by piece of the mix, the class that colours it."""

    mix: tuple[Piece, ...]
    shades: Mapping[str, str]
    sections: tuple[Section, ...]


class Golden(ReportSection):
    """What is the golden set made of, how rare is what is useful, and who found it?"""

    NAME = "golden"
    TITLE = "Golden set"

    def data(self, facts: Facts) -> GoldenPart | None:
        """None where nothing is known but questions."""
        judgments = facts.judgments
        labels = None if judgments is None else labels_of(judgments)
        parts = [_labels(labels)] if labels else []
        if facts.run is not None:
            pools = facts.pools
            parts.append(chain(_pools(pools) if pools else (), _languages(languages_of(facts.run)), _cost(facts.costs)))
        if facts.people.document is not None:
            document = facts.people.document
            parts.append(iter((document.scores, *document.sections)))
        found = tuple(chain.from_iterable(parts))
        mix = _mix(labels) if labels else ()
        if not found:
            return None
        return GoldenPart(mix=mix, shades={each.kind: f"g{at}" for at, each in enumerate(mix)}, sections=found)


def _mix(labels: Labels) -> tuple[Piece, ...]:
    """The shares of the grades, the best first."""
    total = sum(labels.grades.values())
    if not total:
        return ()
    found = [(f"grade {grade}", float(n), f"{n:,} ({n / total:.0%})") for grade, n in labels.grades.items()]
    return stacked(found[:SHADES], float(total))


def _labels(labels: Labels) -> Iterator[Section]:
    rows = tuple(_row(spread) for spread in labels.spreads)
    share = labels.prevalence
    prevalence = (Cell("share of the judged that is relevant"), *(Cell(f"{each:.1%}") for each in _figures(share)))
    said = [f"{plural(labels.queries, 'query')}, {plural(sum(labels.grades.values()), 'judgment')}"]
    if labels.without:
        none = f"{plural(labels.without, 'query')} without a relevant passage"
        said.append(f"{none}: recall is 0 there, whatever is returned")
    yield Section("Label mix", tuple(said), Table(HEAD, (*rows, prevalence)))


def _row(spread: Spread) -> Row:
    return (Cell(spread.name), *(Cell(f"{each:,.1f}") for each in _figures(spread)))


def _figures(spread: Spread) -> tuple[float, ...]:
    return spread.median, spread.mean, spread.least, spread.most


def _pools(pools: Pools) -> Iterator[Section]:
    rows = [_row(pools.depth), *([_row(pools.tokens)] if pools.tokens else [])]
    repeated = f"{plural(pools.duplicates, 'near-duplicate')} of others ({pools.duplicates / pools.passages:.1%})"
    said = [f"{plural(pools.passages, 'passage')} in the pools, {pools.distinct:,} different ones; {repeated}"]
    if pools.tokens:
        said.append(f"tokens of {plural(pools.sampled, 'passage')} (cl100k)")
    yield Section("Pools", tuple(said), Table(("", *HEAD[1:]), tuple(rows)))
    yield _sources(pools)
    if pools.overlap:
        shared = tuple((Cell(f"{a} and {b}"), Cell(f"{share:.0%}")) for (a, b), share in pools.overlap.items())
        yield Section("Overlap", (), Table(("retrievers", "of what any of both brought, both did"), shared))


def _sources(pools: Pools) -> Section:
    rows = tuple(
        (
            Cell(each.name),
            Cell(each.passages),
            Cell(each.alone),
            Cell(each.relevant),
            Cell(_share(each.relevant_alone or 0, each.relevant) if each.relevant else None),
        )
        for each in pools.sources
    )
    head = ("retriever", "passages", "it alone", "relevant", "of these it alone")
    return Section("Who found what", (), Table(head, rows))


def _share(some: int, all_: int) -> str:
    return f"{some} ({some / all_:.0%})"


def _languages(languages: Mapping[str, int]) -> Iterator[Section]:
    if languages:
        listed = ", ".join(f"{name or 'unknown'} {count:,}" for name, count in languages.items())
        yield Section("Languages of the questions", (listed,))


def _cost(found: Costs) -> Iterator[Section]:
    if found.stage:
        rows = (*(_spent(name, each) for name, each in found.stage.items()), _spent("all", found.total))
        head = ("stage", "calls", "cached", "failed", "tokens in", "tokens out", "USD", "saved USD")
        yield Section("Cost by stage", (), Table(head, rows))


def _spent(name: str, each: LedgerSum) -> Row:
    counts = (each.calls, each.cached, each.failed, each.prompt_tokens, each.completion_tokens)
    money = (Cell(f"{usd:,.4f}") for usd in (each.usd, each.saved_usd))
    return (Cell(name), *(Cell(f"{count:,}") for count in counts), *money)
