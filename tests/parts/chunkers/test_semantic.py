"""Cutting where the meaning changes: a change of subject is found, and a largest size is kept with the fewest cuts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from raggs.base.adapter import AdapterConfig
from raggs.base.errors import ConfigError, PrerequisiteError
from raggs.parts.chunkers import ChunkerContext, Document
from raggs.parts.chunkers.semantic import SemanticChunker, cuts_of_each, cuts_of_largest, cuts_of_mean
from raggs.parts.corpora.folder import FolderCorpus
from raggs.parts.workspace import Workspace

WINGS = "The lift of a wing grows with the angle. The drag of the wing grows too. A wing stalls at large angles. "
BREAD = "Bread is made of flour and water. The dough of bread must rest. Then bread is baked in an oven. "


@pytest.fixture
def workspace(tmp_path: Path, request: pytest.FixtureRequest) -> Workspace:
    made = Workspace(tmp_path / "runs")
    request.addfinalizer(made.close)
    return made


def test_it_cuts_where_the_subject_changes(workspace: Workspace) -> None:
    chunker = workspace.chunker(SemanticChunker.Config(percentile=80, window=0))
    found = [chunk.text for chunk in chunker.chunk(Document(WINGS + BREAD))]
    assert found == [WINGS.strip(), BREAD.strip()]


def test_a_largest_size_is_kept(workspace: Workspace) -> None:
    chunker = workspace.chunker(SemanticChunker.Config(max_size=40, piece=10))
    found = list(chunker.chunk(Document((WINGS + BREAD) * 5)))
    assert max(chunker.ruler.lengths([chunk.text for chunk in found])) <= 40
    assert len(found) < 40


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 2.0]), st.integers(0, 5)), min_size=1), st.integers(5, 20)
)
def test_cuts_are_made_at_the_largest_distances(pieces: list[tuple[float, int]], most: int) -> None:
    distances, lengths = [distance for distance, _ in pieces[1:]], [length for _, length in pieces]

    def fits(cuts: list[int]) -> bool:
        return all(size <= most for size in sizes(cuts, lengths))

    options = [above(distances, level) for level in (3.0, 2.0, 0.9, 0.5, 0.1, 0.0, -1.0)]
    assert cuts_of_largest(distances, lengths, most) == next((cuts for cuts in options if fits(cuts)), options[-1])
    wanted = [cuts for cuts in options if len(cuts) <= sum(lengths) // most]
    assert cuts_of_mean(distances, lengths, most) == wanted[-1]

    found = cuts_of_each(distances, lengths, most)
    assert fits(found)
    for cut in found:  # nothing that fits is cut, and no cut is made beside a larger distance
        others = [other for other in found if distances[other - 1] > distances[cut - 1]]
        first, last = max([0, *(o for o in others if o < cut)]), min([len(lengths), *(o for o in others if o > cut)])
        assert sum(lengths[first:last]) > most
        assert distances[cut - 1] == max(distances[first : last - 1])


def test_pieces_that_are_too_long_stand_alone() -> None:
    for cuts in (cuts_of_each, cuts_of_largest):
        assert cuts([0.5, 0.1], [9, 9, 9], 5) == [1, 2]
        assert cuts([], [9], 5) == []
    assert cuts_of_mean([], [9], 5) == []


def above(distances: list[float], level: float) -> list[int]:
    return [number for number, distance in enumerate(distances, start=1) if distance > level]


def sizes(cuts: list[int], lengths: list[int]) -> list[int]:
    return [sum(lengths[first:last]) for first, last in pairwise((0, *cuts, len(lengths)))]


def test_pieces_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"piece \(50\) must not exceed max_size \(30\)"):
        SemanticChunker.Config(max_size=30)


def test_without_an_embedder_it_says_so() -> None:
    with pytest.raises(PrerequisiteError, match="embedder wordllama is not available here"):
        SemanticChunker(SemanticChunker.Config(), ChunkerContext()).check()


def folder(path: Path, **embedder: Any) -> AdapterConfig:
    (path / "a.md").write_text("# On wings\n\n" + WINGS + BREAD)
    chunker = {"type": "semantic", "percentile": 80, "window": 0, "embedder": embedder}
    return FolderCorpus.Config(path=path, chunker=chunker)


def test_a_corpus_is_cut_with_an_embedder_of_this_machine(workspace: Workspace, tmp_path: Path) -> None:
    with workspace.corpus(folder(tmp_path, type="wordllama")).store as store:
        assert [passage.title for passage in store] == ["On wings", "On wings"]


def test_a_corpus_is_not_cut_with_one_that_is_paid(workspace: Workspace, tmp_path: Path) -> None:
    corpus = workspace.corpus(folder(tmp_path, type="litellm", model="openai/text-embedding-3-small"))
    with pytest.raises(ConfigError, match="must not make paid calls, but openai/text-embedding-3-small is paid"):
        _ = corpus.store


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


CONTRACT_VARIANTS = [
    {"percentile": 50},
    {"max_size": 30, "piece": 10},
    {"max_size": 25, "piece": 5, "unit": "characters", "fit": "largest"},
]
