"""Disputes weighed for a server of people's grades: here, or in a process of its own where a run is large.

A large run's pools and lists take more memory than the server may hold, and time that graders would wait. The process
is given folders and settings as JSON, gives numbers back, and ends with whoever asked it, whichever way that one ends:
its standard input is closed then. It only reads. What goes wrong there is the reason why nothing is weighed, no error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from pydantic import ValidationError

from raggs.app.reviewimpact import Asked, Told, weigh
from raggs.app.reviewplan import MEASURES
from raggs.golden.systems import open_systems
from raggs.metrics.names import parse_measures
from raggs.parts.reviews.models import Key
from raggs.reviewing.disputes import Dispute, Pull, Weigh, Weights
from raggs.runs.manifests.opened import OpenedRun

SMALL = 5_000  # passages that are weighed here: a process takes as long to start
# Modules are found where they are found here, and never in the folder that the server was started in.
CHILD = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from raggs.app.weighing import main; main()"


def weigher(
    runs: Sequence[OpenedRun],
    folder: Path | None,
    systems: Sequence[str] = (),
    measures: Sequence[str] = (),
    aside: Aside | None = None,
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

    def weights(found: tuple[Dispute, ...]) -> Weights:
        grades = tuple((each.key, each.grades) for each in found)
        asked = Asked(run=runs[0].folder, folder=folder, systems=tuple(systems), measures=named, grades=grades)
        told = weigh(asked) if aside is None else aside.weigh(asked)
        places = {found[place].key: row for row, place in enumerate(told.place)}
        worth = {key: told.worth[row] for key, row in places.items()}
        return Weights(told.told, told.impact, worth, _Pulls(told, places))

    return weights


class _Pulls(Mapping[Key, Pull]):
    """What each difference is about, made when it is asked for: one is shown at a time, of tens of thousands."""

    def __init__(self, told: Told, rows: Mapping[Key, int]) -> None:
        self._told = told
        self._rows = {key: row for key, row in rows.items() if told.moves[row]}

    def __getitem__(self, key: Key) -> Pull:
        row = self._rows[key]
        verdict = self._told.verdicts[self._told.verdict[row]]
        return Pull(
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


class Aside:
    """One process beside this one, at most, until it is closed."""

    def __init__(self) -> None:
        self._lock, self._open = Lock(), True
        self._process: subprocess.Popen[bytes] | None = None

    def weigh(self, asked: Asked) -> Told:
        """Weigh there."""
        try:
            process = self._start()
            if process is None:
                return Told(told="the server stops")
            with process:
                said = _talk(process, asked.model_dump_json())
        except OSError as error:
            return Told(told=f"no process could be started ({error.strerror or error})")
        if process.returncode:
            return Told(told=f"the process that weighs them ended with code {process.returncode}")
        try:
            return Told.model_validate_json(said)
        except ValidationError:
            return Told(told="the process that weighs them said nothing")

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
    asked = Asked.model_validate_json(sys.stdin.buffer.readline())
    Thread(target=_end_with_server, daemon=True).start()
    sys.stdout.write(weigh(asked).model_dump_json())


def _end_with_server() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)
