"""A run's life through the command line: build, skip, change, resume, audit, export."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from support.cli import call
from support.project import ARTIFACTS, Project, make_project

from raggs.app.audit import UNCHECKED
from raggs.ranking import REGISTRY

STAGES = ("embed", "retrieve", "merge", "judge", "prune", "rank")


def done_by_stage(out: str) -> dict[str, str]:
    """What the table at the end of a run says of each stage."""
    return dict(re.findall(rf"^\W*({'|'.join(STAGES)})\W+(ran|unchanged)\b", out, re.MULTILINE))


def ran(project: Project, *options: str) -> dict[str, list[str]]:
    """The stages that a run executed, with their reasons."""
    found: dict[str, list[str]] = json.loads(call("run", "--config", project.config, "--json", *options).stdout)["ran"]
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished run; tests that use it must leave it as it is."""
    project = make_project(tmp_path_factory.mktemp("finished"))
    call("run", "--config", project.config, "--quiet")
    return project


@pytest.fixture
def project(tmp_path: Path, finished: Project) -> Project:
    """A finished run of one's own; fingerprints count files by their content, so a copy is as finished."""
    return finished.copied(tmp_path / "own")


def test_all_artifacts_are_there_and_a_copy_of_a_run_is_up_to_date(project: Project) -> None:
    assert all(project.artifacts().values())
    assert ran(project) == {}
    assert "Nothing to do" in call("run", "--config", project.config).stdout


