"""Commands of `raggs diagnose`: `list`, `all`, and one command per kind, created from the settings of the kind.

The help of a kind consists of its docstring and its `EXAMPLES`. Each setting becomes an option with the description of
the setting. A `Flag` in the annotation of the setting overrides the option's name or the placeholder for its value. An
omitted option has the value None, so defaults are defined only in the settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Literal, get_args, get_origin, get_type_hints

import typer

from raggs.cli.boundary import Debug
from raggs.cli.chunks import IN_PART, show_costs
from raggs.cli.options import (
    AllowMixed,
    Details,
    Json,
    Overrides,
    Quiet,
    Yes,
    sufficient_cap,
    with_option_groups,
)
from raggs.cli.plain_text import say, say_json

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from raggs.app.diagnose import DiagnoseRequest, DiagnosisResult, DiagnosisRounds
    from raggs.llm import BudgetSpent

RunConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Configuration file of a run, for its corpus, queries and parts."
    ),
]
Golden = Annotated[
    Path | None,
    typer.Option(
        "--golden", "-g", metavar="RUN|FILE", help="Run directory or file of labels [default: the run of --config]."
    ),
]
Embedders = Annotated[
    list[str] | None,
    typer.Option(
        "--embedder",
        metavar="LIST",
        help="Embedders, separated by commas, as type:path or type:model:key=value [default: that of --config, else "
        "wordllama, or lsa if it is not installed].",
    ),
]
Rerankers = Annotated[
    list[str] | None,
    typer.Option(
        "--reranker",
        metavar="LIST",
        help="Rerankers, separated by commas, as type:path or type:model:key=value [default: those of --config].",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Folder for the reports [default: diagnose/ in the run directory, else ./diagnose].",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Random seed.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print what would run and, for a single kind, calls, tokens and cost; call no paid model and write only "
        "caches.",
    ),
]
MaxUsd = Annotated[
    float | None,
    typer.Option(
        "--max-usd",
        metavar="USD",
        min=0,
        help="Budget in USD for all diagnoses written to --out [default: that of --config, else 5].",
    ),
]


@dataclass(frozen=True)
class DiagnosisFlags:
    """Options that all kinds share."""

    config: RunConfigFile = None
    overrides: Overrides = None
    golden: Golden = None
    embedder: Embedders = None
    reranker: Rerankers = None
    out: Out = None
    seed: Seed = 0
    max_usd: MaxUsd = None
    allow_mixed: AllowMixed = False
    dry_run: DryRun = False
    details: Details = False
    as_json: Json = False
    quiet: Quiet = False
    yes: Yes = False

    def request(self, kind: str, settings: dict[str, object]) -> DiagnoseRequest:
        """Return the request for a diagnosis of this kind with these settings.

        Raises:
            UsageError: `--set` is given without `--config`.
            ConfigError: the configuration is invalid.
        """
        from raggs.app.diagnose import DiagnoseRequest
        from raggs.base.errors import UsageError
        from raggs.config.load import load_config

        if self.config is None and self.overrides:
            raise UsageError(
                "--set changes a configuration, and none is given", remedy="add --config FILE, or omit --set"
            )
        return DiagnoseRequest(
            kind,
            None if self.config is None else load_config(self.config, self.overrides or ()),
            settings,
            golden=self.golden,
            embedders=self.embedder or (),
            rerankers=self.reranker or (),
            out=self.out,
            seed=self.seed,
            max_usd=self.max_usd,
            allow_mixed=self.allow_mixed,
        )


def run_kind(kind: str, shared: DiagnosisFlags, **settings: object) -> None:
    """Run a diagnosis and print the result, or print only the forecast of its cost."""
    from raggs.app.diagnose import forecast_diagnosis, run_diagnosis
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.llm import BudgetSpent
    from raggs.runs.events import ignore_event

    request = shared.request(kind, settings)
    if shared.dry_run:
        expected = forecast_diagnosis(request)
        above = "\n".join(expected.what) or None
        cap = request.budget.max_usd
        show_costs(expected.estimates, cap, as_json=shared.as_json, above=above, about=expected.about, llm=request.llm)
        return
    display = listener(shared.quiet or shared.as_json)
    try:
        with display or nullcontext():
            result = run_diagnosis(request, display or ignore_event, approver(shared.yes, shared.quiet))
    except BudgetSpent as error:
        error.remedy = _going_on(error, request)
        raise
    if shared.as_json:
        say_json(result.report.model_dump_json(indent=2))
    elif not shared.quiet:
        _show(result, details=shared.details)


def _going_on(error: BudgetSpent, request: DiagnoseRequest) -> str:
    """Return the remedy: the same command, with a sufficient budget if a cap over all invocations is reached."""
    from raggs.app.diagnose import forecast_diagnosis
    from raggs.runs.manifests.models import total

    if error.cap.per_invocation:
        return "paid answers are cached; to continue, run the same command"
    left = forecast_diagnosis(request).estimates
    value = sufficient_cap(
        error.cap, total(each.usd for each in left) if error.cap.money else sum(each.calls for each in left)
    )
    flag = f"--max-usd {value}" if error.cap.setting == "max_usd" else f"--set budget.{error.cap.setting}={value}"
    return f"paid answers are cached; to continue, run the same command with {flag}"


def _show(result: DiagnosisResult, *, details: bool) -> None:
    from raggs.cli.documents import show_summary, show_sweep
    from raggs.cli.screen import open_console

    if not details:
        show_summary(result.summary, open_console())
        return
    show_sweep(result.document, open_console())
    for file in result.files:
        say(f"{'unchanged: ' if result.unchanged else ''}{file}")


def __getattr__(name: str) -> Callable[..., None]:
    """Return the command of a kind by the kind's name, for the table in `raggs.cli.app`."""
    from raggs.diagnosis import REGISTRY

    if name not in REGISTRY:
        raise AttributeError(name)
    return kind_command(name)


