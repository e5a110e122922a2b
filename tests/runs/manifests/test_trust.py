"""What travels with a golden set: a lock for git, a signature, and the texts of its corpus."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import call, invoke
from support.forging import edit_file, edit_manifest
from support.project import Project, make_project

from raggs.app.audit import NO_STORE, audit
from raggs.app.run import run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("made"), queries=2, corpus=20, rank={"max_calls": 3})
    run(project.config)
    return project


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Project:
    return finished.copied(tmp_path / "copy")


# --- the lock -------------------------------------------------------------------------------------------------


def test_a_lock_fits_its_run_wherever_that_lies(project: Project, tmp_path: Path) -> None:
    lock = tmp_path / "golden.lock"
    assert f"lock: {lock}" in call("audit", project.run, "--write-lock", lock).output
    found = json.loads(lock.read_text())
    assert (found["name"], found["queries"], found["failed"]) == ("demo", 2, 0)
    assert found["files"]["rank.jsonl"]["rows"] == len((project.run / "rank.jsonl").read_bytes().splitlines())
    assert lock.stat().st_size < 8000
    shutil.copytree(project.run, tmp_path / "elsewhere" / "set")
    call("audit", tmp_path / "elsewhere" / "set", "--lock", lock)


def test_a_lock_counts_grades_and_says_what_measures_are(project: Project, tmp_path: Path) -> None:
    lock = tmp_path / "golden.lock"
    call("audit", project.run, "--write-lock", lock)
    found = json.loads(lock.read_text())
    grades = [json.loads(line)["grade"] for line in (project.run / "judge.jsonl").open()]
    assert found["judgments"]["grades"] == {str(grade): grades.count(grade) for grade in range(1, 6)}
    assert found["judgments"]["gains"] == [0, 1, 2, 3, 4]
    assert (
        found["measures"]["recall"] == "|relevant in the top k| / |relevant|; example 0.277778"
    )  # (1/3 + 1/2 + 0) / 3
    other = {**found, "measures": {**found["measures"], "recall": "something else"}}
    lock.write_text(json.dumps(other, indent=2))
    number = next(number for number, line in enumerate(lock.read_text().split("\n"), 1) if '"recall":' in line)
    said = call("audit", project.run, "--lock", lock, "--details", code=5).output
    assert f"golden.lock:{number}: the measure recall is '|relevant in" in said
    del found["measures"], found["judgments"]  # as of a run without judgments
    lock.write_text(json.dumps(found, indent=2))
    call("audit", project.run, "--lock", lock)
    scores = ("-r", project.run, "-m", "mrr", "--lock", lock)
    assert "contains no judgments" in call("eval", "-g", project.run, *scores, code=5).output


def test_an_evaluation_is_held_to_the_set_that_the_lock_means(project: Project, tmp_path: Path) -> None:
    """Whatever form it has: a run and each of its exports have the same fingerprint."""
    lock, scores = tmp_path / "golden.lock", ("-r", project.run, "-m", "mrr", "--lock", tmp_path / "golden.lock")
    call("audit", project.run, "--write-lock", lock)
    call("eval", "-g", project.run, *scores)
    for form in ("trec", "beir", "jsonl"):
        call("export", project.run, "--format", form, "--out", tmp_path / form)
        call("eval", "-g", tmp_path / form, *scores)
    qrels = tmp_path / "trec" / "qrels.txt"
    lines = qrels.read_text().splitlines()
    qrels.write_text("\n".join([*lines[:-1], lines[-1][:-1] + ("0" if lines[-1][-1] != "0" else "3")]) + "\n")
    said = call("eval", "-g", tmp_path / "trec", *scores, code=5).output
    assert "golden.lock:" in said and "is the lock of another golden set" in said and "judgments: digest is " in said
    assert (
        "relevant is 3 here, but 4 in the lock"
        in call("eval", "-g", project.run, *scores, "--binary-at", 3, code=5).output
    )
    found = json.loads(lock.read_text())
    found["measures"]["mrr"] = "another formula"
    lock.write_text(json.dumps(found, indent=2))
    assert "the measure mrr is" in call("eval", "-g", project.run, *scores, code=5).output
    call("eval", "-g", project.run, *scores[:2], "-m", "map", *scores[4:])  # what is not asked for does not matter


def test_another_run_is_told_by_file_and_line(project: Project, tmp_path: Path) -> None:
    lock = tmp_path / "golden.lock"
    call("audit", project.run, "--write-lock", lock)
    project.change(rank={"max_calls": 2})
    run(project.config)
    call("audit", project.run)
    out = call("audit", project.run, "--lock", lock, "--details", code=5).output
    lines = lock.read_text().splitlines()
    number = next(number for number, line in enumerate(lines, start=1) if '"rank.jsonl":' in line)
    assert f"golden.lock:{number}: rank.jsonl is " in out
    assert "manifest.json is " in out


def test_a_forger_who_seals_anew_does_not_fit_the_lock(project: Project, tmp_path: Path) -> None:
    lock = tmp_path / "golden.lock"
    call("audit", project.run, "--write-lock", lock)
    shutil.rmtree(project.run / ".sums")
    edit_file(project.run, "judge.jsonl", lambda data: data.replace(b'"reason":""', b'"reason":"x"'), reseal=True)
    call("audit", project.run)
    assert "judge.jsonl is " in call("audit", project.run, "--lock", lock, code=5).output


def test_no_lock_is_written_of_a_run_with_findings(project: Project, tmp_path: Path) -> None:
    edit_manifest(project.run, lambda content: content.update(name="other"))
    call("audit", project.run, "--write-lock", tmp_path / "golden.lock", code=5)
    assert not (tmp_path / "golden.lock").exists()


@pytest.mark.parametrize(("data", "code"), [(None, 4), (b"{", 5), (b"\xff", 5), (b"[]", 5), (b'{"files": 1}', 5)])
def test_a_lock_that_is_none_is_a_sentence(project: Project, tmp_path: Path, data: bytes | None, code: int) -> None:
    lock = tmp_path / "golden.lock"
    if data is not None:
        lock.write_bytes(data)
    assert "golden.lock" in call("audit", project.run, "--lock", lock, code=code).output


# --- the signature --------------------------------------------------------------------------------------------


def test_a_signature_holds_until_a_byte_changes(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    key, other = tmp_path / "team.key", tmp_path / "other.key"
    for file in (key, other):
        call("keygen", file)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "PRIVATE" in key.read_text()
    assert "exists" in call("keygen", key, code=2).output
    assert "the run is not signed" in call("audit", project.run, "--verify", f"{key}.pub", "--details", code=5).output
    assert "manifest.sig" in call("audit", project.run, "--sign", key).output
    call("audit", project.run, "--verify", f"{key}.pub")
    assert (
        "not a signature of this manifest.json by the key other.key.pub"
        in call("audit", project.run, "--verify", f"{other}.pub", "--details", code=5).output
    )
    edit_manifest(project.run, lambda content: content.update(created="2020-01-01T00:00:00Z"), reseal=True)
    call("audit", project.run)
    assert (
        "not a signature of this manifest.json"
        in call("audit", project.run, "--verify", f"{key}.pub", "--details", code=5).output
    )


def test_openssl_reads_the_signature(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key = tmp_path / "team.key"
    call("keygen", key)
    call("audit", project.run, "--sign", key)
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", f"{key}.pub", "-rawin", "-in", "manifest.json"]
    done = subprocess.run([*command, "-sigfile", "manifest.sig"], cwd=project.run, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_no_key_is_a_sentence(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    (tmp_path / "x").write_bytes(b"\xff\x00")
    call("keygen", tmp_path / "k")
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    other = X25519PrivateKey.generate()
    form = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    (tmp_path / "x25519").write_bytes(other.private_bytes(*form))
    public = other.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "x25519.pub").write_bytes(public)
    for option, name in (("--sign", "x25519"), ("--verify", "x25519.pub")):
        assert "ed25519 key" in call("audit", project.run, option, tmp_path / name, code=5).output
    for option in ("--sign", "--verify"):
        assert "ed25519 key" in call("audit", project.run, option, tmp_path / "x", code=5).output
        assert "the key file does not exist" in call("audit", project.run, option, tmp_path / "none", code=4).output
    assert (
        "does not contain a private ed25519 key"
        in call("audit", project.run, "--sign", tmp_path / "k.pub", code=5).output
    )
    assert (
        "does not contain a public ed25519 key" in call("audit", project.run, "--verify", tmp_path / "k", code=5).output
    )


def test_without_the_package_the_sentence_says_what_to_install(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert 'pip install ".[sign]" in a clone of raggs' in call("keygen", tmp_path / "k", code=3).output
    assert (
        'pip install ".[sign]" in a clone of raggs'
        in call("audit", project.run, "--sign", tmp_path / "k", code=3).output
    )
    assert (
        'pip install ".[sign]" in a clone of raggs'
        in call("audit", project.run, "--verify", tmp_path / "k", code=3).output
    )


# --- texts ----------------------------------------------------------------------------------------------------


def test_texts_of_the_pools_are_compared_with_the_corpus_in_the_cache(project: Project) -> None:
    shutil.rmtree(project.run / ".sums")
    assert NO_STORE not in audit(project.run).unchecked
    edit_file(project.run, "merge.jsonl", lambda data: data.replace(b'"text":"The ', b'"text":"No ', 1), reseal=True)
    found = [str(finding) for finding in audit(project.run).findings]
    assert any(each.startswith("merge.jsonl:1: text of ") and "in the corpus" in each for each in found), found


def test_without_the_cache_it_is_said_that_texts_were_not_compared(project: Project) -> None:
    shutil.rmtree(project.run.parent / ".cache")
    found = audit(project.run)
    assert found.ok
    assert NO_STORE in found.unchecked
    assert f"not checked: {NO_STORE}" in call("audit", project.run, "--details").output


# --- runs of versions before ----------------------------------------------------------------------------------


def test_a_run_without_a_seal_is_no_lie(project: Project) -> None:
    def unseal(content: dict) -> None:
        del content["seal"]
        for lock in content["stages"].values():
            for name in ("chain", "booked", "judge"):
                del lock[name]

    edit_manifest(project.run, unseal)
    out = call("audit", project.run).output
    assert "note: the manifest has no seal" in out
    for arguments in (("status", project.run), ("cost", project.run), ("why", project.run, "--query", "q00")):
        call(*arguments)
    assert json.loads(call("run", "--config", project.config, "--json").output)["ran"] == {}
    assert json.loads(call("audit", project.run, "--json").output)["ok"]
    call("run", "--config", project.config, "--force", "--quiet")
    assert "note" not in call("audit", project.run).output


# --- remedies ---------------------------------------------------------------------------------------------------


def follow(words: tuple[object, ...], key: Path | None = None) -> None:
    """Run the commands that a refused audit prints, as they are printed, until the same audit is clean."""
    for _ in range(3):
        if (result := invoke(*words)).exit_code == 0:
            return
        assert result.exit_code == 5, result.output
        remedy = result.stderr.replace("\n", " ").partition(" — ")[2]
        commands = re.findall(r"raggs ((?:run|audit) [^;,]+)", remedy)
        assert commands, result.stderr
        for command in commands:
            call(*shlex.split(command.replace("KEYFILE", str(key)).strip()))
    raise AssertionError(f"{words}: the remedy does not help")


def edit_config(run: Path) -> None:
    edit_manifest(run, lambda manifest: manifest["config"]["budget"].update(max_usd=0.5))


def respell(run: Path) -> None:
    path = run / "manifest.json"
    path.write_text(path.read_text().replace('"name":', '"name" :', 1))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "an edited grade": lambda run: (run / "judge.jsonl").write_text((run / "judge.jsonl").read_text() + "\n"),
    "a missing file": lambda run: (run / "merge.jsonl").unlink(),
    "an edited lock": lambda run: edit_manifest(run, lambda found: found["stages"]["prune"].update(failed=3)),
    "an edited configuration": edit_config,
    "another form": respell,
    "a forged file": lambda run: edit_file(
        run, "prune.jsonl", lambda data: data.replace(b'"kept":true', b'"kept":false', 1), reseal=True
    ),
    "forged questions": lambda run: edit_file(
        run, "queries.jsonl", lambda data: data.replace(b"Where", b"Here", 1), reseal=True
    ),
}


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("name", DAMAGE)
def test_the_remedy_of_an_audit_restores_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    before = project.artifacts()
    DAMAGE[name](project.run)
    monkeypatch.chdir(tmp_path)
    follow(("audit", project.run))
    assert project.artifacts() == before


@pytest.mark.parametrize("part", ["name", "created", "raggs"])
def test_what_no_run_restores_is_made_under_another_name(project: Project, part: str) -> None:
    edit_manifest(project.run, lambda found: found.update({part: "2020-01-01T00:00:00Z"}))
    result = call("audit", project.run, code=5)
    remedy = " ".join(result.stderr.split()).partition(" — ")[2]
    assert remedy.startswith("restore the file from a copy, or create the run under another name: raggs run --config ")
    call(*shlex.split(remedy.partition("raggs ")[2]))
    [again] = [path.parent for path in project.run.parent.glob("*-2/manifest.json")]
    call("audit", again)


def test_the_remedy_of_a_lock_that_means_another_set_writes_it_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.folder)
    call("audit", "runs/demo", "--write-lock", "golden.lock")
    call("run", "--config", "raggs.yaml", "--set", "prune.max_keep=9", "-q")
    follow(("audit", "runs/demo", "--lock", "golden.lock"))
    call("run", "--config", "raggs.yaml", "--set", "judge.judge.seed=9", "-q")
    refused = call("eval", "-g", "runs/demo", "-r", "runs/demo", "--lock", "golden.lock", code=5)
    assert "to accept this set: raggs audit runs/demo --write-lock golden.lock" in " ".join(refused.stderr.split())
    call("audit", "runs/demo", "--write-lock", "golden.lock")
    call("eval", "-g", "runs/demo", "-r", "runs/demo", "--lock", "golden.lock")


def test_the_remedy_of_a_signature_of_another_manifest_signs_again(project: Project, tmp_path: Path) -> None:
    key = tmp_path / "team.key"
    call("keygen", key)
    verify = ("audit", project.run, "--verify", tmp_path / "team.key.pub")
    follow(verify, key)  # it was not signed at all
    call("run", "--config", project.config, "--max-usd", "2", "-q")
    call(*verify)
    call("run", "--config", project.config, "--set", "prune.max_keep=9", "-q")
    follow(verify, key)
