"""Commands of `raggs chunks`: show chunks, compare chunkers, locate excerpts, and chunk with a paid model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from raggs.base.text import plural
from raggs.cli.boundary import Debug
from raggs.cli.options import (
    AllowMixed,
    Details,
    DryRun,
    Json,
    Overrides,
    Quiet,
    RunFile,
    SameConfig,
    Yes,
    find_config,
)
from raggs.cli.plain_text import say, say_json

if TYPE_CHECKING:
    from raggs.app.chunks import ChunkRequest, ChunkResult
    from raggs.chunking.documents import ChunkingResult
    from raggs.llm import LLMSettings
    from raggs.runs.manifests.models import CostEstimate

IN_PART = 7


def make(
    given: RunFile = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    dry_run: DryRun = False,
    again: Annotated[
        bool, typer.Option("--again", help="Retry windows whose answers were unusable and that were split by rule.")
    ] = False,
    max_usd: Annotated[
        float | None,
        typer.Option(
            "--max-usd",
            metavar="USD",
            min=0,
            help="Cap in USD for all chunking in the workspace [default: budget.max_usd, 5 if not set].",
        ),
    ] = None,
    allow_mixed: AllowMixed = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Chunk documents with a language model.

    `raggs run` never pays while it reads the corpus, so a chunker of type `llm` is paid for here. The chunks are
    stored in the workspace. Documents that are already chunked, and cached answers, cost nothing.

    \b
    Examples:
      raggs chunks make raggs.yaml --dry-run
      raggs chunks make raggs.yaml --max-usd 2
    """
    from raggs.app.chunks import forecast_cuts, make_paid_cuts
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.config.load import load_settings
    from raggs.config.models import DocumentsConfig
    from raggs.runs.events import ignore_event

    set_ = [] if max_usd is None else [f"budget.max_usd={max_usd}"]
    set_ += ["llm.allow_mixed=true"] if allow_mixed else []
    config = find_config(given, config, "raggs.yaml", "name one: raggs chunks make raggs.yaml")
    settings, _ = load_settings(DocumentsConfig, config, (*(overrides or ()), *set_))
    if dry_run:
        expected = forecast_cuts(settings, again=again)
        counts = {"cut": expected.cut, "before": expected.before}
        cap, above, llm = settings.budget.max_usd, str(expected), settings.llm
        show_costs(expected.estimates, cap, as_json=as_json, counts=counts, above=above, llm=llm)
        return
    display = listener(quiet or as_json)
    with display or nullcontext():
        made = make_paid_cuts(settings, display or ignore_event, approver(yes, quiet), again=again)
    _show(made, as_json=as_json, quiet=quiet)


def _show(made: ChunkingResult, *, as_json: bool, quiet: bool) -> None:
    from raggs.runs.manifests.store import dump_json

    if as_json:
        say_json(dump_json(vars(made)))
    elif not quiet:
        say(str(made))
    for told in made.failed[:3]:
        say(f"raggs: {told}", err=True)
    if made.failed:
        raise typer.Exit(IN_PART)


def show_costs(
    estimates: Sequence[CostEstimate],
    cap: float | None,
    *,
    as_json: bool,
    llm: LLMSettings,
    counts: Mapping[str, int] = MappingProxyType({}),
    above: str | None = None,
    about: str | None = None,
) -> None:
    """Print the expected calls, tokens and costs of models.

    Args:
        estimates: one estimate per model and task.
        cap: budget in USD; None for no cap.
        as_json: print JSON instead of text.
        llm: settings of model calls.
        counts: further entries of the JSON output.
        above: text above the estimates; not printed with `as_json`.
        about: reason why calls are not counted exactly [default: the reason for chunkers].
    """
    from raggs.app.chunks import CUT_EARLY, in_words
    from raggs.cli.render import targets_in_words, targets_json, who_is_paid
    from raggs.runs.manifests.models import total
    from raggs.runs.manifests.store import dump_json

    if as_json:
        costs = {
            "usd": total(line.usd for line in estimates),
            "usd_at_most": total(line.usd_at_most for line in estimates),
            "max_usd": cap,
        }
        sent = {"targets": targets_json(who_is_paid(estimates), llm)}
        say_json(dump_json({**counts, "estimates": [line.model_dump() for line in estimates], **costs, **sent}))
        return
    lines = [*([above] if above else []), *in_words(estimates, cap, about or CUT_EARLY)]
    say("\n".join(lines) or "no paid model would be called")
    for sentence in targets_in_words(who_is_paid(estimates), llm):
        say(sentence)