def kind_command(kind: str) -> Callable[..., None]:
    """Create the command of a kind, with the shared options and one option for each setting of the kind."""
    from raggs.diagnosis import REGISTRY

    loaded = REGISTRY.load(kind)
    settings = {name: field for name, field in loaded.Config.model_fields.items() if name != "type"}

    def command(shared: DiagnosisFlags, debug: bool = False, **given: object) -> None:
        run_kind(kind, shared, **{name: value for name, value in given.items() if value not in (None, [])})

    examples = "\n".join(f"  raggs diagnose {kind} {example}".rstrip() for example in loaded.EXAMPLES)
    command.__doc__ = f"{inspect.getdoc(loaded)}\n\n\b\nExamples:\n{examples}\n"
    types = get_type_hints(loaded.Config)
    options = {name: _option(name, field, types[name]) for name, field in settings.items()}
    command.__annotations__ = {"shared": DiagnosisFlags, **options, "debug": Debug}
    command.__dict__["__signature__"] = inspect.Signature(
        [
            inspect.Parameter("shared", inspect.Parameter.KEYWORD_ONLY),
            *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in options),
            inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False),
        ]
    )
    return with_option_groups(command)


LONG_DEFAULT = 40  # characters
VALUES = {int: "N", float: "X", Path: "FILE"}  # placeholders for an option's value in the help, by the setting's type


def _option(name: str, setting: FieldInfo, kind: object) -> object:
    """Return the option of a setting as an annotation for typer. Its value is checked later, by the model of the
    settings.
    """
    from raggs.base.settings import Flag

    kinds = list(_plain_types(kind))
    several = get_origin(kind) in (tuple, Mapping)
    flag = next((each for each in setting.metadata if isinstance(each, Flag)), Flag())
    written = flag.names or (f"--{name.replace('_', '-').removesuffix('s' if several else '')}",)
    described, default = setting.description or "", _default_words(setting.default)
    about = f"{described[:1].upper()}{described[1:]}.{f' [default: {default}]' if default else ''}"
    if bool in kinds:
        return Annotated[bool | None, typer.Option(*written, help=about)]
    given = list[str] if several else str
    return Annotated[given | None, typer.Option(*written, metavar=flag.value or _value_word(kinds), help=about)]


def _plain_types(kind: object) -> Iterator[object]:
    """Yield a type and all types inside it, except None."""
    if kind is not NoneType:
        yield kind
        for part in () if get_origin(kind) is Literal else get_args(kind):
            yield from _plain_types(part)


