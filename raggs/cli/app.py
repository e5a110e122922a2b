"""The `raggs` command and its table of subcommands.

Each subcommand is a function in a module of this package, which imports what it needs when it runs: `raggs --help`
loads neither numpy nor a provider.
"""

from __future__ import annotations

from typing import Annotated

import typer

from raggs.cli import audits, chunks, configs, cost, evals, housekeeping, indexing, outputs, prompts, runs, sweeps
from raggs.cli.boundary import BoundaryGroup
from raggs.version import __version__

HELP = """
Golden sets for retrieval-augmented generation: graded, ranked, audited, and paid for once.

\b
  raggs init demo
  raggs run --config demo/raggs.yaml         a first run, offline
  raggs run --config raggs.yaml --dry-run    its price, without spending
  raggs status demo/runs/demo                where it stands, what is next
"""

app = typer.Typer(
    name="raggs",
    help=HELP,
    cls=BoundaryGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="A variable stands for each option: RAGGS_<COMMAND>_<OPTION>, such as RAGGS_RUN_MAX_USD=5.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"raggs {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of raggs itself; see HELP."""


app.command("init")(housekeeping.init)
app.command("index")(indexing.index)
app.command("run")(runs.run)
app.command("status")(runs.status)
app.command("why")(runs.why)
app.command("cost")(cost.cost)
app.command("audit")(audits.audit)
app.command("keygen")(audits.keygen)
app.command("export")(outputs.export)
app.command("eval")(evals.eval_)
app.command("sweep")(sweeps.sweep)
app.command("validate")(configs.validate)
app.command("doctor")(housekeeping.doctor)
app.command("list")(outputs.list_)
app.command("schema")(outputs.schema)

config_app = typer.Typer(help="Look at a configuration.", no_args_is_help=True, rich_markup_mode=None)
config_app.command("show")(configs.show)
app.add_typer(config_app, name="config")

prompts_app = typer.Typer(help="Read the prompts that come with raggs.", no_args_is_help=True, rich_markup_mode=None)
prompts_app.command("list")(prompts.list_)
prompts_app.command("show")(prompts.show)
app.add_typer(prompts_app, name="prompts")

chunks_app = typer.Typer(
    help="Compare ways of cutting documents, or look at one.", no_args_is_help=True, rich_markup_mode=None
)
chunks_app.command("eval")(chunks.eval_)
chunks_app.command("show")(chunks.show)
app.add_typer(chunks_app, name="chunks")

cache_app = typer.Typer(
    help="Look at the caches of a workspace, or empty them.", no_args_is_help=True, rich_markup_mode=None
)
cache_app.command("stats")(housekeeping.cache_stats)
cache_app.command("clear")(housekeeping.cache_clear)
app.add_typer(cache_app, name="cache")
