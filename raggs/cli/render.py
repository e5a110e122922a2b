"""Output of `raggs run`, `status` and `why` on stdout: the summary, further sections with `--details`, and JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from raggs.base.artifacts import JournalRecord, JudgeRecord
from raggs.base.document import Summary
from raggs.base.text import plural, shorten
from raggs.base.types import as_object
from raggs.cli.documents import show_details, show_parts
from raggs.cli.options import RunFlags, typed
from raggs.cli.plain_text import say_json
from raggs.cli.screen import open_console, table
from raggs.cli.summaries import (
    rank_texts,
    ranks_of,
    skipped,
    stages_run,
    summarise_order,
    summarise_run,
    summarise_status,
    titles_of,
    top_passages,
)
from raggs.runs.manifests.costs import costs, failed_judge_gates
from raggs.runs.manifests.messages import answerer_lines, lock_lines
from raggs.runs.manifests.models import LockedAnswerer, StageLock, snapshots
from raggs.runs.manifests.open_run import OpenedRun, budget_coverage, open_run
from raggs.runs.manifests.rank_messages import RANK_TABLE_LEGEND, against_next, order_lines
from raggs.runs.manifests.store import dump_json
from raggs.stages import GOLDEN

if TYPE_CHECKING:
    from raggs.app.run import RunForecast
    from raggs.app.status import RunStatus, StageStatus
    from raggs.llm import BudgetSpent, LLMSettings
    from raggs.llm.prices import CallTarget
    from raggs.reporting.surveying import LabelMix, QuerySpread
    from raggs.runs.manifests.explain import Explanation
    from raggs.runs.manifests.models import CostEstimate
    from raggs.runs.partial import ResumedRun
    from raggs.runs.runner import PipelineResult

__all__ = ["mix_json", "mix_words"]


def spent_json(folder: Path, error: BudgetSpent) -> str:
    """Return the state of a run whose budget is used up, as JSON: results, missing parts and the command to resume."""
    run = open_run(folder)
    found = budget_coverage(run)
    lacks = {each.stage: {"left": list(each.left), "short": list(each.short)} for each in run.parts}
    told = {"run": str(folder), "bought": found and found.json, "lacks": lacks}
    return dump_json({**told, "error": error.message, "remedy": error.remedy})


def part_summary(part: ResumedRun, asked: RunFlags, *, as_json: bool, quiet: bool) -> None:
    """Print what `raggs run --partial` finished, what is missing, and the next command."""
    folder, lacks = part.run.folder, part.run.lacks
    if as_json:
        left = {each.stage: list(each.left) for each in part.run.parts}
        say_json(dump_json({"run": str(folder), "stages": list(part.stages), "left": left}))
        return
    if quiet:
        return
    done, place = " and ".join(part.stages), typed(folder)
    headline = (f"Partial golden set: {done} finished for the queries that {part.stopped.stage} has done.",)
    usable = f"To use it as it is: raggs eval -g {place} -r {place}"
    found = Summary(headline, trust=(f"Missing: {lacks}.", usable), next=asked.going_on(), details=f"run: {place}")
    show_details(found, open_console())


def rerun(found: StageStatus, as_json: bool, details: bool = False) -> None:
    """Print whether a stage would run again and why; with `details`, also the inputs and settings of its last
    result.
    """
    lock = found.lock
    if as_json:
        components = dict(lock.components) if lock else None
        reasons = [str(reason) for reason in found.reasons]
        say_json(dump_json({"stage": found.stage, "reasons": reasons, "components": components}))
        return
    console, status = open_console(), found.status
    shown = [shorten(str(reason), MAX_REASON_CHARS) for reason in found.reasons]
    if shown:
        more = f"{len(shown) - MAX_REASONS} more: --details"
        listed = shown if details or len(shown) <= MAX_REASONS else [*shown[:MAX_REASONS], more]
        headline = (f"{found.stage} would run again:", *(f"  {each}" for each in listed))
    else:
        headline = (f"{found.stage} is up to date: none of its inputs and settings changed.",)
    trust = "" if status.compared else "Corpus, queries and settings were not compared: add --config FILE."
    if status.unread:
        trust = f"Not compared with {status.config}: {status.unread}"
    made = "" if lock is None else f"last result: {lock.ended:%Y-%m-%d %H:%M} UTC"
    show_details(
        Summary(
            headline,
            trust=tuple(filter(None, [trust, made])),
            next=RunFlags(status.config or status.run.config_file, status.overrides).command() if shown else "",
            details="--details: inputs, settings and versions of the last result" if lock else "",
        ),
        console,
        details,
        (lambda: console.print(dump_json(lock.components), soft_wrap=True)) if lock else None,
    )


def show_order(run: OpenedRun, found: Explanation, as_json: bool, details: bool = False) -> None:
    """Print one query's order; with `details`, also the evidence: uncertain pairs, locked pairs and the judge."""
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

    def rest() -> None:
        _places(console, run, found)
        for line in (RANK_TABLE_LEGEND, *order_lines(found)):
            console.print(line, soft_wrap=not console.is_terminal)

    show_details(summarise_order(run, found), console, details, rest)


