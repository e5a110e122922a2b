"""From axes to systems: every combination that makes sense, once, with a name that tells it apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import ConfigError
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.grid import make_grid


def config(**keys: object) -> SweepConfig:
    return SweepConfig.model_validate({"name": "stack", "golden": "qrels.txt", **keys})


def names(**keys: object) -> list[str]:
    return [system.name for system in make_grid(config(**keys)).systems]


def test_one_system_where_nothing_is_said() -> None:
    assert names() == ["hybrid+wordllama"]


def test_a_list_of_values_in_a_level_stands_for_a_level_each() -> None:
    found = names(axes={"embedder": [{"type": "wordllama", "dims": [64, 256]}], "mode": "dense"})
    assert found == ["dense+wordllama-64", "dense+wordllama-256"]


def test_a_search_without_vectors_is_one_system_whatever_the_embedder_and_this_is_said() -> None:
    grid = make_grid(
        config(axes={"embedder": [{"type": "wordllama", "dims": [64, 256]}], "mode": ["lexical", "hybrid"]})
    )
    assert [system.name for system in grid.systems] == ["lexical", "hybrid+wordllama-64", "hybrid+wordllama-256"]
    assert grid.systems[0].embedder is None
    assert "embedder" not in grid.systems[0].levels
    assert grid.left_out[0].startswith("1 combination omitted: a search without vectors")


def test_what_the_user_leaves_out_is_left_out_by_type_by_label_and_by_setting() -> None:
    axes = {"embedder": [{"type": "wordllama", "dims": [64, 128, 256]}], "mode": ["dense", "hybrid"]}
    grid = make_grid(config(axes=axes, **{"except": [{"mode": "dense", "embedder": "wordllama-64"}]}))
    assert "dense+wordllama-64" not in [system.name for system in grid.systems]
    assert len(grid.systems) == 5
    assert len(names(axes=axes, **{"except": [{"embedder": {"dims": 64}}]})) == 4
    assert len(names(axes=axes, **{"except": [{"mode": ["dense", "hybrid"], "embedder": {"dims": 256}}]})) == 4
    with pytest.raises(ConfigError, match="no system is left"):
        names(axes=axes, **{"except": [{"embedder": "wordllama"}]})


def test_an_unknown_axis_in_except_is_named() -> None:
    with pytest.raises(ValueError, match="'embeder' is not an axis"):
        config(**{"except": [{"embeder": "wordllama"}]})


def test_levels_are_told_apart_by_what_they_differ_in() -> None:
    index = ["flat", {"type": "hnsw", "ef": [16, 64]}, {"type": "hnsw", "ef": 64, "quantize": "int8"}]
    found = names(axes={"index": index, "mode": "dense"})
    assert found == [
        "dense+wordllama+flat",
        "dense+wordllama+hnsw-ef16",
        "dense+wordllama+hnsw-ef64",
        "dense+wordllama+hnsw-ef64-int8",
    ]


def test_a_system_of_ones_own_competes_and_single_systems_stand_beside(tmp_path: Path) -> None:
    (tmp_path / "mine.trec").write_text("q Q0 d 1 1 t\n")
    mode = ["dense", {"type": "runfile", "path": str(tmp_path / "mine.trec")}]
    grid = make_grid(config(axes={"mode": mode}, systems={"odd": {"mode": "lexical", "k": 7}}))
    assert [system.name for system in grid.systems] == ["dense+wordllama", "runfile-mine", "odd"]
    assert grid.systems[1].mode == "own"
    assert grid.systems[2].k == 7


def test_two_systems_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two systems are called 'lexical'"):
        names(axes={"mode": "lexical"}, systems={"lexical": {"mode": "lexical", "k": 5}})


@given(
    dims=st.lists(st.sampled_from([64, 128, 256]), min_size=1, max_size=3, unique=True),
    modes=st.lists(st.sampled_from(["dense", "lexical", "hybrid"]), min_size=1, max_size=3, unique=True),
    ks=st.lists(st.integers(1, 400), min_size=1, max_size=4, unique=True),
    rewrites=st.lists(st.sampled_from(["none", "clean"]), min_size=1, max_size=2, unique=True),
)
def test_names_are_unique_and_nothing_is_lost(
    dims: list[int], modes: list[str], ks: list[int], rewrites: list[str]
) -> None:
    axes = {"embedder": [{"type": "wordllama", "dims": dims}], "mode": modes, "k": ks, "rewrite": rewrites}
    found = names(axes=axes)
    dense = sum(mode != "lexical" for mode in modes)
    assert len(found) == len(ks) * len(rewrites) * (dense * len(dims) + ("lexical" in modes))
    assert len(set(found)) == len(found)


def test_cuts_are_an_axis_of_their_own_and_none_is_named_where_there_is_none() -> None:
    grid = make_grid(config(axes={"chunker": ["corpus", {"type": "recursive", "size": [200, 400]}], "mode": "dense"}))
    assert [system.name for system in grid.systems] == [
        "dense+corpus+wordllama",
        "dense+recursive-size200+wordllama",
        "dense+recursive-size400+wordllama",
    ]
    assert grid.labels["chunker"] == ("corpus", "recursive-size200", "recursive-size400")
    assert [system.chunker is None for system in grid.systems] == [True, False, False]
    plain = make_grid(config())
    assert "chunker" not in plain.labels
    assert "chunker" not in plain.systems[0].levels


def test_a_chunker_with_a_list_of_its_own_is_one_level() -> None:
    found = config(
        axes={"chunker": {"type": "recursive", "separators": ["\n\n", " "], "size": [100, 200]}}
    ).axes.chunker
    assert [(level and level.model_dump()["size"], level and level.model_dump()["separators"]) for level in found] == [
        (100, ("\n\n", " ")),
        (200, ("\n\n", " ")),
    ]


def test_what_does_not_read_the_corpus_is_of_one_cut_unless_it_says_another() -> None:
    cuts = {"chunker": [{"type": "recursive", "size": [200, 400]}]}
    theirs = {"type": "runfile", "path": "theirs.trec"}
    grid = make_grid(config(axes={**cuts, "mode": ["lexical", theirs]}))
    assert [system.name for system in grid.systems] == [
        "lexical+recursive-size200",
        "runfile-theirs+corpus",
        "lexical+recursive-size400",
    ]
    assert grid.left_out[0].startswith("1 combination omitted: a retriever that does not read the corpus")
    own = {"mode": theirs, "chunker": {"type": "recursive", "size": 400}}
    named = make_grid(config(axes={**cuts, "mode": "lexical"}, systems={"today": own})).systems[-1]
    assert named.levels["chunker"] == "recursive-size400"


def test_cuts_are_left_out_by_label_type_and_setting() -> None:
    axes = {"chunker": ["markdown", {"type": "recursive", "size": [200, 400]}], "mode": ["lexical", "dense"]}
    assert len(names(axes=axes, **{"except": [{"chunker": "recursive"}]})) == 2
    assert len(names(axes=axes, **{"except": [{"chunker": "recursive-size400", "mode": "dense"}]})) == 5
    assert len(names(axes=axes, **{"except": [{"chunker": {"size": 400}}]})) == 4
