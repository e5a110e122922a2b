"""`raggs cost`: what a run has cost, beside what it was estimated to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json, RunFolder
from raggs.cli.plain import say_json

if TYPE_CHECKING:
    from raggs.app.cost import RunCost
    from raggs.runs.manifests.costs import Costs, LedgerSum
    from raggs.runs.manifests.models import Estimate


def cost(
    run: RunFolder,
    top: Annotated[int, typer.Option("--top", metavar="N", min=0, help="The N most expensive queries.")] = 5,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what a run has cost.

    Every call of every invocation, by stage, model and query: paid, and saved by the cache. What the dry run
    said when the run began stands beside the stages. Only the run's own directory is read.

    \b
    Example:
      raggs cost runs/demo
    """
    from raggs.app.cost import cost as cost_of
    from raggs.runs.manifests.store import dump_json

    found = cost_of(run)
    if not as_json:
        _print(found, top)
        return
    told = {name: {key: _plain(entry) for key, entry in sums.items()} for name, sums in _tables(found.spent).items()}
    estimated = [line.model_dump() for line in found.estimates]
    total = _plain(found.spent.total)
    say_json(dump_json({"run": str(run), "total": total, **told, "estimates": estimated}))


def _tables(found: Costs) -> dict[str, Mapping[str, LedgerSum]]:
    return {"stage": found.stage, "model": found.model, "query": found.query}


def _plain(found: LedgerSum) -> dict[str, int | float]:
    return found.model_dump(exclude={"repaired"})  # the ledger does not know


def _print(cost: RunCost, top: int) -> None:
    from raggs.cli.screen import open_console, table

    screen, found = open_console(), cost.spent
    expected: dict[str, list[Estimate]] = {line.stage: [] for line in cost.estimates}
    for line in cost.estimates:
        expected[line.stage].append(line)
    stages = table("stage", *COLUMNS, "est. calls", "est. USD")
    for name in dict.fromkeys((*found.stage, *expected)):
        stages.add_row(name, *_cells(found.stage.get(name)), *_expected(expected.get(name, [])))
    if stages.row_count:
        screen.print(stages)
    else:
        screen.print("No language model was asked.")
    queries = dict(sorted(found.query.items(), key=lambda item: (-item[1].usd, item[0]))[:top])
    for title, sums in (("model", found.model), ("query", queries)):
        if sums:
            rows = table(title, *COLUMNS)
            for name, entry in sums.items():
                rows.add_row(name or "(several)", *_cells(entry))
            screen.print()
            screen.print(rows)
    if len(found.query) > len(queries):
        screen.print(f"… and {len(found.query) - len(queries):,} more; all of them with --json")
    usd = cost.estimated_usd
    likely = "" if cost.expected_usd is None else f"about ${cost.expected_usd:,.4f}, at most "
    compared = "" if usd is None else f"; the dry run's estimate is {likely}${usd:,.4f} for a run without a cache"
    perhaps = found.total.perhaps_usd - found.total.unknown_usd
    doubt = f" (${perhaps:,.4f} of it perhaps: calls without an answer in time)" if perhaps > 0 else ""
    screen.print(f"\n${found.total.usd:,.4f} spent{doubt}, ${found.total.saved_usd:,.4f} saved by the cache{compared}")
    if found.total.unknown:
        screen.print(found.total.possibly_billed, style="yellow", soft_wrap=not screen.is_terminal)
    if told := _remembered(found):
        screen.print(told)


def _remembered(found: Costs) -> str:
    """What of the tokens sent was in the providers' own caches, and what that was worth; empty where nothing was."""
    total = found.total
    if not (total.cached_tokens or total.discount_usd):
        return ""
    shares = ", ".join(
        f"{name} {each.cached_tokens / each.prompt_tokens:.0%}"
        for name, each in found.stage.items()
        if each.cached_tokens
    )
    worth = f"${abs(total.discount_usd):,.4f} {'less' if total.discount_usd >= 0 else 'more, for writing them'}"
    return f"{total.cached_tokens:,} tokens sent were in the providers' prefix caches ({shares or 'none'}): {worth}"


COLUMNS = ("calls", "cached", "failed", "tokens in", "tokens out", "mean s", "USD", "saved USD")


def _cells(entry: LedgerSum | None) -> tuple[str, ...]:
    if entry is None:
        return ("",) * len(COLUMNS)
    return (
        f"{entry.calls:,}",
        f"{entry.cached:,}",
        f"{entry.failed:,}" if entry.failed else "",
        f"{entry.prompt_tokens:,}",
        f"{entry.completion_tokens:,}",
        f"{entry.mean_s:.2f}",
        f"{entry.usd:,.4f}",
        f"{entry.saved_usd:,.4f}",
    )


def _expected(lines: list[Estimate]) -> tuple[str, str]:
    if not lines:
        return "", ""
    calls = f"{'' if all(line.exact for line in lines) else '≤ '}{sum(line.calls for line in lines):,}"
    unknown = any(line.usd is None for line in lines)
    return calls, "unknown" if unknown else f"{sum(line.usd or 0.0 for line in lines):,.4f}"
