"""A small project on disk, and the `raggs` command as a subprocess or in this process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.forks import Child, shared

LIMIT_S = 120.0
AT_START = ("PYTHON", "LC_", "LANG", "OPENBLAS", "OMP_")
ARTIFACTS = ("queries", "embed", "retrieve", "merge", "judge", "prune", "rank", "rank.journal")
WORDS = ("amber brook cedar delta ember flint grove heron inlet jetty knoll larch maple noble otter pearl").split()  # noqa: SIM905


def passages(count: int) -> list[dict[str, str]]:
    """Passages over a small vocabulary, all different, each about two words more than about others."""
    found = []
    for number in range(count):
        first, second = WORDS[number % 16], WORDS[(number * 7 + 3) % 16]
        rest = " ".join(WORDS[(number * step + step) % 16] for step in range(2, 9))
        found.append(
            {
                "_id": f"p{number:03}",
                "title": f"{first} {number}",
                "text": f"The {first} and the {second} {number}: {rest}.",
            }
        )
    return found


def questions(count: int) -> list[dict[str, Any]]:
    return [
        {"_id": f"q{number:02}", "text": f"Where is the {WORDS[number % 16]} near the {WORDS[(number + 5) % 16]}?"}
        for number in range(count)
    ]


def grade_of(qid: str, doc_id: str) -> int:
    """The human label of the made-up qrels: deterministic, all grades present."""
    return (int(qid[1:]) * 13 + int(doc_id[1:]) * 29) % 5 + 1


@dataclass(frozen=True)
class Project:
    """A configuration with its inputs in a folder of its own."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "raggs.yaml"

    @property
    def run(self) -> Path:
        return self.folder / "runs" / "demo"

    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.config.read_text())
        return found

    def change(self, **sections: Any) -> None:
        """Merge values into sections of the YAML, e.g. ``rank={"max_calls": 3}``."""
        settings = self.settings()
        for name, value in sections.items():
            if isinstance(value, dict) and isinstance(settings.get(name), dict):
                settings[name].update(value)
            else:
                settings[name] = value
        self.config.write_text(yaml.safe_dump(settings, sort_keys=False))

    def copied(self, folder: Path) -> Project:
        """The same in another folder, run and caches with it."""
        return Project(shutil.copytree(self.folder, folder))

    def artifacts(self) -> dict[str, bytes]:
        return {name: (self.run / f"{name}.jsonl").read_bytes() for name in ARTIFACTS}

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.run / "manifest.json").read_text())
        return found


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def make_project(folder: Path, queries: int = 4, corpus: int = 40, **sections: Any) -> Project:
    """Corpus, questions, qrels and a configuration that needs no network: judge `qrels` with simulated noise."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "corpus.jsonl", passages(corpus))
    write_lines(folder / "queries.jsonl", questions(queries))
    labels = [
        f"{question['_id']} 0 {passage['_id']} {grade_of(question['_id'], passage['_id'])}\n"
        for question in questions(queries)
        for passage in passages(corpus)
    ]
    (folder / "qrels.txt").write_text("".join(labels))
    settings: dict[str, Any] = {
        "name": "demo",
        "corpus": {"type": "jsonl", "path": "corpus.jsonl"},
        "queries": {"type": "jsonl", "path": "queries.jsonl"},
        "retrieve": {"retrievers": [{"type": "bm25", "k": 15}, {"type": "dense", "k": 15}]},
        "judge": {"judge": {"type": "qrels", "path": "qrels.txt", "beta": 3.0, "grade_noise": 0.25, "seed": 1}},
        "prune": {"min_keep": 8, "max_keep": 16},
        "rank": {"top": 5, "max_calls": 8},
    }
    project = Project(folder)
    project.config.write_text(yaml.safe_dump(settings, sort_keys=False))
    project.change(**sections)
    return project


def files_copied(run: Path, target: Path) -> Path:
    """A new folder with the files of a run, and none of its folders."""
    target.mkdir()
    for path in run.iterdir():
        if path.is_file():
            (target / path.name).write_bytes(path.read_bytes())
    return target


def environment(**more: str) -> dict[str, str]:
    """This process's environment without raggs' own variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAGGS")}
    return {**kept, "COLUMNS": "160", **more}


def raggs(
    *arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The `raggs` command in a process of its own: a forked one, unless Python would start differently."""
    given = environment() if env is None else env
    if _of_the_start(given) != _of_the_start(dict(os.environ)):
        return started(*arguments, cwd=cwd, env=given)
    ended = begin(*arguments, cwd=cwd, env=given).end(LIMIT_S)
    return subprocess.CompletedProcess(["raggs", *map(str, arguments)], ended.code, ended.out, ended.err)


def begin(*arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> Child:
    """The `raggs` command in a forked process, to which signals can be sent."""
    return shared().start(*arguments, cwd=cwd or Path.cwd(), env=environment() if env is None else env)


def started(
    *arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The same, with Python's start."""
    return subprocess.run(
        [sys.executable, "-m", "raggs", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment() if env is None else env,
        timeout=LIMIT_S,
        check=False,
    )


def _of_the_start(variables: dict[str, str]) -> dict[str, str]:
    """What Python and the libraries that the helper holds read once, when they are loaded."""
    return {name: value for name, value in variables.items() if name.startswith(AT_START) and name != "PYTHONPATH"}