def test_the_summary_shows_passages_costs_and_the_next_command(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    out = call("run", "--config", project.config, "--details").stdout
    for part in ("Golden set ready: ", "query", "grade", "conf.", "q00", f"run: {project.run}", "next: raggs eval"):
        assert part in out
    assert done_by_stage(out) == dict.fromkeys(STAGES, "ran")
    project.change(prune={"min_keep": 7, "max_keep": 9})
    again = done_by_stage(call("run", "--config", project.config, "--details").stdout)
    assert again == dict.fromkeys(STAGES[:4], "unchanged") | dict.fromkeys(STAGES[4:], "ran")


def bytes_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# Options of a run that has nothing to do: none can change a result.
EFFORTS: dict[str, tuple[str, ...]] = {
    "a budget": ("--max-usd", "3.5"),
    "calls": ("--max-calls", "17"),
    "a budget by --set": ("--set", "budget.max_usd=1"),
    "concurrency": ("--set", "llm.concurrency=2"),
    "time-out": ("--set", "llm.timeout_s=7"),
    "batch mode": ("--set", "judge.mode=batch"),
    "execution": ("--set", "execution.type=local"),
    "one stage": ("--only", "rank"),
    "the first stages": ("--to", "judge"),
    "the last stages": ("--from", "prune", "--yes"),
}


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize("name", EFFORTS)
def test_a_run_with_nothing_to_do_changes_no_byte(project: Project, name: str) -> None:
    before = bytes_of(project.run)
    assert ran(project, *EFFORTS[name]) == {}
    assert bytes_of(project.run) == before


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("columns", ["40", "200"])
@pytest.mark.parametrize("form", ["absolute", "relative", "file", "below", "link"])
def test_a_run_with_nothing_to_do_changes_no_byte_wherever_it_is_called_from(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, columns: str
) -> None:
    (tmp_path / "link").symlink_to(project.folder)
    here, words = {
        "absolute": (tmp_path, ("--config", str(project.config))),
        "relative": (tmp_path, ("--config", f"{project.folder.name}/raggs.yaml")),
        "file": (project.folder, ("raggs.yaml",)),
        "below": (project.run, ("../../raggs.yaml",)),
        "link": (tmp_path, ("link/raggs.yaml",)),
    }[form]
    before = bytes_of(project.run)
    monkeypatch.chdir(here)
    monkeypatch.setenv("COLUMNS", columns)
    assert "Nothing to do" in call("run", *words).stdout
    assert bytes_of(project.run) == before


def test_the_next_command_finds_the_configuration_from_any_directory(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project.manifest()["config_file"] == "../../raggs.yaml"
    (project.run / "prune.jsonl").unlink()
    for here, words in ((project.folder, "raggs.yaml"), (tmp_path, "own/raggs.yaml"), (project.run, project.config)):
        monkeypatch.chdir(here)
        assert f"raggs run --config {words}" in " ".join(call("status", project.run).stdout.split())
    project.config.rename(tmp_path / "gone.yaml")
    assert "raggs run --config raggs.yaml" in " ".join(call("status", project.run).stdout.split())


def test_a_run_without_rank_is_written_down_though_nothing_has_to_run(project: Project) -> None:
    assert ran(project, "--set", "rank=null") == {}
    assert "rank" not in project.manifest()["stages"]
    assert project.manifest()["config"]["rank"] is None
    before = bytes_of(project.run)
    assert ran(project, "--set", "rank=null") == {}
    assert bytes_of(project.run) == before


CHANGES = [
    ({"merge": {"weights": {"bm25": 3.0}}}, "merge", "config.weights", {"merge", "judge", "prune", "rank"}),
    (
        {"retrieve": {"retrievers": [{"type": "bm25", "k": 14}, {"type": "dense", "k": 15}]}},
        "retrieve",
        "config.retrievers.0.k changed (15 -> 14)",
        {"retrieve", "merge", "judge", "prune", "rank"},
    ),
    ({"prune": {"min_keep": 7, "max_keep": 9}}, "prune", "config.max_keep changed (16 -> 9)", {"prune", "rank"}),
    ({"rank": {"max_calls": 9}}, "rank", "config.max_calls changed (8 -> 9)", {"rank"}),
    ({"embed": {"rewrite": {"type": "none"}}}, "embed", "config.rewrite.type changed (clean -> none)", {"embed"}),
]


@pytest.mark.parametrize(("sections", "first", "reason", "stages"), CHANGES)
def test_a_change_runs_the_right_stages_with_the_reason(
    project: Project, sections: dict[str, object], first: str, reason: str, stages: set[str]
) -> None:
    project.change(**sections)
    done = ran(project)
    assert any(reason in sentence for sentence in done[first])
    # What comes after runs only if the bytes before it changed, so a subset is right and a superset is not.
    assert set(done) <= stages
    assert first == next(iter(done))
    assert ran(project) == {}


def test_a_changed_corpus_runs_retrieve_again_and_says_so(project: Project) -> None:
    with (project.folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "new", "text": "The amber near the flint is new."}\n')
    done = ran(project)
    assert next(iter(done)) == "retrieve"
    assert any(sentence.startswith("corpus changed") for sentence in done["retrieve"])


def test_a_changed_question_runs_everything_that_reads_it(project: Project) -> None:
    path = project.folder / "queries.jsonl"
    path.write_text(path.read_text().replace("Where is", "Show me"))
    done = ran(project)
    assert any(sentence.startswith("queries changed") for sentence in done["embed"])


def test_concurrency_does_not_count(project: Project) -> None:
    project.change(llm={"concurrency": 3, "timeout_s": 5}, budget={"max_usd": 1})
    assert ran(project) == {}


def test_edited_and_missing_artifacts_are_made_again(project: Project) -> None:
    before = project.artifacts()
    path = project.run / "judge.jsonl"
    path.write_text(path.read_text().replace('"grade":3', '"grade":4', 1))
    (project.run / "prune.jsonl").unlink()
    edited = bytes_of(project.run)
    refused = call("run", "--config", project.config, code=5).stderr.replace("\n", " ")
    assert "judge.jsonl:" in refused
    assert "was edited manually" in refused
    assert "--yes to discard the edit" in refused
    assert bytes_of(project.run) == edited
    done = ran(project, "--yes")
    assert done["judge"] == ["judge.jsonl was edited manually"]
    assert "prune.jsonl is missing" in done["prune"]
    assert project.artifacts() == before


def test_selections(project: Project) -> None:
    assert set(ran(project, "--only", "rank", "--force")) == {"rank"}
    assert set(ran(project, "--from", "judge", "--force")) == {"judge", "prune", "rank"}
    assert set(ran(project, "--to", "retrieve", "--force")) == {"embed", "retrieve"}
    project.change(merge={"k": 10})
    assert "merge is out of date" in call("run", "--config", project.config, "--from", "judge", code=5).output


def test_a_second_run_on_one_directory_is_refused(project: Project) -> None:
    from raggs.runs.manifests.store import RunStore

    with RunStore(project.run).owned():
        assert "another raggs run" in call("run", "--config", project.config, code=6).output


def test_a_run_without_a_name_collision(project: Project) -> None:
    assert set(ran(project, "--run-id", "other")) == {"embed", "retrieve", "merge", "judge", "prune", "rank"}
    assert (project.run.parent / "other" / "rank.jsonl").read_bytes() == project.artifacts()["rank"]


def test_the_words_of_a_table_are_explained_below_it(project: Project) -> None:
    shown = call("run", "--force", "--only", "rank", "--config", project.config).stdout
    assert "conf.: probability of being better than the next passage" in shown
    shown = " ".join(call("why", project.run, "--query", "q00", "--details").stdout.split())
    assert all(f"{word}: " in shown for word in ("95%", "score", "shown", "won-lost", "above next"))


def test_status_why_and_their_json(project: Project) -> None:
    assert "up to date" in call("status", project.run).stdout
    assert "next: raggs eval" in call("status", project.run).stdout
    assert "judge: the passage shown first wins" in call("status", project.run, "--details").stdout
    project.change(merge={"k": 10})
    assert "config.k changed (60 -> 10)" in call("status", project.run, "--config", project.config).stdout
    assert f"next: raggs run --config {project.config}" in call(
        "status", project.run, "--config", project.config
    ).stdout.replace("\n", "")
    assert "config.k changed (60 -> 10)" in call("why", project.run, "merge", "--config", project.config).stdout
    assert "merge is up to date" in call("why", project.run, "merge").stdout
    stages = json.loads(call("status", project.run, "--json").stdout)["stages"]
    assert all(stage["done"] and not stage["reasons"] for stage in stages.values())


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("engine", sorted(REGISTRY))
@pytest.mark.parametrize("place", [0.3, 0.77])
def test_each_engine_resumes_in_mid_round_and_replays(tmp_path: Path, engine: str, place: float) -> None:
    project = make_project(tmp_path, rank={"engine": engine, "max_calls": 12, "parallel": 3})
    call("run", "--config", project.config, "--quiet")
    whole = project.artifacts()
    # As a kill leaves it: a torn journal, no ranking, no lock.
    journal = project.run / "rank.journal.jsonl"
    journal.write_bytes(whole["rank.journal"][: int(len(whole["rank.journal"]) * place)])
    (project.run / "rank.jsonl").unlink()
    manifest = project.manifest()
    del manifest["stages"]["rank"]
    (project.run / "manifest.json").write_text(json.dumps(manifest))
    assert set(ran(project)) == {"rank"}
    assert project.artifacts() == whole
    call("audit", project.run)
    assert json.loads(call("why", project.run, "--query", "q00", "--json").stdout)["calls"] > 0


def test_an_answer_that_was_edited_by_hand_is_asked_again(project: Project) -> None:
    """A valid order in place of the judge's must not pass into a new ranking whose hashes are right."""
    before, journal = project.artifacts(), project.run / "rank.journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    forged = json.loads(lines[0])
    forged["order"].reverse()
    lines[0] = json.dumps(forged, separators=(",", ":")) + "\n"
    journal.write_text("".join(lines))
    assert "rank.journal.jsonl:1: was edited" in call("run", "--config", project.config, code=5).stderr
    assert ran(project, "--yes") == {"rank": ["rank.journal.jsonl was edited manually"]}
    assert project.artifacts() == before


def test_a_kill_is_not_taken_for_an_edit(project: Project) -> None:
    (project.run / ".incomplete-rank").touch()
    with (project.run / "rank.journal.jsonl").open("ab") as file:
        file.write(b'{"v":1,"qid":"q0')
    assert ran(project) == {"rank": ["its last attempt did not finish"]}


def test_why_explains_an_order_by_its_batches(finished: Project) -> None:
    out = call("why", finished.run, "--query", "q01", "--details").stdout
    assert "won-lost" in out
    assert "judged batches, 0 failed (maximum: 8); stopped: " in out
    for part in (
        "judge on this query: sharpness ",
        "expected in the top 5",
        "most uncertain pairs of the top 5",
        " of neighbours)",
    ):
        assert part in out
    found = json.loads(call("why", finished.run, "--query", "q01", "--json").stdout)
    ranked = [json.loads(line) for line in (finished.run / "rank.jsonl").read_text().splitlines()]
    leaders = [row["doc_id"] for row in ranked if row["qid"] == "q01" and row["duplicate_of"] is None]
    assert found["order"] == leaders
    journal = [json.loads(line) for line in (finished.run / "rank.journal.jsonl").read_text().splitlines()]
    sizes = [len(row["order"]) for row in journal if row["qid"] == "q01"]
    assert sum(win["batches"] for win in found["wins"]) == sum(size * (size - 1) // 2 for size in sizes)
    assert "did you mean" in call("why", finished.run, "--query", "q1", code=4).output
    assert "STAGE or --query" in call("why", finished.run, code=2).output


def test_dry_run_touches_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    out = call("run", "--config", project.config, "--dry-run").stdout
    assert "would run: it has not run yet" in out
    assert "estimated cost: $0.0000" in out
    assert not project.run.exists()


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("artifact", ARTIFACTS)
@pytest.mark.parametrize("place", [0.1, 0.5, 0.95])
def test_one_changed_byte_anywhere_is_named_by_file_and_line(project: Project, artifact: str, place: float) -> None:
    path = project.run / f"{artifact}.jsonl"
    data = bytearray(path.read_bytes())
    at = int(len(data) * place)
    data[at] = data[at] + 1 if data[at] != 0x7E else 0x21
    number = bytes(data[:at]).count(b"\n") + 1
    path.write_bytes(data)
    out = call("audit", project.run, "--details", code=5).output
    assert f"{artifact}.jsonl:{number}:" in out


def test_audit_finds_a_lie_that_its_hashes_cover(project: Project) -> None:
    """A forger who also mends the hashes is found by deriving the run again."""
    from raggs.base.files import hash_file
    from raggs.runs.manifests.store import RunStore

    path = project.run / "rank.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    first, second = json.loads(lines[0]), json.loads(lines[1])
    first["doc_id"], second["doc_id"] = second["doc_id"], first["doc_id"]
    forged = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in (first, second)]
    path.write_text("".join(forged + lines[2:]))
    manifest = project.manifest()
    output = manifest["stages"]["rank"]["outputs"]["rank.jsonl"]
    output["sha256"], output["bytes"] = hash_file(path), path.stat().st_size
    (project.run / "manifest.json").write_text(json.dumps(manifest))
    assert RunStore(project.run).manifest().stages["rank"].outputs["rank.jsonl"].sha256 == hash_file(path)
    assert "rank.jsonl:1: doc_id is" in call("audit", project.run, "--details", code=5).output


def test_audit_passes_and_reports_as_json(finished: Project) -> None:
    assert "match the manifest" in call("audit", finished.run).stdout
    assert json.loads(call("audit", finished.run, "--json").stdout) == {
        "run": str(finished.run),
        "ok": True,
        "findings": [],
        "unfinished": [],
        "notes": [],
        "unchecked": list(UNCHECKED),
        "answered": [],
    }


@pytest.mark.parametrize("format_", ["trec", "beir", "jsonl"])
def test_exports(finished: Project, tmp_path: Path, format_: str) -> None:
    files = call("export", finished.run, "--format", format_, "--out", tmp_path / "out").stdout.splitlines()
    assert files
    assert all(Path(file).stat().st_size for file in files if not file.endswith("unjudged.jsonl"))


def test_config_show_names_each_origin(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGGS__PRUNE__MIN_KEEP", "6")
    shown = json.loads(
        call("config", "show", "--config", project.config, "--set", "rank.max_calls=40", "--json").stdout
    )
    assert shown["rank.max_calls"] == {"value": 40, "origin": "--set rank.max_calls"}
    assert shown["prune.min_keep"] == {"value": 6, "origin": "environment RAGGS__PRUNE__MIN_KEEP"}
    assert shown["prune.max_keep"]["origin"].startswith("file raggs.yaml:")
    assert shown["merge.k"] == {"value": 60, "origin": "default"}
    assert "# default" in call("config", "show", "--config", project.config).stdout


def test_validate_and_doctor_and_cache(project: Project) -> None:
    assert "is valid: 4 queries, 40 passages" in call("validate", "--config", project.config).stdout
    assert "4 queries, 40 passages" in call("doctor", "--config", project.config).stdout
    assert "corpora" in call("cache", "stats", "--workspace", project.run.parent).stdout
    assert "cleared corpora" in call("cache", "clear", "--workspace", project.run.parent, "--what", "corpora").stdout
    assert ran(project) == {}


def test_init_runs_offline_at_once(tmp_path: Path) -> None:
    call("init", tmp_path / "demo")
    assert "already exists here" in call("init", tmp_path / "demo", code=2).output
    out = call("run", "--config", tmp_path / "demo" / "raggs.yaml").stdout
    assert "next: raggs eval" in out
    (run,) = (path.parent for path in (tmp_path / "demo" / "runs").glob("*/manifest.json"))
    call("audit", run)


def test_the_library_gives_typed_access(finished: Project) -> None:
    from raggs import load_config, open_run, run
    from raggs.base.artifacts import JudgeRecord, RankRecord

    opened = open_run(finished.run)
    golden = dict(opened.golden())
    assert sorted(golden) == ["q00", "q01", "q02", "q03"]
    assert all(isinstance(record, RankRecord) for ranking in golden.values() for record in ranking)
    assert [record.rank for record in golden["q00"]] == list(range(1, len(golden["q00"]) + 1))
    assert all(isinstance(record, JudgeRecord) and record.grade for record in opened.records("judge"))
    assert run(load_config(finished.config)).ran == {}


def test_why_tells_an_unknown_query_from_one_without_passages(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, retrieve={"retrievers": [{"type": "bm25", "k": 5}]})
    with (tmp_path / "queries.jsonl").open("a") as file:
        file.write(json.dumps({"_id": "nothing", "text": "xyzzy"}) + "\n")
    call("run", "--config", project.config, "--quiet")
    assert (
        "no retriever found a passage for query 'nothing'"
        in call("why", project.run, "--query", "nothing", code=4).output
    )
    assert "unknown query 'q000000'" in call("why", project.run, "--query", "q000000", code=4).output


def test_a_run_of_another_version_is_called_that_and_not_a_lie(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raggs.ranking.bayes import BayesRanker

    made_by = f"it was made by bayes/{BayesRanker.VERSION}, but bayes/99 is installed"
    monkeypatch.setattr(BayesRanker, "VERSION", 99)
    assert f"rank.jsonl: cannot be recomputed: {made_by}" in call("audit", project.run, "--details", code=5).output
    assert made_by in call("why", project.run, "--query", "q00", code=4).output
    assert set(ran(project)) == {"rank"}
    call("audit", project.run)


def test_audit_names_a_difference_of_bytes_between_equal_numbers(project: Project) -> None:
    path = project.run / "rank.queries.jsonl"
    path.write_text(
        path.read_text().replace('"echo":0.0,', '"echo":-0.0,', 1).replace('"echo":0.0}', '"echo":-0.0}', 1)
    )
    manifest, output = project.manifest(), path.read_bytes()
    manifest["stages"]["rank"]["outputs"]["rank.queries.jsonl"]["sha256"] = hashlib.sha256(output).hexdigest()
    (project.run / "manifest.json").write_text(json.dumps(manifest))
    assert "echo is '-0.0', but '0.0' when recomputed" in call("audit", project.run, "--details", code=5).output


def test_one_query_is_run_alone_beside_the_run_of_all(project: Project) -> None:
    before = {path.name: path.read_bytes() for path in project.run.iterdir() if path.is_file()}
    call("run", "--config", project.config, "--quiet", "--query", "q02")
    alone = project.run.with_name(f"{project.run.name}.q02")
    lines = [json.loads(line) for line in (alone / "judge.jsonl").read_text().splitlines()]
    assert lines and {line["qid"] for line in lines} == {"q02"}
    whole = [json.loads(line) for line in (project.run / "judge.jsonl").read_text().splitlines()]
    graded = {line["doc_id"]: line["grade"] for line in whole if line["qid"] == "q02"}
    assert {line["doc_id"]: line["grade"] for line in lines} == graded
    assert {path.name: path.read_bytes() for path in project.run.iterdir() if path.is_file()} == before
    call("audit", alone)
    assert "no query 'q002' — did you mean" in call("run", "--config", project.config, "--query", "q002", code=2).stderr
