"""`raggs why` on the screen: why a stage would run again, and who beat whom in one query's order. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer
from rich.text import Text

from raggs.artifacts import MergeRecord
from raggs.cli.screen import open_console, table
from raggs.manifests.explain import Explanation
from raggs.manifests.models import RunManifest
from raggs.manifests.opened import Run
from raggs.manifests.reasons import Reason
from raggs.manifests.store import dump_json
from raggs.text import plural, shorten

SHOWN_LOCKS = 20


def why(stage: str, manifest: RunManifest, reasons: Sequence[Reason], as_json: bool) -> None:
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


def explanation(run: Run, found: Explanation, as_json: bool) -> None:
    """One query's order: the evidence behind each place, the locks, and the neighbours that are not settled."""
    ranking = found.ranking
    if as_json:
        wins = [{"winner": winner, "loser": loser, "batches": count} for (winner, loser), count in found.wins.items()]
        typer.echo(dump_json({"qid": found.qid, **asdict(ranking), "wins": wins, "failed": found.failed}))
        return
    console = open_console()
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
    settled = [
        lock for lock in ranking.locks if ranking.order.index(lock.loser) == ranking.order.index(lock.winner) + 1
    ]
    console.print(f"{plural(ranking.calls, 'judged batch')}, {found.failed} failed; stopped: {ranking.stop_reason}")
    console.print(
        f"{plural(len(ranking.locks), 'lock')} ({len(settled)} between neighbours), {len(ranking.released)} released; "
        f"{ranking.expected_inversions:.1f} wrongly ordered pairs expected in the top"
    )
    for lock in ranking.locks[:SHOWN_LOCKS]:
        console.print(
            f"  call {lock.call}: {lock.winner} above {lock.loser} (z {lock.z:.1f}, {plural(lock.evidence, 'batch')})",
            markup=False,
        )
    if len(ranking.locks) > SHOWN_LOCKS:
        console.print(f"  … and {plural(len(ranking.locks) - SHOWN_LOCKS, 'more lock')}; all of them with --json")


def _against_next(found: Explanation, place: int) -> str:
    """Confidence that a passage stands above the next one, and the batches that said so or the contrary."""
    order = found.ranking.order
    if place + 1 == len(order):
        return ""
    first, second = order[place], order[place + 1]
    ahead, behind = found.wins.get((first, second), 0), found.wins.get((second, first), 0)
    return f"{found.ranking.position_confidence[place]:.0%} ({ahead}:{behind})"
