"""The pipelines of raggs: which stage writes which artifact."""

from __future__ import annotations

import pytest

from raggs.stages.pipeline import Pipeline, pipelines


@pytest.mark.parametrize("pipeline", pipelines(), ids=lambda pipeline: pipeline.name)
def test_each_artifact_has_the_stage_that_writes_it(pipeline: Pipeline) -> None:
    written = {
        artifact: name
        for name in pipeline.order
        for artifact in (*pipeline.stage(name).artifacts(), pipeline.stage(name).JOURNAL)
        if artifact is not None
    }
    assert written == {artifact: pipeline.writer(artifact) for artifact in pipeline.artifacts}
