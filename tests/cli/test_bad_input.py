"""Whatever is wrong with the input: one sentence with the place and the remedy, the right exit code, no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import Project, make_project

Damage = Callable[[Project], None]


def rewrite(name: str, content: bytes | str) -> Damage:
    def damage(project: Project) -> None:
        data = content.encode() if isinstance(content, str) else content
        (project.folder / name).write_bytes(data)

    return damage


def remove(name: str) -> Damage:
    return lambda project: (project.folder / name).unlink()


def change(**sections: object) -> Damage:
    return lambda project: project.change(**sections)


def line(name: str, number: int, text: str | bytes) -> Damage:
    """Replace a line of a file."""

    def damage(project: Project) -> None:
        path = project.folder / name
        lines = path.read_bytes().splitlines(keepends=True)
        lines[number - 1] = (text.encode() if isinstance(text, str) else text) + b"\n"
        path.write_bytes(b"".join(lines))

    return damage


def bm25(**options: object) -> dict[str, object]:
    return {"retrievers": [{"type": "bm25", **options}]}


def runfile(content: str) -> Damage:
    def damage(project: Project) -> None:
        (project.folder / "a.trec").write_text(content)
        project.change(retrieve={"retrievers": [{"type": "runfile", "path": "a.trec", "name": "a"}]})

    return damage


def judge(**options: object) -> Damage:
    return lambda project: project.change(judge={"judge": options})


CASES: dict[str, tuple[Damage, int, tuple[str, ...]]] = {
    # configuration
    "config missing": (remove("raggs.yaml"), 4, ("raggs.yaml", "raggs init")),
    "config empty": (rewrite("raggs.yaml", ""), 5, ("expected a mapping",)),
    "config is not YAML": (rewrite("raggs.yaml", "a: [1\n"), 5, ("raggs.yaml:2", "YAML")),
    "config is not UTF-8": (rewrite("raggs.yaml", b"name: \xff\n"), 5, ("UTF-8",)),
    "unknown key": (change(rank={"max_cals": 3}), 5, ("rank.max_cals", "did you mean 'max_calls'", "raggs.yaml:")),
    "a number for a mapping": (
        change(rank={"budget": 200}),
        5,
        ("rank.budget: expected a mapping", "the value is 200; see: raggs explain rank.budget"),
    ),
    "neither a number nor auto": (
        change(rank={"batch_size": "all"}),
        5,
        ("rank.batch_size: input should be a valid integer, or 'auto'", "the value is 'all'", "raggs.yaml:"),
    ),
    "unknown section": (change(ranks={}), 5, ("'ranks'", "did you mean 'rank'")),
    "an adapter by its name alone": (
        change(judge={"judge": {"type": "panel", "judges": ["human"]}}),
        5,
        ("judge.judge.judges.0: needs a `type`", "for example {type: human}", "raggs list"),
    ),
    "unknown key of an adapter": (change(retrieve=bm25(kk=3)), 5, ("retrieve.retrievers.0.kk", "did you mean 'k'")),
    "unknown type": (
        change(retrieve={"retrievers": [{"type": "bm52"}]}),
        5,
        ("'bm52'", "did you mean 'bm25'", "raggs.yaml:"),
    ),
    "no type": (change(retrieve={"retrievers": [{"k": 3}]}), 5, ("retrieve.retrievers.0", "type")),
    "unknown engine": (change(rank={"engine": "fast"}), 5, ("rank.engine", "online")),
    "unknown option of an engine": (
        change(rank={"engine": "online", "options": {"etta": 1}}),
        5,
        ("rank", "'etta'", "eta"),
    ),
    "an option that cannot be": (change(rank={"options": {"sigma": -1}}), 5, ("rank", "sigma")),
    "unknown fusion": (change(merge={"type": "rff"}), 5, ("merge.type", "did you mean 'rrf'")),
    "name with a slash": (change(name="a/b"), 5, ("name", "raggs.yaml:1")),
    "no judge": (lambda project: project.change(judge={"judge": None}), 5, ("judge.judge",)),
    "k is 0": (change(retrieve=bm25(k=0)), 5, ("retrieve.retrievers.0.k", "greater than or equal to 1")),
    "k is a word": (change(retrieve=bm25(k="many")), 5, ("retrieve.retrievers.0.k", "integer", "'many'")),
    "no retrievers": (change(retrieve={"retrievers": []}), 5, ("retrieve.retrievers: needs at least 1 ", "got 0")),
    "a word for a list": (change(retrieve={"retrievers": "bm25"}), 5, ("retrieve.retrievers: expected a list",)),
    "a number for a path": (change(workspace=3), 5, ("workspace: expected a path", "the value is 3")),
    "two retrievers of one name": (
        change(retrieve={"retrievers": [{"type": "bm25"}, {"type": "bm25"}]}),
        5,
        ("'bm25'", "name"),
    ),
    "weights all 0": (change(merge={"weights": {"bm25": 0, "dense": 0}}), 5, ("merge.weights", "all weights are 0")),
    "a weight below 0": (change(merge={"weights": {"bm25": -1}}), 5, ("merge.weights.bm25",)),
    "a weight for nobody": (change(merge={"weights": {"bm52": 2}}), 5, ("bm52", "bm25")),
    "keep bounds crossed": (change(prune={"min_keep": 9, "max_keep": 3}), 5, ("min_keep (9) is above max_keep (3)",)),
    "batch of one": (change(rank={"batch_size": 1}), 5, ("rank.batch_size",)),
    "variable not set": (
        change(judge={"judge": {"type": "litellm", "model": "${RAGGS_TEST_NOPE}"}}),
        5,
        ("judge.judge.model", "RAGGS_TEST_NOPE"),
    ),
    "unknown prompt": (
        change(judge={"judge": {"type": "litellm", "model": "openai/x"}, "prompt": "grad@1"}),
        5,
        ("grad@1", "grade@1"),
    ),
    "dense without embedder": (change(embed={"embedder": None}), 5, ("dense", "embed.embedder")),
    # corpus
    "corpus missing": (remove("corpus.jsonl"), 4, ("corpus.jsonl", "no such file")),
    "corpus empty": (rewrite("corpus.jsonl", ""), 5, ("corpus.jsonl", "no passages")),
    "corpus line is not JSON": (line("corpus.jsonl", 3, "{oops"), 5, ("corpus.jsonl:3", "JSON")),
    "corpus line is a list": (line("corpus.jsonl", 3, "[1]"), 5, ("corpus.jsonl:3", "object")),
    "corpus not UTF-8": (line("corpus.jsonl", 4, b'{"_id": "a", "text": "\xff"}'), 5, ("corpus.jsonl:4", "UTF-8")),
    "corpus duplicate id": (line("corpus.jsonl", 5, '{"_id": "p000", "text": "again"}'), 5, ("p000", "5")),
    "corpus empty text": (
        lambda project: (
            line("corpus.jsonl", 2, '{"_id": "a", "text": "  "}')(project),
            project.change(corpus={"empty": "error"}),
        )[0],
        5,
        ("corpus.jsonl:2", "text"),
    ),
    "corpus text missing": (line("corpus.jsonl", 2, '{"_id": "a", "title": "x"}'), 5, ("corpus.jsonl:2", "text")),
    "corpus no id": (line("corpus.jsonl", 2, '{"text": "x"}'), 5, ("corpus.jsonl:2", "_id")),
    "corpus id with a space": (
        line("corpus.jsonl", 2, '{"_id": "a b", "text": "x"}'),
        5,
        ("corpus.jsonl:2", "white space"),
    ),
    "corpus text is a number": (line("corpus.jsonl", 2, '{"_id": "a", "text": 5}'), 5, ("corpus.jsonl:2", "text")),
    "corpus is a folder": (change(corpus={"type": "jsonl", "path": "."}), 4, ("read",)),
    # queries
    "queries missing": (remove("queries.jsonl"), 4, ("queries.jsonl", "no such file")),
    "no queries": (rewrite("queries.jsonl", "\n"), 5, ("queries.jsonl", "no quer")),
    "query ids twice": (line("queries.jsonl", 2, '{"_id": "q00", "text": "again"}'), 5, ("q00", "queries.jsonl:2")),
    "query without text": (line("queries.jsonl", 2, '{"_id": "q9", "text": ""}'), 5, ("queries.jsonl:2", "text")),
    "query of an unknown form": (line("queries.jsonl", 2, '{"_id": "q9", "question": 7}'), 5, ("queries.jsonl:2",)),
    "reference to no passage": (
        line(
            "queries.jsonl", 2, json.dumps({"_id": "q9", "text": "x", "references": [{"text": "y", "doc_id": "nope"}]})
        ),
        5,
        ("nope",),
    ),
    "a nugget that is no pattern": (
        line("queries.jsonl", 2, json.dumps({"_id": "q9", "text": "x", "nuggets": [{"any": ["("]}]})),
        5,
        ("queries.jsonl:2", "("),
    ),
    # qrels and runs
    "qrels missing": (remove("qrels.txt"), 4, ("qrels.txt", "no such file")),
    "qrels of three columns": (line("qrels.txt", 2, "q00 0 p001"), 5, ("qrels.txt:2", "column")),
    "a grade of 7": (line("qrels.txt", 2, "q00 0 p001 7"), 5, ("qrels.txt:2", "7")),
    "a grade of 2.5": (line("qrels.txt", 2, "q00 0 p001 2.5"), 5, ("qrels.txt:2", "2.5")),
    "a label twice": (line("qrels.txt", 2, "q00 0 p000 3"), 5, ("qrels.txt:2", "p000")),
    "qrels of other queries": (rewrite("qrels.txt", "other 0 p000 3\n"), 5, ("other", "q00")),
    "run missing": (change(retrieve={"retrievers": [{"type": "runfile", "path": "none.trec"}]}), 4, ("none.trec",)),
    "run of five columns": (runfile("q00 Q0 p000 1 9.0\n"), 5, ("a.trec:1", "column")),
    "a NaN score": (runfile("q00 Q0 p000 1 nan t\n"), 5, ("a.trec:1", "nan")),
    "a score that is a word": (runfile("q00 Q0 p000 1 high t\n"), 5, ("a.trec:1", "high")),
    "run of unknown passages": (runfile("q00 Q0 zzz 1 9.0 t\n"), 5, ("zzz", "a.trec")),
    "run of other queries": (runfile("other Q0 p000 1 9.0 t\n"), 5, ("other", "q00")),
    # judges
    "nuggets judge without nuggets": (judge(type="nuggets"), 5, ("q00", "nugget")),
    "reference judge without references": (judge(type="reference"), 5, ("q00", "reference")),
    "unknown price under a cap": (
        judge(type="litellm", model="openai/never-heard-of"),
        5,
        ("never-heard-of", "llm.prices"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    damage, code, parts = CASES[case]
    project = make_project(tmp_path, queries=3, corpus=20)
    damage(project)
    result = invoke("run", "--config", project.config, "--quiet")
    assert result.exit_code == code, result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    sentence = result.stderr.strip()
    assert len(sentence.splitlines()) == 1, sentence
    assert sentence.startswith("raggs: ")
    for part in parts:
        assert part in sentence
    assert "Traceback" not in sentence


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["run"], 2, ("--config",)),
        (["rnu"], 2, ("rnu",)),
        (["run", "--config", "x.yaml", "--from", "juge"], 2, ("did you mean 'judge'",)),
        (["run", "--config", "{config}", "--set", "rank.max_calls"], 2, ("--set", "key=value")),
        (["run", "--config", "{config}", "--set", "rank.max_calls=many"], 5, ("--set rank.max_calls", "integer")),
        (["run", "--config", "{config}", "--set", "retrieve.retrievers.7.k=1"], 5, ("entries 0 to 1",)),
        (["run", "--config", "{config}", "--run-id", "../x"], 2, ("'../x' is not a run name",)),
        (["status", "nowhere"], 4, ("no run here",)),
        (["audit", "nowhere"], 4, ("no run here",)),
        (["why", "nowhere", "juge"], 2, ("did you mean 'judge'",)),
        (["export", "nowhere", "--out", "x"], 4, ("no run here",)),
        (["list", "juges"], 2, ("did you mean 'judges'",)),
        (["schema", "rnk"], 2, ("did you mean 'rank'",)),
        (["cache", "clear", "--what", "lm", "--yes"], 2, ("did you mean 'llm'",)),
    ],
)
def test_bad_usage(arguments: list[str], code: int, parts: tuple[str, ...], tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=5)
    result = invoke(*[argument.format(config=project.config) for argument in arguments])
    assert result.exit_code == code, result.stderr
    for part in parts:
        assert part in result.stderr


def test_debug_shows_the_stack_trace(tmp_path: Path) -> None:
    result = invoke("run", "--config", tmp_path / "none.yaml", "--debug")
    assert result.exit_code == 4
    assert "Traceback" in result.stderr
