"""Names, titles and paths that would command a terminal, or that rich would take for markup, are shown as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import Project, make_project, write_lines

from raggs.base.text import escape_controls
from raggs.base.types import BuildProgress, Notice
from raggs.cli.plain_text import say, say_json
from raggs.cli.screen import Screen, table

ROOT = Path(__file__).resolve().parents[2]
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = [
    "[/red]",
    "[red]",
    "[",
    "[/]",
    "[link=file:///etc/passwd]x[/link]",
    ":skull:",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;owned\x07",
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "a\rb",
    "back\x08\x08\x08\x08space",
    "\u202eright to left",
    "\u2066isolated",
    "%s{0}{task}",
]


def hostile(folder: Path) -> Project:
    """A project whose titles, texts and questions are hostile, in a folder with a hostile name."""
    project = make_project(folder / "[red][/b] [", queries=3, corpus=20)
    path = project.folder / "corpus.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number, row in enumerate(rows):
        row["title"] = HOSTILE[number % len(HOSTILE)] + " " + row["title"]
        row["text"] = row["text"] + HOSTILE[(number + 3) % len(HOSTILE)]
    write_lines(path, rows)
    path = project.folder / "queries.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row, words in zip(rows, ("[/red]", "\x1b[31m", "\x1b]0;owned\x07"), strict=True):
        row["text"] = words + row["text"]
    write_lines(path, rows)
    return project


def shown(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert not ACTS.search(result.stdout + result.stderr), repr(result.stdout + result.stderr)
    assert "Traceback" not in result.stderr
    return result.stdout + result.stderr


def test_a_hostile_project_through_every_command(tmp_path: Path) -> None:
    project = hostile(tmp_path)
    assert "[red][/b] [" in shown("run", "--config", project.config)
    for command in (
        ("status", project.run),
        ("status", project.run, "--config", project.config),
        ("status", project.run, "--json"),
        *(("why", project.run, stage) for stage in ("embed", "judge", "rank")),
        ("why", project.run, "--query", "q00"),
        ("why", project.run, "--query", "q00", "--json"),
        ("cost", project.run),
        ("audit", project.run),
        ("eval", "--golden", project.run, "--run", project.run),
        ("eval", "--golden", project.run, "--run", project.run, "--per-query"),
        ("list",),
        ("list", "measures"),
        ("validate", "--config", project.config),
        ("config", "show", "--config", project.config),
        ("doctor", "--config", project.config),
        ("run", "--config", project.config),
        ("run", "--config", project.config, "--dry-run", "--force"),
        ("export", project.run, "--out", project.folder / "[/green]"),
        ("cache", "stats", "--workspace", project.folder / "runs"),
    ):
        assert shown(*command)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_path_in_an_error(name: str, tmp_path: Path) -> None:
    assert shown("run", "--config", tmp_path / name)
    assert shown("status", tmp_path / name)
    assert shown("eval", "--golden", tmp_path / name, "--run", tmp_path / name)
    assert shown("list", name)


@pytest.mark.nightly(keep=9)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_system_and_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q 0 a 1\nq 0 b 0\n")
    for number in (1, 2):
        (tmp_path / f"{number}.trec").write_text("q Q0 a 1 2.0 t\nq Q0 b 2 1.0 t\n")
    systems = [f"{name}{number}={tmp_path / f'{number}.trec'}" for number in (1, 2)]
    command = ("eval", "-g", tmp_path / "qrels.txt", *(part for system in systems for part in ("-r", system)))
    shown(*command)
    shown(*command, "--baseline", f"{name}1")
    shown(*command, "--json")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_table_and_a_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(width=300)
    rows = table("passage", "what")
    rows.add_row(text, text)
    screen.print(rows)
    screen.print(text)
    screen.print(f"a {text} b", style="yellow", soft_wrap=True)
    said = capsys.readouterr().out
    assert said.count(escape_controls(text)) == 4
    assert not ACTS.search(said)
    say(text)
    say_json(json.dumps(text, ensure_ascii=False))
    first, second = capsys.readouterr().out.splitlines()
    assert first == escape_controls(text)
    assert json.loads(second) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_progress(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    from raggs.cli.progress import LiveProgress, PlainProgress

    with LiveProgress(Screen(stderr=True, width=200)) as live:
        live(Notice(text))
        live(BuildProgress(text, 1, 2))
    with PlainProgress(0.0) as plain:
        plain(Notice(text))
        plain(BuildProgress(text, 1, 2))
    assert not ACTS.search(capsys.readouterr().err)


def test_nothing_of_the_command_line_prints_by_another_way() -> None:
    """The two modules that do are the only ones which import what prints."""
    others = {
        path.name: found
        for path in sorted((ROOT / "raggs" / "cli").glob("*.py"))
        if path.name not in ("plain_text.py", "screen.py", "app.py")
        and (found := re.findall(r"typer\.(?:echo|confirm|secho|prompt)\(|\bConsole\(", path.read_text()))
    }
    assert not others, "print by raggs.cli.plain_text or raggs.cli.screen"


def test_letters_of_every_script_stay() -> None:
    text = "naïve 日本語 العربية עברית हिन्दी 👩‍👩‍👧 a\tb\nc"
    assert escape_controls(text) == text
    assert escape_controls("\x1b[0m\u202e\udc80\x85") == "\\x1b[0m\\u202e\\udc80\\x85"
