"""Report of a finished run: records and cost of each stage, and the health of the judge."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.base.document import UNDEFINED, Cell, ReportDocument, Row, Section, Table
from raggs.base.files import relative_to_cwd
from raggs.base.judge_health import GATE_FAILED_TEXT
from raggs.base.text import plural
from raggs.runs.manifests.costs import failed_judge_gates
from raggs.runs.manifests.messages import answerer_lines, lock_lines
from raggs.runs.manifests.models import StageLock
from raggs.runs.runner import PipelineResult

STAGE_COLUMNS = ("stage", "what", "records", "calls", "cached", "failed", "USD")


def lay_out_run(result: PipelineResult) -> ReportDocument:
    """Return the report; only sums are computed."""
    manifest = result.manifest
    spent = sum(manifest.stages[name].cost.usd for name in result.ran)
    done = plural(len(result.ran), "stage") + " ran" if result.ran else "nothing to do: all stages are up to date"
    said = (f"{relative_to_cwd(result.store.folder)}: {done}, ${spent:,.4f} spent",)
    rows = tuple(_row(name, lock, ran=name in result.ran) for name, lock in manifest.stages.items())
    health = tuple(line.text for lock in manifest.stages.values() for line in lock_lines(lock) if not line.warning)
    health += tuple(line.text for line in answerer_lines(manifest.answerers) if not line.warning)
    sections = (Section("The judge", health),) if health else ()
    return ReportDocument(
        f"Run {manifest.name}",
        Section("Stages", said, Table(STAGE_COLUMNS, rows)),
        sections,
        (),
        tuple(_attention_sentences(result)),
    )


def _row(name: str, lock: StageLock, *, ran: bool) -> Row:
    asked = ran and bool(lock.cost.calls or lock.cost.cached)
    cost = (f"{lock.cost.calls:,}", f"{lock.cost.cached:,}", f"{lock.cost.usd:,.4f}") if asked else (UNDEFINED,) * 3
    records = next((out.rows for file, out in lock.outputs.items() if file.startswith(f"{name}.")), 0)
    cells = (name, "ran" if ran else "unchanged", f"{records:,}", *cost[:2], f"{lock.failed:,}", cost[2])
    return tuple(map(Cell, cells))


def _attention_sentences(result: PipelineResult) -> Iterator[str]:
    """Yield failures, failed checks of the judge, and warnings."""
    if result.failed:
        yield f"{plural(result.failed, 'judgment')} failed; the next run repeats them"
    if below := "; ".join(failed_judge_gates(result.manifest)):
        yield f"{GATE_FAILED_TEXT}: {below}"
    for lock in result.manifest.stages.values():
        yield from (line.text for line in lock_lines(lock) if line.warning)
    yield from (line.text for line in answerer_lines(result.manifest.answerers) if line.warning)
