"""`-q` means the same in every command: no texts for people; JSON, files, errors and exit codes stay."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import call, invoke
from support.project import Project, make_project
from typer.core import TyperGroup
from typer.main import get_command

from raggs.cli.app import app
from raggs.cli.plain_text import QUIET_HELP


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(command, TyperGroup):
        yield words, command
        return
    for name in command.commands:
        yield from commands(command.commands[name], (*words, name))


ALL = dict(commands(get_command(app)))
# RUN and OTHER are runs, DOCUMENTS is a configuration of a folder, FOLDER is empty, GOLDEN is an export,
# and REVIEWS is a file of grades.
CALLS = {
    "status RUN",
    "why RUN judge",
    "why RUN --query q00",
    "show RUN q00",
    "cost RUN",
    "audit RUN",
    "export RUN --out FOLDER",
    "import GOLDEN/qrels.txt --format trec --out FOLDER",
    "eval -g RUN -r RUN",
    "diff RUN OTHER",
    "compare RUN OTHER",
    "validate CONFIG",
    "list",
    "list measures",
    "explain kappa",
    "config show CONFIG",
    "prompts list",
    "chunks show DOCUMENTS",
    "review plan RUN",
    "review set RUN q00 p005 4",
    "review status RUN",
    "review import RUN REVIEWS",
    "review export RUN --out FOLDER/reviews.jsonl",
    "judge check RUN",
    "judge compare RUN OTHER",
    "cache stats",
    "run CONFIG",
    "run CONFIG --dry-run",
}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("quiet") / "project", queries=2)
    call("run", "--config", project.config, "--quiet")
    call("run", "--config", project.config, "--quiet", "--run-id", "other", "--set", "judge.judge.seed=2")
    (project.folder / "documents").mkdir()
    (project.folder / "documents" / "a.md").write_text("# Rivers\n\nThe brook runs by the grove.\n")
    (project.folder / "documents.yaml").write_text("corpus: {type: folder, path: documents}\n")
    call("export", project.run, "--out", project.folder / "golden", "--quiet")
    rows = [json.loads(line) for line in (project.run / "judge.jsonl").read_text().splitlines()]
    labels = [
        {"qid": row["qid"], "doc_id": row["doc_id"], "grade": 3, "who": "ada", "blind": True} for row in rows[::2]
    ]
    (project.folder / "grades.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    call("review", "import", project.run, project.folder / "grades.jsonl", "--quiet")
    return project


def words_of(line: str, project: Project, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    places = {
        "RUN": project.run,
        "OTHER": project.run.parent / "other",
        "DOCUMENTS": project.folder / "documents.yaml",
        "CONFIG": project.config,
        "FOLDER": folder,
        "GOLDEN": project.folder / "golden",
        "REVIEWS": project.folder / "grades.jsonl",
    }
    for name, place in places.items():
        line = line.replace(name, str(place))
    return line.split()


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_takes_it_with_one_meaning(words: tuple[str, ...]) -> None:
    found = [option for option in ALL[words].params if "--quiet" in option.opts]
    assert [(option.opts, option.help) for option in found] == [(["--quiet", "-q"], QUIET_HELP)]


@pytest.mark.nightly(keep=8)
@pytest.mark.parametrize("line", sorted(CALLS))
def test_nothing_is_printed_and_json_stays(
    line: str, golden: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(golden.folder)
    quiet = invoke(*words_of(line, golden, tmp_path / "quiet"), "-q")
    loud = invoke(*words_of(line, golden, tmp_path / "loud"))
    assert loud.stdout, "without it there is something to print, in the next command as well"
    assert (quiet.exit_code, quiet.output) == (loud.exit_code, "")
    asked = invoke(*words_of(line, golden, tmp_path / "json"), "-q", "--json")
    assert (asked.exit_code, asked.stderr) == (loud.exit_code, "")
    assert json.loads(asked.stdout) is not None


def test_errors_pages_and_files_stay(golden: Project, tmp_path: Path) -> None:
    missing = invoke("status", tmp_path / "nowhere", "-q")
    assert missing.exit_code == 4
    assert missing.stderr.startswith("raggs: ")
    assert call("schema", "rank", "-q").stdout == call("schema", "rank").stdout
    assert call("prompts", "show", "grade@1", "-q").stdout == call("prompts", "show", "grade@1").stdout
    assert call("init", tmp_path / "new", "-q").output == ""
    assert (tmp_path / "new" / "raggs.yaml").is_file()
    edited = shutil.copytree(golden.run, tmp_path / "edited")
    (edited / "judge.jsonl").write_text((edited / "judge.jsonl").read_text().replace('"grade":5', '"grade":4', 1))
    found = invoke("audit", edited, "-q")
    assert (found.exit_code, found.stdout) == (5, "")
    assert "finding" in found.stderr


def test_its_variable_and_a_word_of_a_group(golden: Project) -> None:
    assert call("status", golden.run, env={"RAGGS_STATUS_QUIET": "1"}).output == ""
    assert call("diagnose", "list", "-q").output == ""
