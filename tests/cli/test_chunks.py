"""`raggs chunks` from the command line."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import Result
from support.cli import invoke
from support.llm_server import LLMServer

MORE = " more and more" * 4
TEXT = f"Cats sleep all day long{MORE}.\n\nDogs bark at night{MORE}.\n\nBirds sing in spring{MORE}.\n"
DOGS, BIRDS = TEXT.index("Dogs bark"), TEXT.index("Birds sing")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pets.md").write_text(TEXT)
    write(tmp_path, [("When do dogs bark?", "Dogs bark at night", DOGS), ("What do birds do?", "Birds sing", BIRDS)])
    return tmp_path


def write(folder: Path, rows: list[tuple[str, str, int]], corpus: str = "pets") -> None:
    """Questions in the form of chunking benchmarks."""
    with (folder / "questions.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "references", "corpus_id"])
        for question, excerpt, start in rows:
            place = {"content": excerpt, "start_index": start, "end_index": start + len(excerpt)}
            writer.writerow([question, json.dumps([place]), corpus])


def run(folder: Path, *words: str, chunkers: str = "paragraphs:20,paragraphs:50") -> Result:
    given = ["--corpus", str(folder / "docs"), "--questions", str(folder / "questions.csv"), "--chunkers", chunkers]
    return invoke("chunks", "eval", *given, "--out", folder / "out", *words)


def test_chunkers_are_compared_and_the_files_named(folder: Path) -> None:
    result = run(folder, "-k", "min,1")
    assert result.exit_code == 0, result.output
    assert "2 questions on 1 document" in result.stdout
    assert "are statistically tied on IoU at k = 1" in result.stdout.splitlines()[0]
    assert "chunks.md (all measures and cutoffs), or --details" in " ".join(result.stdout.split())
    details = run(folder, "-k", "min,1", "--details").stdout
    assert "paragraphs:50 compared with paragraphs:20, k = 1" in details
    assert str(folder / "out" / "chunks.md") in details


def test_what_is_asked_for_in_one_command_is_all_there(folder: Path) -> None:
    """Two embedders, a list of chunkers, three cutoffs: by system, by document, in time, against the baseline."""
    given = "recursive:20,recursive:40:overlap=20,cluster:60"
    result = run(folder, "--embedders", "wordllama,wordllama:64", "-k", "Min,5,10", "--details", chunkers=given)
    assert result.exit_code == 0, result.output
    report = json.loads((folder / "out" / "chunks.json").read_text())
    systems = {(part["system"], part["cutoff"]) for part in report["systems"]}
    assert {cutoff for _, cutoff in systems} == {"min", "5", "10"} and len(systems) == 3 * 2 * 3
    measures = {"recall", "precision", "iou", "f1", "precision_omega"}
    assert all(part["scores"].keys() == part["by_corpus"]["pets.md"].keys() == measures for part in report["systems"])
    assert {(part["measure"], part["verdict"] is not None) for part in report["comparisons"]} == {
        (measure, True) for measure in measures
    }
    assert all(part["seconds"] > 0 for part in report["chunkers"])
    page = (folder / "out" / "chunks.md").read_text()
    assert "F1" in page and "F1" not in result.stdout, "the screen has the report's four"
    assert "cluster:60 wordllama:64 compared with recursive:20 wordllama, k = min" in result.stdout


def test_the_report_as_json_has_the_scores(folder: Path) -> None:
    report = json.loads(run(folder, "--json", "-k", "1", "--unit", "tokens").stdout)
    first = report["systems"][0]
    assert (first["chunker"], first["scores"]["recall"]["mean"]) == ("paragraphs:20", 1.0)
    assert report["unit"] == "tokens"


def test_the_schema_fits_what_is_written(folder: Path) -> None:
    run(folder)
    schema = json.loads(invoke("schema", "chunks").stdout)
    written = json.loads((folder / "out" / "chunks.json").read_text())
    assert written.keys() == schema["properties"].keys()
    assert written["systems"][0].keys() == schema["$defs"]["ChunkSystemPart"]["properties"].keys()


def test_vectors_are_kept_for_the_next_time(folder: Path) -> None:
    run(folder)
    assert list((folder / "out" / ".cache" / "vectors").glob("texts-*.sqlite"))


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("-k", "0"), 2, "-k 0: neither a number nor min"),
        (("--baseline", "paragraphs:21"), 2, "did you mean 'paragraphs:20'"),
        (("--embedders", "wordlama"), 2, "did you mean 'wordllama'"),
        (("--questions", "q.txt"), 2, "q.txt: unknown query format"),
        (("--corpus", "nowhere"), 4, "no such folder"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(folder: Path, words: tuple[str, ...], code: int, told: str) -> None:
    result = run(folder, *words)
    assert result.exit_code == code
    assert told in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "chunkers", ["paragraphs:0", "paragraphs:words=50", "paragraph:5", "", "paragraphs,paragraphs"]
)
def test_a_chunker_that_cannot_be_is_one_sentence(folder: Path, chunkers: str) -> None:
    result = run(folder, chunkers=chunkers)
    assert result.exit_code == 2
    assert result.stderr.startswith("raggs: ")


@pytest.mark.parametrize(
    ("rows", "corpus", "told"),
    [
        ([("When?", "Dogs bark", DOGS - 1)], "pets", "excerpt 'Dogs bark' is not the text at pets["),
        ([("When?", "Cows moo", 3)], "pets", "the document does not contain it"),
        ([("When?", "Dogs bark", DOGS)], "pet", "its document 'pet' is not in"),
    ],
)
def test_a_wrong_excerpt_is_told_with_its_question(
    folder: Path, rows: list[tuple[str, str, int]], corpus: str, told: str
) -> None:
    write(folder, rows, corpus)
    result = run(folder)
    assert result.exit_code == 5
    assert "question q-" in result.stderr
    assert told in result.stderr


# --- raggs chunks show --------------------------------------------------------------------------------------------


def configured(folder: Path, corpus: dict[str, object]) -> Path:
    settings = {
        "name": "demo",
        "queries": {"type": "csv", "path": "questions.csv"},
        "corpus": corpus,
        "retrieve": {"retrievers": [{"type": "bm25"}]},
        "judge": {"judge": {"type": "nuggets"}},
    }
    (folder / "raggs.yaml").write_text(json.dumps(settings))
    return folder / "raggs.yaml"


def shown(config: Path, *words: str) -> Result:
    return invoke("chunks", "show", "--config", config, *words)


def test_a_corpus_is_shown_and_one_file_of_it(folder: Path) -> None:
    config = configured(folder, {"type": "folder", "path": "docs"})
    result = shown(config, "--set", "corpus.max_words=20")
    assert result.exit_code == 0, result.output
    assert "3 chunks from 1 document" in result.stdout
    assert "3 chunks of 1 file" in shown(config, "--set", "corpus.max_words=20", "--details").stdout
    one = shown(config, "--set", "corpus.max_words=20", "--file", "pets.md")
    assert "Dogs bark at night" in one.stdout
    report = json.loads(shown(config, "--json").stdout)
    assert report["files"][0]["chunks"][0]["first"] == "Cats sleep all day long"


def test_nobody_is_paid_to_show_cuts(folder: Path) -> None:
    chunker = {"type": "semantic", "embedder": {"type": "litellm", "model": "openai/small", "dims": 8}}
    result = shown(configured(folder, {"type": "folder", "path": "docs", "chunker": chunker}))
    assert result.exit_code == 5
    assert "must not make paid calls, but openai/small is paid" in result.stderr


def test_a_corpus_that_is_not_cut_is_told(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text": "b"}\n')
    result = shown(configured(folder, {"type": "jsonl", "path": "corpus.jsonl"}))
    assert result.exit_code == 2
    assert "corpus of type jsonl has no documents to chunk" in result.stderr


LLM = "llm:openai/gpt-4o-mini:piece=10:window=40"
PAID_EMBEDDER = "litellm:openai/text-embedding-3-small:dims=8"


@pytest.fixture
def server(server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> LLMServer:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    return server


def test_a_chunker_that_is_paid_is_compared_once_paid(folder: Path, server: LLMServer) -> None:
    result = run(folder, "--details", chunkers=f"paragraphs:20,{LLM}")
    assert result.exit_code == 0, result.output
    assert f"{LLM} compared with paragraphs:20, k = 5" in result.stdout
    lines = (folder / "out" / "chunks.ledger.jsonl").read_text().splitlines()
    assert len(lines) == server.count > 0
    again = run(folder, "--details", chunkers=f"paragraphs:20,{LLM}")
    assert f"{LLM}: 1 document already chunked, not included in the time" in " ".join(again.stdout.split())
    assert len(lines) == server.count


def test_a_dry_run_sends_and_writes_nothing(folder: Path, server: LLMServer) -> None:
    words = ("--dry-run", "--embedders", f"wordllama,{PAID_EMBEDDER}")
    told = json.loads(run(folder, *words, "--json", chunkers=f"paragraphs:20,{LLM}").stdout)
    assert [(line["stage"], line["who"]) for line in told["estimates"]] == [
        ("chunks", "openai/gpt-4o-mini"),
        ("embed", "openai/text-embedding-3-small"),
    ]
    assert all(line["calls"] and line["usd"] > 0 for line in told["estimates"])
    assert "about 2 calls" in run(folder, *words, chunkers=LLM).stdout
    assert server.count == 0 and not (folder / "out").exists()
    assert run(folder, "--dry-run").stdout == "no paid model would be called\n"


def test_a_dry_run_leaves_out_what_is_paid(folder: Path, server: LLMServer) -> None:
    run(folder, "--embedders", PAID_EMBEDDER, chunkers=LLM)
    told = json.loads(run(folder, "--dry-run", "--embedders", PAID_EMBEDDER, "--json", chunkers=LLM).stdout)
    assert [line["calls"] for line in told["estimates"]] == [0, 0]


def test_the_cap_holds_over_all_comparisons(folder: Path, server: LLMServer) -> None:
    assert run(folder, "--max-usd", "0.0001", chunkers=LLM).exit_code == 7
    assert server.count <= 1


def test_a_configuration_says_where_models_are_and_what_they_charge(
    folder: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    config = configured(folder, {"type": "folder", "path": "docs"})
    prices = {"openai/mine": {"input": 1000, "output": 1000}}
    settings = json.loads(config.read_text()) | {"llm": {"api_base": server.url, "prices": prices}}
    config.write_text(json.dumps(settings))
    mine = LLM.replace("gpt-4o-mini", "mine")
    told = json.loads(run(folder, "--config", str(config), "--dry-run", "--json", chunkers=mine).stdout)
    assert told["usd"] > 0.01 and told["max_usd"] == 5
    assert run(folder, "--config", str(config), chunkers=mine).exit_code == 0
    assert server.count > 0


def test_a_configuration_of_somebody_else_gets_no_key(folder: Path, server: LLMServer) -> None:
    """The embedder is named on the command line, its address by the file alone."""
    config = configured(folder, {"type": "folder", "path": "docs"})
    settings = json.loads(config.read_text()) | {"llm": {"api_base": "http://models.invalid/v1"}}
    config.write_text(json.dumps(settings))
    for words, chunkers in (((), LLM), (("--embedders", PAID_EMBEDDER), "paragraphs:20")):
        result = run(folder, "--config", str(config), *words, chunkers=chunkers)
        assert result.exit_code == 3
        assert "OPENAI_API_KEY would be sent to http://models.invalid/v1" in result.output
    assert run(folder, "--config", str(config)).exit_code == 0  # nobody is asked anything
    assert server.count == 0


def test_documents_are_shown_without_queries_and_a_judge(folder: Path) -> None:
    config = folder / "raggs.yaml"
    config.write_text(json.dumps({"corpus": {"type": "folder", "path": "docs"}}))
    for number in range(25):
        (folder / "docs" / f"My file {number:02}.txt").write_text(TEXT)
    default = shown(config)
    assert default.exit_code == 0, default.output
    assert "chunks from 26 documents; " in default.stdout and "10 of 26 documents" in default.stdout
    assert invoke("chunks", "make", config, "--dry-run").exit_code == 2  # its chunker is not paid: no judge is missing
    assert run(folder, "--config", str(config), "--dry-run").exit_code == 0
    result = shown(config, "--details")
    assert "of 26 files" in result.stdout
    assert "My file 19.txt" in result.stdout
    assert "My file 20.txt" not in result.stdout
    assert "for 6 more, use --all or --file FILE" in result.stdout
    assert "My file 24.txt" in shown(config, "--all").stdout
    assert "1 chunk from 1 document" in shown(config, "--file", str(folder / "docs" / "My file 20.txt")).stdout
    assert len(json.loads(shown(config, "--json").stdout)["files"]) == 26
    config.write_text(json.dumps({"corpus": {"type": "folder", "path": "docs"}, "jugde": {}}))
    assert "unknown key 'jugde'" in shown(config).output


def test_the_configuration_is_an_argument_or_lies_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(folder, {"type": "folder", "path": "docs"})
    as_option = shown(config).stdout
    assert invoke("chunks", "show", config).stdout == as_option
    monkeypatch.chdir(folder)
    for words in (["chunks", "show"], ["config", "show"]):
        here = invoke(*words)
        assert here.exit_code == 0, here.output
        assert invoke(*words, "raggs.yaml", "--config", "b.yaml").exit_code == 2
    config.unlink()
    assert "name one: raggs chunks show raggs.yaml" in invoke("chunks", "show").output


def test_a_document_that_cannot_be_cut_stops_the_comparison(folder: Path, server: LLMServer) -> None:
    server.fault_for = lambda *_: "400"
    result = run(folder, chunkers=LLM)
    assert result.exit_code == 6
    assert "1 of 1 document could not be chunked" in result.output


def test_cuts_are_shown_as_a_page(folder: Path) -> None:
    config = folder / "raggs.yaml"
    (folder / "q.jsonl").write_text('{"_id": "q", "text": "What?", "nuggets": ["x"]}\n')
    config.write_text(
        "name: x\ncorpus: {type: folder, path: docs}\nqueries: {type: jsonl, path: q.jsonl}\n"
        "judge: {judge: {type: nuggets}}\n"
    )
    page = folder / "cuts.html"
    result = invoke("chunks", "show", "--config", config, "--html", page)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == str(page)
    assert "Dogs bark at night" in page.read_text()
    result = invoke("chunks", "show", "--config", config, "--html", folder / "no" / "x.html")
    assert result.exit_code == 6
    assert "choose another --html" in result.stderr


def test_words_are_explained_where_they_are_met(folder: Path) -> None:
    shown = " ".join(run(folder, "-k", "1", "--details").stdout.split())
    assert "recall share of the reference excerpts that was retrieved" in shown
    assert "inconclusive: too few questions to decide" in shown


def test_the_questions_of_the_help_can_be_asked(folder: Path) -> None:
    shown = " ".join(invoke("chunks", "eval", "--help").stdout.split())
    lines = re.findall(r'{"text".*?\]}', shown)
    assert len(lines) == 2
    (folder / "docs" / "pets.md").write_text("Dogs bark. Cats do not.")
    (folder / "questions.jsonl").write_text("\n".join(lines).replace("Who barks?", "Who?", 1))
    given = ["--corpus", str(folder / "docs"), "--questions", str(folder / "questions.jsonl")]
    done = invoke("chunks", "eval", *given, "--chunkers", "recursive", "--out", folder / "out")
    assert done.exit_code == 0, done.output


def assert_short(text: str) -> None:
    """Assert that a text fits 25 lines of 80 columns, with long lines wrapped, and 200 words."""
    assert sum(-(-len(line.rstrip()) // 80) or 1 for line in text.rstrip().splitlines()) <= 25, text
    assert len(text.split()) <= 200, text


def test_the_default_output_of_a_corpus_is_short_and_names_the_worst_document(folder: Path) -> None:
    config = configured(folder, {"type": "folder", "path": "docs", "chunker": {"type": "recursive", "size": 9}})
    for number in range(15):
        (folder / "docs" / f"file {number:02}.txt").write_text("One. Two.")
    output = shown(config).stdout
    assert_short(output)
    assert " chunks from 16 documents; " in output.splitlines()[0]
    assert "10 of 16 documents, those that split the most sentences" in " ".join(output.split())
    assert f"next: raggs chunks show {config} --file pets.md" in output
    one = shown(config, "--file", "pets.md").stdout
    assert_short(one)
    assert "~: the chunk ends within a sentence" in one and "--html chunks.html" in one
    assert "place" not in one and "place" in shown(config, "--file", "pets.md", "--details").stdout


def test_the_default_output_of_a_comparison_is_short_and_names_the_best_chunker(folder: Path) -> None:
    animals = [f"Animal{number} eats plant{number} every single morning{MORE}." for number in range(30)]
    text = "\n\n".join(animals)
    (folder / "docs" / "pets.md").write_text(text)
    write(folder, [(f"What does animal{n} eat?", each, text.index(each)) for n, each in enumerate(animals)])
    config = configured(folder, {"type": "folder", "path": "docs"})
    words = ("-k", "1", "--config", str(config))
    done = run(folder, *words, chunkers="paragraphs:200,paragraphs:20,recursive:300")
    assert done.exit_code == 0, done.output
    output = done.stdout
    assert_short(output)
    first = " ".join(output.split("\n\n")[0].split())
    assert first.startswith("paragraphs:20 is best on IoU at k = 1 (") and " is worse by " in first
    following = next(line for line in output.splitlines() if line.startswith("next: "))
    assert following.startswith(f"next: raggs chunks show {config} --set ")
    assert invoke(*shlex.split(following)[2:]).exit_code == 0
    single = " ".join(run(folder, "-k", "1", chunkers="paragraphs:20").stdout.split())
    assert "no other chunker to compare with" in single and "next: " not in single
