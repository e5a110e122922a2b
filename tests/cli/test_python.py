"""`{type: python, callable: ...}`: a run with a user's own functions, found beside its configuration."""

from __future__ import annotations

import json
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


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("sys.exit(0)", "SystemExit"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise type('Mine', (BaseException,), {})('x')", "Mine"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})", "Mute"),
        ("raise ValueError('x' * 1_000_000)", "ValueError"),
    ],
)
def test_whatever_a_function_does_to_end_the_process_is_one_sentence(
    project: Project, statement: str, name: str
) -> None:
    """`sys.exit(0)` in a search function ended the run with exit code 0 and no word."""
    file = project.folder / "functions.py"
    file.write_text(FUNCTIONS.replace("    asked = set(", f"    import sys; {statement}\n    asked = set("))
    told = call(project, "--quiet", code=6)
    assert f"functions:search raised {name} on query q00" in told
    assert "Traceback" not in told and "bug" not in told
    assert len(told) < 2_000
    file.write_text(f"import sys\nsys.exit(0)\n{FUNCTIONS}")
    assert "cannot be imported (SystemExit" in call(project, "--quiet", code=5)
    file.write_text(FUNCTIONS.replace("    return 1 + len", f"    import sys; {statement}\n    return 1 + len"))
    call(project, "--quiet", code=7)
    assert f"functions:grade raised {name}" in (project.run / "judge.jsonl").read_text()


def test_what_functions_print_does_not_spoil_json(project: Project) -> None:
    file = project.folder / "functions.py"
    file.write_text("print('at import')\n" + FUNCTIONS.replace("    asked = set(", "    print('hi')\n    asked = set("))
    done = raggs("run", "--config", project.config, "--json", cwd=project.folder.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert "hi" in done.stderr and "at import" in done.stderr


@pytest.mark.parametrize("statement", ["sys.exit(0)", "raise GeneratorExit", "raise BaseException('x')"])
def test_a_chunker_that_is_a_generator_cannot_end_the_command(tmp_path: Path, statement: str) -> None:
    """`sys.exit(0)` in a generator ended the command with exit code 0 and no word."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Otters dive.\n")
    (tmp_path / "cuts.py").write_text(f"import sys\ndef cut(text):\n    yield 0, 3\n    {statement}\n")
    config = tmp_path / "raggs.yaml"
    config.write_text(
        "name: t\ncorpus: {type: folder, path: docs, chunker: {type: python, callable: 'cuts:cut'}}\n"
        "queries: {type: jsonl, path: queries.jsonl}\nembed: {embedder: null}\n"
        "retrieve: {retrievers: [{type: bm25}]}\nmerge: {type: rrf}\njudge: {judge: {type: nuggets}}\nrank: null\n"
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "What do otters do?", "nuggets": ["dive"]}\n')
    done = raggs("run", "--config", config, "--quiet", cwd=tmp_path)
    assert done.returncode == 6, done.stderr
    assert "cuts:cut raised" in done.stderr and "Traceback" not in done.stderr