MAX_SHOWN_FILES = 20  # files that `raggs chunks show --details` lists, unless --all is given


def eval_(
    corpus: Annotated[Path, typer.Option("--corpus", metavar="DIR", help="Folder of the documents.")],
    questions: Annotated[
        Path,
        typer.Option(
            "--questions", metavar="FILE", help="Questions with the excerpts that answer them (CSV, JSONL or YAML)."
        ),
    ],
    chunkers: Annotated[
        list[str],
        typer.Option(
            "--chunkers",
            metavar="LIST",
            help="Chunkers, separated by commas, as type:size:key=value (raggs list chunkers).",
        ),
    ],
    embedders: Annotated[
        list[str] | None,
        typer.Option(
            "--embedders",
            metavar="LIST",
            help="Embedders, separated by commas, as type:path or type:model:key=value [default: wordllama, or "
            "lsa if it is not installed].",
        ),
    ] = None,
    cutoffs: Annotated[
        list[str] | None,
        typer.Option(
            "-k",
            metavar="K",
            help="Chunks to retrieve per question, e.g. min,5,10; min: as many as overlap an excerpt [default: 5].",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the report and caches.")] = Path(
        "chunks"
    ),
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="NAME", help="System to compare with in the report [default: the first one]."
        ),
    ] = None,
    unit: Annotated[
        Literal["characters", "tokens"], typer.Option("--unit", help="Unit of lengths and measures.")
    ] = "characters",
    reference_compat: Annotated[
        bool,
        typer.Option("--reference-compat", help="Follow the code of Chroma's report instead of its formulas."),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed of the bootstrap.")] = 0,
    max_usd: Annotated[
        float | None,
        typer.Option(
            "--max-usd", metavar="USD", min=0, help="Budget in USD for all comparisons written to --out [default: 5]."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Configuration file of a run; only its llm section is used."
        ),
    ] = None,
    allow_mixed: AllowMixed = False,
    dry_run: DryRun = False,
    details: Details = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Compare chunkers on questions with known excerpts.

    Each chunker splits all documents. The chunks of all documents are searched together, and the retrieved text is
    compared with the excerpts: recall, precision, IoU, F1 and precision_omega. The report is written to ./chunks
    unless --out names another folder.

    \b
    Examples of questions in JSONL, without and with the offsets of the excerpt
    (columns of a CSV file: question, references, corpus_id):
      {"text": "Who barks?", "references": ["Dogs bark"]}
      {"text": "Who barks?", "corpus_id": "pets", "references":
        [{"content": "Dogs bark", "start_index": 0, "end_index": 9}]}

    \b
    Examples:
      raggs chunks eval --corpus docs --questions questions.csv \\
        --chunkers recursive:200,recursive:400:overlap=200 -k min,5
      raggs chunks eval --corpus docs --questions questions.csv \\
        --chunkers markdown --embedders wordllama,onnx:models/minilm
      raggs chunks eval --corpus docs --questions questions.csv \\
        --chunkers llm:openai/gpt-5-mini --config raggs.yaml --dry-run
    """
    from raggs.app.chunks import CAP, DEFAULT, ChunkRequest, eval_chunks, forecast_chunks
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.config.load import load_settings
    from raggs.config.models import DocumentsConfig
    from raggs.llm import LLMSettings
    from raggs.runs.events import ignore_event

    llm = LLMSettings() if config is None else load_settings(DocumentsConfig, config)[0].llm
    llm = llm.mixing() if allow_mixed else llm
    request = ChunkRequest(
        corpus=corpus,
        questions=questions,
        chunkers=chunkers,
        embedders=embedders or (),
        cutoffs=cutoffs or (DEFAULT,),
        baseline=baseline,
        unit=unit,
        compat=reference_compat,
        seed=seed,
        max_usd=CAP if max_usd is None else max_usd,
        llm=llm,
    )
    if dry_run:
        show_costs(forecast_chunks(request, out), request.max_usd, as_json=as_json, llm=llm)
        return
    display = listener(quiet or as_json)
    with display or nullcontext():
        result = eval_chunks(request, out, display or ignore_event, approver(yes, quiet))
    if as_json:
        say_json(result.report.model_dump_json(indent=2))
    elif not quiet:
        _show_comparison(request, result, _existing_config(config), out, details=details)


def _existing_config(config: Path | None) -> Path | None:
    """Return the configuration file for the next command: the given one, or raggs.yaml if it exists."""
    usual = Path("raggs.yaml")
    return config or (usual if usual.is_file() else None)


def _show_comparison(
    request: ChunkRequest, result: ChunkResult, config: Path | None, out: Path, *, details: bool
) -> None:
    from raggs.chunking.layout import best_system, lay_out, summarise_chunks
    from raggs.cli.documents import show_document, show_summary
    from raggs.cli.screen import open_console

    if details:
        show_document(lay_out(result.report), open_console())
        say("\n".join(map(str, result.files)))
        return
    best, command = best_system(result.report), ""
    if best is not None and config is not None:
        chunker = request.chunker_specs()[best.chunker].model_dump_json(exclude_unset=True)
        command = shlex.join(["raggs", "chunks", "show", str(config), "--set", f"corpus.chunker={chunker}"])
    show_summary(summarise_chunks(result.report, out, command), open_console())


def place(
    corpus: Annotated[Path, typer.Option("--corpus", metavar="DIR", help="Folder of the documents.")],
    questions: Annotated[
        Path,
        typer.Option(
            "--questions", metavar="FILE", help="Questions with the excerpts that answer them (CSV, JSONL or YAML)."
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="FILE", help="Output file; its extension sets the format: .csv, .jsonl, .yaml or .yml."
        ),
    ],
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write questions with the offsets of their excerpts.

    Each excerpt is compared with the documents. An excerpt without offsets is
    searched for. A .csv file has the columns of chunking benchmarks: question,
    references, corpus_id.

    \b
    Examples:
      raggs chunks place --corpus docs --questions q.jsonl --to questions.csv
      raggs chunks place --corpus docs --questions questions.csv --to placed.yaml
    """
    from raggs.app.chunks import place_excerpts

    placed = place_excerpts(corpus, questions, to)
    if not quiet:
        for note in placed.notes:
            say(f"note: {note}")
        say(f"{placed.file}: {plural(placed.questions, 'question')}, {plural(placed.excerpts, 'excerpt')} with offsets")


def show(
    given: RunFile = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="Show the chunks of this file only, one per row.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE", help="Write an HTML page of all texts with their chunks.")
    ] = None,
    all_files: Annotated[
        bool, typer.Option("--all", help="Print --details with all files, not only the first 20.")
    ] = False,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the sizes of chunks, and chunks that split a sentence.

    Use --set to try another chunker before a run. The configuration needs no queries and no judge: only its sections
    `corpus`, `workspace`, `llm` and `budget` are read.

    \b
    Examples:
      raggs chunks show raggs.yaml
      raggs chunks show raggs.yaml --file guide/install.md
      raggs chunks show raggs.yaml --file "docs/My notes.md"
      raggs chunks show --set corpus.chunker.type=markdown
      raggs chunks show --html chunks.html
    """
    from raggs.app.addresses import permit
    from raggs.app.chunks import show_cuts
    from raggs.chunking.cuts import lay_out_cuts, summarise_cuts
    from raggs.cli.documents import show_document, show_summary
    from raggs.cli.screen import open_console
    from raggs.config.load import load_settings
    from raggs.config.models import DocumentsConfig

    config = find_config(given, config, "raggs.yaml", "name one: raggs chunks show raggs.yaml")
    settings, _ = load_settings(DocumentsConfig, config, overrides or ())
    permit(settings, ["chunks"])
    report = show_cuts(settings, file, page=html)
    if as_json:
        say_json(report.model_dump_json(indent=2))
    else:
        whole = file is not None
        if details or all_files:
            most = None if all_files else MAX_SHOWN_FILES
            show_document(lay_out_cuts(report, whole=whole, most=most), open_console())
        else:
            words = ["raggs", "chunks", "show", str(config), *(f"--set={each}" for each in overrides or ())]
            show_summary(
                summarise_cuts(report, whole=whole, command=shlex.join(words), page=html is not None), open_console()
            )
        if html is not None:
            say(str(html))
