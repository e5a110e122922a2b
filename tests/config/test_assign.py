"""Every key that `raggs config show` prints can be set, and no key breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import invoke
from support.project import make_project

from raggs.base.errors import ConfigError, RaggsError
from raggs.config.load import load_config
from raggs.config.source import join_key, split_key

SETTINGS = {
    "plain": {},
    "no retrievers": {"retrieve": {}},
    "models": {
        "judge": {"judge": {"type": "litellm", "model": "openai/gpt-4.1"}, "mode": "batch"},
        "llm": {"prices": {"openai/gpt-4.1": {"input": 1, "output": 2}}, "parameters": {"a.b": "yes"}},
    },
    "odd texts": {"name": "007", "llm": {"parameters": {"x": "2024-01-01", "y": "a # b", "z": "", "w": "null"}}},
    "a panel": {"judge": {"judge": {"type": "panel", "judges": [{"type": "nuggets"}, {"type": "reference"}]}}},
}


def config(tmp_path: Path, name: str = "plain") -> Path:
    return make_project(tmp_path, queries=1, corpus=3, **SETTINGS[name]).config


@pytest.mark.parametrize("name", SETTINGS)
def test_every_printed_key_takes_its_printed_value(name: str, tmp_path: Path) -> None:
    path = config(tmp_path, name)
    result = invoke("config", "show", "--config", path)
    assert result.exit_code == 0, result.stderr
    plain = load_config(path, (), {}).effective()
    lines = [line.rsplit("  # ", 1)[0].split(None, 1) for line in result.stdout.splitlines()]
    assert len(lines) > 50
    for key, value in lines:
        changed = load_config(path, [f"{key}={value.strip()}"], {})
        assert changed.effective() == plain, key
        assert any(f"--set {key}" == origin for _, _, origin in changed.with_origins()), key


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("embed.embedder.dims=128", "embed.embedder.dims", 128),
        ("retrieve.retrievers.0.k=30", "retrieve.retrievers.0.k", 30),
        ("retrieve.retrievers.bm25.k=30", "retrieve.retrievers.0.k", 30),
        ("retrieve.retrievers.dense.k=30", "retrieve.retrievers.1.k", 30),
        ("merge.weights={bm25: 2}", "merge.weights.bm25", 2.0),
        ("merge.weights.bm25=2", "merge.weights.bm25", 2.0),
        ('llm.prices."openai/gpt-4.1".output=2', 'llm.prices."openai/gpt-4.1".output', 2.0),
        ("judge.batch.poll_s=7", "judge.batch.poll_s", 7.0),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "no retrievers"])
def test_what_the_file_leaves_out_can_be_set(kind: str, text: str, name: str, value: object, tmp_path: Path) -> None:
    more = ['llm.prices."openai/gpt-4.1".input=1'] if "prices" in text else []
    loaded = load_config(config(tmp_path, kind), [*more, text], {})
    assert {key: found for key, found, _ in loaded.with_origins()}[name] == value


def test_by_a_variable(tmp_path: Path) -> None:
    loaded = load_config(config(tmp_path), (), {"RAGGS__RETRIEVE__RETRIEVERS__BM25__K": "30"})
    assert loaded.effective()["retrieve"]["retrievers"][0]["k"] == 30


@pytest.mark.parametrize(
    "key",
    [
        "retrieve.retrievers.².k",
        "retrieve.retrievers.٣.k",
        "retrieve.retrievers.-1.k",
        f"retrieve.retrievers.{'9' * 5000}.k",
        "retrieve.retrievers..k",
        "retrieve.retrievers.k",
        "retrieve.retrievers.0.k.x",
        "retrieve.retrievers.bm26.k",
        "name.x",
        "name.x.y",
        ".",
        "..",
        '"',
        '""',
        '"a',
        "rank.[/red]",
        "rank.\x1b[31m",
        "judge.judge.0",
        "corpus.path.0.x",
        "<<.a",
        "__class__.x",
    ],
)
def test_a_key_of_no_place_is_a_sentence(key: str, tmp_path: Path) -> None:
    with pytest.raises(RaggsError) as caught:
        load_config(config(tmp_path), [f"{key}=1"], {})
    assert "\n" not in str(caught.value)


def test_a_null_that_the_file_gives_stays_one(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=3, embed={"embedder": None})
    with pytest.raises(ConfigError, match=r"embed\.embedder is null — set it in the file first"):
        load_config(project.config, ["embed.embedder.dims=3"], {})


def test_the_entries_that_there_are_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="entries 0 to 1: bm25, dense"):
        load_config(config(tmp_path), ["retrieve.retrievers.bm26.k=1"], {})


@pytest.mark.parametrize("place", [("a", "b"), ("a.b", "c"), ("a", "b.c.d", "e")])
def test_keys_with_dots(place: tuple[str, ...]) -> None:
    assert split_key(join_key(place)) == place
