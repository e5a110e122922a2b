"""`{type: python, callable: ...}`: a run with a user's own functions, found beside its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project, make_project, raggs

FUNCTIONS = '''
"""Search by words, vectors of letters, grades by length: anything will do."""
import json
import string
from pathlib import Path

TEXTS = {row["_id"]: row["text"] for row in map(json.loads, Path(__file__).with_name("corpus.jsonl").open())}


def search(query, k):
    asked = set(query.lower().split())
    shared = {doc_id: len(asked & set(text.lower().split())) for doc_id, text in TEXTS.items()}
    return sorted(shared.items(), key=lambda pair: -pair[1])[:k]


def embed(texts):
    return [[text.count(letter) for letter in string.ascii_lowercase] for text in texts]


def grade(query, passage):
    return 1 + len(set(query.split()) & set(passage.split())) % 5
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = make_project(
        tmp_path / "demo",
        embed={"embedder": {"type": "python", "callable": "functions:embed", "dims": 26}},
        retrieve={"retrievers": [{"type": "python", "callable": "functions:search", "k": 10}, {"type": "dense"}]},
        judge={"judge": {"type": "python", "callable": "functions:grade"}},
    )
    (found.folder / "functions.py").write_text(FUNCTIONS)
    return found


def call(project: Project, *arguments: object, code: int = 0, command: str = "run") -> str:
    """From another folder, so that nothing is found by chance."""
    done = raggs(command, "--config", project.config, *arguments, cwd=project.folder.parent)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_run_of_ones_own_functions(project: Project) -> None:
    assert "retrievers python, dense" in call(project, command="validate")
    call(project)
    before = project.artifacts()
    assert before["rank"]
    assert "Nothing to do" in call(project)
    file = project.folder / "functions.py"
    file.write_text(FUNCTIONS + "\n# a word more\n")
    assert "Nothing to do" not in call(project)
    assert {name: project.artifacts()[name] for name in ("retrieve", "merge")} == {
        name: before[name] for name in ("retrieve", "merge")
    }


def test_an_error_names_the_function_the_query_and_the_cause(project: Project) -> None:
    file = project.folder / "functions.py"
    file.write_text(FUNCTIONS.replace("    asked = set(", '    raise TimeoutError("no answer")\n    asked = set('))
    told = call(project, code=6)
    for part in ("functions.py:11", "functions:search raised TimeoutError on query q00", "no answer"):
        assert part in told
    assert "Traceback" not in told


def test_a_judge_that_raises_leaves_failures_not_numbers(project: Project) -> None:
    file = project.folder / "functions.py"
    file.write_text(FUNCTIONS.replace("    return 1 + len", "    return 1 / 0 + len"))
    call(project, code=7)
    judged = (project.run / "judge.jsonl").read_text()
    assert "functions:grade raised ZeroDivisionError on query q00" in judged
    assert '"grade":null' in judged.replace(" ", "")


def test_a_function_that_is_not_there_is_found_before_anything_runs(project: Project) -> None:
    project.change(judge={"judge": {"type": "python", "callable": "functions:grad"}})
    told = call(project, code=5)
    assert "callable 'functions:grad': module functions has no function 'grad'; its functions: " in told
    assert not (project.run / "embed.jsonl").exists()