def _lists(found: Explanation) -> dict[str, object]:
    """Return the lengths of the lists, and the measurements from which they were chosen; empty if the length was
    fixed.
    """
    if found.profile is None:
        return {}
    profile = found.profile.model_dump(mode="json")
    return {"profile": profile, "lengths": dict(found.lengths), "told_by_length": dict(found.told_by_length)}


def _places(console: Console, run: OpenedRun, found: Explanation) -> None:
    ranking = found.ranking
    titles, ranks = titles_of(run, found.qid), ranks_of(run, found.qid)
    rows = table("#", "95%", "grade", "score", "shown", "won-lost", "above next", "passage")
    for place, doc_id in enumerate(ranking.order):
        won, lost = found.record(doc_id)
        rows.add_row(
            *rank_texts(found, place, ranks),
            str(found.grades[doc_id]),
            f"{ranking.scores[place]:.2f} ± {ranking.sigma[place]:.2f}",
            str(ranking.exposures[place]),
            f"{won}-{lost}",
            against_next(found, place),
            shorten(f"{doc_id} {titles.get(doc_id, '')}", 60),
        )
    console.print(rows)


def mix_words(labels: LabelMix) -> str:
    """Return the number of passages per grade and query, as ``labels per query (median, mean): grade 5 1.0, 1.3;
    ...``.
    """
    relevant = "; ".join(f"{spread.name} {spread.median:.1f}, {spread.mean:.1f}" for spread in _relevant(labels))
    share = f"relevant share of the judged passages: median {labels.prevalence.median:.1%}"
    return f"labels per query (median, mean): {relevant}. {share}, mean {labels.prevalence.mean:.1%}"


def mix_json(labels: LabelMix | None) -> Mapping[str, Mapping[str, float]] | None:
    """Return the median and the mean over the queries, by name of the statistic; None if no passage is graded."""
    if labels is None:
        return None
    spreads = (*labels.spreads, labels.prevalence)
    return {spread.name: {"median": spread.median, "mean": spread.mean} for spread in spreads}


def _relevant(labels: LabelMix) -> tuple[QuerySpread, ...]:
    """Return all spreads except the last one, which counts the judged passages."""
    return labels.spreads[:-1]


SHOWN_PASSAGES = 3
SHOWN_FAILURES = 3
MAX_REASONS = 5  # maximum number of reasons why a stage would run again; --details prints all
MAX_REASON_CHARS = 120


# --- raggs run ------------------------------------------------------------------------------------------------


def run_summary(result: PipelineResult, asked: RunFlags, show: int, details: bool) -> None:
    """Print what a finished run found and cost, and the next command."""
    console, nothing = open_console(), None
    run = OpenedRun(result.store, result.manifest)
    if "judge" in result.manifest.stages and not run.graded:
        from raggs.runs.manifests.reasons import ungraded  # imported lazily: a run without grades is rare

        nothing = ungraded(run)

    def rest() -> None:
        if result.ran and "rank" in result.manifest.stages and show:
            table, _ = top_passages(run, show, SHOWN_PASSAGES)
            if table is not None:
                show_parts(table, console)
                console.print()
        if (stages := stages_run(result)) is not None:
            show_parts(stages, console)
        for name in run.pipeline.left_out:
            console.print(f"{name}: disabled ({name}: null)")
        spent = [result.manifest.stages[name].cost for name in result.ran]
        saved = sum(cost.saved_usd - cost.own_usd for cost in spent)
        if saved:
            console.print(f"cached answers saved ${saved:,.4f}")
        for line in filter(None, (skipped(result.manifest), costs(result.store).total.possibly_billed)):
            console.print(line, style="yellow", soft_wrap=not console.is_terminal, highlight=False)
        _print_lock_lines(console, {name: result.manifest.stages[name] for name in result.ran})
        _answerers(console, result.manifest.answerers)
        console.print(f"run: {result.store.folder}")

    show_details(summarise_run(result, asked, show, nothing), console, details, rest)


