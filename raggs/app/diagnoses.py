"""All kinds of diagnosis at once: what each asks, whether it can run with what is named, and those that are free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from raggs.app.addresses import Approve, nobody
from raggs.app.beside import beside, in_loop
from raggs.app.diagnose import Diagnosed, opened, run_diagnosis
from raggs.app.diagnoserequest import DiagnoseRequest
from raggs.base.errors import RaggsError
from raggs.diagnosis import REGISTRY
from raggs.diagnosis.bench import NAMES, Bench
from raggs.runs.pipeline.events import Listener, silent

QUICK = "seconds"


@dataclass(frozen=True)
class Outlook:
    """One kind, and what stands between it and its findings.

    Attributes:
        name, title: of the kind, and the question that it answers.
        needs, takes: what it cannot do without, and what it uses where it is there.
        lacks: why it cannot run with what is named, and what helps; empty where it can.
        time: how long it takes with embedders of this machine.
        models: that it would pay.
    """

    name: str
    title: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    lacks: str = ""
    time: str = ""
    models: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether it can run as things are."""
        return not self.lacks

    def hindrance(self, *, quick: bool) -> str:
        """Why it is not among all kinds that are run at once; empty where it is."""
        alone = f"raggs diagnose {self.name}"
        if self.lacks or self.models:
            return self.lacks or f"would pay {', '.join(self.models)}: {alone}"
        return f"takes {self.time}: {alone}" if quick and self.time != QUICK else ""

    @property
    def price(self) -> str:
        """In words."""
        return "paid" if self.models else "free"


@dataclass(frozen=True)
class Rounds:
    """What became of all kinds: those that ran, and by kind why others did not, or could not go on."""

    done: tuple[Diagnosed, ...]
    skipped: dict[str, str]
    failed: dict[str, str]


def outlooks(request: DiagnoseRequest) -> tuple[Outlook, ...]:
    """Every kind, looked at with what a request names; its own kind does not matter. Nobody is asked.

    Raises:
        RaggsError: what is named cannot be opened.
    """
    if in_loop():
        return beside(lambda _: outlooks(request), silent)
    with opened(request, silent) as bench:
        if request.golden is not None:
            _ = bench.judgments  # told once, not for each kind
        return tuple(_outlook(name, request, bench) for name in REGISTRY)


def _outlook(name: str, request: DiagnoseRequest, bench: Bench) -> Outlook:
    try:
        kind = replace(request, kind=name, settings={}).diagnosis
    except RaggsError as error:  # a package that offers it is broken
        return Outlook(name, "", lacks=str(error))
    lacks, models = "", tuple[str, ...]()
    try:
        bench.require(kind.needs)
        models = kind.models(bench)
        kind.check(bench)
    except RaggsError as error:
        lacks = str(error)
    needs, takes = (tuple(NAMES[need] for need in each) for each in (kind.NEEDS, kind.TAKES))
    return Outlook(name, kind.TITLE, needs, takes, lacks, kind.TIME, models)


def diagnose_all(
    request: DiagnoseRequest, listen: Listener = silent, approve: Approve = nobody, *, quick: bool = False
) -> Rounds:
    """Run each kind that can run and pays nobody, one after the other; what one cannot do stops no other.

    Args:
        quick: whether only those run that take seconds.

    Raises:
        RaggsError: what is named cannot be opened.
    """
    if in_loop():
        return beside(lambda hear: diagnose_all(request, hear, approve, quick=quick), listen)
    done, skipped, failed = list[Diagnosed](), dict[str, str](), dict[str, str]()
    for each in outlooks(request):
        if why := each.hindrance(quick=quick):
            skipped[each.name] = why
            continue
        try:
            done.append(run_diagnosis(replace(request, kind=each.name, settings={}), listen, approve))
        except RaggsError as error:
            failed[each.name] = str(error)
    return Rounds(tuple(done), skipped, failed)


def lines(found: tuple[Outlook, ...]) -> Iterator[tuple[str, str]]:
    """For people: what stands before a text, and the text, a few lines a kind."""
    width = max((len(each.name) for each in found), default=0)
    for each in found:
        state = "ready" if each.ready else "lacks"
        yield f"  {each.name:<{width}}  {state:<5}  {each.time:<8}  {each.price:<4}  ", each.title
        words = [f"needs {', '.join(each.needs)}"] if each.needs else []
        words += [f"uses, where it is there: {', '.join(each.takes)}"] if each.takes else []
        if words:
            yield f"  {'':<{width}}  ", "; ".join(words)
        if each.lacks:
            yield f"  {'':<{width}}  ", each.lacks
