"""The page on which people grade passages, served from here until it is stopped.

Disputes weighed for a server of people's grades: here, or in a process of its own where a run is large.

A large run's pools and lists take more memory than the server may hold, and time that graders would wait. The process
is given folders and settings as JSON, gives numbers back, and ends with whoever asked it, whichever way that one ends:
its standard input is closed then. It only reads. What goes wrong there is the reason why nothing is weighed, no error.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from pydantic import ValidationError

from raggs.app.review import reviewer, reviews_of
from raggs.app.review_plan import MEASURES, DifferenceWorth, PlanInputs, weigh
from raggs.app.review_pool import draw_of_plan, draw_of_sample
from raggs.base.errors import BusyError, PrerequisiteError, ProviderError, UsageError
from raggs.base.text import plural
from raggs.golden.sources import open_systems
from raggs.metrics.names import parse_measures
from raggs.parts.reviews import Draw, Key, ReviewStore, note_draw, read_plan
from raggs.reviewing.agreeing import rubric_of_runs
from raggs.reviewing.deciding import DecisiveVerdict, Dispute, DisputeWeights, Weigh
from raggs.reviewing.ordering import OrderingSession, kept_of
from raggs.reviewing.pool import open_pool
from raggs.reviewing.session import By, Session, SessionSettings
from raggs.runs.manifests.open_run import OpenedRun, open_run

if TYPE_CHECKING:
    from raggs.reviewing.server import AccessGate

MAX_INLINE_ITEMS = 5_000  # passages that are weighed here: a process takes as long to start
# Modules are found where they are found here, and never in the folder that the server was started in.
CHILD = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from raggs.app.serve import main; main()"


def weigher(
    runs: Sequence[OpenedRun],
    folder: Path | None,
    systems: Sequence[str] = (),
    measures: Sequence[str] = (),
    aside: BackgroundProcess | None = None,
) -> Weigh:
    """Weighs disputes in the first run's pools, when it is asked to.

    Args:
        systems: ``[NAME=]PATH`` each, as of `raggs review plan`; the run's own retrievers and their fusion where empty.
        measures: by which they are compared; the usual ones of a plan where empty.
        aside: where they are weighed; here if left out.

    Raises:
        UsageError: an unknown measure, or two systems of one name.
        NotFoundError, DataError: a system that is named cannot be read.
    """
    named = tuple(measures) or MEASURES
    parse_measures(named)
    for _ in open_systems(list(systems)):
        pass  # told now, and not when somebody decides

    def weights(found: tuple[Dispute, ...]) -> DisputeWeights:
        grades = tuple((each.key, each.grades) for each in found)
        asked = PlanInputs(run=runs[0].folder, folder=folder, systems=tuple(systems), measures=named, grades=grades)
        told = weigh(asked) if aside is None else aside.weigh(asked)
        places = {found[place].key: row for row, place in enumerate(told.place)}
        worth = {key: told.worth[row] for key, row in places.items()}
        return DisputeWeights(told.told, told.impact, worth, _Pulls(told, places))

    return weights


class _Pulls(Mapping[Key, DecisiveVerdict]):
    """What each difference is about, made when it is asked for: one is shown at a time, of tens of thousands."""

    def __init__(self, told: DifferenceWorth, rows: Mapping[Key, int]) -> None:
        self._told = told
        self._rows = {key: row for key, row in rows.items() if told.moves[row]}

    def __getitem__(self, key: Key) -> DecisiveVerdict:
        row = self._rows[key]
        verdict = self._told.verdicts[self._told.verdict[row]]
        return DecisiveVerdict(
            one=verdict.one,
            other=verdict.other,
            measure=verdict.measure,
            apart=verdict.apart,
            moves=self._told.moves[row],
        )

    def __iter__(self) -> Iterator[Key]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class BackgroundProcess:
    """One process beside this one, at most, until it is closed."""

    def __init__(self) -> None:
        self._lock, self._open = Lock(), True
        self._process: subprocess.Popen[bytes] | None = None

    def weigh(self, asked: PlanInputs) -> DifferenceWorth:
        """Weigh there."""
        try:
            process = self._start()
            if process is None:
                return DifferenceWorth(told="the server stops")
            with process:
                said = _talk(process, asked.model_dump_json())
        except OSError as error:
            return DifferenceWorth(told=f"no process could be started ({error.strerror or error})")
        if process.returncode:
            return DifferenceWorth(told=f"the process that weighs them ended with code {process.returncode}")
        try:
            return DifferenceWorth.model_validate_json(said)
        except ValidationError:
            return DifferenceWorth(told="the process that weighs them said nothing")

    def close(self) -> None:
        """End the process, if there is one; no other is started."""
        with self._lock:
            self._open = False
            if self._process is not None:
                self._process.kill()

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._open:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and nothing that a user gave
                    [sys.executable, "-P", "-c", CHILD, json.dumps(sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C is for the server, which ends it
                )
            return self._process if self._open else None


def _talk(process: subprocess.Popen[bytes], asked: str) -> bytes:
    """What it answers; its input stays open until then."""
    if process.stdin is None or process.stdout is None:
        raise OSError("no pipes")
    try:
        process.stdin.write(f"{asked}\n".encode())
        process.stdin.flush()
    except BrokenPipeError:  # its exit code says more
        with suppress(BrokenPipeError):
            process.stdin.close()  # what could not be written would be tried again at the end
    said = process.stdout.read()
    process.wait()
    return said


def main() -> None:
    """Weigh what the standard input asks for, in the process of its own."""
    asked = PlanInputs.model_validate_json(sys.stdin.buffer.readline())
    Thread(target=_end_with_server, daemon=True).start()
    sys.stdout.write(weigh(asked).model_dump_json())


def _end_with_server() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


INSTALL = 'pip install ".[review]" in a clone of raggs'
PORT = 8765
REQUEST_SECONDS = 15.0
NOT_BLIND = "with --look machines' grades can be seen at /look, so every word given here is noted as not blind"
SHORTEST_TOKEN = 16  # characters
PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES)


@dataclass(frozen=True)
class ServeRequest:
    """What is to be served, to whom.

    Attributes:
        runs: run directories.
        folder: of the reviews; `reviews` beside the first run's folder if left out.
        host: address to listen at; another than this machine's own needs a token.
        port: 0 takes a free one.
        token: that the first address holds; drawn if left out.
        who: the only reviewer; asked on the page if left out.
        sample: how many passages are drawn at random from all; all if left out.
        plan: a file of `raggs review plan`: these passages alone, in its order.
        seed: of every order and draw.
        overlap: share of the passages that two reviewers grade.
        repeats: share that a reviewer grades twice.
        by: whether a question's passages come together, or those of all questions in one order.
        reveal: whether reviewers may see what the model said of a passage, once they have graded it.
        systems, measures: whose verdicts say what is decided first, as of `raggs review plan`.
        hosts: names under which the server may be opened, besides its addresses, localhost and the machine's name.
        timeout: seconds within which a request must arrive in full.
        look: whether what the runs decided can be looked at; words given then are not blind.
    """

    runs: Sequence[Path]
    folder: Path | None = None
    host: str = "127.0.0.1"
    port: int = PORT
    token: str | None = None
    who: str | None = None
    sample: int | None = None
    plan: Path | None = None
    seed: int = 0
    overlap: float = 0.2
    repeats: float = 0.05
    by: By = "question"
    reveal: bool = False
    look: bool = False
    hosts: tuple[str, ...] = ()
    timeout: float = REQUEST_SECONDS
    systems: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServedReview:
    """What is being served.

    Attributes:
        address: to open first; it holds the token.
        folder: where the reviews go.
        passages: how many can be graded.
        questions: for how many questions.
        notes: what else whoever serves it must know.
    """

    address: str
    folder: Path
    passages: int
    questions: int
    notes: tuple[str, ...] = ()


def serve(request: ServeRequest, tell: Callable[[ServedReview], None]) -> None:
    """Serve the page until Ctrl-C or SIGTERM.

    Args:
        tell: is called once when the page can be opened.

    Raises:
        PrerequisiteError: the extra `review` is not installed.
        UsageError: a host beyond this machine without a token, or a share outside 0..1.
        BusyError: the port is taken.
        NotFoundError, DataError: a run, or a line of the reviews, is not there or cannot be right.
    """
    _check(request)

    try:
        import uvicorn

        from raggs.reviewing import server as _  # noqa: F401 - starlette too
    except ImportError as error:
        raise PrerequisiteError("the page needs starlette and uvicorn", remedy=INSTALL) from error
    token, aside = request.token or secrets.token_urlsafe(24), BackgroundProcess()
    app, served = prepare(request, token, aside)
    with _listen(request.host, request.port) as listener:
        port = listener.getsockname()[1]
        shown = f"[{request.host}]" if ":" in request.host else request.host
        tell(ServedReview(f"http://{shown}:{port}/?token={token}", *served))
        # No access log: the first address holds the token.
        settings = uvicorn.Config(
            app,
            http=protocol_with_timeout(request.timeout),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            lifespan="off",
        )

        class Server(uvicorn.Server):
            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                aside.close()  # first, since whoever waits for it keeps the server
                await super().shutdown(sockets)

        with suppress(KeyboardInterrupt):  # the usual end
            Server(settings).run(sockets=[listener])


def protocol_with_timeout(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, which closes a connection whose next request does not arrive in time.

    uvicorn itself drops a connection only while it is idle: the first byte of a request ends that timer.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            if isinstance(transport, asyncio.Transport):  # which it always is
                super().connection_made(transport)
            self._await_request()

        def on_response_complete(self) -> None:
            answered = self.cycle
            super().on_response_complete()
            if self.cycle is answered:
                self._await_request()

        def _await_request(self) -> None:
            self.loop.call_later(seconds, self._close_if_after, self.cycle)

        def _close_if_after(self, cycle: object) -> None:
            if self.cycle is cycle and not self.transport.is_closing():
                self.transport.close()

    return Protocol


def prepare(
    request: ServeRequest, token: str, aside: BackgroundProcess | None = None
) -> tuple[AccessGate, tuple[Path, int, int, tuple[str, ...]]]:
    """The page's application, and what it offers: folder of the reviews, passages, questions, notes.

    Args:
        aside: where what differs in large pools is weighed; here if left out.

    Raises:
        UsageError, NotFoundError, DataError: as `serve`.
    """
    from raggs.reviewing.deciding import Adjudication, ModelLabelReveal, RunBrowser
    from raggs.reviewing.pool import ModelJudges
    from raggs.reviewing.server import PageInfo, make_app

    runs = [open_run(folder) for folder in request.runs]
    pool = whole = open_pool(runs)
    folder = reviews_of(runs[0].folder, request.folder)
    if request.plan is not None:
        plan = read_plan(request.plan)
        _note(folder, draw_of_plan(plan))  # also where all of it was read before: it counts
        pool = pool.planned_by(plan)
    elif request.sample is not None:
        pool = pool.sampled(request.sample, request.seed)
        _note(folder, draw_of_sample([item.key for item in pool.items], pool.chances, request.seed))
    rubric = rubric_of_runs(runs)
    settings = SessionSettings(
        request.seed, request.overlap, request.repeats, rubric.name, request.by, blind=not request.look
    )
    store = ReviewStore(folder)
    session = Session(pool, store, settings)
    ordering = OrderingSession(whole, store, kept_of(runs), request.seed, blind=settings.blind)
    machine = ModelJudges(runs, pool)
    elsewhere = aside if len(whole.items) > MAX_INLINE_ITEMS else None
    weigh = weigher(runs, request.folder, request.systems, request.measures, elsewhere)
    deciding = Adjudication(session, machine, weigh)
    about = PageInfo(
        rubric=rubric.meanings,
        text=rubric.texts,
        title=", ".join(run.manifest.name for run in runs),
        who=None if request.who is None else reviewer(request.who),
        reveal=request.reveal,
        look=request.look,
    )
    looking = RunBrowser(runs, store) if request.look else None
    notes = (*([NOT_BLIND] if request.look else []), *rubric.notes)
    questions = len({item.question for item in pool.items})
    hosts = (*request.hosts, request.host)
    revealing = ModelLabelReveal(session, machine, request.reveal)
    app = make_app(session, ordering, deciding, revealing, about, token, looking, hosts, request.timeout)
    return app, (folder, len(pool.items), questions, notes)


def _note(folder: Path, drawn: Draw | None) -> None:
    if drawn is not None:
        note_draw(folder, drawn)


def offer_sentence(served: ServedReview) -> str:
    """What is served, in a sentence."""
    return f"{plural(served.passages, 'passage')} of {plural(served.questions, 'question')}"


def _check(request: ServeRequest) -> None:
    for name, share in (("--overlap", request.overlap), ("--repeats", request.repeats)):
        if not 0 <= share <= 1:
            raise UsageError(f"{name} {share:g} is outside 0..1", remedy="give a share, such as 0.2")
    if not 0 < request.timeout < inf:
        raise UsageError(f"--timeout {request.timeout:g} is not above 0", remedy="give seconds, such as 15")
    if request.plan is not None and request.sample is not None:
        raise UsageError("a plan has a random part of its own", remedy="give --plan or --sample, not both")
    if request.token is not None and (len(request.token) < SHORTEST_TOKEN or not request.token.isascii()):
        message = f"a token has at least {SHORTEST_TOKEN} characters of ASCII"
        raise UsageError(message, remedy="leave --token out to have one drawn")
    if request.token is None and not _is_loopback(request.host):
        raise UsageError(
            f"whoever reaches {request.host} could read and grade",
            remedy=f"give a secret of {SHORTEST_TOKEN} characters or more: --token SECRET",
        )


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
        # An answer's head and body are two writes: else the second waits 40 ms for the receipt of the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        if port and error.errno in PORT_ERRORS:
            remedy = "give another, or --port 0 for a free one"
            raise BusyError(f"port {port} of {host} is taken or not allowed", remedy=remedy) from error
        message = f"cannot listen at {host}:{port} ({error.strerror or error})"
        raise ProviderError(message, remedy="check --host") from error
    except OverflowError as error:
        raise UsageError(f"port {port} is outside 0..65535", remedy="give another: --port") from error
