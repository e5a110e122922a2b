"""Is a sweep what its manifest says? Everything that its folder and its golden set tell is derived again and compared.

What only the corpus or a provider could tell (lists, tokens, milliseconds) is taken as recorded, under its hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raggs.errors import RaggsError
from raggs.golden.opened import open_golden
from raggs.manifests.findings import MANIFEST, Finding
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.deriving import derive
from raggs.sweeps.holes import with_holes
from raggs.sweeps.labels import of_queries
from raggs.sweeps.latency import latency_of, sample
from raggs.sweeps.models import SweepReport, SystemRow
from raggs.sweeps.store import REPORT, SYSTEMS, SweepManifest, SweepStore
from raggs.sweeps.writers import report_files

UNCHECKED = (
    "whether the lists are what the systems return (they are taken as recorded)",
    "tokens and milliseconds, which nobody can measure again (sums and percentiles of them are derived again)",
)
NO_GOLDEN = "scores, front and choice: the golden set is not where the sweep read it, or is another one"
SAME = 1e-9
OF_VERSION = frozenset({"raggs", "page"})  # what the version of raggs that wrote a report decides


def findings(folder: Path) -> tuple[list[Finding], int, tuple[str, ...]]:
    """Every finding, the records that were checked, and what could not be looked at."""
    store = SweepStore(folder)
    try:
        manifest = store.manifest()
        found = list(_files(store, manifest))
        rows = store.systems()
        found += _latencies(store, manifest, rows)
        told = list(_derived(store, manifest, rows))
    except RaggsError as error:
        return [Finding(Path(error.where).name if error.where else MANIFEST, error.line, error.message)], 0, UNCHECKED
    lost = [] if told != [None] else [NO_GOLDEN]
    return [*found, *filter(None, told)], len(rows), (*lost, *UNCHECKED)


def _files(store: SweepStore, manifest: SweepManifest) -> Iterator[Finding]:
    if manifest.seal != manifest.own_hash():
        yield Finding(MANIFEST, None, "does not fit its seal: it was edited")
    for name in store.changed():
        yield Finding(name, None, "is not what the sweep wrote, by its hash in the manifest")


def _latencies(store: SweepStore, manifest: SweepManifest, rows: list[SystemRow]) -> Iterator[Finding]:
    """Waiting, from timings.jsonl."""
    timings, asked = store.timings(), sample(manifest.questions, _config(manifest).latency.queries)
    for line, row in enumerate(rows, start=1):
        if row.file and latency_of(row.steps, timings, asked) != row.latency:
            yield Finding(SYSTEMS, line, f"the waiting of {row.name} is not what timings.jsonl gives")
        cost = row.cost
        if cost is not None and cost.total is not None:
            parts = sum(part or 0.0 for part in (cost.embed, cost.rerank, cost.generate))
            if abs(parts - cost.total) > SAME * max(1.0, parts):
                yield Finding(SYSTEMS, line, f"the cost of {row.name} is not the sum of its parts")


def _derived(store: SweepStore, manifest: SweepManifest, rows: list[SystemRow]) -> Iterator[Finding | None]:
    """The report, from the lists and the golden set; one None where the set is not there any more."""
    config, stored = _config(manifest), store.report()
    if not config.golden.exists():
        yield None
        return
    golden = open_golden(config.golden)
    whole = golden.judgments()
    given = of_queries(whole, manifest.questions)
    if given.digest != manifest.golden:
        yield None
        return
    labels = with_holes(given, store.folder)
    atlas = store.atlas(golden, whole, labels)
    fresh = derive(config, labels, rows, store.run, stored.left_out, atlas=atlas)
    for line, (row, again) in enumerate(zip(rows, fresh.systems, strict=True), start=1):
        if row != again:
            yield Finding(SYSTEMS, line, f"{row.name}: {_differs(row, again)} is not what its lists give")
    for name in SweepReport.model_fields:
        if name not in OF_VERSION and getattr(stored, name) != getattr(fresh, name):
            yield Finding(REPORT, None, f"{name} is not what the systems give")
    for name, text in report_files(stored).items():
        if (store.folder / name).is_file() and (store.folder / name).read_text(encoding="utf-8") != text:
            yield Finding(name, None, f"is not what {REPORT} gives")


def _differs(row: SystemRow, again: SystemRow) -> str:
    return next(name for name in SystemRow.model_fields if getattr(row, name) != getattr(again, name))


def _config(manifest: SweepManifest) -> SweepConfig:
    """Of the sweep; one from before costs had a jitter has none."""
    return SweepConfig.model_validate({"cost_jitter": 0.0, **manifest.config})
