"""Server of the labelling page, and the weighing of disputed passages.

The weight of a dispute is how much its adjudication would change the verdicts on systems. For small runs, the server
computes the weights. For large runs, this needs too much memory and time, so a separate process does it. That process
receives folders and settings as JSON, writes no files, and returns numbers. It ends with the server, because its
standard input is then closed. If the process fails, disputes have no weights, and the page shows the reason.
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
from contextlib import contextmanager, suppress
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
from raggs.base.files import disk
from raggs.base.hashing import hash_value
from raggs.base.text import plural
from raggs.golden.sources import open_systems
from raggs.metrics.names import parse_measures
from raggs.parts.reviews import Draw, Key, ReviewStore, note_draw, read_plan
from raggs.reviewing.agreeing import rubric_of_runs
from raggs.reviewing.deciding import DecisiveVerdict, Dispute, DisputeWeights, Weigh
from raggs.reviewing.evidence import EvidenceSession
from raggs.reviewing.ordering import OrderingSession, kept_of
from raggs.reviewing.pool import open_pool
from raggs.reviewing.session import By, Session, SessionSettings
from raggs.runs.manifests.open_run import OpenedRun, open_run

if TYPE_CHECKING:
    from raggs.reviewing.server import AccessGate

MAX_INLINE_ITEMS = 5_000  # number of passages; up to this number, weighing is faster than starting a process
# The child imports from the same paths as this process, but not from the working directory.
CHILD = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from raggs.app.serve import main; main()"


def weigher(
    runs: Sequence[OpenedRun],
    folder: Path | None,
    systems: Sequence[str] = (),
    measures: Sequence[str] = (),
    aside: BackgroundProcess | None = None,
) -> Weigh:
    """Return a function that weighs disputes in the pools of the first run.

    Args:
        systems: entries ``[NAME=]PATH``, as in `raggs review plan` [default: the run's retrievers and their fusion].
        measures: metrics of the comparison [default: those of `raggs review plan`].
        aside: process that weighs disputes of large runs; None to weigh them in this process.

    Raises:
        UsageError: an unknown metric, or two systems with the same name.
        NotFoundError, DataError: a system cannot be read.
    """
    named = tuple(measures) or MEASURES
    parse_measures(named)
    for _ in open_systems(list(systems)):
        pass  # raise errors now, and not only during adjudication

    def weights(found: tuple[Dispute, ...]) -> DisputeWeights:
        grades = tuple((each.key, each.grades) for each in found)
        asked = PlanInputs(run=runs[0].folder, folder=folder, systems=tuple(systems), measures=named, grades=grades)
        told = weigh(asked) if aside is None else aside.weigh(asked)
        places = {found[place].key: row for row, place in enumerate(told.place)}
        worth = {key: told.worth[row] for key, row in places.items()}
        return DisputeWeights(told.told, told.impact, worth, _Pulls(told, places))

    return weights


class _Pulls(Mapping[Key, DecisiveVerdict]):
    """Verdicts that disputes affect. They are created on access: of tens of thousands, only one is shown at a time."""

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
    """A separate process that weighs disputes. It is started when needed, at most once at a time."""

    def __init__(self) -> None:
        self._lock, self._open = Lock(), True
        self._process: subprocess.Popen[bytes] | None = None

    def weigh(self, asked: PlanInputs) -> DifferenceWorth:
        """Weigh disputes in the separate process."""
        try:
            process = self._start()
            if process is None:
                return DifferenceWorth(told="the server is stopping")
            with process:
                said = _talk(process, asked.model_dump_json())
        except OSError as error:
            return DifferenceWorth(told=f"no process could be started ({error.strerror or error})")
        if process.returncode:
            return DifferenceWorth(told=f"the process that weighs disputes ended with code {process.returncode}")
        try:
            return DifferenceWorth.model_validate_json(said)
        except ValidationError:
            return DifferenceWorth(told="the process that weighs disputes returned no result")

    def close(self) -> None:
        """End the process, if there is one, and start no other."""
        with self._lock:
            self._open = False
            if self._process is not None:
                self._process.kill()

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._open:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter, without user input
                    [sys.executable, "-P", "-c", CHILD, json.dumps(sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # so that Ctrl-C reaches only the server, which then ends this process
                )
            return self._process if self._open else None


def _talk(process: subprocess.Popen[bytes], asked: str) -> bytes:
    """Return the answer of the process; its input stays open until then."""
    if process.stdin is None or process.stdout is None:
        raise OSError("no pipes")
    try:
        process.stdin.write(f"{asked}\n".encode())
        process.stdin.flush()
    except BrokenPipeError:  # not reported here, because the exit code is more informative
        with suppress(BrokenPipeError):
            process.stdin.close()  # close() would try to write again
    said = process.stdout.read()
    process.wait()
    return said


def main() -> None:
    """Weigh the disputes from standard input, in the separate process."""
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
NOT_BLIND = "with --look, grades by models are visible at /look, so labels are stored as not blind"
SERVER_LOCK = "server.lock"  # in the folder of labels
SHORTEST_TOKEN = 16  # characters
PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES)


@dataclass(frozen=True)
class ServeRequest:
    """Settings of the labelling server.

    Attributes:
        runs: run directories.
        folder: folder of the labels [default: `reviews` next to the folder of the first run].
        host: address to listen on; an address that other machines can reach needs a token.
        port: 0 selects a free port.
        token: access token in the URL [default: generated].
        who: the only annotator [default: entered on the page].
        sample: number of randomly drawn passages [default: all passages].
        plan: plan of `raggs review plan`: only its passages are labelled, in its order.
        seed: random seed of all orders and samples.
        overlap: share of the passages that two annotators label.
        repeats: share of the passages that an annotator labels twice.
        by: whether the passages of a query are shown together, or all passages in random order.
        reveal: whether annotators see the model's reason after their own grade.
        systems, measures: systems and metrics that define the order of adjudication, as in `raggs review plan`.
        hosts: accepted host names, in addition to the server's addresses, localhost and the machine's name.
        timeout: seconds within which a request must be complete.
        look: whether the results of the runs can be seen; labels are then not blind.
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
    """The running server.

    Attributes:
        address: URL to open, with the token.
        folder: folder of the labels.
        passages: number of passages to label.
        questions: number of queries of these passages.
        notes: further information for the user.
    """

    address: str
    folder: Path
    passages: int
    questions: int
    notes: tuple[str, ...] = ()


def serve(request: ServeRequest, tell: Callable[[ServedReview], None]) -> None:
    """Serve the page until Ctrl-C or SIGTERM.

    Args:
        tell: called once when the page can be opened.

    Raises:
        PrerequisiteError: the extra `review` is not installed.
        UsageError: an option is invalid, or other machines can reach the host and no token is given.
        BusyError: the port is in use, or another server stores labels in the same folder.
        ProviderError: the server cannot listen at the host, or the folder cannot be written.
        NotFoundError, DataError: a run is missing, or a line of the labels is invalid.
    """
    _check(request)

    try:
        import uvicorn

        from raggs.reviewing import server as _  # noqa: F401 - also imports starlette
    except ImportError as error:
        raise PrerequisiteError("the page needs starlette and uvicorn", remedy=INSTALL) from error
    token, aside = request.token or secrets.token_urlsafe(24), BackgroundProcess()
    app, served = prepare(request, token, aside)
    with only_server(served[0]), _listen(request.host, request.port) as listener:
        port = listener.getsockname()[1]
        shown = f"[{request.host}]" if ":" in request.host else request.host
        tell(ServedReview(f"http://{shown}:{port}/?token={token}", *served))
        # No access log, because the first URL contains the token.
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
                aside.close()  # before the shutdown, which would wait for requests that wait for this process
                await super().shutdown(sockets)

        with suppress(KeyboardInterrupt):  # Ctrl-C is the usual way to stop the server
            Server(settings).run(sockets=[listener])


def protocol_with_timeout(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, changed to close a connection if a request is not complete in time.

    uvicorn itself closes only idle connections: the first byte of a request stops its timer.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            if isinstance(transport, asyncio.Transport):  # always true; narrows the type
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
    """Return the application, the folder of labels, the numbers of passages and queries, and notes.

    Args:
        aside: process that weighs disputes of large runs; None to weigh them in this process.

    Raises:
        UsageError, NotFoundError, DataError: see `serve`.
    """
    from raggs.reviewing.deciding import Adjudication, ModelLabelReveal, RunBrowser
    from raggs.reviewing.pool import ModelJudges
    from raggs.reviewing.server import PageInfo, make_app

    runs = [open_run(folder) for folder in request.runs]
    pool = whole = open_pool(runs)
    folder = reviews_of(runs[0].folder, request.folder)
    if request.plan is not None:
        plan = read_plan(request.plan)
        # A draw is recorded even if all its passages are labelled, because it still counts.
        _note(folder, draw_of_plan(plan))
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
        chosen=request.plan is not None or request.sample is not None,
        shared=request.overlap >= 1,
        place=hash_value([str(folder.resolve()), *(run.manifest.name for run in runs)])[:12],
    )
    looking = RunBrowser(runs, store) if request.look else None
    notes = (*([NOT_BLIND] if request.look else []), *rubric.notes)
    questions = len({item.question for item in pool.items})
    hosts = (*request.hosts, request.host)
    revealing = ModelLabelReveal(session, machine, request.reveal)
    app = make_app(
        session,
        ordering,
        EvidenceSession(runs, session),
        deciding,
        revealing,
        about,
        token,
        looking,
        hosts,
        request.timeout,
    )
    return app, (folder, len(pool.items), questions, notes)


@contextmanager
def only_server(folder: Path) -> Iterator[None]:
    """Lock the folder of labels while a server runs; two servers would give the same passage to two annotators.

    The operating system releases the lock when the process ends, also after a kill.

    Raises:
        BusyError: another server stores labels in this folder.
        ProviderError: the folder cannot be written.
    """
    # imported lazily: it installs hooks on file operations
    from filelock import FileLock, Timeout

    with disk(folder, "set a writable folder: --reviews DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / SERVER_LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            remedy = "open the address of that server, or stop it; one server can serve several runs: serve RUN RUN"
            raise BusyError("another server stores labels in this folder", where=folder, remedy=remedy) from error
    try:
        yield
    finally:
        lock.release()


def _note(folder: Path, drawn: Draw | None) -> None:
    if drawn is not None:
        note_draw(folder, drawn)


def offer_sentence(served: ServedReview) -> str:
    """Return what the page offers for labelling, such as `40 passages of 8 queries`."""
    return f"{plural(served.passages, 'passage')} of {plural(served.questions, 'query')}"


def _check(request: ServeRequest) -> None:
    for name, share in (("--overlap", request.overlap), ("--repeats", request.repeats)):
        if not 0 <= share <= 1:
            raise UsageError(f"{name} {share:g} is outside 0..1", remedy="pass a share, e.g. 0.2")
    if not 0 < request.timeout < inf:
        raise UsageError(
            f"--timeout {request.timeout:g} is not positive and finite", remedy="pass a number of seconds, e.g. 15"
        )
    if request.plan is not None and request.sample is not None:
        raise UsageError("a plan already has a random part", remedy="pass --plan or --sample, not both")
    if request.token is not None and (len(request.token) < SHORTEST_TOKEN or not request.token.isascii()):
        message = f"a token must have at least {SHORTEST_TOKEN} ASCII characters"
        raise UsageError(message, remedy="omit --token to generate one")
    if request.token is None and not _is_loopback(request.host):
        raise UsageError(
            f"without a token, everyone who can reach {request.host} could read the passages and label them",
            remedy=f"pass a secret of at least {SHORTEST_TOKEN} characters: --token SECRET",
        )


def _is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
        # A response is two writes; with Nagle's algorithm, the second would wait 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        if port and error.errno in PORT_ERRORS:
            remedy = "pass another --port, or --port 0 for a free one"
            raise BusyError(f"port {port} of {host} is in use or not allowed", remedy=remedy) from error
        message = f"cannot listen at {host}:{port} ({error.strerror or error})"
        raise ProviderError(message, remedy="check --host") from error
    except OverflowError as error:
        raise UsageError(f"port {port} is outside 0..65535", remedy="pass another --port") from error
