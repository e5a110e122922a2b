"""Results on the screen: tables for people, JSON for pipes. Everything here goes to stdout and computes nothing.

How a run stands, as a table: each stage, and what it does without. Computes nothing.

What `raggs run --partial` shows. Computes nothing.

`raggs why`: why a stage would run again, and why a query's passages stand in this order. Computes nothing.

The label mix of a set in a line: how rare what is useful is, which a score alone does not tell.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from raggs.base.artifacts import EmbedRecord, JournalRecord, JudgeRecord, MergeRecord
from raggs.base.judge_health import GATE_FAILED_TEXT
from raggs.base.text import plural, shorten
from raggs.base.types import as_object
from raggs.cli.options import RunFlags, typed
from raggs.cli.plain_text import say_json
from raggs.cli.screen import open_console, table
from raggs.runs.manifests.costs import costs, failed_judge_gates
from raggs.runs.manifests.messages import CONFIDENCE, answerer_lines, lock_lines
from raggs.runs.manifests.models import LockedAnswerer, RunManifest, StageLock, snapshots
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
    from raggs.runs.manifests.reasons import UngradedQueries
    from raggs.runs.partial import ResumedRun
    from raggs.runs.runner import PipelineResult

__all__ = ["mix_json", "mix_words"]


def rows_of(lock: StageLock) -> int:
    """How many records a stage wrote."""
    return next(iter(lock.outputs.values())).rows


def stages_table(found: RunStatus) -> Table:
    """Each stage: its state, and what it has done and cost; then those that the run does without."""
    rows = table("stage", "state", "records", "failed", "USD", "ended")
    for name, reasons in found.plan.items():
        lock = found.manifest.stages.get(name)
        state = "up to date" if not reasons else found.begun.get(name) or f"would run: {reasons[0]}"
        spent = found.spent.get(name)
        rows.add_row(
            name,
            shorten(state, 64),
            f"{rows_of(lock):,}" if lock else "",
            f"{lock.failed:,}" if lock and lock.failed else "",
            f"{spent.usd:,.4f}" if spent and spent.calls else "",
            f"{lock.ended:%Y-%m-%d %H:%M}" if lock else "",
        )
    for name, said in found.left_out.items():
        rows.add_row(name, said, "", "", "", "")
    return rows


def say_unlooked(console: Console, found: RunStatus) -> None:
    """What was not compared, and how to do it; a command is never broken."""
    told = "corpus, questions and settings were not looked at; to compare them:"
    if found.unread:
        told = f"not compared with {found.config}: {found.unread}"
    console.print(told, soft_wrap=not console.is_terminal)
    if not found.unread:
        words = ["raggs", "status", str(found.run.folder), "--config", str(found.run.config_file)]
        console.print(shlex.join(words), soft_wrap=True)


def spent_json(folder: Path, error: BudgetSpent) -> str:
    """What a run has whose budget ended, what it lacks, and how it goes on."""
    run = open_run(folder)
    found = budget_coverage(run)
    lacks = {each.stage: {"left": list(each.left), "short": list(each.short)} for each in run.parts}
    told = {"run": str(folder), "bought": found and found.json, "lacks": lacks}
    return dump_json({**told, "error": error.message, "remedy": error.remedy})


def part_summary(part: ResumedRun, asked: RunFlags, *, as_json: bool, quiet: bool) -> None:
    """What was done of a run whose money ended, and what to do next."""
    folder, lacks = part.run.folder, part.run.lacks
    if as_json:
        left = {each.stage: list(each.left) for each in part.run.parts}
        say_json(dump_json({"run": str(folder), "stages": list(part.stages), "left": left}))
        return
    if quiet:
        return
    console, run = open_console(), typed(folder)
    done = " and ".join(part.stages)
    console.print(f"{done}: the queries that {part.stopped.stage} has done; {lacks}", soft_wrap=True)
    console.print(f"run: {folder}")
    console.print(f"next: {asked.going_on()}   (the whole run)", soft_wrap=True)
    console.print(
        f"  or: raggs eval -g {run} -r {run} && raggs export {run} --format beir --out golden", soft_wrap=True
    )


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


def show_order(run: OpenedRun, found: Explanation, as_json: bool) -> None:
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
    for line in (RANK_TABLE_LEGEND, *order_lines(found)):
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


def mix_words(labels: LabelMix) -> str:
    """``labels a query, median/mean: grade 5 1.0/1.3, ...; 2.0% of the judged are relevant (mean 2.4%)``."""
    relevant = ", ".join(f"{spread.name} {spread.median:.1f}/{spread.mean:.1f}" for spread in _relevant(labels))
    share = f"{labels.prevalence.median:.1%} of the judged are relevant (mean {labels.prevalence.mean:.1%})"
    return f"labels a query, median/mean: {relevant}; {share}"


def mix_json(labels: LabelMix | None) -> Mapping[str, Mapping[str, float]] | None:
    """Median and mean of each figure over the queries, by its name; None where nothing is graded."""
    if labels is None:
        return None
    spreads = (*labels.spreads, labels.prevalence)
    return {spread.name: {"median": spread.median, "mean": spread.mean} for spread in spreads}


def _relevant(labels: LabelMix) -> tuple[QuerySpread, ...]:
    """All but the last, which counts the judged passages."""
    return labels.spreads[:-1]


SHOWN_PASSAGES = 3
MAX_SHOWN_QUERIES = 1_000_000  # queries
SHOWN_FAILURES = 3


# --- raggs run ------------------------------------------------------------------------------------------------


def run_summary(result: PipelineResult, asked: RunFlags, show: int) -> None:
    """What a finished run found, did, cost, and what to do next."""
    console = open_console()
    run = OpenedRun(result.store, result.manifest)
    if not result.ran:
        console.print(f"Nothing to do: all stages are up to date ({result.seconds:.2f} s).")
    elif "rank" in result.manifest.stages:
        _top_passages(console, run, show)
    _stages(console, result)
    if left := run.pipeline.left_out:
        console.print(f"{left[0]}: left out ({left[0]}: null): a golden set of grades alone")
    _skipped(console, result.manifest)
    _print_lock_lines(console, {name: result.manifest.stages[name] for name in result.ran})
    _answerers(console, result.manifest.answerers, all_lines=bool(result.ran))
    folder, nothing = result.store.folder, None
    if "judge" in result.manifest.stages and not run.graded:
        from raggs.runs.manifests.reasons import ungraded  # late: a set without grades is rare

        nothing = ungraded(run)
        console.print(str(nothing), style="yellow", soft_wrap=not console.is_terminal)
    console.print(f"run: {folder}")
    _say_next(console, *_next_commands(folder, result.manifest, asked.going_on(), result.failed, nothing))


def _skipped(console: Console, manifest: RunManifest) -> None:
    if manifest.skipped_files:
        console.print(manifest.skipped_files, style="yellow", soft_wrap=not console.is_terminal, highlight=False)


def _print_lock_lines(console: Console, locks: Mapping[str, StageLock]) -> None:
    for lock in locks.values():
        for line, warning in lock_lines(lock):
            console.print(line, style="yellow" if warning else None, soft_wrap=not console.is_terminal)


def _answerers(console: Console, answerers: Collection[LockedAnswerer], *, all_lines: bool = True) -> None:
    """Which snapshots answered. `all_lines`: not only warnings."""
    for line, warning in answerer_lines(answerers):
        if warning or all_lines:
            console.print(line, style="yellow" if warning else None, soft_wrap=not console.is_terminal, highlight=False)


def _top_passages(console: Console, run: OpenedRun, show: int) -> None:
    texts = _texts(run, show)
    rows = table("query", "#", "grade", "score", "conf.", "passage")
    total = 0
    for number, (qid, ranking) in enumerate(run.golden()):
        total += 1
        if number >= show:
            continue
        for record in ranking[:SHOWN_PASSAGES]:
            words, title = texts.get((qid, ""), ""), texts.get((qid, record.doc_id), "")
            rows.add_row(
                shorten(f"{qid} {words}", 34) if record.rank == 1 else "",
                str(record.rank),
                str(record.grade),
                f"{record.score:.2f}",
                f"{record.confidence:.0%}",
                shorten(f"{record.doc_id} {title}", 60),
            )
    console.print(rows)
    console.print(CONFIDENCE)
    asked = run.manifest.stages["embed"].outputs["embed.jsonl"].rows
    if total > show:
        console.print(f"… and {plural(total - show, 'more query')} in rank.jsonl")
    if asked > total:
        console.print(f"{plural(asked - total, 'query')} found no passage worth ranking")
    console.print()


def _texts(run: OpenedRun, show: int) -> dict[tuple[str, str], str]:
    """Question texts and passage openings of the queries that are shown."""
    shown = {
        qid: {record.doc_id for record in ranking[:SHOWN_PASSAGES]}
        for qid, ranking in islice(run.golden(), min(show, MAX_SHOWN_QUERIES))
    }
    found = {(record.qid, ""): record.text for record in run.typed("embed", EmbedRecord) if record.qid in shown}
    last = max(shown, default="")
    for record in run.typed("merge", MergeRecord):
        if record.qid > last:
            break
        if record.doc_id in shown.get(record.qid, ()):
            found[record.qid, record.doc_id] = record.title or record.text
    return found


def _stages(console: Console, result: PipelineResult) -> None:
    rows = table("stage", "what", "records", "calls", "cached", "failed", "USD")
    for name in GOLDEN.order:
        lock = result.manifest.stages.get(name)
        if lock is None:
            continue
        done = "ran" if name in result.ran else "unchanged"
        cost = lock.cost if name in result.ran else None
        rows.add_row(
            name,
            done,
            f"{rows_of(lock):,}",
            f"{cost.calls:,}" if cost and (cost.calls or cost.cached) else "",
            f"{cost.cached:,}" if cost and (cost.calls or cost.cached) else "",
            f"{lock.failed:,}" if lock.failed else "",
            f"{cost.usd:,.4f}" if cost and (cost.calls or cost.cached) else "",
        )
    console.print(rows)
    spent = sum(result.manifest.stages[name].cost.usd for name in result.ran)
    costs_of = [result.manifest.stages[name].cost for name in result.ran]
    saved = sum(cost.saved_usd - cost.own_usd for cost in costs_of)
    console.print(
        f"{result.seconds:.1f} s, ${spent:,.4f} spent" + (f", ${saved:,.4f} saved by the cache" if saved else "")
    )
    if told := costs(result.store).total.possibly_billed:
        console.print(told, style="yellow", soft_wrap=not console.is_terminal)


def failures(result: PipelineResult) -> str:
    """The first judgments that failed, each with its reason, and how many there are in all."""
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


def _next_commands(
    folder: Path, manifest: RunManifest, again: str, failed: int, nothing: UngradedQueries | None
) -> tuple[str, ...]:
    """What to do next, and what else could be done."""
    if any(name not in manifest.stages for name in GOLDEN.of(manifest.config).order):
        return (again,)
    if failed:
        return (f"{again}   (tries the failed judgments again)",)
    if nothing is not None:
        return (nothing.remedy,)
    run = typed(folder)
    return (f"raggs eval -g {run} -r {run}", f"raggs audit {run} && raggs export {run} --format beir --out golden")


def _say_next(console: Console, command: str, *others: str) -> None:
    for head, words in (("next: ", command), *(("  or: ", other) for other in others)):
        narrow = console.is_terminal and len(head + words) > console.width  # a shell reads on after &&
        console.print(head + (words.replace(" && ", f" &&\n{' ' * len(head)}") if narrow else words), soft_wrap=True)


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
    """Return the same as JSON: model, host and key variable of each model."""
    return [target._asdict() for target in _targets(models, llm)]


def _targets(models: Iterable[str], llm: LLMSettings) -> list[CallTarget]:
    from raggs.llm.prices import call_target

    return [call_target(model, llm) for model in dict.fromkeys(models)]


def _expected(expected: RunForecast, cap: float | None) -> Iterator[str]:
    """The dry run's sum, and what it takes for granted."""
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
        full = "" if expected.exact else "every pool and ranking full"
        corrected = f"every answer corrected {times(repairs)}" if at_most > usd else ""
        if most := " and ".join(filter(None, (full, corrected))):
            yield f"at most: {most}"
    if cap is not None and usd > cap:
        yield "the cap may end it earlier: what is paid for by then can be used, and a higher cap goes on from there"
    if less := sum(line.discount_usd for line in expected.running):
        yield f"up to ${less:,.4f} of it less where the provider remembers the prompts' own words, as it is likely to"
    guesses = {line.who: line.hidden_tokens for line in expected.running if line.hidden_tokens and line.calls}
    for who, tokens in guesses.items():
        yield f"{tokens:,} tokens of hidden reasoning are assumed for each answer of {who}, until the first ones tell"
    if expected.plan.get("merge") and any(line.stage == "judge" and line.usd for line in expected.running):
        yield (
            "the pools are not known before merge has run, so answers that are paid for already still count "
            "above; run with --to merge, and the dry run takes them off"
        )
    yield from expected.advice


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


