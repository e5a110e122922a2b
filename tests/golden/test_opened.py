"""What a path names as a golden set; and runs that an earlier raggs made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.cli import invoke

import raggs
from raggs.base.errors import DataError, NotFoundError
from raggs.golden.opened import open_golden
from raggs.golden.runs import RunGolden
from raggs.runs.manifests.audit import audit
from raggs.runs.manifests.opened import open_run

OLDER = Path(__file__).parents[1] / "fixtures" / "before_questions"


@pytest.fixture
def older(tmp_path):
    """A project with its run as the version before questions were kept left it."""
    shutil.copytree(OLDER, tmp_path / "project")
    (tmp_path / "project" / "runs").mkdir()
    return (tmp_path / "project" / "run").rename(tmp_path / "project" / "runs" / "old")


def test_a_folder_without_a_run_or_labels_is_said(tmp_path):
    with pytest.raises(NotFoundError, match="no run here"):
        open_golden(tmp_path)


def test_it_is_a_name_of_the_package(run):
    assert isinstance(raggs.open_golden(run), RunGolden)
    assert isinstance(raggs.open_golden(str(run)), RunGolden)


def test_grades_of_an_older_run_are_read_and_its_questions_refused(older):
    golden = open_golden(older)
    assert golden.judgments().qrels.counts.sum() == 4
    for reading in (golden.queries, golden.by_query):
        with pytest.raises(DataError, match=r"holds no queries\.jsonl: raggs 0\.1\.0 made it before") as caught:
            list(reading())
        assert caught.value.remedy == "raggs run --config raggs.yaml; paid answers stay cached"


def test_an_older_run_is_evaluated_not_exported_and_made_anew_by_running_again(older, tmp_path):
    assert invoke("eval", "--golden", older, "--run", older, "--k", 2).exit_code == 0
    refused = invoke("export", older, "--out", tmp_path / "out")
    assert refused.exit_code == 5
    assert "holds no queries.jsonl" in refused.output
    assert not (tmp_path / "out").exists()
    assert invoke("run", "--config", older.parents[1] / "raggs.yaml", "--quiet").exit_code == 0
    assert invoke("export", older, "--out", tmp_path / "out").exit_code == 0
    assert not list(audit(open_run(older)))
    assert next(open_golden(older).queries()).answer == "By the brook."
