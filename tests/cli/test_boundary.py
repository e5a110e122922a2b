"""Whatever goes wrong leaves as one sentence and a code."""

from __future__ import annotations

import pytest
from support.cli import invoke

from raggs.base.errors import BusyError, DataError

BUGS = [
    ValueError("a\nb"),
    KeyError("x"),
    RecursionError("deep"),
    AssertionError(),
    UnicodeEncodeError("utf-8", "\udc80", 0, 1, "surrogates not allowed"),
    OverflowError("large"),
    TimeoutError(),
    ExceptionGroup("several", [ValueError("x")]),
    ZeroDivisionError("\x1b[31m[/red]"),
    StopIteration("x"),
    RuntimeError("y" * 100_000),
]


def run(error: BaseException, monkeypatch: pytest.MonkeyPatch, *flags: str) -> tuple[int, str]:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("raggs.app.catalog.catalog", fail)
    result = invoke("list", *flags)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stderr


@pytest.mark.parametrize("error", BUGS, ids=lambda error: type(error).__name__)
def test_an_unknown_error_is_one_sentence(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = run(error, monkeypatch)
    assert code == 6
    (line,) = said.splitlines()
    assert type(error).__name__ in line or isinstance(error, OSError)
    assert len(line) < 500
    assert "\x1b" not in said


def test_a_bug_says_that_it_is_one_and_debug_shows_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = run(KeyError("x"), monkeypatch)
    assert said.startswith("raggs: this is a bug in raggs: KeyError: 'x' — run again with --debug")
    _, said = run(KeyError("x"), monkeypatch, "--debug")
    assert "Traceback (most recent call last)" in said
    assert said.splitlines()[-1].startswith("raggs: this is a bug in raggs: KeyError")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DataError("wrong"), 5, "raggs: wrong"),
        (BusyError("held"), 6, "raggs: held"),
        (KeyboardInterrupt(), 130, "raggs: interrupted"),
        (MemoryError(), 6, "raggs: out of memory"),
        (OSError(24, "Too many open files"), 6, "raggs: the system: Too many open files — raise the limit"),
        (PermissionError(13, "Permission denied", "/x"), 6, "raggs: /x: Permission denied"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_known_error_keeps_its_code(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, told = run(error, monkeypatch)
    assert (found, told.startswith(said)) == (code, True)


def test_a_wrong_option_is_left_to_typer() -> None:
    result = invoke("list", "--nothing")
    assert result.exit_code == 2
    assert "--nothing" in result.stderr