# --- raggs status ---------------------------------------------------------------------------------------------


def status(found: RunStatus, as_json: bool) -> None:
    """How a run stands, and what is next."""
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
    console.print(stages_table(found))
    _skipped(console, manifest)
    if told := found.total.possibly_billed:
        console.print(told, style="yellow", soft_wrap=not console.is_terminal)
    for said in filter(None, (found.bought and found.bought.sentence, found.labels and mix_words(found.labels))):
        console.print(said, soft_wrap=not console.is_terminal)
    if found.ungraded:
        console.print(str(found.ungraded), style="yellow", soft_wrap=not console.is_terminal)
    _print_lock_lines(console, manifest.stages)
    _answerers(console, found.answerers)
    if below := "; ".join(failed_judge_gates(manifest)):
        console.print(f"{GATE_FAILED_TEXT}: {below}", style="yellow", soft_wrap=not console.is_terminal)
    asked = RunFlags(found.config or found.run.config_file, found.overrides)
    if found.config is None and as_object(manifest.config.get("judge")).get("human_first"):
        asked = replace(asked, overrides=("judge.human_first=true",))
    if manifest.pipeline != GOLDEN.name:
        asked = replace(asked, verb=manifest.pipeline)
    elif manifest.name != manifest.config.get("name", manifest.name):
        asked = replace(asked, run_id=manifest.name)
    again = asked.command()
    if not found.compared:
        say_unlooked(console, found)
    golden = manifest.pipeline == GOLDEN.name
    done = (
        _next_commands(folder, manifest, again, failed, found.ungraded)
        if golden
        else (replace(asked, verb="run").command(),)
    )
    _say_next(console, *((again,) if any(plan.values()) else done))
