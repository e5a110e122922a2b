"""Sentences and labels of evaluation results, which the terminal output, files and reports share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from raggs.base.document import formatted, p_value
from raggs.evaluation.models import ComparisonPart, EvalReport, GoldenPart, UnjudgedPart, UnjudgedTopPart, Verdict

Kind = Literal["retrieval", "ordering", "none"]

MARKS: dict[Verdict, str] = {"better": "▲", "worse": "▼", "equivalent": "=", "inconclusive": "?", "unjudged": "!"}
BOTTLENECKS: dict[Kind, str] = {
    "retrieval": "improve retrieval, its pool lacks relevant passages: fuse dense and BM25 (RRF), use a more "
    "exact index (ef, nprobe), rewrite queries",
    "ordering": "improve the order, relevant passages of the pool are not at the top: add a reranker, remove "
    "near-duplicates, clean the metadata, use shorter chunks",
    "none": "neither retrieval nor order loses much",
}
# in order, from the score of a perfect list down to the system's score
LOSSES = ("found by no system", "candidates", "order", "unjudged")
KNOBS = (
    "no system found these passages: add another kind of retriever, rewrite queries, change chunks",
    "find more candidates: fuse dense and BM25 (RRF), use a more exact index (ef, nprobe), raise k, rewrite queries",
    "improve the order: use a stronger reranker, remove near-duplicates, clean titles and metadata, use shorter chunks",
    "judge the unjudged passages: pool its lists (retriever runfile), or run raggs sweep --judge-holes",
)
LEAST_SHARE = 0.01  # a smaller share is shown with decimals, not in whole percent
OWN_CUTOFFS = "each sample with metadata.k is scored at that cutoff"


def verdict_word(verdict: Verdict) -> str:
    """Return the verdict as shown to users: one that unjudged passages could reverse is inconclusive."""
    return "inconclusive" if verdict == "unjudged" else verdict


def judgments(golden: GoldenPart) -> str:
    """Return a sentence on the golden set."""
    version = "" if golden.version is None else f"; {golden.version}"
    return (
        f"{golden.source}: {golden.judgments:,} labels for {golden.queries:,} queries, grades {golden.lowest} to "
        f"{golden.highest}, relevant from {golden.relevant}{version}"
    )


def interval_words(report: EvalReport) -> str:
    """Return in words what the intervals of the means cover."""
    over = "queries and labels" if report.label_uncertainty else "queries"
    return f"{100 * report.confidence:g}% interval over {over} (bootstrap)"


def difference_sentence(part: ComparisonPart, digits: int) -> str:
    """Return a sentence with a difference, its interval and p value, and the numbers of queries on which the system
    is better, equal and worse.

    Args:
        digits: decimals of the figures.
    """
    p, form = part.corrected.get("randomisation"), f"+z.{digits}f"
    tested = "" if p is None else f", p {p_value(p)} after Holm's correction"
    return (
        f"{part.system} against {part.baseline}: {part.measure} {formatted(part.difference, form)} "
        f"[{formatted(part.low, form)}, {formatted(part.high, form)}]{tested}; better on {part.wins}, "
        f"equal on {part.ties}, worse on {part.losses} queries"
    )


def would_tell(part: ComparisonPart) -> str:
    """Return how many queries would resolve an inconclusive difference. The text is empty for any other verdict, or if
    no number of queries would resolve it.
    """
    open_ = part.verdict == "inconclusive" and part.queries_needed
    return f"{query_count(part.queries_needed)} queries would resolve it" if part.queries_needed and open_ else ""


MAX_STATED_QUERIES = 10_000  # larger estimates mean that no real set is large enough


def query_count(needed: int) -> str:
    """Return the estimated number of queries: ``about 300``, or ``more than 10,000``."""
    return f"more than {MAX_STATED_QUERIES:,}" if needed > MAX_STATED_QUERIES else f"about {needed:,}"


def inconclusive(part: UnjudgedPart) -> str:
    """Return why a verdict is inconclusive: ``inconclusive: 20% of the top 10 of new is unjudged``."""
    return f"inconclusive: {unjudged_tops(part.tops)}"


def unjudged_tops(parts: Sequence[UnjudgedTopPart]) -> str:
    """Return in words which share of each system's top is unjudged."""
    shares = [f"{unjudged_share(part.share)} of the top {part.cutoff} of {part.system}" for part in parts]
    return f"{' and '.join(shares)} {'is' if len(shares) == 1 else 'are'} unjudged"


def unjudged_share(share: float) -> str:
    """Return a share in percent as text, with two significant digits if it is below `LEAST_SHARE`."""
    return f"{share:.0%}" if share >= LEAST_SHARE else f"{100 * share:.2g}%"
