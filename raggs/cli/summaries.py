"""Default output of `raggs run`, `status`, `why`, `cost` and `audit`: each command's result as a `Summary`.

The headline is the answer, the table is the evidence for it, and `next` is the one command to run next.
`raggs.cli.render` prints everything else with `--details`, so that the default output stays within 25 lines. Nothing is
computed here but counts and sums.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.artifacts import EmbedRecord, JudgeRecord, MergeRecord, RankRecord
from raggs.base.document import Summary, Table
from raggs.base.judge_health import GATE_FAILED_TEXT, JudgeHealth
from raggs.base.text import plural, shorten
from raggs.cli.options import RunFlags, typed
from raggs.parts.judges import is_exact
from raggs.runs.manifests.costs import costs, failed_judge_gates
from raggs.runs.manifests.messages import CONFIDENCE, answerer_lines, inversions_words, lock_lines, settled_words
from raggs.runs.manifests.models import LockedAnswerer, RunManifest, StageLock
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.rank_messages import STOPS
from raggs.stages import GOLDEN

if TYPE_CHECKING:
    from raggs.app.audit import Audit
    from raggs.app.status import RunStatus
    from raggs.runs.manifests.costs import LedgerSum, RunCost
    from raggs.runs.manifests.explain import Explanation
    from raggs.runs.manifests.models import CostEstimate
    from raggs.runs.manifests.reasons import UngradedQueries
    from raggs.runs.runner import PipelineResult

MAX_SHOWN_QUERIES = 1_000_000  # queries
MAX_WARNINGS = 2  # in a default output; all with --details
MAX_WARNING_CHARS = 150
MAX_QUERY_CHARS = 26
MAX_PASSAGE_CHARS = 28
MAX_STATE_CHARS = 56
MAX_FINDINGS = 6  # in a default output; all with --details
MAX_FINDING_CHARS = 110
MAX_PLACES = 10  # passages of an order; all with --details


def usd(value: float) -> str:
    """Return an amount in USD with two decimals, or with four if it is below one cent: ``$1.23``, ``$0.0042``."""
    return f"${value:,.4f}" if 0 < abs(value) < 0.01 else f"${value:,.2f}"


def rows_of(lock: StageLock) -> int:
    """Return the number of records that a stage wrote."""
    return next(iter(lock.outputs.values())).rows


def _warnings(locks: Iterable[StageLock], answerers: Collection[LockedAnswerer], *others: str) -> tuple[str, ...]:
    """Return the warnings about a run: the first two, shortened, and how many more there are."""
    found = [*filter(None, others), *(line.text for lock in locks for line in lock_lines(lock) if line.warning)]
    found += [line.text for line in answerer_lines(answerers) if line.warning]
    more = len(found) - MAX_WARNINGS
    shown = [shorten(each, MAX_WARNING_CHARS) for each in found[:MAX_WARNINGS]]
    return (*shown, *([f"{plural(more, 'more warning')}: --details"] if more > 0 else []))


def _trust_sentences(locks: Mapping[str, StageLock]) -> tuple[str, ...]:
    """Return one line on how far the order can be trusted; an empty tuple if there is no ranking or nothing to say."""
    if (lock := locks.get("rank")) is None:
        return ()
    found = [f"Not stable: {others}." for each in settled_words(lock) if (others := each.partition("; ")[2])]
    if is_exact(lock.components.get("judge")):
        found.append("The judge is rule-based.")
    elif (inversions := getattr(lock.health, "expected_inversions", None)) is not None:
        found.append(f"{inversions_words(inversions)}.")
    return (" ".join(found),) if found else ()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """Return a table without the columns that are empty in every row; None if there are no rows."""
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    return Table.of([head[place] for place in kept], ([row[place] for place in kept] for row in rows))


def _golden_set(run: OpenedRun, locks: Mapping[str, StageLock]) -> str:
    """Return the size of a golden set: ``6 queries, 137 graded passages, top 5 stable for 1 of 6 queries``."""
    parts = [plural(rows_of(locks["embed"]), "query")] if "embed" in locks else []
    if "judge" in locks:
        graded = sum(record.grade is not None for record in run.typed("judge", JudgeRecord))
        parts.append(plural(graded, "graded passage"))
    if "rank" in locks:
        parts += list(settled_words(locks["rank"], short=True))[:1]
    return ", ".join(parts)


# --- raggs run ------------------------------------------------------------------------------------------------


def summarise_run(result: PipelineResult, asked: RunFlags, show: int, nothing: UngradedQueries | None) -> Summary:
    """Return the default output of `raggs run`.

    Args:
        asked: the flags of the command, from which the next command is made.
        show: number of queries in the table.
        nothing: why no query has a graded passage; None if at least one has.
    """
    manifest, run = result.manifest, OpenedRun(result.store, result.manifest)
    ran = {name: manifest.stages[name] for name in result.ran}
    spent, calls = sum(lock.cost.usd for lock in ran.values()), sum(lock.cost.calls for lock in ran.values())
    cost = ", ".join([usd(spent), *([plural(calls, "call")] if calls else []), f"{result.seconds:.1f} s"])
    gate = failed_judge_gates(manifest)
    missing = [name for name in run.pipeline.order if name not in manifest.stages]
    headline = [gate_headline(gate)] if gate else []
    if nothing is not None:
        headline.insert(0, shorten(f"No golden set: {nothing} ({cost}).", MAX_WARNING_CHARS))
    elif result.failed:
        headline.insert(0, f"Golden set incomplete: {plural(result.failed, 'judgment')} failed ({cost}).")
    elif not ran:
        what = "the selected stages are" if missing else "all stages are"
        headline.append(f"Nothing to do: {what} up to date ({result.seconds:.2f} s).")
    elif missing:
        done = ", ".join(name for name in run.pipeline.order if name in manifest.stages)
        headline.insert(0, f"Run not finished: {done} done; {', '.join(missing)} not run ({cost}).")
    else:
        state = "built" if gate else "ready"
        headline.append(f"Golden set {state}: {_golden_set(run, manifest.stages)} ({cost}).")
    shows_queries = show and ran and not (result.failed or missing or nothing) and "rank" in manifest.stages
    table, legend = top_passages(run, show) if shows_queries else (None, "")
    if table is None and (result.failed or missing or nothing or ran):
        table, legend = stages_run(result), ""
    warnings = _warnings(ran.values(), manifest.answerers, costs(result.store).total.possibly_billed, skipped(manifest))
    return Summary(
        headline=tuple(headline),
        table=table,
        legend=legend,
        trust=warnings or (_trust_sentences(ran) if not gate else ()),
        next=next_command(result.store.folder, run, asked.going_on(), result.failed, gate, nothing),
        details="--details: stages, calls, top passages and judge statistics",
    )


def skipped(manifest: RunManifest) -> str:
    """Return the sentence about corpus files that were skipped; empty if there are none."""
    return str(manifest.skipped_files) if manifest.skipped_files else ""


def gate_headline(gate: Sequence[str]) -> str:
    """Return the sentence about a judge that fails its check, with what fails."""
    return shorten(f"{GATE_FAILED_TEXT[0].upper()}{GATE_FAILED_TEXT[1:]}: {'; '.join(gate)}.", MAX_WARNING_CHARS)


def next_command(
    folder: Path, run: OpenedRun, again: str, failed: int, gate: Sequence[str], nothing: UngradedQueries | None
) -> str:
    """Return the command to run next: finish the run, repair the judge, or evaluate."""
    manifest, place = run.manifest, typed(folder)
    if failed or any(name not in manifest.stages for name in GOLDEN.of(manifest.config).order):
        return again
    if nothing is not None:
        return nothing.remedy
    if gate:
        return judge_remedy(manifest, place)
    return f"raggs eval -g {place} -r {place}"


def judge_remedy(manifest: RunManifest, place: str) -> str:
    """Return the command that inspects a judge that fails its check, or collects the labels that the check needs."""
    lock = manifest.stages.get("judge")
    people = lock.health.people if lock is not None and isinstance(lock.health, JudgeHealth) else None
    if people is not None and not people.grades:
        return f"raggs review serve {place}"
    return f"raggs judge check {place}" if people is not None else f"raggs status {place} --details"


def top_passages(run: OpenedRun, show: int, passages: int = 1) -> tuple[Table | None, str]:
    """Return the table of the first `show` queries with their best passages, and its legend."""
    texts, rows, total = _texts(run, show, passages), list[tuple[str, ...]](), 0
    for qid, ranking in run.golden():
        total += 1
        if total > show:
            continue
        for record in ranking[:passages]:
            query, title = texts.get((qid, ""), ""), texts.get((qid, record.doc_id), "")
            rows.append(
                (
                    shorten(f"{qid} {query}", MAX_QUERY_CHARS) if record.rank == 1 else "",
                    shorten(f"{record.doc_id} {title}", MAX_PASSAGE_CHARS),
                    *([str(record.rank)] if passages > 1 else []),
                    str(record.grade),
                    f"{record.score:.2f}",
                    f"{record.confidence:.0%}",
                )
            )
    more = f"{show:,} of {plural(total, 'query')} shown; " if total > show else ""
    head = ("query", "best passage" if passages == 1 else "passage", *(["rank"] if passages > 1 else []))
    return Table.of((*head, "grade", "score", "conf."), rows), f"{more}{CONFIDENCE}"


def _texts(run: OpenedRun, show: int, passages: int) -> dict[tuple[str, str], str]:
    """Return query texts and passage titles of the queries that are shown, by query id and passage id."""
    shown = {
        qid: {record.doc_id for record in ranking[:passages]}
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


def stages_run(result: PipelineResult) -> Table | None:
    """Return the table of stages of one invocation: whether each ran, its records, calls, failures and cost."""
    rows = []
    for name in GOLDEN.order:
        if (lock := result.manifest.stages.get(name)) is None:
            continue
        cost = lock.cost if name in result.ran and (lock.cost.calls or lock.cost.cached) else None
        rows.append(
            (
                name,
                "ran" if name in result.ran else "unchanged",
                f"{rows_of(lock):,}",
                f"{cost.calls:,}" if cost else "",
                f"{cost.cached:,}" if cost else "",
                f"{lock.failed:,}" if lock.failed else "",
                f"{cost.usd:,.4f}" if cost else "",
            )
        )
    return _table(("stage", "state", "records", "calls", "cached", "failed", "USD"), rows)


# --- raggs status ---------------------------------------------------------------------------------------------


def summarise_status(found: RunStatus, asked: RunFlags) -> Summary:
    """Return the default output of `raggs status`: complete or not, usable or not, and what fails."""
    manifest, folder = found.manifest, found.run.folder
    failed = sum(lock.failed for lock in manifest.stages.values())
    golden, gate = manifest.pipeline == GOLDEN.name, failed_judge_gates(manifest)
    again, due = asked.command(), [name for name, reasons in found.plan.items() if reasons]
    if due:
        command = again
    elif golden:
        command = next_command(folder, found.run, again, failed, gate, found.ungraded)
    else:
        command = RunFlags(asked.config, asked.overrides, verb="run").command()
    total = found.total
    compared = "" if found.compared else "Corpus, queries and settings were not compared: add --config FILE."
    if found.unread:
        compared = f"Not compared with {found.config}: {found.unread}"
    warnings = _warnings(manifest.stages.values(), found.answerers, total.possibly_billed, skipped(manifest))
    return Summary(
        headline=tuple(_status_headline(found, due, failed, gate)),
        table=_stages_table(found),
        trust=(*warnings, *filter(None, [compared])),
        next=command,
        details="--details: label counts, judge statistics and model versions",
    )


def _status_headline(found: RunStatus, due: Sequence[str], failed: int, gate: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong, the most urgent first; if nothing is, that the run is complete."""
    done, order = found.manifest.stages, tuple(found.plan)
    if found.bought is not None:
        yield f"Budget used up ({found.bought.cap}): {found.bought}."
    elif undone := [name for name in order if name not in done]:
        yield f"Run not finished: {len(order) - len(undone)} of {len(order)} stages done."
    elif due:
        yield f"Run out of date: {', '.join(due)} would run again."
    if failed:
        yield f"{plural(failed, 'judgment')} failed; the next run retries them."
    if found.ungraded is not None:
        yield shorten(f"Not usable: {found.ungraded}.", MAX_WARNING_CHARS)
    if gate:
        yield gate_headline(gate)
    if not (due or failed or gate or found.ungraded or found.bought) and done:
        spent = usd(found.total.usd)
        if found.manifest.pipeline == GOLDEN.name:
            yield f"Golden set complete: {_golden_set(found.run, done)} ({spent})."
        else:
            yield f"Run complete: {len(order)} of {len(order)} stages are up to date ({spent})."


