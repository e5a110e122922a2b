"""The runner takes any pipeline: here one of two stages that knows neither judge nor ranking."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from raggs.base.artifacts import Record
from raggs.base.errors import UsageError
from raggs.base.settings import Causes, Settings
from raggs.llm.ledger import CallLedger
from raggs.runs.execution import LocalExecution
from raggs.runs.manifests.store import RunStore
from raggs.runs.plan import Selection, select
from raggs.runs.runner import Runner
from raggs.stages.base import Services, Stage, StageWork
from raggs.stages.pipeline import Pipeline


class WordRecord(Record):
    word: str


class CountRecord(Record):
    count: int


class WordsConfig(Settings):
    words: tuple[str, ...] = ("a", "bb")


class CountsConfig(Settings):
    twice: bool = False


class Words(Stage[WordsConfig]):
    NAME = "words"
    Config = WordsConfig
    RECORD = WordRecord

    def causes(self, config: WordsConfig, services: Services) -> Causes:
        return {}

    def run(self, work: StageWork, config: WordsConfig, services: Services) -> Iterator[Record]:
        for number, word in enumerate(config.words):
            yield WordRecord(qid=f"q{number}", word=word)


class Counts(Stage[CountsConfig]):
    NAME = "counts"
    READS = ("words",)
    Config = CountsConfig
    RECORD = CountRecord

    def causes(self, config: CountsConfig, services: Services) -> Causes:
        return {}

    def run(self, work: StageWork, config: CountsConfig, services: Services) -> Iterator[Record]:
        for record in work.read("words", WordRecord):
            yield CountRecord(qid=record.qid, count=len(record.word) * (2 if config.twice else 1))


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    for name, stage in (("words", Words()), ("counts", Counts())):
        module = ModuleType(f"letters.{name}")
        module.STAGE = stage  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, f"letters.{name}", module)
    monkeypatch.setitem(sys.modules, "letters", ModuleType("letters"))
    return Pipeline("letters", "letters", ("words", "counts"), {"words": WordRecord, "counts": CountRecord})


def runner(pipeline: Pipeline, folder: Path, **configs: Settings) -> Runner:
    nobody = SimpleNamespace(ledger=CallLedger(), arrive=lambda: None)
    world: Any = SimpleNamespace(workspace=nobody, check=lambda _: None)
    execution: Any = LocalExecution(LocalExecution.Config(), SimpleNamespace())
    settings = {"words": WordsConfig(), "counts": CountsConfig(), **configs}
    return Runner(
        store=RunStore(folder),
        pipeline=pipeline,
        name="letters",
        config={},
        config_file=None,
        configs=settings,
        services=world,
        execution=execution,
        estimate=tuple,
    )


def test_it_runs_resumes_and_says_why(letters: Pipeline, tmp_path: Path) -> None:
    everything = Selection(letters.order)
    done = runner(letters, tmp_path).run(everything)
    assert list(done.ran) == ["words", "counts"]
    assert done.manifest.pipeline == "letters"
    counts = [record.count for record in done.store.read("counts", CountRecord)]
    assert counts == [1, 2]
    assert runner(letters, tmp_path).run(everything).ran == {}
    changed = runner(letters, tmp_path, counts=CountsConfig(twice=True))
    assert [str(reason) for reason in changed.plan()["counts"]] == ["config.twice changed (False -> True)"]
    assert list(changed.run(everything).ran) == ["counts"]


def test_its_own_stages_are_what_can_be_selected(letters: Pipeline) -> None:
    assert select(letters, start="counts").stages == ("counts",)
    with pytest.raises(UsageError, match="unknown stage 'judge'"):
        select(letters, only="judge")