def _print_lock_lines(console: Console, locks: Mapping[str, StageLock]) -> None:
    for lock in locks.values():
        for line, warning in lock_lines(lock):
            console.print(line, style="yellow" if warning else None, soft_wrap=not console.is_terminal)


def _answerers(console: Console, answerers: Collection[LockedAnswerer]) -> None:
    for line, warning in answerer_lines(answerers):
        console.print(line, style="yellow" if warning else None, soft_wrap=not console.is_terminal, highlight=False)


def failures(result: PipelineResult) -> str:
    """Return the number of failed judgments, and the errors of the first ones."""
    run = OpenedRun(result.store, result.manifest)
    found: list[str] = []
    if result.manifest.stages["judge"].failed:
        failed = (record for record in run.typed("judge", JudgeRecord) if record.failed)
        found += [f"{record.qid} {record.doc_id}: {record.error}" for record in islice(failed, SHOWN_FAILURES)]
    if "rank" in result.manifest.stages and result.manifest.stages["rank"].failed:
        skipped = (entry for entry in run.typed("rank.journal", JournalRecord) if entry.failed)
        found += [
            f"{entry.qid} order of {', '.join(entry.shown)}: {entry.error}" for entry in islice(skipped, SHOWN_FAILURES)
        ]
    shown = "; ".join(shorten(text, 120) for text in found[:SHOWN_FAILURES])
    more = "; …" if result.failed > SHOWN_FAILURES else ""
    return f"{plural(result.failed, 'judgment')} failed; run again to retry ({shown}{more})"


def run_json(result: PipelineResult) -> str:
    return dump_json(
        {
            "run": str(result.store.folder),
            "ran": {name: [str(reason) for reason in reasons] for name, reasons in result.ran.items()},
            "failed": result.failed,
            "gate": failed_judge_gates(result.manifest),
            "seconds": round(result.seconds, 3),
            "possibly_billed": costs(result.store).total.unknown_json,
            "snapshots": snapshots(result.manifest.answerers),
            "stages": {name: lock.model_dump(mode="json") for name, lock in result.manifest.stages.items()},
        }
    )


# --- raggs run --dry-run --------------------------------------------------------------------------------------


def dry_run(expected: RunForecast, cap: float | None, as_json: bool, llm: LLMSettings) -> None:
    """Print what a run would do, what that would cost under a cap in USD, and where its calls would go."""
    plan, lines, total = expected.plan, expected.running, expected.usd
    if as_json:
        estimates = [line.model_dump() for line in lines]
        reasons = {name: [str(reason) for reason in found] for name, found in plan.items()}
        costs = {"usd": total, "usd_expected": expected.usd_expected, "usd_at_most": expected.usd_at_most}
        costs |= {"max_usd": cap}
        sent = {"targets": targets_json(who_is_paid(lines), llm)}
        say_json(dump_json({"plan": reasons, "estimates": estimates, **costs, **sent}))
        return
    console = open_console()
    for name, found in plan.items():
        console.print(f"{name:<9} {'would run: ' + str(found[0]) if found else 'unchanged'}", soft_wrap=True)
    if not any(plan.values()):
        console.print("Nothing to do.")
        return
    rows = table("stage", "calls", "cached", "tokens in", "tokens out", "USD", "by")
    for line in lines:
        rows.add_row(
            line.stage,
            f"{'' if line.exact else '≤ '}{line.calls:,}",
            f"{line.cached:,}" if line.cached else "",
            f"{line.input_tokens:,}",
            f"{line.output_tokens:,}",
            "unknown price" if line.usd is None else f"{line.usd:,.4f}",
            line.who,
        )
    console.print(rows)
    for told in (*_expected(expected, cap), *targets_in_words(who_is_paid(lines), llm)):
        console.print(told, soft_wrap=not console.is_terminal, highlight=False)


def who_is_paid(estimates: Iterable[CostEstimate]) -> Iterator[str]:
    """Yield the models of a dry run that are called over a network."""
    for line in estimates:
        if line.calls and not line.who.endswith("(local)"):
            yield line.who.removesuffix(", by batches")


def targets_in_words(models: Iterable[str], llm: LLMSettings) -> Iterator[str]:
    """Yield a sentence for each host and key variable: which models would be called there."""
    by_place: dict[tuple[str, str | None], list[str]] = {}
    for target in _targets(models, llm):
        by_place.setdefault((target.host, target.key), []).append(target.model)
    for (host, key), names in by_place.items():
        sent = f"with the key in {key}" if key else "without a key"
        yield f"calls of {', '.join(names)} go to {host} {sent}"


