"""`raggs chunks make`: the cuts of a chunker that is paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import AllowMixed, DryRun, GivenConfig, Json, Overrides, Quiet, SameConfig, Yes, meant
from raggs.cli.plain import say, say_json

if TYPE_CHECKING:
    from raggs.chunking.making import Made
    from raggs.llm import LLMSettings
    from raggs.runs.manifests.models import Estimate

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
    from raggs.app.cutting import forecast_cuts, make_paid_cuts
    from raggs.cli.addresses import approver
    from raggs.cli.progress import listener
    from raggs.config.load import load_config
    from raggs.runs.pipeline.events import silent

    set_ = [] if max_usd is None else [f"budget.max_usd={max_usd}"]
    set_ += ["llm.allow_mixed=true"] if allow_mixed else []
    config = meant(given, config, "raggs.yaml", "name one: raggs chunks make raggs.yaml")
    loaded = load_config(config, (*(overrides or ()), *set_))
    if dry_run:
        expected = forecast_cuts(loaded.run, again=again)
        counts = {"cut": expected.cut, "before": expected.before}
        cap, above, llm = loaded.run.budget.max_usd, str(expected), loaded.run.llm
        show_costs(expected.estimates, cap, as_json=as_json, counts=counts, above=above, llm=llm)
        return
    display = listener(quiet or as_json)
    with display or nullcontext():
        made = make_paid_cuts(loaded.run, display or silent, approver(yes, quiet), again=again)
    _show(made, as_json=as_json, quiet=quiet)


def _show(made: Made, *, as_json: bool, quiet: bool) -> None:
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
    estimates: Sequence[Estimate],
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
    from raggs.app.cutting import CUT_EARLY, in_words, total
    from raggs.cli.render import targets_in_words, targets_json, who_is_paid
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