def _stages_table(found: RunStatus) -> Table | None:
    rows = []
    for name, reasons in found.plan.items():
        lock, spent = found.manifest.stages.get(name), found.spent.get(name)
        state = "up to date" if not reasons else found.begun.get(name) or f"would run: {reasons[0]}"
        rows.append(
            (
                name,
                f"{rows_of(lock):,}" if lock else "",
                f"{lock.failed:,}" if lock and lock.failed else "",
                f"{spent.usd:,.4f}" if spent and spent.calls else "",
                f"{lock.ended:%Y-%m-%d}" if lock else "",
                shorten(state, MAX_STATE_CHARS),
            )
        )
    rows += [(name, "", "", "", "", shorten(said, MAX_STATE_CHARS)) for name, said in found.left_out.items()]
    return _table(("stage", "records", "failed", "USD", "ended", "state"), rows)


# --- raggs cost -----------------------------------------------------------------------------------------------


def summarise_cost(cost: RunCost, cap: float | None) -> Summary:
    """Return the default output of `raggs cost`.

    Args:
        cap: `budget.max_usd` of the run, in USD; None without a cap.
    """
    total, found = cost.spent.total, cost.spent
    rows = [
        (name, *_cost_cells(found.stage.get(name)), _estimate([line for line in cost.estimates if line.stage == name]))
        for name in dict.fromkeys((*found.stage, *(line.stage for line in cost.estimates)))
    ]
    notes = [total.possibly_billed] if total.unknown else []
    if (perhaps := total.perhaps_usd - total.unknown_usd) > 0:
        notes.append(f"{usd(perhaps)} of it is uncertain: calls without an answer in time.")
    return Summary(
        headline=(_cost_headline(total, cap),),
        table=_table(("stage", "calls", "cached", "failed", "USD", "saved USD", "estimated USD"), rows),
        legend="saved USD: by cached answers; estimated USD: dry run without a cache" if rows else "",
        trust=tuple(shorten(each, MAX_WARNING_CHARS) for each in notes),
        details="--details: tokens, latency, models and the most expensive queries" if rows else "",
    )


