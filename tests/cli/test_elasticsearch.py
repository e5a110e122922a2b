"""Elasticsearch from the command line: load an index, search it, read passages from it, and survive kills."""

from __future__ import annotations

import json
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.elastic import fill, fresh_name, scripted, write
from support.forks import shared
from support.project import Project, make_project, raggs

from raggs.base.errors import NotFoundError
from raggs.parts.elastic import IndexPlace
from raggs.parts.elastic.index import ElasticIndex


def searched(folder: Path, place: dict[str, Any], modes: tuple[str, ...] = ("bm25", "knn"), **sections: Any) -> Project:
    """A project whose retrievers search an index."""
    specs = [{"type": "elasticsearch", "name": mode, "mode": mode, "k": 15, **place} for mode in modes]
    return make_project(folder, **{"retrieve": {"retrievers": specs}, **sections})


@pytest.fixture
def place(elastic_url: str) -> dict[str, Any]:
    return {"url": elastic_url, "index": fresh_name()}


@pytest.fixture
def project(tmp_path: Path, place: dict[str, Any]) -> Project:
    return searched(tmp_path, place)


def passages_of(project: Project) -> set[str]:
    lines = (project.run / "merge.jsonl").read_text().splitlines()
    return {json.loads(line)["doc_id"] for line in lines}


def kept(project: Project) -> list[str]:
    """The corpora in the cache."""
    return sorted(path.name for path in (project.folder / "runs" / ".cache").glob("corpora/*"))


# --- raggs index ----------------------------------------------------------------------------------------------


def test_an_index_is_described_made_and_found_complete(project: Project, place: dict[str, Any]) -> None:
    told = invoke("index", "--config", project.config, "--dry-run")
    assert told.exit_code == 0, told.output
    assert f"{place['index']} would be created: 40 documents with vectors of 256 dimensions (wordllama/" in told.stdout
    with pytest.raises(NotFoundError):
        ElasticIndex(IndexPlace(**place)).count()

    made = invoke("index", "--config", project.config)
    assert made.exit_code == 0, made.output
    assert re.search(r"40 documents, 40 with vectors; 40 sent in [\d.]+ s \([\d,]+/s\), counts agree", made.stdout)
    assert made.stdout.splitlines()[-1] == f"next: raggs run --config {project.config}"
    again = json.loads(invoke("index", "--config", project.config, "--json").stdout)
    assert [(row["documents"], row["vectors"], row["sent"]) for row in again] == [(40, 40, 0)]
    assert "already complete" in invoke("index", "--config", project.config).stdout
    assert "has 40 documents already" in invoke("index", "--config", project.config, "--dry-run").stdout


def test_an_index_made_otherwise_wants_yes(project: Project) -> None:
    assert invoke("index", "--config", project.config).exit_code == 0
    other = ("index", "--config", project.config, "--set", "index.analyzer=english")
    refused = invoke(*other)
    assert refused.exit_code == 5
    assert "its analyzer is standard, not english" in refused.stderr
    assert "pass --yes" in refused.stderr
    assert "--yes would replace it" in invoke(*other, "--dry-run").stdout
    assert "40 sent" in invoke(*other, "--yes").stdout


def test_progress_is_told_with_its_rate(tmp_path: Path, place: dict[str, Any]) -> None:
    project = searched(tmp_path, {**place, "batch": 10})
    told = invoke("index", "--config", project.config)
    assert re.search(r"^[a-z]+: [\d,/]+ \([\d,.]+/s\)$", told.stderr, re.MULTILINE), told.stderr  # one in ten seconds


@pytest.mark.parametrize(
    ("retrievers", "code", "message"),
    [
        ([{"type": "bm25"}], 2, "no retriever of type elasticsearch"),
        (
            [{"type": "elasticsearch", "name": name, "index": "i", "text_field": name} for name in "ab"],
            5,
            "retrievers a and b search the index i with different values of text_field",
        ),
    ],
)
def test_nothing_to_make(tmp_path: Path, retrievers: list[Any], code: int, message: str) -> None:
    project = make_project(tmp_path, retrieve={"retrievers": retrievers})
    done = invoke("index", "--config", project.config)
    assert done.exit_code == code
    assert message in done.stderr


