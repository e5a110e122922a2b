"""The `raggs` command and its table of subcommands.

Each subcommand is a function in a module of this package, which is imported when the command is called, and imports
what it needs when it runs: `raggs --help` loads neither numpy nor a provider.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from raggs.base.version import __version__
from raggs.cli.boundary import BoundaryGroup
from raggs.cli.table import Commands, Group

HELP = """
Golden sets for retrieval-augmented generation: graded, ranked, audited, and paid for once.

\b
  raggs init demo
  raggs run --config demo/raggs.yaml         a first run, offline
  raggs run --config raggs.yaml --dry-run    its price, without spending
  raggs status demo/runs/demo                where it stands, what is next
"""

COMMANDS: dict[str, str | Group] = {
    "init": "housekeeping:init",
    "index": "indexing:index",
    "run": "runs:run",
    "status": "runs:status",
    "why": "runs:why",
    "show": "showing:show",
    "cost": "cost:cost",
    "audit": "audits:audit",
    "keygen": "audits:keygen",
    "export": "outputs:export",
    "import": "sets:import_",
    "eval": "evals:eval_",
    "diff": "diffs:diff",
    "compare": "diffs:compare",
    "sweep": "sweeps:sweep",
    "diagnose": Group(
        "Say why retrieval fails, by small probes.",
        {
            "list": "diagnosing:kinds",
            "all": "diagnosing:all_",
            "names": "diagnoses.names:names",
            "precision": "diagnoses.precision:precision",
            "noise": "diagnoses.noise:noise",
            "judge": "diagnoses.judge:judge",
            "depth": "diagnoses.depth:depth",
            "retrieval": "diagnoses.retrieval:retrieval",
            "index": "diagnoses.index:index",
        },
        usual="list",
    ),
    "report": "reports:report",
    "validate": "configs:validate",
    "doctor": "housekeeping:doctor",
    "list": "outputs:list_",
    "explain": "words:explain",
    "schema": "outputs:schema",
    "config": Group("Look at a configuration.", {"show": "configs:show"}),
    "prompts": Group("Read the prompts that come with raggs.", {"list": "prompts:list_", "show": "prompts:show"}),
    "chunks": Group(
        "Compare ways of cutting documents, look at one, or make one.",
        {"eval": "chunks:eval_", "make": "cutting:make", "place": "chunks:place", "show": "chunks:show"},
    ),
    "review": Group(
        "People's word on passages: give it, and see where it stands.",
        {
            "plan": "planning:plan",
            "serve": "serving:serve",
            "set": "reviews:set_",
            "status": "reviews:status",
            "import": "reviewfiles:import_",
            "export": "reviewfiles:export",
        },
    ),
    "reviews": Group(
        "People's word as files.", {"import": "reviewfiles:import_", "export": "reviewfiles:export"}, hidden=True
    ),
    "judge": Group(
        "A judge, held against people or against another judge.",
        {"check": "judges:check", "compare": "judges:compare"},
    ),
    "questions": Group(
        "Make questions of documents or logs, or find their thresholds.",
        {"make": "questions:make", "import": "importing:import_", "calibrate": "calibrating:calibrate"},
        usual="make",
    ),
    "cache": Group(
        "Look at the caches of a workspace, or empty them.",
        {"stats": "housekeeping:cache_stats", "clear": "housekeeping:cache_clear"},
    ),
}


class Root(BoundaryGroup):
    """The command `raggs`, with the table above."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = Commands(COMMANDS)


app = typer.Typer(
    name="raggs",
    help=HELP,
    cls=Root,
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
