"""Which differences between two runs can change results: each setting against the fingerprints of the stages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.cli import call
from support.project import Project, make_project

from raggs.app.diff import compare_runs
from raggs.app.run import open_runner, run
from raggs.config.load import load_config
from raggs.evaluation.diff_results import RunsReport, runs_report
from raggs.runs.manifests.costs import LedgerSum, LedgerTotals
from raggs.runs.manifests.models import RunManifest
from raggs.runs.manifests.store import RunStore

NOTHING = LedgerTotals(LedgerSum(), {}, {}, {})
LITELLM = ("judge.judge={type: litellm, model: openai/judge}", "llm.prices={openai/judge: {input: 1.0, output: 2.0}}")

# A setting that is changed, by the settings of both runs that it needs.
CHANGES: dict[str, tuple[tuple[str, ...], str]] = {
    "embed.language": ((), "fr"),
    "embed.embedder": ((), "null"),
    "embed.embedder.dims": ((), "64"),
    "embed.embedder.batch": ((), "8"),
    "embed.rewrite.type": ((), "none"),
    "retrieve.retrievers.bm25.k": ((), "9"),
    "retrieve.retrievers.bm25.k1": ((), "1.5"),
    "retrieve.retrievers.dense.index": ((), "{type: hnsw}"),
    "merge.k": ((), "10"),
    "merge.depth": ((), "20"),
    "merge.duplicates.threshold": ((), "0.8"),
    "judge.judge.seed": ((), "5"),
    "judge.human_first": ((), "true"),
    "judge.samples": ((), "3"),
    "judge.stop_after": ((), "4"),
    "judge.group": (LITELLM, "5"),
    "judge.mode": (LITELLM, "batch"),
    "judge.batch.price": (LITELLM, "0.4"),
    "judge.gate.kappa": (LITELLM, "0.5"),
    "judge.prompt": (LITELLM, "{folder}/grade.md"),
    "judge.judge.model": (LITELLM, "openai/other"),
    "prune.min_keep": ((), "4"),
    "rank.top": ((), "4"),
    "rank.seed": ((), "9"),
    "rank.floor": ((), "2"),
    "rank.prompt": (LITELLM, "{folder}/order.md"),
    "rank.options": ((), "{sigma: 0.7}"),
    "llm.concurrency": (LITELLM, "3"),
    "llm.timeout_s": (LITELLM, "9"),
    "llm.max_repairs": (LITELLM, "1"),
    "llm.parameters": (LITELLM, "{temperature: 0.5}"),
    "llm.models.openai/judge": (LITELLM, "{concurrency: 2}"),
    "llm.models": (LITELLM, "{openai/judge: {parameters: {temperature: 0.5}}}"),
    "budget.max_usd": ((), "2"),
    "budget.max_calls": ((), "7"),
    "execution": ((), "{type: dask}"),
    "index.shards": ((), "2"),
    "questions.sample.n": ((), "7"),
}
PROMPTS = {"grade.md": "grade@1", "order.md": "order@1"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = make_project(tmp_path_factory.mktemp("compared"), queries=2, corpus=24)
    run(made.config)
    for file, name in PROMPTS.items():
        text = call("prompts", "show", name).stdout
        (made.folder / file).write_text(text.replace("passage", "text passage", 1))
    return made


def manifest_of(
    project: Project, overrides: tuple[str, ...], *, done: bool = True
) -> tuple[RunManifest, dict[str, Any]]:
    """The manifest of a finished run, as if it had been made with other settings; and its components by stage."""
    before = RunStore(project.run).manifest()
    loaded = load_config(project.config, overrides)
    with open_runner(loaded) as runner:
        parts = {name: runner.components(runner.pipeline.stage(name)) for name in runner.pipeline.order}
    locks = {name: before.stages[name].model_copy(update={"components": found}) for name, found in parts.items()}
    return before.model_copy(update={"config": loaded.effective(), "stages": locks if done else {}}), parts


def settings_of(report: RunsReport) -> Mapping[str, bool]:
    return {part.name: part.counts for part in report.settings}


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_can_change_results_if_and_only_if_a_fingerprint_knows_of_it(project: Project, name: str) -> None:
    needed, value = CHANGES[name]
    text = f"{name}={value.replace('{folder}', str(project.folder))}"
    one, before = manifest_of(project, needed)
    two, after = manifest_of(project, (*needed, text))
    report = runs_report(("a", "b"), (one, two), (NOTHING, NOTHING))
    found = {place: counts for place, counts in settings_of(report).items() if place.startswith(name)}
    assert found, report.settings
    assert set(found.values()) == {before != after}, (found, before != after)
    # Of stages that nobody has run yet, the settings alone say it; what no judge here reads may count all the same.
    undone = settings_of(
        runs_report(
            ("a", "b"),
            (manifest_of(project, needed, done=False)[0], manifest_of(project, (*needed, text), done=False)[0]),
            (NOTHING, NOTHING),
        )
    )
    assert {counts for place, counts in undone.items() if place.startswith(name)} == {before != after}, undone


def test_a_run_without_rank_can_have_other_results(project: Project, tmp_path: Path) -> None:
    call("run", "--config", project.config, "--set", "rank=null", "--run-id", "graded", "-q")
    [part] = [each for each in compare_runs(project.run, project.run.parent / "graded").settings if each.name == "rank"]
    assert part.counts
    shown = json.loads(call("compare", project.run, project.run.parent / "graded", "--json").stdout)
    assert {each["name"]: each["counts"] for each in shown["settings"]}["rank"] is True