@pytest.mark.parametrize(
    ("index", "message"), [("%2e%2e", "not a valid index name"), ("Pages", "cannot have upper-case letters")]
)
def test_an_index_name_is_refused_before_any_request(tmp_path: Path, index: str, message: str) -> None:
    with scripted((200, {})) as (url, server):
        done = invoke("index", "--config", searched(tmp_path, {"url": url, "index": index}).config)
        assert (done.exit_code, server.seen) == (5, [])
    assert message in done.stderr


def test_a_corpus_with_an_illegal_index_name_is_refused_before_any_request(tmp_path: Path) -> None:
    with scripted((200, {})) as (url, server):
        done = invoke("run", "--config", from_index(tmp_path, {"url": url, "index": "%2e%2e"}).config)
        assert (done.exit_code, server.seen) == (5, [])
    assert "corpus.index" in done.stderr
    assert "not a valid index name" in done.stderr


def test_an_index_is_not_loaded_into_itself(tmp_path: Path, place: dict[str, Any]) -> None:
    done = invoke("index", "--config", from_index(tmp_path, place).config)
    assert done.exit_code == 2
    assert "is read from the index" in done.stderr


@pytest.mark.nightly
def test_a_load_that_is_killed_again_and_again_ends_whole(tmp_path: Path, place: dict[str, Any]) -> None:
    project = searched(tmp_path, {**place, "batch": 1}, corpus=400, embed={"embedder": None}, modes=("bm25",))
    index = IndexPlace(**place)
    for number in (61, 121, 181):  # passages that are there already are gone over, too
        before = {"at": "call", "of": "raggs.parts.elastic.load:Loader._send", "number": number}
        died = shared().raggs("index", "--config", project.config, "--quiet", die=before)
        assert died.code == -signal.SIGKILL, died.err
    (row,) = json.loads(raggs("index", "--config", project.config, "--json").stdout)
    assert row["documents"] == ElasticIndex(index).count() == 400
    assert row["sent"] == 400 - 180


# --- raggs run ------------------------------------------------------------------------------------------------


def test_a_run_over_an_index_runs_again_only_after_a_write(project: Project, place: dict[str, Any]) -> None:
    assert invoke("index", "--config", project.config).exit_code == 0
    first = invoke("run", "--config", project.config)
    assert first.exit_code == 0, first.output
    bytes_of = project.artifacts()
    assert "unchanged" in invoke("run", "--config", project.config).stderr
    assert invoke("audit", project.run).exit_code == 0

    write(place["url"], place["index"], {"p001": None})
    why = invoke("why", project.run, "retrieve", "--config", project.config)
    assert f"retriever bm25.index.{place['index']}.changes.0 changed (39 -> 40)" in why.stdout
    assert invoke("run", "--config", project.config).exit_code == 0
    assert project.artifacts()["embed"] == bytes_of["embed"]
    assert "p001" not in passages_of(project)


def test_the_same_index_gives_the_same_bytes_wherever_passages_come_from(
    tmp_path: Path, project: Project, place: dict[str, Any]
) -> None:
    """From the file, from the index on demand, and from the index read whole."""
    assert invoke("index", "--config", project.config).exit_code == 0
    assert invoke("run", "--config", project.config).exit_code == 0
    assert len(kept(project)) == 1

    remote = from_index(tmp_path / "remote", place)
    done = invoke("run", "--config", remote.config)
    assert done.exit_code == 0, done.output
    assert remote.artifacts() == project.artifacts()
    assert kept(remote) == [], "nothing of the index is copied"
    assert invoke("validate", "--config", remote.config).stdout.startswith(f"{remote.config} is valid: 4 queries, 40")
    assert "40 passages" in invoke("doctor", "--config", remote.config).stdout
    assert invoke("run", "--config", remote.config, "--dry-run").exit_code == 0


