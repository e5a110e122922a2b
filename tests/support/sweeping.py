"""A small sweep on disk: a corpus, questions, labels, and a grid over them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import Result

from raggs.app.sweep import SweepResult, load_sweep, sweep
from support.cli import call
from support.project import grade_of, passages, questions


@dataclass(frozen=True)
class SweepProject:
    """A sweep's YAML file with its inputs in a folder of its own."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "sweep.yaml"

    @property
    def out(self) -> Path:
        return self.folder / "sweeps" / "stack"

    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.config.read_text())
        return found

    def change(self, **keys: Any) -> None:
        """Set keys of the YAML; None takes a key away."""
        settings = {**self.settings(), **keys}
        kept = {name: value for name, value in settings.items() if value is not None}
        self.config.write_text(yaml.safe_dump(kept, sort_keys=False))

    def sweep(self) -> SweepResult:
        return sweep(load_sweep(self.config))

    def call(self, *more: object, code: int = 0) -> Result:
        """The command over this file, which must end with `code`."""
        return call("sweep", "--config", self.config, *more, code=code)

    def said(self, *more: object, code: int = 0) -> str:
        """All that the command prints, on one line."""
        told = " ".join(self.call(*more, code=code).output.split())
        assert "Traceback" not in told and "bug in raggs" not in told
        return told

    def files(self) -> dict[str, bytes]:
        """What must not depend on how often the sweep was interrupted: lists and scores."""
        runs = {path.name: path.read_bytes() for path in sorted((self.out / "runs").glob("*.trec"))}
        report = json.loads((self.out / "sweep.json").read_text())
        scores = {row["name"]: [row["scores"], row["realised"], row["holes"]] for row in report["systems"]}
        return {**runs, "scores": json.dumps(scores, sort_keys=True).encode()}


def make_sweep(folder: Path, *, count: int = 6, size: int = 60, judged: int = 30, **keys: Any) -> SweepProject:
    """A sweep over made-up passages; of each query the first `judged` passages have grades, on the scale 1 to 5."""
    folder.mkdir(parents=True, exist_ok=True)
    asked, held = questions(count), passages(size)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in held))
    (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    labels = [
        f"{query['_id']} 0 {each['_id']} {grade_of(query['_id'], each['_id'])}\n"
        for query in asked
        for each in held[:judged]
    ]
    (folder / "qrels.txt").write_text("".join(labels))
    project = SweepProject(folder)
    settings = {
        "name": "stack",
        "golden": ".",
        "axes": {
            "embedder": [{"type": "wordllama", "dims": 64}],
            "mode": ["dense", "lexical", "hybrid"],
            "k": [10, 20],
        },
        "cutoffs": [5, 10],
        "latency": {"passes": 1, "warmup": 0, "queries": 3},
        **keys,
    }
    project.config.write_text(yaml.safe_dump(settings, sort_keys=False))
    return project
