"""A diagnosis from request to files: measured once, read when unchanged, kept when killed, refused in one sentence."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from support.diagnosing import NAME, TARGET, Tiny
from support.llm_server import KEY, LLMServer

import raggs
from raggs.app.diagnose import DiagnoseRequest, forecast_diagnosis, run_diagnosis
from raggs.base.errors import BusyError, NotFoundError, PrerequisiteError, RaggsError, UsageError
from raggs.diagnosis import REGISTRY
from raggs.diagnosis.store import DiagnosisStore


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(REGISTRY._entries, NAME, TARGET)
    monkeypatch.setattr(Tiny, "made", [])
    monkeypatch.chdir(tmp_path)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.suffix != ".lock"}


def test_what_was_measured_is_on_disk_and_read_when_nothing_changed(tmp_path: Path) -> None:
    first = raggs.diagnose(NAME, out=tmp_path / "d")
    assert (first.unchanged, first.verdict, first.passed) == (False, "Vectors add up.", None)
    assert [path.name for path in first.files] == ["tiny.json", "tiny.md", "tiny-sums.svg"]
    assert "wordllama" in (tmp_path / "d" / "tiny.md").read_text()
    assert "Vectors add up." in first._repr_html_()
    written = bytes_of(tmp_path / "d")
    again = raggs.diagnose(NAME, out=tmp_path / "d")
    assert again.unchanged
    assert again.report == first.report
    assert bytes_of(tmp_path / "d") == written


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("name", ["tiny.md", "tiny-sums.svg", "tiny.json"])
def test_a_file_that_was_touched_is_written_again_from_what_is_kept(tmp_path: Path, name: str) -> None:
    raggs.diagnose(NAME, out=tmp_path / "d")
    written = bytes_of(tmp_path / "d")
    (tmp_path / "d" / name).write_text("{}")
    assert not raggs.diagnose(NAME, out=tmp_path / "d").unchanged
    assert bytes_of(tmp_path / "d") == written
    assert Tiny.made == ["wordllama"]


def test_findings_of_an_older_form_are_measured_again(tmp_path: Path) -> None:
    first = raggs.diagnose(NAME, out=tmp_path / "d")
    DiagnosisStore(tmp_path / "d", NAME).path.write_text(
        first.report.model_copy(update={"found": {"verdict": "Once."}}).model_dump_json()
    )
    assert not raggs.diagnose(NAME, out=tmp_path / "d").unchanged


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("changed", [{"seed": 1}, {"texts": 2}, {"embedders": ["wordllama:64"]}])
def test_other_causes_are_measured(tmp_path: Path, changed: dict[str, object]) -> None:
    first = raggs.diagnose(NAME, out=tmp_path / "d")
    second = raggs.diagnose(NAME, out=tmp_path / "d", **changed)
    assert not second.unchanged
    assert second.report.causes != first.report.causes


def test_a_part_that_is_kept_is_not_made_by_the_next_one(tmp_path: Path) -> None:
    raggs.diagnose(NAME, out=tmp_path / "d")
    raggs.diagnose(NAME, out=tmp_path / "d", embedders=["wordllama,wordllama:64"])
    assert Tiny.made == ["wordllama", "wordllama:64"]


def test_in_a_loop_it_works_too(tmp_path: Path) -> None:
    async def notebook() -> raggs.Diagnosed:
        return raggs.diagnose(NAME, out=tmp_path / "d")

    assert asyncio.run(notebook()).verdict == "Vectors add up."


def _killed_after_the_first_part(folder: str) -> None:
    kept = Tiny._rows

    def rows(self: Tiny, bench: object, name: str) -> object:
        if name != "wordllama":
            os.kill(os.getpid(), signal.SIGKILL)
        return kept(self, bench, name)  # type: ignore[arg-type]

    Tiny._rows = rows  # type: ignore[method-assign,assignment]
    raggs.diagnose(NAME, out=folder, embedders=["wordllama,wordllama:64"])


def test_a_kill_costs_a_part_and_changes_no_byte(tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(
        target=_killed_after_the_first_part, args=(str(tmp_path / "d"),)
    )
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert not (tmp_path / "d" / "tiny.json").exists()
    raggs.diagnose(NAME, out=tmp_path / "d", embedders=["wordllama,wordllama:64"])
    assert Tiny.made == ["wordllama:64"]
    raggs.diagnose(NAME, out=tmp_path / "e", embedders=["wordllama,wordllama:64"])
    assert bytes_of(tmp_path / "d") == bytes_of(tmp_path / "e")


def test_a_second_process_is_told(tmp_path: Path) -> None:
    with (
        DiagnosisStore(tmp_path / "d", NAME).hold(),
        pytest.raises(BusyError, match="another process of raggs diagnose tiny"),
    ):
        raggs.diagnose(NAME, out=tmp_path / "d")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"kind": "tinny"}, UsageError, "did you mean 'tiny'"),
        ({"settings": {"texts": 0}}, UsageError, "tiny: texts: Input should be greater than or equal to 1"),
        ({"settings": {"text": 0}}, UsageError, "unknown key"),
        ({"embedders": ["wordlama"]}, UsageError, "did you mean 'wordllama'"),
        ({"golden": Path("none")}, NotFoundError, "none: no such file"),
        ({"out": Path("file")}, UsageError, "file is a file, not a folder"),
        ({"config": Path("none.yaml")}, NotFoundError, "none.yaml"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, given: dict, error: type[RaggsError], said: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(error, match=said) as caught:
        run_diagnosis(DiagnoseRequest(**{"kind": NAME, **given}))
    assert "\n" not in str(caught.value)


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("need", ["run", "golden", "corpus", "reranker"])
def test_what_a_kind_needs_and_nobody_named_is_told_with_the_way_to_name_it(
    monkeypatch: pytest.MonkeyPatch, need: str
) -> None:
    monkeypatch.setattr(Tiny, "NEEDS", (need,))
    with pytest.raises(PrerequisiteError, match="this diagnosis needs a") as caught:
        raggs.diagnose(NAME)
    assert "--" in (caught.value.remedy or "")


def test_a_paid_embedder_is_forecast_without_asking_and_then_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        request = DiagnoseRequest(NAME, embedders=["litellm:openai/text-embedding-3-small:dims=8"], out=tmp_path / "d")
        expected = forecast_diagnosis(request)
        assert expected.what == ("4 texts embedded",)
        assert [(line.calls, line.who) for line in expected.estimates] == [(1, "openai/text-embedding-3-small")]
        assert not server.requests
        assert not (tmp_path / "d").exists()
        run_diagnosis(request)
        assert len(server.requests) == 1
        ledger = [json.loads(line) for line in (tmp_path / "d" / "llm.ledger.jsonl").read_text().splitlines()]
        assert [line["stage"] for line in ledger] == ["diagnose tiny"]
        assert "is up to date" in forecast_diagnosis(request).what[0]
        assert run_diagnosis(request).unchanged
        assert len(server.requests) == 1


def test_a_missing_key_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY"):
        raggs.diagnose(NAME, embedders=["litellm:openai/text-embedding-3-small:dims=8"], out=tmp_path / "d")
    assert not (tmp_path / "d").exists()