@pytest.mark.nightly
def test_a_run_that_is_killed_goes_on_to_the_same_bytes(
    tmp_path: Path, project: Project, place: dict[str, Any]
) -> None:
    assert invoke("index", "--config", project.config).exit_code == 0
    calm, stormy = from_index(tmp_path / "calm", place), from_index(tmp_path / "stormy", place)
    assert raggs("run", "--config", calm.config, "--quiet").returncode == 0
    for stage in ("retrieve", "merge", "judge"):
        moment = {"at": "stage", "name": stage, "after": 0}
        died = shared().raggs("run", "--config", stormy.config, "--quiet", die=moment)
        assert died.code == -signal.SIGKILL, died.err
    assert raggs("run", "--config", stormy.config, "--quiet").returncode == 0
    assert stormy.artifacts() == calm.artifacts()


def test_an_embedded_search_reads_the_whole_index_once(tmp_path: Path, project: Project, place: dict[str, Any]) -> None:
    assert invoke("index", "--config", project.config).exit_code == 0
    whole = from_index(tmp_path / "whole", {**place, "batch": 7})
    whole.change(retrieve={"retrievers": [{"type": "bm25", "k": 15}, {"type": "dense", "k": 15}]})
    local = make_project(tmp_path / "local")
    for each in (whole, local):
        done = invoke("run", "--config", each.config)
        assert done.exit_code == 0, done.output
    assert whole.artifacts() == local.artifacts()
    (name,) = kept(whole)
    assert name.startswith("elasticsearch-")
    write(place["url"], place["index"], {"p001": None})
    assert invoke("run", "--config", whole.config).exit_code == 0
    assert len(kept(whole)) == 2


def from_index(folder: Path, place: dict[str, Any]) -> Project:
    project = searched(folder, place)
    settings = {**project.settings(), "corpus": {"type": "elasticsearch", **place}}
    project.config.write_text(json.dumps(settings))
    return project


def test_documents_without_text_are_left_out_and_said_so(tmp_path: Path, elastic_url: str) -> None:
    name = fill(elastic_url, {"full": {"text": "The amber brook."}, "bare": {"title": ""}})
    project = from_index(tmp_path, {"url": elastic_url, "index": name})
    project.change(retrieve={"retrievers": [{"type": "bm25"}]})
    done = invoke("run", "--config", project.config, "--to", "merge")
    assert done.exit_code == 0, done.output
    assert "1 passage without text skipped: bare" in done.stderr
    assert passages_of(project) == {"full"}


@pytest.mark.parametrize("retriever", ["elasticsearch", "bm25"])
def test_an_index_without_passages(tmp_path: Path, elastic_url: str, retriever: str) -> None:
    name = fill(elastic_url, {"gone": {"text": "Soon gone."}})
    write(elastic_url, name, {"gone": None})
    project = from_index(tmp_path, place := {"url": elastic_url, "index": name})
    project.change(retrieve={"retrievers": [{"type": retriever, **(place if retriever == "elasticsearch" else {})}]})
    done = invoke("run", "--config", project.config)
    assert done.exit_code == 5
    assert f"{elastic_url}/{name}: the corpus contains no passages" in done.stderr


# --- what goes wrong ------------------------------------------------------------------------------------------


def test_nothing_runs_before_the_server_was_asked(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"url": f"http://127.0.0.1:{free.getsockname()[1]}", "index": "i", "retries": 0}
        project = searched(tmp_path, place)
        sentence = f"raggs: {place['url']}: Elasticsearch cannot be reached — start the server"
        for command in ("validate", "index"):
            done = invoke(command, "--config", project.config)
            assert done.exit_code == 3
            assert done.stderr.splitlines()[-1].startswith(sentence)
        alone = raggs("run", "--config", project.config, "--quiet")
        assert alone.returncode == 3
        (line,) = alone.stderr.splitlines()  # and nothing that the client library logs
        assert line.startswith(sentence)
    assert not (project.run / "embed.jsonl").exists()


def test_keys_reach_no_file(tmp_path: Path, elastic_url: str, place: dict[str, Any]) -> None:
    project = searched(tmp_path, place, modes=("bm25",), embed={"embedder": None})
    (tmp_path / ".env").write_text("ELASTIC_USERNAME=reader\nELASTIC_PASSWORD=hunter2-secret\n")
    for command in ("index", "run"):
        done = raggs(command, "--config", project.config)
        assert done.returncode == 0, done.stderr
        assert "hunter2" not in done.stdout + done.stderr
    found = [path.name for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert found == [".env"]