def _cost_headline(total: LedgerSum, cap: float | None) -> str:
    if not (total.calls or total.cached or total.failed or total.unknown):
        return f"No language model was called: {usd(0)}."
    of = "" if cap is None else f" of {usd(cap)} ({total.usd / cap:.0%})" if cap else f" of {usd(cap)}"
    saved = f"; cached answers saved {usd(total.saved_usd)}" if total.saved_usd else ""
    return f"Spent {usd(total.usd)}{of} in {plural(total.calls, 'call')}{saved}."


def _cost_cells(entry: LedgerSum | None) -> tuple[str, ...]:
    if entry is None:
        return ("",) * 5
    failed = f"{entry.failed:,}" if entry.failed else ""
    return (f"{entry.calls:,}", f"{entry.cached:,}", failed, f"{entry.usd:,.4f}", f"{entry.saved_usd:,.4f}")


def _estimate(lines: Sequence[CostEstimate]) -> str:
    if not lines:
        return ""
    return "unknown" if any(line.usd is None for line in lines) else f"{sum(line.usd or 0.0 for line in lines):,.4f}"


# --- raggs audit ----------------------------------------------------------------------------------------------

RECOMPUTED_STAGES = {
    "run": "embed, merge, judge, prune and rank",
    "questions": "verify and filter",
    "sweep": "scores, latency and the recommendation",
}


