"""The `raggs` command in forked processes: each a process of its own that can be killed, without its start-up time.

One helper process imports raggs and its heavy libraries once and forks for every command; the child is an ordinary
run of the command line, in the folder, with the environment and the folders of `PYTHONPATH` it is given. What else
Python reads when it starts (the locale, its streams' encoding) is the helper's: commands that need other values are
started, not forked. A child can be told where to die:

    {"at": "rename", "number": 3}                  before its third rename of a temporary file
    {"at": "stage", "name": "merge", "after": .01}    seconds after a stage began (0: at once)
    {"at": "start", "after": .05}                  seconds after the command began
    {"at": "call", "of": "package.module:Class.method", "number": 3}    before the third call of a method
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
START = f"import sys; sys.path.insert(0, {str(TESTS)!r}); from support.forks import serve; serve()"
POLL_S = 0.005


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: the signal that killed it) and what it wrote."""

    code: int
    out: str
    err: str


class Forks:
    """The helper process, as a context manager."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAGGS")}
        with (folder / "helper.err").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**kept, "OPENBLAS_NUM_THREADS": "1", **environment},
            )
        self._number = 0
        self._turn = threading.Lock()

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *unused: object) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)

    def raggs(self, *arguments: object, die: Mapping[str, Any] | None = None) -> Ended:
        """Run a command to its end."""
        return self.start(*arguments, die=die).wait()

    def start(
        self,
        *arguments: object,
        die: Mapping[str, Any] | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Child:
        """Begin a command, in the helper's folder and environment where none is given."""
        self._number += 1
        files = [str(self.folder / f"{self._number:03}.{name}") for name in ("out", "err")]
        words, place = [str(argument) for argument in arguments], None if cwd is None else str(cwd)
        pid = self._say(run=words, files=files, die=die, cwd=place, env=None if env is None else dict(env))
        return Child(self, pid, Path(files[0]), Path(files[1]))

    def _say(self, **order: Any) -> int:
        with self._turn:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError((self.folder / "helper.err").read_text())
        return json.loads(answer)


@dataclass
class Child:
    forks: Forks
    pid: int
    out: Path
    err: Path
    _ended: Ended | None = None

    def poll(self) -> Ended | None:
        """How it ended, or None as long as it runs."""
        if self._ended is None and (code := self.forks._say(poll=self.pid)) is not None:
            self._ended = Ended(code, self.out.read_text(), self.err.read_text())
        return self._ended

    def wait(self, until: Callable[[], bool] = lambda: False) -> Ended | None:
        """Until it ends (then how it did), or until `until` holds (then None)."""
        while not until():
            if (ended := self.poll()) is not None:
                return ended
            time.sleep(POLL_S)
        return None

    def end(self, seconds: float = 60) -> Ended:
        """Wait until it ends by itself.

        Raises:
            TimeoutError: it did not; it is killed.
        """
        deadline = time.monotonic() + seconds
        if (ended := self.wait(until=lambda: time.monotonic() > deadline)) is None:
            raise TimeoutError(f"it runs for more than {seconds} s: {self.kill().err}")
        return ended

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> Ended:
        """kill -9, unless it has ended."""
        self.send_signal(signal.SIGKILL)
        return self.wait()


