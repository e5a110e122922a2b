"""`raggs chunks`: ways of cutting documents, compared and looked at; questions with the places of their excerpts.

`raggs chunks make`: the cuts of a chunker that is paid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from raggs.base.text import plural
from raggs.cli.boundary import Debug
from raggs.cli.options import AllowMixed, DryRun, GivenConfig, Json, Overrides, Quiet, SameConfig, Yes, find_config
from raggs.cli.plain_text import say, say_json

if TYPE_CHECKING:
    from raggs.chunking.documents import ChunkingResult
    from raggs.llm import LLMSettings
    from raggs.runs.manifests.models import CostEstimate

IN_PART = 7


def make(
    given: GivenConfig = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    dry_run: DryRun = False,
    again: Annotated[
        bool, typer.Option("--again", help="Ask again about what no answer of use came for, and was cut by rule.")
    ] = False,
    max_usd: Annotated[
        float | None,
        typer.Option("--max-usd", metavar="USD", min=0, help="What all cuts of the workspace may cost."),
    ] = None,
    allow_mixed: AllowMixed = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Have a language model cut the documents of a corpus, once.

    A corpus is read before anybody agreed to any cost, so what its chunker `llm` costs is paid here. Cuts are kept
    in the workspace; what was cut or answered before costs nothing.

    \b
    Examples:
      raggs chunks make raggs.yaml --dry-run
      raggs chunks make raggs.yaml --max-usd 2
    """
    from raggs.app.chunks import forecast_cuts, make_paid_cuts
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.config.load import load_config
    from raggs.runs.events import ignore_event

    set_ = [] if max_usd is None else [f"budget.max_usd={max_usd}"]
    set_ += ["llm.allow_mixed=true"] if allow_mixed else []
    config = find_config(given, config, "raggs.yaml", "name one: raggs chunks make raggs.yaml")
    loaded = load_config(config, (*(overrides or ()), *set_))
    if dry_run:
        expected = forecast_cuts(loaded.run, again=again)
        counts = {"cut": expected.cut, "before": expected.before}
        cap, above, llm = loaded.run.budget.max_usd, str(expected), loaded.run.llm
        show_costs(expected.estimates, cap, as_json=as_json, counts=counts, above=above, llm=llm)
        return
    display = listener(quiet or as_json)
    with display or nullcontext():
        made = make_paid_cuts(loaded.run, display or ignore_event, approver(yes, quiet), again=again)
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
    """What models would take, under a cap in USD.

    Args:
        llm: how models are called.
        counts: more for JSON.
        above: a line for people.
        about: why calls are not counted exactly; by default why those of chunkers are not.
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
    say("\n".join(lines) or "no model would be paid")
    for sentence in targets_in_words(who_is_paid(estimates), llm):
        say(sentence)


MAX_SHOWN_FILES = 20  # that `raggs chunks show` shows unless all are wanted


def eval_(
    corpus: Annotated[Path, typer.Option("--corpus", metavar="DIR", help="The folder of the documents.")],
    questions: Annotated[
        Path,
        typer.Option(
            "--questions", metavar="FILE", help="Questions with the excerpts that answer them: CSV, JSONL or YAML."
        ),
    ],
    chunkers: Annotated[
        list[str],
        typer.Option(
            "--chunkers", metavar="LIST", help="type:size:key=value, separated by commas; see: raggs list chunkers."
        ),
    ],
    embedders: Annotated[
        list[str] | None,
        typer.Option("--embedders", metavar="LIST", help="type:path or model:key=value; wordllama if left out."),
    ] = None,
    cutoffs: Annotated[
        list[str] | None,
        typer.Option(
            "-k",
            metavar="K",
            help="Chunks that are retrieved: 5, or several: min,5,10. min: as many as hold something that answers.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the report goes.")] = Path("chunks"),
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="NAME", help="Compare with this one; the first if left out.")
    ] = None,
    unit: Annotated[
        Literal["characters", "tokens"], typer.Option("--unit", help="What lengths and measures count.")
    ] = "characters",
    reference_compat: Annotated[
        bool,
        typer.Option("--reference-compat", help="Compute what the code of Chroma's report does, with its departures."),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the resampled questions.")] = 0,
    max_usd: Annotated[
        float | None,
        typer.Option(
            "--max-usd", metavar="USD", min=0, help="What models may cost, for all that goes to --out; 5 if left out."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="A run's YAML file: its llm section (addresses, prices)."),
    ] = None,
    allow_mixed: AllowMixed = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Compare ways of cutting documents by the characters that answer.

    Each chunker cuts all documents, their chunks are searched together, and what is retrieved is scored against the
    excerpts: recall, precision, IoU, F1 and precision_omega.

    \b
    A question in JSON lines, with an excerpt that is searched for, and with its
    place (a table has question, references and corpus_id; docs/how-to/chunking.md):
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
    from raggs.chunking.layout import lay_out
    from raggs.cli.documents import show_document
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.cli.screen import open_console
    from raggs.config.load import load_config
    from raggs.llm import LLMSettings
    from raggs.runs.events import ignore_event

    llm = LLMSettings() if config is None else load_config(config).run.llm
    llm = llm.mixing() if allow_mixed else llm
    request = ChunkRequest(
        corpus=corpus,
        questions=questions,
        chunkers=chunkers,
        embedders=embedders or ("wordllama",),
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
        show_document(lay_out(result.report), open_console())
        say("\n".join(map(str, result.files)))


def place(
    corpus: Annotated[Path, typer.Option("--corpus", metavar="DIR", help="The folder of the documents.")],
    questions: Annotated[
        Path,
        typer.Option(
            "--questions", metavar="FILE", help="Questions with the excerpts that answer them: CSV, JSONL or YAML."
        ),
    ],
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE", help="The file that is written: .csv, .jsonl, .yaml or .yml.")
    ],
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write questions with the places of their excerpts, in any format.

    Each excerpt is checked against the documents, and searched for where it has
    no offsets. A .csv is the table of chunking benchmarks (question, references,
    corpus_id).

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
        say(f"{placed.file}: {plural(placed.questions, 'question')}, {plural(placed.excerpts, 'excerpt')} with places")


def show(
    given: GivenConfig = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="Only this file, each of its chunks on a line.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE", help="Write a page that shows every text with its chunks.")
    ] = None,
    all_files: Annotated[bool, typer.Option("--all", help="Show all files [default: the first 20].")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what of a corpus is cut where.

    Sizes, first and last words, and cuts that tear a sentence. Try another chunker by --set before a run.
    Only `corpus` is read of the file, with `workspace`, `llm` and `budget`: queries and a judge may be missing.

    \b
    Examples:
      raggs chunks show raggs.yaml
      raggs chunks show raggs.yaml --file guide/install.md
      raggs chunks show raggs.yaml --file "docs/My notes.md"
      raggs chunks show --set corpus.chunker.type=markdown
      raggs chunks show --html cuts.html
    """
    from raggs.app.addresses import permit
    from raggs.app.chunks import show_cuts
    from raggs.chunking.cuts import lay_out_cuts
    from raggs.cli.documents import show_document
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
        most = None if all_files else MAX_SHOWN_FILES
        show_document(lay_out_cuts(report, whole=file is not None, most=most), open_console())
        if html is not None:
            say(str(html))
