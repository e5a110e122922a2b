"""A finished run stands alone: whoever reads it needs neither corpus nor questions nor cache nor network."""

from __future__ import annotations

import json
import shutil
import socket
from collections import Counter
from pathlib import Path
from statistics import mean, median

import pytest
from support.cli import call
from support.project import Project, make_project


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished run whose inputs, caches and configuration are gone."""
    project = make_project(tmp_path_factory.mktemp("bare"), queries=3, corpus=24)
    call("run", "--config", project.config, "--quiet")
    for path in project.folder.iterdir():
        if path.name != "runs":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(project.folder / "runs" / ".cache")
    return project


@pytest.fixture
def alone(bare: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A copy of it on a machine without a network."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return bare.copied(tmp_path / "alone")


READING = {
    "status": ("status", "RUN"),
    "why a stage": ("why", "RUN", "judge"),
    "why an order": ("why", "RUN", "--query", "q00"),
    "cost": ("cost", "RUN"),
    "audit": ("audit", "RUN"),
    "trec": ("export", "RUN", "--format", "trec", "--out", "OUT"),
    "beir": ("export", "RUN", "--format", "beir", "--out", "OUT"),
    "jsonl": ("export", "RUN", "--format", "jsonl", "--out", "OUT"),
    "eval": ("eval", "--golden", "RUN", "--run", "RUN"),
}


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("name", READING)
def test_what_reads_touches_nothing_but_the_run_s_directory(name: str, alone: Project, tmp_path: Path) -> None:
    before = sorted(path.relative_to(alone.folder) for path in alone.folder.rglob("*"))
    places = {"RUN": str(alone.run), "OUT": str(tmp_path.parent / f"{tmp_path.name}-out")}
    said = call(*(places.get(argument, argument) for argument in READING[name])).stdout
    assert said
    assert sorted(path.relative_to(alone.folder) for path in alone.folder.rglob("*")) == before


def test_an_audit_says_what_it_could_not_check(alone: Project) -> None:
    assert "Not checked: whether the corpus" in call("audit", alone.run).stdout


def test_status_says_that_inputs_were_not_looked_at(alone: Project) -> None:
    assert "were not compared" in call("status", alone.run).stdout
    told = json.loads(call("status", alone.run, "--json").stdout)
    assert not told["compared"]
    assert all(stage["done"] and not stage["reasons"] for stage in told["stages"].values())


def test_status_tells_the_label_mix_of_what_is_graded(alone: Project) -> None:
    counts: dict[str, Counter[int]] = {}
    for line in (alone.run / "judge.jsonl").read_text().splitlines():
        record = json.loads(line)
        counts.setdefault(record["qid"], Counter())[record["grade"]] += 1
    fives, good = [each[5] for each in counts.values()], [each[4] + each[5] for each in counts.values()]
    shares = [each / count.total() for each, count in zip(good, counts.values(), strict=True)]
    mix = json.loads(call("status", alone.run, "--json").stdout)["labels"]
    assert mix["grade 5"] == {"median": median(fives), "mean": pytest.approx(mean(fives))}
    assert mix["relevant (grade 4 or more)"] == {"median": median(good), "mean": pytest.approx(mean(good))}
    assert mix["prevalence"] == {"median": pytest.approx(median(shares)), "mean": pytest.approx(mean(shares))}
    said = " ".join(call("status", alone.run, "--details").stdout.split())
    assert f"grade 5 {median(fives):.1f}, {mean(fives):.1f}; grade 4" in said
    assert f"relevant share of the judged passages: median {median(shares):.1%}" in said


def test_a_configuration_whose_inputs_are_gone_is_told_beside_what_the_run_tells(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3, corpus=24)
    call("run", "--config", project.config, "--quiet")
    (project.folder / "corpus.jsonl").unlink()
    said = call("status", project.run, "--config", project.config).stdout
    assert "up to date" in said
    assert "Not compared with" in said
    assert "corpus.jsonl" in said
