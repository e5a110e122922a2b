from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from support.reports import facts

from raggs.prompts import load_prompt
from raggs.reporting.sections.provenance import ProvenanceSection
from raggs.runs.manifests.models import RunManifest, StageLock
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import RunStore

WHEN = datetime(2026, 1, 2, tzinfo=UTC)


def run(folder: Path, judge: Mapping[str, object], prompt: str = "grade@1") -> OpenedRun:
    lock = StageLock(
        stage="judge",
        fingerprint="f" * 64,
        components={"judge": judge},
        params={},
        inputs={},
        outputs={},
        judge="litellm m",
        started=WHEN,
        ended=WHEN,
        versions={"raggs": "0.1", "absent": None},
    )
    folder.mkdir()
    manifest = RunManifest(name="demo", created=WHEN, config={"judge": {"prompt": prompt}}, stages={"judge": lock})
    RunStore(folder).save(manifest)
    return open_run(folder)


def test_prompts_are_shown_in_full_where_they_are_those_that_were_sent(tmp_path: Path) -> None:
    sent = load_prompt("grade@1", "grade")
    panel = {"members": [{"prompt": sent.sha256, "model": "m"}]}  # as a panel has it
    part = ProvenanceSection().data(replace(facts(), run=run(tmp_path / "a", panel)))
    (prompt,) = part.prompts
    assert prompt.fault == ""
    assert {text.language: text.user for text in prompt.texts} == {
        language: template.user for language, template in sent.templates.items()
    }
    assert part.stages[0].components.count(sent.sha256) == 1
    assert [each.text for each in part.stages[0].facts][-1] == "raggs 0.1"


def test_a_prompt_that_changed_or_is_gone_is_never_shown_as_the_one_that_was_sent(tmp_path: Path) -> None:
    asked = {"prompt": "0" * 64}
    (other,) = ProvenanceSection().data(replace(facts(), run=run(tmp_path / "a", asked))).prompts
    assert (other.fault, other.texts) == ("the text has changed since it was sent", ())
    (gone,) = ProvenanceSection().data(replace(facts(), run=run(tmp_path / "b", asked, "gone/mine.md"))).prompts
    assert gone.fault.startswith("cannot be read here: ") and gone.texts == ()


def test_a_judge_that_asks_no_model_has_no_prompt_and_the_command_is_there(tmp_path: Path) -> None:
    part = ProvenanceSection().data(replace(facts(), run=run(tmp_path / "a", {"type": "nuggets"})))
    assert part.prompts == ()
    assert part.command == "raggs report runs/demo"
    named = {each.name: each.text for each in part.facts}
    assert named["judgments, SHA-256"] == facts().report.golden.digest
    assert named["good"] == "good.trec"
    manifest = next(each for each in part.facts if each.name == "manifest, SHA-256")
    assert len(manifest.text) >= 64 and manifest.text.startswith(manifest.short.removesuffix("…"))
    assert len(manifest.short) == len(manifest.text) - 64 + 13


def test_labels_from_a_file_have_no_stages() -> None:
    part = ProvenanceSection().data(facts())
    assert (part.stages, part.config) == ((), "")


def test_the_headline_names_the_models_and_the_configuration_has_its_path(tmp_path: Path) -> None:
    opened = run(tmp_path / "a", {"type": "nuggets"})
    part = ProvenanceSection().data(replace(facts(), run=opened))
    assert part.headline == "You can create this report again with one command. No paid model was called."
    assert any(fact.text.startswith(f"demo, {WHEN:%Y-%m-%d %H:%M} UTC") for fact in part.facts)
    assert ProvenanceSection().data(facts()).headline == "You can create this report again with one command."
