"""`raggs review serve`: the page on which people grade."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from raggs.cli.boundary import Debug
from raggs.cli.plain import say_note, say_secret
from raggs.cli.planning import Measures, Systems
from raggs.cli.reviews import ReviewsFolder

Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="Run directories, e.g. runs/demo.")]

Order = Literal["question", "passage"]


def serve(
    runs: Runs,
    port: Annotated[int, typer.Option("--port", metavar="N", help="Where to listen; 0 takes a free one.")] = 8765,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Another than this machine's own needs --token.")
    ] = "127.0.0.1",
    hosts: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name of this server, such as a proxy's. Repeatable."),
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", metavar="SECRET", help="What the address holds; drawn if left out.")
    ] = None,
    who: Annotated[
        str | None, typer.Option("--who", metavar="NAME", help="The reviewer; asked on the page if left out.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", metavar="N", help="Only so many passages, drawn at random.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Only the passages of a plan, in its order.")
    ] = None,
    overlap: Annotated[
        float, typer.Option("--overlap", metavar="SHARE", help="Share of the passages that two people grade.")
    ] = 0.2,
    repeats: Annotated[
        float, typer.Option("--repeats", metavar="SHARE", help="Share that comes to a person a second time.")
    ] = 0.05,
    by: Annotated[
        Order, typer.Option("--by", help="A question's passages together, or all passages in one order.")
    ] = "question",
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Let people see the model's reason, after their own grade.")
    ] = False,
    systems: Systems = None,
    measures: Measures = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of every order and draw.")] = 0,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Time limit for a request to arrive in full.")
    ] = 15.0,
    look: Annotated[
        bool, typer.Option("--look", help="Show what the runs decided, at /look; grades are then not blind.")
    ] = False,
    reviews: ReviewsFolder = None,
    debug: Debug = False,
) -> None:
    """Grade passages in the browser, alone or with others. Runs stay as they are.

    \b
    Nobody sees a machine's grade or another's before their own, and no system.
    Every keystroke is on the disk before the page says so. Where grades
    differ one decides, first what matters most to systems (-s) by measures (-m).

    \b
    Examples:
      raggs review serve runs/demo
      raggs review serve runs/demo --who ada --sample 200
      raggs review serve runs/a runs/b --host 0.0.0.0 --token "$SECRET"
    """
    from raggs.app.serve import Served, ServeRequest, offered
    from raggs.app.serve import serve as run
    from raggs.metrics.names import split_names

    def tell(served: Served) -> None:
        say_secret(served.address)  # the token in it is what it is for
        say_note(f"{offered(served)}; grades go to {served.folder}; Ctrl-C ends")
        for note in served.notes:
            say_note(f"note: {note}")

    names = () if measures is None else tuple(split_names(measures))
    request = ServeRequest(
        runs,
        reviews,
        host,
        port,
        token,
        who,
        sample,
        plan,
        seed,
        overlap,
        repeats,
        by,
        reveal,
        look,
        tuple(hosts or ()),
        timeout,
        tuple(systems or ()),
        names,
    )
    run(request, tell)
