"""Weights of retrievers: 0 excludes a retriever from the pool, and one retriever must remain."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import make_project

from raggs.base.errors import ConfigError
from raggs.config.load import load_config

BOTH = {"retrievers": [{"type": "bm25", "k": 5}, {"type": "dense", "k": 5}]}


@pytest.mark.parametrize("weights", [{"bm25": 0}, {"bm25": 0, "dense": 2}, {"dense": 0, "bm25": 0.5}])
def test_one_retriever_may_have_weight_0_even_if_the_other_is_not_listed(
    tmp_path: Path, weights: dict[str, float]
) -> None:
    project = make_project(tmp_path, queries=1, retrieve=BOTH, merge={"weights": weights})
    assert load_config(project.config).run.merge.weights == weights


def test_not_every_retriever_may_have_weight_0(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, retrieve=BOTH, merge={"weights": {"bm25": 0, "dense": 0}})
    with pytest.raises(ConfigError, match=r"merge\.weights: all weights are 0, so pools would be empty"):
        load_config(project.config)