def targets_json(models: Iterable[str], llm: LLMSettings) -> list[dict[str, str | None]]:
    """Return the model, host and key variable of each called model, as JSON."""
    return [target._asdict() for target in _targets(models, llm)]


def _targets(models: Iterable[str], llm: LLMSettings) -> list[CallTarget]:
    from raggs.llm.prices import call_target

    return [call_target(model, llm) for model in dict.fromkeys(models)]


def _expected(expected: RunForecast, cap: float | None) -> Iterator[str]:
    """Yield the total of the dry run and its assumptions."""
    limit = "no cap" if cap is None else f"cap ${cap:,.2f}"
    usd, at_most = expected.usd, expected.usd_at_most
    if usd is None or at_most is None:
        yield f"estimated cost: unknown: set llm.prices ({limit})"
        from raggs.llm.prices import nearest_model

        for model in dict.fromkeys(who_is_paid(line for line in expected.running if line.usd is None)):
            near = nearest_model(model)
            meant = "" if near is None else f"; did you mean {near}?"
            yield f"{model} is not in litellm's list of models{meant}"
        return
    repairs = max((line.repairs for line in expected.running), default=0)
    likely = usd if expected.usd_expected is None else expected.usd_expected
    if not at_most:
        yield f"estimated cost: $0.0000 ({limit})"
    else:
        yield f"estimated cost: expected about ${likely:,.4f}, at most ${at_most:,.4f} ({limit})"
        full = "" if expected.exact else "every pool and ranking is full"
        corrected = f"every answer is corrected {times(repairs)}" if at_most > usd else ""
        if most := " and ".join(filter(None, (full, corrected))):
            yield f"the maximum assumes that {most}"
    if cap is not None and usd > cap:
        yield "the cap may stop the run earlier; paid results are usable, and a higher cap resumes the run"
    if less := sum(line.discount_usd for line in expected.running):
        yield f"prompt caching by the provider may reduce this by up to ${less:,.4f}"
    guesses = {line.who: line.hidden_tokens for line in expected.running if line.hidden_tokens and line.calls}
    for who, tokens in guesses.items():
        yield f"{tokens:,} tokens of hidden reasoning are assumed per answer of {who} until answers have been measured"
    if expected.plan.get("merge") and any(line.stage == "judge" and line.usd for line in expected.running):
        yield (
            "the pools are unknown until merge has run, so answers that are already cached are still counted; "
            "to exclude them, run with --to merge before the dry run"
        )
    yield from expected.advice


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


# --- raggs status ---------------------------------------------------------------------------------------------


def status(found: RunStatus, as_json: bool, details: bool = False) -> None:
    """Print the state of a run and the next command."""
    manifest, plan, folder = found.manifest, found.plan, found.run.folder
    failed = sum(lock.failed for lock in manifest.stages.values())
    if as_json:
        stages = {
            name: {
                "done": name in manifest.stages,
                "reasons": [str(reason) for reason in reasons],
                "begun": found.begun.get(name),
                "usd": found.spent[name].usd if name in found.spent else 0.0,
                "lock": manifest.stages[name].model_dump(mode="json") if name in manifest.stages else None,
            }
            for name, reasons in plan.items()
        }
        facts = {"run": str(folder), "name": manifest.name, "stages": stages, "failed": failed}
        facts |= {"labels": mix_json(found.labels), "left_out": tuple(found.left_out)}
        facts |= {"unreadable": None if manifest.unreadable is None else manifest.unreadable.model_dump(mode="json")}
        facts |= {"bought": found.bought and found.bought.json, "possibly_billed": found.total.unknown_json}
        facts |= {"snapshots": snapshots(found.answerers)}
        say_json(dump_json({**facts, "compared": found.compared, "unread": found.unread}))
        return
    console = open_console()
    asked = RunFlags(found.config or found.run.config_file, found.overrides)
    if found.config is None and as_object(manifest.config.get("judge")).get("human_first"):
        asked = replace(asked, overrides=("judge.human_first=true",))
    if manifest.pipeline != GOLDEN.name:
        asked = replace(asked, verb=manifest.pipeline)
    elif manifest.name != manifest.config.get("name", manifest.name):
        asked = replace(asked, run_id=manifest.name)

    def rest() -> None:
        if found.bought is not None:
            console.print(found.bought.sentence, soft_wrap=not console.is_terminal)
        if found.labels is not None:
            console.print(mix_words(found.labels), soft_wrap=not console.is_terminal)
        _print_lock_lines(console, manifest.stages)
        _answerers(console, found.answerers)

    show_details(summarise_status(found, asked), console, details, rest)
