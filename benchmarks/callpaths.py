"""Count the distinct functions, modules and packages of raggs that a command calls, and the depth of its calls.

A command runs in a new process over the project that ``raggs init`` makes, whose judge counts nuggets by a rule.
`sys.setprofile` sees every call. Bodies of modules and classes, lambdas and comprehensions do not count. The depth is
the largest number of nested functions of raggs in one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType


@dataclass(frozen=True)
class Command:
    """Arguments of a command, and its limits of functions, modules and depth."""

    arguments: Sequence[str]
    most: tuple[int, int, int]


RUN = "demo/runs/demo"
COMMANDS = {  # in this order: the others read the run of the first one
    "run": Command(["run", "--config", "demo/raggs.yaml"], (560, 100, 24)),
    "eval": Command(["eval", "--golden", RUN, "--run", RUN], (280, 50, 14)),
    "export": Command(["export", RUN, "--out", "golden"], (130, 32, 11)),
    "show": Command(["show", RUN, "renew"], (110, 28, 11)),
}


class CallCounter:
    """A profile function that records the called functions of one package.

    Args:
        root: the folder of the package.
    """

    def __init__(self, root: Path) -> None:
        self._root = f"{root}{os.sep}"
        self._known: dict[CodeType, bool] = {}
        self._inside: Counter[int] = Counter()  # by thread
        self._deepest = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """See `sys.setprofile`."""
        if event not in ("call", "return"):
            return
        code = frame.f_code
        counted = self._known.get(code)
        if counted is None:
            is_function = bool(code.co_flags & 2) and not code.co_name.startswith("<")  # 2: CO_NEWLOCALS
            counted = self._known[code] = is_function and code.co_filename.startswith(self._root)
        if counted:
            thread = threading.get_ident()
            self._inside[thread] += 1 if event == "call" else -1
            self._deepest = max(self._deepest, self._inside[thread])

    def figures(self) -> list[int]:
        """Return the numbers of functions, modules and packages, and the depth."""
        called = [code for code, counted in self._known.items() if counted]
        modules = {Path(code.co_filename).relative_to(self._root) for code in called}
        packages = {module.parts[0] for module in modules}
        return [len(called), len(modules), len(packages), self._deepest]


def count_commands(root: Path) -> dict[str, str]:
    """Run each command of the package in `root` and return its figures, separated by commas."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        _start(["init", "demo"], root, folder)
        for name, command in COMMANDS.items():
            found[name] = ", ".join(str(figure) for figure in _start(command.arguments, root, folder))
    return found


def _start(arguments: Sequence[str], root: Path, folder: str) -> list[int]:
    """Run one command in a separate process."""
    environment = {**os.environ, "PYTHONPATH": str(root.parent), "NO_COLOR": "1"}
    words = [sys.executable, str(Path(__file__).resolve()), str(root), *arguments]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"raggs {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    figures: list[int] = json.loads(done.stderr.splitlines()[-1])
    return figures


def _run_counted(root: Path, arguments: Sequence[str]) -> None:
    """Run one command in this process and write its figures to standard error."""
    from raggs.cli import main

    counter = CallCounter(root)
    sys.argv = ["raggs", *arguments]
    threading.setprofile(counter)
    sys.setprofile(counter)
    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    sys.stderr.write(f"\n{json.dumps(counter.figures())}\n")
    sys.exit(0 if code in (None, 0) else str(code))


if __name__ == "__main__":
    _run_counted(Path(sys.argv[1]), sys.argv[2:])
