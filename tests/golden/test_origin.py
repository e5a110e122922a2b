"""What a sidecar says of the grades beside it: believed where it says it in its own way, passed over where not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raggs.golden.judgments import stated_fall, stated_sources, stated_version


def beside(folder: Path, **provenance: object) -> Path:
    """A file of labels with a sidecar that says this."""
    labels = folder / "qrels.txt"
    labels.write_text("q 0 d 3\n")
    meta = {"files": {"qrels.txt": {"rows": 1}}, "provenance": provenance}
    (folder / "qrels.txt.meta.json").write_text(json.dumps(meta))
    return labels


def test_who_graded_and_which_gate_fell(tmp_path: Path) -> None:
    labels = beside(tmp_path, gate=["one is low", "another is high"], sources={"human": 3, "litellm x": 9})
    assert list(stated_fall(labels)) == [f"{labels}: the judge fails its check: one is low; another is high"]
    assert stated_sources(labels) == {"human": 3, "litellm x": 9}


@pytest.mark.parametrize(
    ("gate", "sources"),
    [(None, None), ([], {}), ("low", ["human"]), ([3, None, ""], {"human": "3"}), ({"a": 1}, {"litellm x": 9})],
)
def test_what_says_nothing_in_its_own_way_is_passed_over(tmp_path: Path, gate: object, sources: object) -> None:
    labels = beside(tmp_path, gate=gate, sources=sources)
    assert (list(stated_fall(labels)), stated_sources(labels)) == ([], {})


def test_a_sidecar_does_not_flood_the_screen(tmp_path: Path) -> None:
    [said] = stated_fall(beside(tmp_path, gate=["x" * 10_000]))
    assert len(said) < 700


@pytest.mark.parametrize("version", [None, "2", {"number": 2}, {"number": 1, "version": "x"}])
def test_an_invalid_version_is_ignored(tmp_path: Path, version: object) -> None:
    assert stated_version(beside(tmp_path, version=version)) is None


def test_a_stated_version_is_read_with_a_short_name(tmp_path: Path) -> None:
    stated = {"number": 2, "version": "a" * 64, "parent": "b" * 64, "carried": 88, "judged": 30}
    found = stated_version(beside(tmp_path, version={**stated, "updated_from": "x" * 10_000}))
    assert found is not None
    assert (found.number, found.carried, found.judged) == (2, 88, 30)
    assert len(found.updated_from) < 700
