"""Audit of a sweep: everything that follows from its folder and its golden set is computed again and compared.

Lists, tokens and single latencies depend on the corpus or a provider. They cannot be computed again, so only the hashes
of their files are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raggs.base.errors import RaggsError
from raggs.base.types import Number
from raggs.golden.sources import open_golden
from raggs.runs.manifests.models import MANIFEST, AuditFinding
from raggs.sweeps.config import SweepConfig, UnitPrice
from raggs.sweeps.deriving import derive
from raggs.sweeps.judgments import of_queries, with_holes
from raggs.sweeps.models import CostPart, OutcomePart, SweepReport, SystemRow
from raggs.sweeps.plots import report_files
from raggs.sweeps.reranking import fit_faults, scorer_for
from raggs.sweeps.store import REPORT, SYSTEMS, SweepManifest, SweepStore
from raggs.sweeps.timing import latency_of, sample
from raggs.sweeps.world import GENERATOR, scale_of

UNCHECKED = (
    "whether the lists are what the systems return (the recorded lists are used)",
    "tokens and milliseconds, which cannot be measured again (costs, sums and percentiles of them are derived again)",
    "prices that the configuration does not contain (the recorded prices are used)",
)
NO_GOLDEN = "scores, front and choice: the golden set that the sweep read was moved or replaced"
RELATIVE_TOLERANCE = 1e-9
TOKENS = ("question_tokens", "candidate_tokens", "candidate_tokens_sd", "context_tokens")
OF_VERSION = frozenset({"raggs"})  # These fields depend on the version of raggs, so they are not compared.


def findings(folder: Path) -> tuple[list[AuditFinding], int, tuple[str, ...]]:
    """Return all findings, the number of checked records, and notes on checks that were not possible. If a file cannot
    be read, return only this finding, and 0 records.
    """
    store = SweepStore(folder)
    try:
        manifest = store.manifest()
        found = list(_files(store, manifest))
        rows = store.systems()
        found += _latencies(store, manifest, rows)
        told = list(_report_findings(store, manifest, rows))
    except RaggsError as error:
        return (
            [AuditFinding(Path(error.where).name if error.where else MANIFEST, error.line, error.message)],
            0,
            UNCHECKED,
        )
    lost = [] if told != [None] else [NO_GOLDEN]
    return [*found, *filter(None, told)], len(rows), (*lost, *UNCHECKED)


def _files(store: SweepStore, manifest: SweepManifest) -> Iterator[AuditFinding]:
    if manifest.seal != manifest.own_hash():
        yield AuditFinding(MANIFEST, None, "does not match its seal, so it was edited")
    for name in store.changed():
        if name != MANIFEST:
            yield AuditFinding(name, None, "was changed after the sweep: its hash differs from the one in the manifest")


def _latencies(store: SweepStore, manifest: SweepManifest, rows: list[SystemRow]) -> Iterator[AuditFinding]:
    """Check latencies against timings.jsonl, and costs against tokens and prices."""
    config, timings = _config(manifest), store.timings()
    asked = sample(manifest.questions, config.latency.queries)
    for line, row in enumerate(rows, start=1):
        fresh = latency_of(row.steps, timings, asked, confidence=config.confidence, seed=config.seed)
        if row.file and fresh != row.latency:
            yield AuditFinding(SYSTEMS, line, f"the latency of {row.name} does not follow from timings.jsonl")
        for said in _costs(row, config):
            yield AuditFinding(SYSTEMS, line, f"the cost of {row.name}: {said}")


def _costs(row: SystemRow, config: SweepConfig) -> Iterator[str]:
    """Yield the errors in a system's cost, given its tokens and prices."""
    if (cost := row.cost) is None:
        return
    again = CostPart.of(cost.lines, **{name: getattr(cost, name) for name in TOKENS})
    for name, stated in cost.usd().items():
        if not _is_close(stated, again.usd()[name]):
            yield f"{name} differs from the cost computed from its tokens and prices"
    for line in cost.lines:
        counted = {"embed": cost.question_tokens, "generate": cost.context_tokens}.get(line.step)
        whole = counted is None or line.unit != "tokens"
        if not whole and not any(_is_close(line.per_query, times * (counted or 0.0)) for times in (1, 2)):
            yield f"the tokens of {line.model} differ from the counted ones"
        named = config.prices.get(line.model, UnitPrice())
        wanted = {"tokens": named.input, "searches": named.per_1k_searches}.get(line.unit)
        if wanted is not None and line.price is not None and not _is_close(line.price, wanted):
            yield f"the price of {line.model} differs from the configuration"
    if (
        row.file
        and GENERATOR in config.prices
        and cost.context_tokens
        and not any(line.step == "generate" for line in cost.lines)
    ):
        yield "the generator is not counted"


def _is_close(one: Number, other: Number) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= RELATIVE_TOLERANCE * max(1.0, abs(other))


def _report_findings(
    store: SweepStore, manifest: SweepManifest, rows: list[SystemRow]
) -> Iterator[AuditFinding | None]:
    """Compute the report again from the lists and the golden set, and yield the differences. Yield None, once, if the
    golden set no longer exists or has other judgments.
    """
    config, stored = _config(manifest), store.report()
    if not config.golden.exists():
        yield None
        return
    golden = open_golden(config.golden)
    whole = golden.judgments(scale_of(config))
    given = of_queries(whole, manifest.questions)
    if given.digest != manifest.golden:
        yield None
        return
    labels = with_holes(given, store.folder)
    atlas = store.atlas(golden, whole, labels)
    fresh = derive(config, labels, rows, store.run, stored.left_out, atlas=atlas)
    for line, (row, again) in enumerate(zip(rows, fresh.systems, strict=True), start=1):
        if row != again:
            yield AuditFinding(
                SYSTEMS, line, f"{row.name}: {_differs(row, again)} differs from the value computed from its lists"
            )
        for said in fit_faults(row, store.folder, scorer_for(config, labels, atlas, row.levels)) if row.fit else ():
            yield AuditFinding(SYSTEMS, line, f"{row.name}: {said}")
    claims = OutcomePart.of(fresh)
    for name in OutcomePart.model_fields:
        if getattr(manifest.outcome, name) != getattr(claims, name):
            yield AuditFinding(
                MANIFEST,
                None,
                f"its {name} {'differ' if name.endswith('s') else 'differs'} from the result computed from the lists",
            )
    for name in SweepReport.model_fields:
        if name not in OF_VERSION and getattr(stored, name) != getattr(fresh, name):
            yield AuditFinding(REPORT, None, f"{name} differs from the result computed from the systems")
    for name, text in report_files(stored).items():
        if (store.folder / name).is_file() and (store.folder / name).read_text(encoding="utf-8") != text:
            yield AuditFinding(name, None, f"differs from the text generated from {REPORT}")


def _differs(row: SystemRow, again: SystemRow) -> str:
    return next(name for name in SystemRow.model_fields if getattr(row, name) != getattr(again, name))


def _config(manifest: SweepManifest) -> SweepConfig:
    return SweepConfig.model_validate(manifest.config)