REMEDIES = {"run": "run again", "copy": "restore copy", "lock": "write lock", "sign": "sign again", "told": ""}


def summarise_audit(run: Path, found: Audit) -> Summary:
    """Return the default output of `raggs audit`. If there are findings or unfinished stages, an error with the remedy
    follows.
    """
    if found.findings:
        rows = [
            (
                f"{each.file}:{each.line}" if each.line else each.file,
                REMEDIES[each.cure],
                shorten(each.message, MAX_FINDING_CHARS),
            )
            for each in found.findings[:MAX_FINDINGS]
        ]
        more = len(found.findings) - len(rows)
        return Summary(
            headline=(f"Audit failed: {plural(len(found.findings), 'finding')} in {_files(found)}.",),
            table=_table(("file", "remedy", "finding"), rows),
            details=f"--details: {f'{more} more and ' if more > 0 else ''}the full text of the findings",
        )
    notes = tuple(shorten(f"note: {note}", MAX_WARNING_CHARS) for note in found.notes[:MAX_WARNINGS])
    if found.unfinished:
        told = f"Audit incomplete: {', '.join(found.unfinished)} not finished; the rest matches the manifest."
        return Summary((told,), trust=notes, details="--details: all notes" if found.notes else "")
    return Summary(
        headline=(_audit_headline(run, found),),
        trust=(*notes, *([f"Not checked: {'; '.join(found.unchecked)}."] if found.unchecked else [])),
        details="--details: model versions, notes and disabled stages" if found.answered or found.notes else "",
    )


