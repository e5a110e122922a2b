"""`raggs why`: why a stage would run again, and why a query's passages stand in this order. Computes nothing."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console

from raggs.app.status import StageStatus
from raggs.base.artifacts import MergeRecord
from raggs.base.text import shorten
from raggs.cli.plain import say_json
from raggs.cli.screen import open_console, table
from raggs.cli.standing import say_unlooked
from raggs.runs.manifests.explain import Explanation
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.orderwords import PLACES, against_next, order_lines
from raggs.runs.manifests.store import dump_json


def rerun(found: StageStatus, as_json: bool) -> None:
    """Why a stage would run again, or would not, and what its result was made from."""
    lock = found.lock
    if as_json:
        components = dict(lock.components) if lock else None
        reasons = [str(reason) for reason in found.reasons]
        say_json(dump_json({"stage": found.stage, "reasons": reasons, "components": components}))
        return
    console = open_console()
    if found.reasons:
        console.print(f"{found.stage} would run again, because", soft_wrap=True)
        for reason in found.reasons:
            console.print(f"  {reason}", soft_wrap=True)
    elif found.status.compared:
        console.print(f"{found.stage} would not run again: nothing that it depends on has changed.", soft_wrap=True)
    else:
        console.print(f"{found.stage} would not run again by what its run's directory tells.", soft_wrap=True)
    if not found.status.compared:
        say_unlooked(console, found.status)
    if lock is not None:
        console.print(f"its result of {lock.ended:%Y-%m-%d %H:%M} UTC was made from")
        console.print(dump_json(lock.components), soft_wrap=True)


def order(run: OpenedRun, found: Explanation, as_json: bool) -> None:
    """One query's order: the evidence behind each place, the judge, what remains unsure, and the locks."""
    if as_json:
        wins = [{"winner": winner, "loser": loser, "batches": count} for (winner, loser), count in found.wins.items()]
        config = found.config
        settings: dict[str, object] = {"engine": config.engine, "top": config.top, "max_calls": config.max_calls}
        if config.budget is not None:
            settings |= {"budget": config.budget.model_dump(), "calls_of_all": found.shares}
        say_json(
            dump_json(
                {"qid": found.qid, **settings, **asdict(found.ranking), "wins": wins, "failed": found.failed}
                | _lists(found)
            )
        )
        return
    console = open_console()
    _places(console, run, found)
    for line in (PLACES, *order_lines(found)):
        console.print(line, soft_wrap=not console.is_terminal)


def _lists(found: Explanation) -> dict[str, object]:
    """How long the lists were and why, where that was open."""
    if found.profile is None:
        return {}
    profile = found.profile.model_dump(mode="json")
    return {"profile": profile, "lengths": dict(found.lengths), "told_by_length": dict(found.told_by_length)}


def _places(console: Console, run: OpenedRun, found: Explanation) -> None:
    ranking = found.ranking
    titles = {
        record.doc_id: record.title or record.text
        for record in run.typed("merge", MergeRecord)
        if record.qid == found.qid
    }
    rows = table("#", "95%", "grade", "score", "shown", "won-lost", "above next", "passage")
    for place, doc_id in enumerate(ranking.order):
        won, lost = found.record(doc_id)
        rows.add_row(
            str(place + 1),
            f"{ranking.rank_low[place]}-{ranking.rank_high[place]}",
            str(found.grades[doc_id]),
            f"{ranking.scores[place]:.2f} ± {ranking.sigma[place]:.2f}",
            str(ranking.exposures[place]),
            f"{won}-{lost}",
            against_next(found, place),
            shorten(f"{doc_id} {titles.get(doc_id, '')}", 60),
        )
    console.print(rows)
