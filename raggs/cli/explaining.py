"""`raggs why`: why a stage would run again, and why a query's passages stand in this order. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise

import typer
from rich.console import Console
from rich.text import Text

from raggs.artifacts import MergeRecord
from raggs.cli.screen import open_console, table
from raggs.cli.trust import judge_words
from raggs.manifests.explain import Explanation
from raggs.manifests.models import RunManifest
from raggs.manifests.opened import OpenedRun
from raggs.manifests.reasons import Reason
from raggs.manifests.store import dump_json
from raggs.ranking import Lock
from raggs.text import plural, shorten

SHOWN_LOCKS = 20
SHOWN_DOUBTS = 5
SURE = 0.95
STOPS = {
    "cap": "the calls allowed were used up; a higher rank.max_calls would make it surer",
    "few inversions expected": "so few wrongly ordered pairs are expected in the top that more calls were not worth it",
    "stable": "the top stayed the same for long enough",
    "everything is settled": "each place of the top is locked",
    "every presentation was shown": "the judge has seen all the pool can show, and would only repeat itself",
    "nothing to judge": "a pool of one needs no judge",
}


def rerun(stage: str, manifest: RunManifest, reasons: Sequence[Reason], as_json: bool) -> None:
    """Why a stage would run again, or would not, and what its result was made from."""
    lock = manifest.stages.get(stage)
    if as_json:
        components = dict(lock.components) if lock else None
        typer.echo(
            dump_json({"stage": stage, "reasons": [str(reason) for reason in reasons], "components": components})
        )
        return
    console = open_console()
    if reasons:
        console.print(f"{stage} would run again, because", soft_wrap=True)
        for reason in reasons:
            console.print(f"  {reason}", soft_wrap=True, markup=False)
    else:
        console.print(f"{stage} would not run again: nothing that it depends on has changed.", soft_wrap=True)
    if lock is not None:
        console.print(f"its result of {lock.ended:%Y-%m-%d %H:%M} UTC was made from")
        console.print(dump_json(lock.components), markup=False, soft_wrap=True)


def order(run: OpenedRun, found: Explanation, as_json: bool) -> None:
    """One query's order: the evidence behind each place, the judge, what remains unsure, and the locks."""
    if as_json:
        wins = [{"winner": winner, "loser": loser, "batches": count} for (winner, loser), count in found.wins.items()]
        settings = {"engine": found.config.engine, "top": found.config.top, "max_calls": found.config.max_calls}
        typer.echo(
            dump_json({"qid": found.qid, **settings, **asdict(found.ranking), "wins": wins, "failed": found.failed})
        )
        return
    console = open_console()
    _places(console, run, found)
    for line in (*_ending(found), *_doubts(found), *_locks(found)):
        console.print(line, markup=False, soft_wrap=True)


def _places(console: Console, run: OpenedRun, found: Explanation) -> None:
    ranking = found.ranking
    titles = {
        record.doc_id: record.title or record.text
        for record in run.typed("merge", MergeRecord)
        if record.qid == found.qid
    }
    rows = table("#", "95 %", "grade", "score", "shown", "won-lost", "above next", "passage")
    for place, doc_id in enumerate(ranking.order):
        won, lost = found.record(doc_id)
        rows.add_row(
            str(place + 1),
            f"{ranking.rank_low[place]}-{ranking.rank_high[place]}",
            str(found.grades[doc_id]),
            f"{ranking.scores[place]:.2f} ± {ranking.sigma[place]:.2f}",
            str(ranking.exposures[place]),
            f"{won}-{lost}",
            _against_next(found, place),
            Text(shorten(f"{doc_id} {titles.get(doc_id, '')}", 60)),
        )
    console.print(rows)


def _against_next(found: Explanation, place: int) -> str:
    """Confidence that a passage stands above the next one, and the batches that said so or the contrary."""
    order = found.ranking.order
    if place + 1 == len(order):
        return ""
    first, second = order[place], order[place + 1]
    ahead, behind = found.wins.get((first, second), 0), found.wins.get((second, first), 0)
    return f"{found.ranking.position_confidence[place]:.0%} ({ahead}:{behind})"


def _ending(found: Explanation) -> Iterator[str]:
    """Why nothing more was asked, and what the engine makes of the judge."""
    ranking, config = found.ranking, found.config
    yield (
        f"{plural(ranking.calls, 'judged batch')}, {found.failed} failed, of at most {config.max_calls}; "
        f"stopped: {ranking.stop_reason}"
    )
    if ranking.stop_reason in STOPS:
        yield f"  {STOPS[ranking.stop_reason]}"
    if ranking.sharpness is not None:
        yield f"judge on this query: {judge_words(ranking.sharpness, ranking.echo, ranking.position_bias)}"


def _doubts(found: Explanation) -> Iterator[str]:
    """What remains unsure: the closest neighbours of the top, and who may belong to it or not."""
    ranking, top = found.ranking, found.config.top
    yield f"{ranking.expected_inversions:.1f} wrongly ordered pairs expected in the top {top}"
    pairs = list(zip(ranking.position_confidence, pairwise(ranking.order), strict=False))[:top]
    open_pairs = sorted((chance, pair) for chance, pair in pairs if chance < SURE)
    if open_pairs:
        yield f"least sure of the top {top}, by the chance that the first is better:"
    for chance, (first, second) in open_pairs[:SHOWN_DOUBTS]:
        yield f"  {chance:.0%} {first} above {second}"
    edge = [
        f"{doc_id} {chance:.0%}"
        for doc_id, chance in zip(ranking.order, ranking.membership, strict=True)
        if 1 - SURE < chance < SURE
    ]
    if edge:
        more = f" … and {len(edge) - 2 * SHOWN_DOUBTS} more" if len(edge) > 2 * SHOWN_DOUBTS else ""
        yield f"in the top {top} or not: {', '.join(edge[: 2 * SHOWN_DOUBTS])}{more}"


def _locks(found: Explanation) -> Iterator[str]:
    """The settled pairs in the order in which they were made, and those that were taken back."""
    ranking = found.ranking
    neighbours = set(pairwise(ranking.order))
    between = sum((lock.winner, lock.loser) in neighbours for lock in ranking.locks)
    yield (
        f"{plural(len(ranking.locks), 'lock')} ({between} between neighbours), {len(ranking.released)} released; "
        "z: standard errors between the two when it was made"
    )
    for lock in ranking.locks[:SHOWN_LOCKS]:
        yield f"  {_lock(lock)}"
    if len(ranking.locks) > SHOWN_LOCKS:
        yield f"  … and {plural(len(ranking.locks) - SHOWN_LOCKS, 'more lock')}; all of them with --json"
    for lock in ranking.released[:SHOWN_LOCKS]:
        yield f"  released, later answers said otherwise: {_lock(lock)}"


def _lock(lock: Lock) -> str:
    evidence = f"won {plural(lock.evidence, 'batch')}" if lock.evidence else "by way of others"
    return f"call {lock.call}: {lock.winner} above {lock.loser} (z {lock.z:.1f}, {evidence})"
