"""The page shows the words by which the run's own judge grades."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.reviewpage import write_run

from raggs.prompts import load_prompt
from raggs.reviewing.agreeing import rubric_of_runs
from raggs.runs.manifests.models import StageLock, utc_now
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import RunStore

MINE = """# system

Grade how well the passage serves a nurse.

**5** - Tells what to do,
and when.
**4** - Tells what to do.
3 = Tells of the illness.
Grade 2: Names the illness.
1) Nothing of it.

# user

{{query}} {{passage}}
"""


def judged(folder: Path, prompt: str, causes: Mapping[str, Any] | None = None) -> OpenedRun:
    """A run whose judge has graded by a prompt."""
    store = RunStore(write_run(folder))
    moment, params = utc_now(), {"prompt": prompt}
    lock = StageLock(
        stage="judge",
        fingerprint="",
        components={"judge": causes or {}},
        params=params,
        inputs={},
        outputs={},
        started=moment,
        ended=moment,
    )
    store.save(store.manifest().model_copy(update={"stages": {"judge": lock}}))
    return open_run(folder)


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    path = tmp_path / "nurse.md"
    path.write_text(MINE)
    return path


def test_a_prompt_of_ones_own_is_shown_grade_by_grade(tmp_path: Path, prompt: Path) -> None:
    sent = load_prompt(prompt, "grade").sha256
    found = rubric_of_runs([judged(tmp_path / "run", str(prompt), {"judges": [{"prompt": sent}]})])
    assert found.meanings["en"] == {
        5: "Tells what to do, and when.",
        4: "Tells what to do.",
        3: "Tells of the illness.",
        2: "Names the illness.",
        1: "Nothing of it.",
    }
    assert (found.name, found.texts, found.notes) == (f"nurse#{sent[:8]}", {}, ())


@pytest.mark.parametrize(
    "form", ["- {}: {}", "{} = {}", "**{}** - {}", "Note {} : {}", "{}) {}", "| {} | {} |", "*{}*. {}", "- **{}**: {}"]
)
def test_lines_as_people_write_them(tmp_path: Path, prompt: Path, form: str) -> None:
    lines = "\n".join(form.format(grade, f"it is {grade} - so") for grade in (5, 4, 3, 2, 1))
    prompt.write_text(
        f"# system\n\nFrom 1 to 5.\n\n{lines}\n\nOf 2 grades the lower.\n\n# user\n\n{{{{query}}}} {{{{passage}}}}\n"
    )
    found = rubric_of_runs([judged(tmp_path / "run", str(prompt))]).meanings["en"]
    assert found == {grade: f"it is {grade} - so" for grade in (5, 4, 3, 2, 1)}


def test_a_prompt_without_five_lines_is_shown_as_it_is(tmp_path: Path, prompt: Path) -> None:
    prompt.write_text(
        "# system\n\n" + "".join(f"{step}. Do this.\n" for step in range(1, 6)) + "\n# user\n{{query}} {{passage}}"
    )
    assert rubric_of_runs([judged(tmp_path / "steps", str(prompt))]).meanings == {}, "steps are no grades"
    prompt.write_text(MINE.replace("3 = Tells of the illness.\n", ""))
    found = rubric_of_runs([judged(tmp_path / "run", str(prompt), {"prompt": "f" * 64})])
    assert found.meanings == {}
    assert found.texts["en"].startswith("Grade how well the passage serves a nurse.")
    assert found.notes == (f"{prompt} has changed since the judge used it",)


def test_runs_of_several_prompts_and_a_prompt_that_is_gone(tmp_path: Path, prompt: Path) -> None:
    runs = [judged(tmp_path / "one", "grade@1"), judged(tmp_path / "two", str(prompt))]
    found = rubric_of_runs(runs)
    assert (found.name, sorted(found.meanings)) == ("grade@1", ["en", "fr"])
    assert "several grading prompts" in found.notes[0]
    prompt.unlink()
    found = rubric_of_runs(runs[1:])
    assert (found.name, "cannot be read" in found.notes[0]) == ("grade@1", True)
    assert rubric_of_runs([open_run(write_run(tmp_path / "three"))]).name == "grade@1"