def _files(found: Audit) -> str:
    return plural(len({finding.file for finding in found.findings}), "file")


def _audit_headline(run: Path, found: Audit) -> str:
    if found.of == "files":
        return f"Audit passed: {plural(found.records, 'judgment')} in {run} can be read."
    if found.of == "evaluation":
        return f"Audit passed: {plural(found.records, 'value')} recomputed from the input files are the same."
    stages = "embed, merge, judge and prune" if found.left_out else RECOMPUTED_STAGES[found.of]
    checked = plural(found.records, "record")
    return f"Audit passed: hashes and {checked} match the manifest; {stages} recomputed with the same result."


# --- raggs why ------------------------------------------------------------------------------------------------


def titles_of(run: OpenedRun, qid: str) -> dict[str, str]:
    """Return the title, or the text, of each passage in the pool of a query."""
    return {
        record.doc_id: record.title or record.text for record in run.typed("merge", MergeRecord) if record.qid == qid
    }


def ranks_of(run: OpenedRun, qid: str) -> tuple[int, ...]:
    """Return the ranks of a query's ranked passages, without near-duplicates of other passages; empty before the rank
    stage.
    """
    if not run.file("rank").is_file():
        return ()
    listed = (record for record in run.typed("rank", RankRecord) if record.qid == qid)
    return tuple(sorted(record.rank for record in listed if record.duplicate_of in (None, record.doc_id)))


def rank_texts(found: Explanation, place: int, ranks: Sequence[int]) -> tuple[str, str]:
    """Return rank and plausible ranks of a ranked passage, numbered as in `raggs show`."""
    from raggs.golden.views import rank_of_position  # imported lazily: a run does not need it

    low, high = found.ranking.rank_low[place], found.ranking.rank_high[place]
    rank, best, worst = (rank_of_position(each, ranks) for each in (place + 1, low, high))
    return str(rank), f"{best}-{worst}"


def summarise_order(run: OpenedRun, found: Explanation) -> Summary:
    """Return the default output of `raggs why RUN --query QID`."""
    ranking, top = found.ranking, found.config.top
    titles, ranks, rows = titles_of(run, found.qid), ranks_of(run, found.qid), []
    for place, doc_id in enumerate(ranking.order[:MAX_PLACES]):
        won, lost = found.record(doc_id)
        rows.append(
            (
                *rank_texts(found, place, ranks),
                str(found.grades[doc_id]),
                f"{ranking.scores[place]:.2f}",
                f"{won}-{lost}",
                f"{ranking.position_confidence[place]:.0%}" if place + 1 < len(ranking.order) else "",
                shorten(f"{doc_id} {titles.get(doc_id, '')}", 34),
            )
        )
    calls = f"{plural(ranking.calls, 'judge call')}, {plural(len(ranking.order), 'passage')}"
    inversions = f"{ranking.expected_inversions:.1f} discordant pairs expected in the top {top}"
    stopped = ranking.stop_reason or ""
    reason = STOPS.get(stopped, stopped)
    return Summary(
        headline=(f"Order of {found.qid} after {calls}: {inversions}.",),
        table=Table.of(("#", "95%", "grade", "score", "won-lost", "conf.", "passage"), rows),
        legend="95%: plausible ranks; won-lost: comparisons with others; conf.: probability of being better than the "
        "next",
        trust=(shorten(f"Ranking stopped: {reason}.", MAX_WARNING_CHARS),) if reason else (),
        next=f"raggs show {typed(run.folder)} {found.qid}",
        details="--details: closest pairs, locked pairs, judge statistics and standard errors",
    )
