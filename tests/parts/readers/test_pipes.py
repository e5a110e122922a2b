"""Pipes, devices and archives that swell: read whole, or refused with a sentence, and never in part."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from support.scoring import OUTPUTS, QRELS, RUN, SAMPLES, raggs_eval, scored, write

from raggs.base.errors import DataError
from raggs.base.trec import read_qrels, read_scored
from raggs.parts.file_shapes import replayable
from raggs.parts.run_files import quick_run, read_judgments, read_labels, read_run

MANY = "".join(f"q{n // 9} Q0 doc-{n} 1 {9 - n % 9}.5 tag\n" for n in range(90_000))


def piped(text: str) -> Path:
    """What a shell's ``<(...)`` passes: one end of a pipe, which is fed meanwhile."""
    read, write = os.pipe()

    def feed() -> None:
        with os.fdopen(write, "w") as file:
            file.write(text)

    Thread(target=feed).start()
    return Path(f"/dev/fd/{read}")


def test_runs_and_labels_from_a_pipe_are_whole(tmp_path: Path) -> None:
    write(tmp_path, run=MANY, qrels=QRELS)
    plain, piped_run = read_run(tmp_path / "run"), read_run(piped(MANY))
    assert plain.qids == piped_run.qids
    assert plain.score.tolist() == piped_run.score.tolist()
    assert read_judgments(piped(QRELS)).qids == read_judgments(tmp_path / "qrels").qids
    assert len(list(read_labels(piped(QRELS)))) == len(QRELS.splitlines())


def test_a_pipe_in_a_format_that_is_no_trec_file_is_whole_too() -> None:
    table = "query-id,corpus-id,score\n" + "".join(f"q,d{n},1\n" for n in range(9_000))
    assert len(read_run(piped(table)).score) == 9_000
    assert len(read_run(piped('{"q": {"d": 1.0, "e": 0.5}}')).score) == 2


def test_eval_scores_a_pipe_as_a_file(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, run=RUN)
    command = f"{sys.executable} -m raggs eval -g <(cat qrels) -r <(cat run) -m mrr,ndcg@10 --json"
    found = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    of_files = scored("-g", tmp_path / "qrels", "-r", tmp_path / "run", "-m", "mrr,ndcg@10")
    (system,) = of_files["systems"]
    assert f'"mean": {system["scores"]["ndcg@10"]["mean"]}' in found.stdout
    assert of_files["golden"]["digest"] in found.stdout


def test_a_pipe_that_was_read_already_is_no_empty_file() -> None:
    path = piped(QRELS)
    read_judgments(path)
    with pytest.raises(DataError, match="only once"):
        read_judgments(path)


def test_an_error_in_a_pipe_names_the_pipe() -> None:
    path = piped("q Q0 a 1 1 t\nq Q0 b 2\n")
    with pytest.raises(DataError, match=f"{path}:2: 4 columns"):
        read_run(path)


def test_a_pipe_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.parts.file_shapes.MAX_PIPE_BYTES", 1 << 16)
    with pytest.raises(DataError, match="contains more than"), replayable(piped(MANY[: 1 << 17])):
        pass


@pytest.mark.parametrize("read", [read_run, read_judgments, lambda path: list(read_scored(path))])
def test_other_pipes_and_devices_are_refused_unread(tmp_path: Path, read) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(DataError, match="is a pipe, not a file — write its output to a file first"):
        read(fifo)
    with pytest.raises(DataError, match="is a device"):
        read(Path("/dev/zero"))


@pytest.mark.parametrize("read", [read_run, read_judgments])
def test_an_archive_that_swells_is_refused_before_it_is_unpacked(tmp_path: Path, read, monkeypatch) -> None:
    for module in ("raggs.base.files", "raggs.parts.run_files"):
        monkeypatch.setattr(f"{module}.MIN_UNPACK_LIMIT_BYTES", 1 << 16)
    for name, content in (("zeros.gz", b"\0" * (1 << 22)), ("lines.gz", b" \n" * (1 << 22))):
        (tmp_path / name).write_bytes(gzip.compress(content))
        assert quick_run(tmp_path / name) is None
        with pytest.raises(DataError, match=r"unpacks to more than (200 times its size|8 lines)"):
            read(tmp_path / name)


def test_an_archive_of_a_usual_run_is_read(tmp_path: Path) -> None:
    write(tmp_path, run__gz=MANY)
    assert len(read_run(tmp_path / "run.gz").score) == 90_000


@pytest.mark.parametrize("line", ["q\0 0 d 1", "q 0 d\0 1", "q 0 \0d 1", "q \0 d 1", "q 0 d 1\0"])
def test_nul_in_a_trec_file_is_refused_not_stripped(tmp_path: Path, line: str) -> None:
    write(tmp_path, qrels=f"q 0 e 1\n{line}\n")
    for read in (read_judgments, lambda path: list(read_qrels(path))):
        with pytest.raises(DataError, match=r"qrels:2: (contains a NUL|grade .* not an integer)"):
            read(tmp_path / "qrels")


def test_samples_and_earlier_results_from_devices_are_refused(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, run=RUN, outputs=OUTPUTS)
    files = ("-g", tmp_path / "qrels", "-r", tmp_path / "run")
    for arguments in (
        ("--samples", "/dev/zero", "--outputs", tmp_path / "outputs"),
        (*files, "--fail-on-regression", "/dev/zero"),
        (*files, "--facets", "/dev/zero"),
        (*files, "--correct", "/dev/zero"),
    ):
        result = raggs_eval(*arguments)
        assert (result.exit_code, "is a device" in result.stderr) == (5, True)
    assert raggs_eval("--samples", piped(SAMPLES), "--outputs", piped(OUTPUTS)).exit_code == 0


def test_the_command_says_one_sentence(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS)
    result = raggs_eval("-g", tmp_path / "qrels", "-r", "/dev/zero")
    assert (result.exit_code, len(result.stderr.splitlines())) == (5, 1)