@cache
def shared() -> Forks:
    """One helper for all tests of this process, made when the first of them needs it."""
    folder = tempfile.TemporaryDirectory(prefix="raggs-forks-")
    forks = Forks(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(forks.__exit__)
    return forks


CLIENT = """import json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
line.sendall(json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
code, out, err = json.load(line.makefile())
sys.stdout.buffer.write(out.encode())
sys.stderr.buffer.write(err.encode())
sys.exit(code)
"""


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        words, folder, environment = json.loads(self.rfile.readline())
        ended = shared().start(*words, cwd=Path(folder), env=environment).end(120)
        self.wfile.write(json.dumps([ended.code, ended.out, ended.err]).encode())


@contextmanager
def shell_command(path: Path) -> Iterator[None]:
    """Make `path` a command for shells that runs `raggs` in a forked process."""
    with tempfile.TemporaryDirectory(prefix="raggs-shell-") as folder:  # addresses of sockets are short
        address, client = Path(folder) / "socket", Path(folder) / "client.py"
        client.write_text(CLIENT)
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {client} {address} "$@"\n')
        path.chmod(0o755)
        with socketserver.ThreadingUnixStreamServer(str(address), _Handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()


# --- in the helper process ---


def serve() -> None:
    """Fork for each line on stdin."""
    asyncio.run(_warm())
    sys.path.remove(str(TESTS))
    gc.collect()
    gc.freeze()  # what is here already is not looked through, hence not copied, in every child
    for line in sys.stdin:
        order = json.loads(line)
        if "poll" in order:
            done, status = os.waitpid(order["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if done else None
        else:
            answer = os.fork()
            if answer == 0:
                _child(order)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


async def _warm() -> None:
    """Import what a run imports, also what libraries import at their first call, and read what every run reads."""
    import bm25s  # noqa: F401
    import wordllama  # noqa: F401

    import raggs.app
    import raggs.cli

    for room in (raggs.cli, raggs.app):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)

    from raggs.llm import LLMSettings, providers
    from raggs.llm.faults import Fault
    from raggs.parts.embedders import wordllama as embedder

    embedder._read(embedder._folder())

    with suppress(Fault):
        await providers.chat("openai/nobody", {"messages": []}, LLMSettings(api_base="http://127.0.0.1:9/v1"))
    await providers.close()
    others = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if others != [name for name in others if name.startswith("asyncio_")]:
        raise RuntimeError(f"threads that a fork would lose: {others}")


def _child(order: dict[str, Any]) -> None:
    """Be the command; never returns."""
    for number, path in enumerate(order["files"], start=1):
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(handle, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(order["cwd"] or ".")
    if order["env"] is not None:
        os.environ.clear()
        os.environ.update(order["env"])
        folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[1:1] = [folder for folder in folders if folder and folder not in sys.path]
        importlib.invalidate_caches()
    sys.argv = ["raggs", *order["run"]]
    _plan_death(order["die"])
    code: Any = 1
    try:
        from raggs.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 - nothing may return into the helper's loop
        import traceback

        traceback.print_exc()
    finally:
        threading._shutdown()  # as Python ends: threads first, then whatever was to be done at the end
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _plan_death(die: Mapping[str, Any] | None) -> None:
    if die is None:
        return
    if die["at"] == "start":
        threading.Timer(die["after"], _die).start()
    elif die["at"] == "stage":
        _die_in_stage(die["name"], die["after"])
    elif die["at"] == "call":
        _die_before_call(die["of"], die["number"])
    else:
        _die_before_rename(die["number"])


def _die_in_stage(name: str, after: float) -> None:
    from raggs.runs.manifests.store import RunStore

    begin = RunStore.begin

    def begin_and_die(store: RunStore, stage: str, fingerprint: str) -> None:
        begin(store, stage, fingerprint)
        if stage == name and not after:
            _die()
        if stage == name:
            threading.Timer(after, _die).start()

    RunStore.begin = begin_and_die


def _die_before_call(place: str, number: int) -> None:
    module, _, path = place.partition(":")
    owner, _, name = path.partition(".")
    found = getattr(importlib.import_module(module), owner)
    method, seen = getattr(found, name), 0

    def call_or_die(*given: Any, **named: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == number:
            _die()
        return method(*given, **named)

    setattr(found, name, call_or_die)


def _die_before_rename(number: int) -> None:
    replace, seen = Path.replace, 0

    def replace_or_die(path: Path, target: Path) -> Path:
        nonlocal seen
        seen += path.name.startswith(".tmp-")
        if seen == number:
            _die()
        return replace(path, target)

    Path.replace = replace_or_die
