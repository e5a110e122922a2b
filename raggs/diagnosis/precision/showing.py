"""What was found in sentences and tables; points are hundredths of a score."""

from __future__ import annotations

from collections.abc import Sequence

from raggs.base.jsontypes import Number
from raggs.base.text import plural
from raggs.diagnosis.precision.models import PrecisionFound, ReversalPart, SystemPart, TiedPart
from raggs.diagnosis.verdicts import said
from raggs.evaluation.document import Cell, Legend, Row, Section, Table, bounded, cells, formatted

FAVOURS = {
    1: "the order of the file favours relevant passages, so labels leak through it",
    -1: "the order of the file disfavours relevant passages",
}
TIED = (
    "system", "precision", "measure", "as it stands", "expected", "least to most", "range, points", "at k",
    "bias, points", "questions",
)  # fmt: skip
LEGEND = (Legend("[ ]", "95% interval over questions, in points, which are hundredths"),)
PUBLISHED = (
    ("Qwen3-Reranker-0.6B", "softmax", "ndcg@10", "25.59", "1.13", "6.66", "0.24"),
    ("Qwen3-Reranker-0.6B", "softmax", "mrr@10", "38.03", "1.21", "9.08", "0.21"),
    ("bge-reranker-v2-m3", "sigmoid", "ndcg@10", "3.90", "0.16", "1.05", "0.06"),
    ("bge-reranker-v2-m3", "sigmoid", "mrr@10", "6.72", "0.19", "1.51", "0.10"),
    ("gte-multilingual-reranker-base", "sigmoid", "ndcg@10", "0.97", "0.14", "0.26", "0.05"),
    ("Qwen3-Embedding-0.6B", "product", "ndcg@10", "1.90", "0.00", "0.54", "0.00"),
    ("multilingual-e5-large", "product", "ndcg@10", "4.62", "0.00", "0.89", "0.00"),
)
ABOUT_PUBLISHED = (
    "Published for MIRACLReranking (717 questions of 100 candidates), not repeated here: in points, bfloat16 without "
    "and with high-precision scoring. Without it Qwen3-Reranker stands above gte (75.04 and 74.48), by expectation "
    "below it (68.38 and 74.22)."
)


def verdict(systems: Sequence[SystemPart], reversals: Sequence[ReversalPart], favours: int) -> str:
    """Of the system that hangs most on the order of ties; then what spares it that."""
    rounded = [part for part in systems if part.dtype != "f32" and not part.hps]
    worst = max(rounded, key=lambda part: (_widest(part), part.dtype == "bf16"), default=None)
    more = [FAVOURS[favours]] if favours else []
    if worst is None or not _widest(worst):
        return said("; ".join(["No score hangs on the order of ties, at any precision", *more]))
    widest = max(worst.at, key=lambda tied: tied.range or 0.0)
    found = f"In {worst.dtype}, scores of {worst.name} hang on the order of ties, {widest.measure} by "
    found += f"{_told(widest.range)} points"
    if pairs := {frozenset((each.first, each.second)) for each in reversals}:
        found += f", and {plural(len(pairs), 'pair')} of systems change{'s' * (len(pairs) == 1)} places by it"
    spared = next((part for part in systems if _spares(part, worst)), None)
    then = "First report the expectation and the range of ties: raggs eval prints (E, range)"
    if spared is not None:
        then = f"First take the last step in float32, which leaves {_told(_widest(spared))} at most"
    return said("; ".join([found, *more]), then)


def sections(found: PrecisionFound) -> tuple[Section, ...]:
    """What stands at the cutoff first."""
    return (
        Section(f"By precision, at {found.cutoff}", _sizes(found), Table(TIED, tuple(_tied(found))), LEGEND),
        _turned(found),
        _leaking(found),
        Section(
            "Published, not repeated here",
            (ABOUT_PUBLISHED,),
            Table(
                ("model", "form", "measure", "range", "range, HPS", "bias", "bias, HPS"),
                tuple(tuple(map(Cell, row)) for row in PUBLISHED),
            ),
        ),
    )


def _sizes(found: PrecisionFound) -> tuple[str, ...]:
    names = dict.fromkeys(part.name for part in found.systems)
    return tuple(
        f"{name}: largest group of equal scores: "
        + ", ".join(f"{part.largest:,} ({part.precision})" for part in found.systems if part.name == name)
        for name in names
    )


def _tied(found: PrecisionFound) -> list[Row]:
    return [_row(part, tied) for part in found.systems for tied in part.at]


def _row(part: SystemPart, tied: TiedPart) -> Row:
    return (
        *cells(part.name, part.precision, tied.measure, tied.oblivious, tied.expected),
        Cell(f"{formatted(tied.least, 'z.4f')} to {formatted(tied.most, 'z.4f')}"),
        _points(tied.range, tied.range_low, tied.range_high),
        _points(tied.across),
        _points(tied.bias, tied.bias_low, tied.bias_high),
        Cell(tied.moved),
    )


def _turned(found: PrecisionFound) -> Section:
    title = "Systems that change places"
    if not found.reversals:
        alone = len({part.name for part in found.systems}) < 2
        return Section(title, ("one system alone has no places to change" if alone else "none does",))
    rows = tuple(
        (
            *cells(each.first, each.second, each.precision, each.measure),
            _points(each.oblivious),
            _points(each.expected, each.low, each.high),
            _points(each.hps),
        )
        for each in found.reversals
    )
    head = ("better as it stands", "better by expectation", "precision", "measure", "as it stands", "expected", "HPS")
    return Section(title, (), Table(head, rows))


def _leaking(found: PrecisionFound) -> Section:
    title = "Whom the order of the file favours"
    if not found.leaks:
        return Section(title, ("nobody: no tie moves a measure, or files are in the order of their scores",))
    said = FAVOURS.get(found.favours, "nobody, as far as these questions tell")
    rows = tuple(
        (
            *cells(leak.system, leak.precision, leak.measure),
            _points(leak.bias),
            *map(Cell, (leak.up, leak.down)),
            Cell(leak.p, "score"),
        )
        for leak in found.leaks
    )
    head = ("system", "precision", "measure", "bias, points", "questions up", "questions down", "p (signs, Holm)")
    return Section(title, (said,), Table(head, rows))


def _spares(part: SystemPart, worst: SystemPart) -> bool:
    return part.name == worst.name and part.dtype == worst.dtype and part.hps


def _widest(part: SystemPart) -> float:
    return max((tied.range or 0.0 for tied in part.at), default=0.0)


def _told(value: Number) -> str:
    return _points(value).text


def _points(value: Number, low: Number = None, high: Number = None) -> Cell:
    """A difference in points, with its interval."""
    at, least, most = (None if each is None else 100 * each for each in (value, low, high))
    return bounded(at, least, most, "points")
