"""`raggs cost`: what a run has cost, beside what it was estimated to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json, RunFolder

if TYPE_CHECKING:
    from raggs.config.estimate import Estimate
    from raggs.manifests.costs import Costs, LedgerSum
    from raggs.manifests.opened import OpenedRun


def cost(
    run: RunFolder,
    top: Annotated[int, typer.Option("--top", metavar="N", min=0, help="The N most expensive queries.")] = 5,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what a run has cost.

    Every call of every invocation, by stage, model and query: paid, and saved by the cache. The estimate of the dry
    run stands beside the stages.

    \b
    Example:
      raggs cost runs/demo
    """
    from raggs.manifests.costs import costs
    from raggs.manifests.opened import open_run
    from raggs.manifests.store import dump_json

    opened = open_run(run)
    found = costs(opened.store)
    estimates, problem = _estimates(opened)
    if as_json:
        told = {name: {key: _plain(entry) for key, entry in sums.items()} for name, sums in _tables(found).items()}
        estimated = [vars(line) for line in estimates]
        typer.echo(dump_json({"run": str(run), "total": _plain(found.total), **told, "estimates": estimated}))
        return
    _print(found, estimates, problem, top)


def _tables(found: Costs) -> dict[str, Mapping[str, LedgerSum]]:
    return {"stage": found.stage, "model": found.model, "query": found.query}


def _plain(found: LedgerSum) -> dict[str, int | float]:
    return found.model_dump(exclude={"repaired"})  # the ledger does not know


def _estimates(run: OpenedRun) -> tuple[list[Estimate], str]:
    """The dry run's lines for the run's own configuration; or none, and why."""
    from pydantic import ValidationError

    from raggs.config.api import open_runner
    from raggs.config.estimate import estimate
    from raggs.config.models import RunConfig
    from raggs.errors import RaggsError
    from raggs.jsonl import first_fault

    try:
        with open_runner(RunConfig.model_validate(run.manifest.config)) as runner:
            runner.store = run.store
            return [line for line in estimate(runner.services.config, runner) if line.input_tokens], ""  # type: ignore[attr-defined]
    except RaggsError as error:
        return [], str(error)
    except ValidationError as error:
        return [], first_fault(error)


def _print(found: Costs, estimates: list[Estimate], problem: str, top: int) -> None:
    from raggs.cli.screen import open_console, table

    screen = open_console()
    expected: dict[str, list[Estimate]] = {line.stage: [] for line in estimates}
    for line in estimates:
        expected[line.stage].append(line)
    stages = table("stage", *COLUMNS, "est. calls", "est. USD")
    for name in dict.fromkeys((*found.stage, *expected)):
        stages.add_row(name, *_cells(found.stage.get(name)), *_expected(expected.get(name, [])))
    screen.print(stages)
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
    total = found.total
    screen.print(f"\n${total.usd:,.4f} spent, ${total.saved_usd:,.4f} saved by the cache{_compared(total, estimates)}")
    if problem:
        screen.print(f"no estimate: {problem}", markup=False, soft_wrap=True)


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


def _compared(total: LedgerSum, estimates: list[Estimate]) -> str:
    """The estimate of one pass without a cache, beside what such a pass takes."""
    if not estimates or any(line.usd is None for line in estimates):
        return ""
    return f"; the dry run's estimate is ${sum(line.usd or 0.0 for line in estimates):,.4f} for a run without a cache"