def _value_word(kinds: list[object]) -> str:
    """Return the placeholder for an option's value in the help, such as N or FILE."""
    for kind in kinds:
        if get_origin(kind) is Literal:
            return "|".join(map(str, get_args(kind)))
        if kind in VALUES:
            return VALUES[kind]
    return "NAME"


def _default_words(default: object) -> str:
    """Return the default of an option for the help; empty if the option has no default, or a long one."""
    if default is None or default == () or isinstance(default, (bool, Mapping)):
        return ""
    values = default if isinstance(default, tuple) else (default,)
    text = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
    return text if len(text) <= LONG_DEFAULT else ""


@with_option_groups
def kinds(
    shared: DiagnosisFlags,
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="Kind of diagnosis from an installed plugin.")
    ] = None,
    debug: Debug = False,
) -> None:
    """List the diagnoses: the question that each answers, its inputs, and whether it can run.

    To see what is ready with your inputs, pass --config, --golden, --embedder or --reranker. A kind that calls no paid
    model is listed as free.

    \b
    Examples:
      raggs diagnose
      raggs diagnose list --config raggs.yaml
    """
    from raggs.app.diagnose import lines, outlooks
    from raggs.cli.screen import hanging
    from raggs.diagnosis import REGISTRY
    from raggs.runs.manifests.store import dump_json

    if kind is not None:
        REGISTRY.load(kind)  # raises for an unknown name
        run_kind(kind, shared)
        return
    found = outlooks(shared.request("", {}))
    if shared.as_json:
        say_json(dump_json({each.name: {**asdict(each), "ready": each.ready} for each in found}))
    else:
        for begin, text in lines(found):
            say(hanging(begin, text))


@with_option_groups
def all_(
    shared: DiagnosisFlags,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run only kinds that take seconds (needs --config or --golden).")
    ] = False,
    debug: Debug = False,
) -> None:
    """Run every diagnosis that can run and is free.

    A failing diagnosis does not stop the others. Skipped and failed ones are listed at the end with the reason.

    \b
    Examples:
      raggs diagnose all --quick --config raggs.yaml
      raggs diagnose all --config raggs.yaml --out diagnose
    """
    from raggs.app.diagnose import diagnose_all, outlooks
    from raggs.cli.options import approver
    from raggs.cli.progress import listener
    from raggs.runs.events import ignore_event
    from raggs.runs.manifests.store import dump_json

    request = shared.request("", {})
    if shared.dry_run:
        free = [each.name for each in outlooks(request) if not each.hindrance(quick=quick)]
        say_json(dump_json(free)) if shared.as_json else say(f"would run: {', '.join(free) or 'none'}")
        return
    display = listener(shared.quiet or shared.as_json)
    with display or nullcontext():
        found = diagnose_all(request, display or ignore_event, approver(shared.yes, shared.quiet), quick=quick)
    if shared.as_json:
        reports = {each.report.kind: each.report.model_dump(mode="json") for each in found.done}
        say_json(dump_json({"done": reports, "skipped": found.skipped, "failed": found.failed}))
    elif not shared.quiet:
        _show_all(found)
    for name, why in found.failed.items():
        say(f"raggs: {name}: {why}", err=True)
    if found.failed:
        raise typer.Exit(IN_PART)


def _show_all(found: DiagnosisRounds) -> None:
    from raggs.cli.screen import hanging

    outcomes = [each.outcome for each in found.done]
    ran = f"{len(found.done)} {'diagnosis' if len(found.done) == 1 else 'diagnoses'} ran"
    counts = ", ".join(f"{outcomes.count(word)} {word}" for word in dict.fromkeys(outcomes))
    not_run = f"; {len(found.skipped)} not run" if found.skipped else ""
    stopped = f"; {len(found.failed)} stopped by an error" if found.failed else ""
    say(f"{ran}{f': {counts}' if counts else ''}{not_run}{stopped}")
    width = max((len(name) for name in (*(each.report.kind for each in found.done), *found.skipped)), default=0)
    for each, outcome in zip(found.done, outcomes, strict=True):
        say(hanging(f"  {each.report.kind:<{width}}  {outcome:<8}  ", f"{each.verdict.split('. ')[0].rstrip('.')}."))
    for name, why in found.skipped.items():
        say(hanging(f"  {name:<{width}}  not run   ", why))
    if found.done:
        say(f"details: {found.done[0].folder} (one .md per kind), or raggs diagnose KIND with the same options")
