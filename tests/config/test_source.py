"""Reading YAML: values, lines, variables, and every way to get it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.base.errors import ConfigError, NotFoundError
from raggs.config.source import read_source


def read(tmp_path: Path, text: str, **environment: str) -> object:
    path = tmp_path / "raggs.yaml"
    path.write_text(text, encoding="utf-8")
    return read_source(path, environment).values


def test_variables_expand_in_texts_and_keep_yaml_types(tmp_path: Path) -> None:
    text = 'a: ${PORT}\nb: "${PORT}"\nc: x-${NAME:-none}-y\nd: ${EMPTY:-}\ne: $$HOME\nf: [1, yes, 2.5, null]\n'
    assert read(tmp_path, text, PORT="80") == {
        "a": 80,
        "b": "80",
        "c": "x-none-y",
        "d": "",
        "e": "$HOME",
        "f": [1, True, 2.5, None],
    }


def test_places_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "raggs.yaml"
    path.write_text("a:\n  b: 1\n  c:\n    - x\n    - y\n")
    origins = read_source(path, {}).origins
    assert origins[("a", "b")].line == 2
    assert origins[("a", "c", 1)].line == 5
    assert str(origins[("a",)]) == "file raggs.yaml:1"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: [1\nb: 2\n", 2, "not valid YAML"),
        ("a: 1\na: 2\n", 2, "occurs twice"),
        ("x: 1\njudge:\n  model: ${NOPE}\n", 3, "judge.model needs the environment variable NOPE"),
        ("- a\n", None, "expected a mapping"),
        ("", None, "expected a mapping"),
        ("base: &b {x: 1}\nother:\n  <<: *b\n", 3, "merge keys"),
        ("a: !!python/object/apply:os.system ['true']\n", 1, "not valid YAML"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, text: str, line: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        read(tmp_path, text)
    assert caught.value.line == line


def test_encoding_and_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    with pytest.raises(NotFoundError, match="raggs init"):
        read_source(path, {})
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_source(path, {})
