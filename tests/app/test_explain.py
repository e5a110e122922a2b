"""Every word that a table uses is explained: the titles are taken from where tables are declared."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import invoke

import raggs
from raggs.app import catalog
from raggs.app.catalog import explain_word, glossary_entries, heading_entries
from raggs.base.document import ReportDocument, Section, markdown
from raggs.base.errors import NotFoundError
from raggs.base.types import leaves
from raggs.config.models import run_keys
from raggs.evaluation.messages import LOSSES
from raggs.metrics.names import parse_measure

PACKAGE = Path(raggs.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
DRAWN = re.compile(r"^\s*from raggs\.(?:base\.document|cli\.screen|chunking\.models|app\.judge)", re.MULTILINE)
DECLARED = {"head", "HEAD", "TITLES", "FIGURES"}
TITLED = re.compile(r"^COLUMNS = ", re.MULTILINE)  # of a module; those of a class name its fields
SIDES = re.compile(r"(?:^|, )(?:A|B|OLD|NEW)$|^(?:A|B|OLD|NEW|judge|people|mean) (?=\{)")
SIGNS = {"·", "▲", "▼", "=", "?", "→", "✗"}  # which the legend below the table explains


@pytest.fixture(autouse=True, scope="module")
def read_once() -> Iterator[None]:
    """What a process reads for one word is read once for all words of this file: keys of parts, and prompts."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_keys_of_part", "prompt_pages", "run_keys"):
            patch.setattr(catalog, name, kept(getattr(catalog, name)))
        yield


def kept(made: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
    return cache(lambda *given: list(made(*given)))


def texts(node: ast.AST) -> Iterator[str]:
    """The texts in the tuples of a declaration, with {} where a value is put in."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr():
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        case ast.Tuple() | ast.List():
            for each in node.elts:
                yield from texts(each)
        case ast.Starred():
            yield from texts(node.value)
        case ast.IfExp():
            yield from texts(node.body)
            yield from texts(node.orelse)
        case ast.GeneratorExp():
            yield from texts(node.elt)
        case ast.Dict():
            for each in node.values:
                yield from texts(each)


def declared(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """The titles of a module's tables, and what its legends explain."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names:
                yield from texts(value)
            case ast.Call(func=ast.Name(id="Table" | "_table"), args=[titles, *_]):
                yield from texts(titles)
            case ast.Call(func=ast.Name(id="table"), args=titles):
                for each in titles:
                    yield from texts(each)
            case ast.Call(func=ast.Name(id="Legend" | "Column"), args=[sign, *_]):
                yield from texts(sign)


def titles() -> Iterator[tuple[str, str]]:
    """Each title, with the file that declares it."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if DRAWN.search(source):
            names = DECLARED | {"COLUMNS"} if TITLED.search(source) else DECLARED
            found = (re.sub(r"\{\w+\}", "{}", text) for text in declared(ast.parse(source), names))
            yield from ((text, path.name) for text in found if "\n" not in text and not text.startswith("#"))
    for path in sorted(PACKAGE.rglob("*.html")):
        found = re.findall(r"<th\b[^>]*>([^<{]+)", path.read_text(encoding="utf-8"))
        yield from ((text.strip(), path.name) for text in found)


@cache
def explained() -> frozenset[str]:
    return frozenset({*glossary_entries(), *heading_entries()})


def known(title: str) -> bool:
    plain = SIDES.sub("", title).replace("{}", "").strip(" @,:")
    if plain.lower() in explained() or plain in SIGNS or not plain:
        return True
    if any(re.fullmatch(re.escape(title.lower()).replace(r"\{\}", ".+"), word) for word in explained()):
        return True
    return all(part.strip().lower() in explained() or is_measure(part) for part in plain.split(","))


def is_measure(name: str) -> bool:
    try:
        parse_measure(f"{name.strip()}@10")
    except raggs.base.errors.UsageError:
        return False
    return True


def test_every_heading_of_a_table_is_explained() -> None:
    found = [*titles(), *((loss, "LOSSES") for loss in LOSSES)]
    assert len(found) > 250, "titles are declared otherwise than this test looks for them"
    assert {"p (Holm)", "won-lost", "torn", "remedy", "from → to"} <= {title for title, _ in found}
    missing = sorted({f"{title} ({file})" for title, file in found if not known(title)})
    assert not missing, f"an entry of each in raggs/app/headings.md or glossary.md: {missing}"


@pytest.mark.parametrize(
    "word",
    [
        *("qrels", "PROC", "%PROC", "RA-nWG", "N-Recall4+", "front", "canary", "Holm", "seal"),
        *("label", "annotator", "annotation", "human label", "ground truth", "hallucination", "p-value", "bootstrap"),
        *("Pareto front", "latency", "confidence interval", "statistical significance", "significance", "chunk"),
        *("run file", "reranker", "embedding", "hybrid search", "RRF", "cross-encoder", "posterior", "prior"),
        *("position bias", "kappa", "inter-annotator agreement", "adjudication", "LLM-as-a-judge", "baseline"),
        *("effect size", "top k", "MRR", "recall", "precision", "MAP", "hit rate", "budget", "cache", "audit"),
    ],
)
def test_words_of_the_field_are_explained(word: str) -> None:
    assert explain_word(word)[0].text


def test_the_glossary_is_short_and_no_word_has_two_entries() -> None:
    for name, entries in (("glossary", glossary_entries()), ("headings", heading_entries())):
        page = (PACKAGE / "app" / f"{name}.md").read_text(encoding="utf-8")
        found = list(dict.fromkeys(entries.values()))
        assert len(found) == len(re.findall("^- ", page, re.MULTILINE))
        words = [word.lower() for entry in found for word in entry.words]
        assert len(words) == len(set(words))
    assert len(set(glossary_entries().values())) <= 80
    assert not set(glossary_entries()) & {"after", "all", "both", "same", "such as", "they"}


@pytest.mark.parametrize("word", ["a", "xy", "zzzzqq"])
def test_a_word_that_resembles_nothing_gets_no_guess(word: str) -> None:
    with pytest.raises(NotFoundError) as found:
        explain_word(word)
    assert "did you mean" not in str(found.value.remedy)


def test_tables_name_the_glossary() -> None:
    page = markdown(ReportDocument("Title", Section("Scores"), (), ("a note",)))
    assert page.endswith("- a note\n\nwords: raggs explain WORD, or docs/reference/glossary.md\n")
    sweep = (PACKAGE / "sweeps" / "plots.py").read_text(encoding="utf-8")
    assert "glossary=False" in sweep, "sweeps of earlier versions are audited by the bytes of sweep.md"
    assert "raggs explain WORD" in (PACKAGE / "reporting" / "page" / "page.html").read_text(encoding="utf-8")


def test_a_word_is_explained_offline_and_a_measure_says_itself() -> None:
    said = invoke("explain", "P (holm)").output
    assert "randomisation test" in said
    assert "docs/reference/metrics.md" in said
    assert "](" not in said
    assert "log2(rank + 1)" in invoke("explain", "nDCG@10").output
    assert "mean over all orders" in invoke("explain", "E[ndcg@10]").output
    with pytest.raises(NotFoundError, match="did you mean 'kappa'"):
        explain_word("kapa")


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("rank.floor", "--set rank.floor=…: integer ≥ 1, ≤ 5; default: 1."),
        ("floor", "minimum grade of passages that are ranked"),
        ("rank", "rank.batch_size, rank.max_calls, rank.budget, "),
        ("rank.budget", "Its settings: rank.budget.calls, rank.budget.usd."),
        ("budget.max_usd", "default: 5.0; changing it does not rerun a stage."),
        ("saving", "rank.options.saving: option of bayes: minimum decrease of the gain-weighted loss"),
        ("llm.prices.openai/gpt-4.1", "Its settings: llm.prices.<name>.input, "),
        ("llm.prices.openai/gpt-4.1.input", "USD per 1M input tokens."),
        ("nuggets", "one of the judges"),
        ("ask_from", "In the section with type: cascade (judges): "),
        ("axes", "a section of the configuration."),
        ("judge.gate", "a section of the configuration. Its settings: judge.gate.canaries, "),
        ("grade@2", "prompt: "),
        ("prompt cache", "discount"),
        ("axes.embedder", "In the YAML file, or --set axes.embedder=…"),
    ],
)
def test_a_setting_a_section_and_a_part_say_themselves(word: str, told: str) -> None:
    assert told in " ".join(entry.text for entry in explain_word(word))


def test_every_setting_is_met_by_the_name_that_set_takes() -> None:
    assert [key.name for key in run_keys() if not key.meaning] == []
    assert all(explain_word(name)[0].text for name in ("rank.options.z", "embed", "judge.batch.price", "queries"))
    with pytest.raises(NotFoundError, match=r"did you mean 'rank\.floor'"):
        explain_word("rank.flor")


@pytest.mark.parametrize("word", ["binary-at", "binary_at", "--binary-at"])
def test_options_of_eval_are_explained_by_their_help(word: str) -> None:
    said = invoke("explain", "--", word).output
    assert said.startswith("--binary-at: option of raggs eval. Lowest grade that counts as relevant.")
    assert "Remove unjudged passages" in invoke("explain", "condensed").output
    assert invoke("explain", "binary-on").exit_code != 0


def test_a_command_is_named_besides_what_else_bears_its_name() -> None:
    assert invoke("explain", "doctor").output == "a command: raggs doctor --help\n"
    judge = invoke("explain", "judge").output.splitlines()
    assert len(judge) > 1 and judge[-1] == "a command: raggs judge --help"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("judge.judge.model", "provider and model"),
        ("judge.judge.type", "one of the judges: cascade, human"),
        ("judge.judge.judges.0.model", "provider and model"),
        ("corpus.path", "For type: folder"),
        ("corpus.chunker.size", "maximum chunk size"),
        ("embed.embedder.dims", "dimensions of a vector"),
        ("retrieve.retrievers.0.k", "hits per query"),
        ("retrieve.retrievers.1.by.model", "For type: listwise or pointwise"),
        ("queries.path", "For type: jsonl"),
        ("llm.parameters.temperature", "temperature is a key that you choose"),
        ("llm.models.openai/x.prices.input", "USD per 1M input tokens"),
        ("axes.reranker.model", "provider and model"),
    ],
)
def test_every_key_that_set_takes_is_known(key: str, words: str) -> None:
    assert words in " ".join(meaning.text for meaning in explain_word(key))


def test_every_key_of_the_examples_is_known() -> None:
    """Each leaf of a file that raggs itself ships can be asked about by the path that --set takes."""
    files = [path for path in (ROOT / "examples").glob("*/*.yaml") if path.name.startswith(("raggs", "sweep"))]
    assert len(files) > 3
    for file in files:
        for place, _ in leaves(yaml.safe_load(file.read_text(encoding="utf-8"))):
            path = ".".join(map(str, place)).replace("except", "excluded")
            assert explain_word(path), (file, path)


def test_a_key_below_a_part_that_no_part_has_is_unknown() -> None:
    with pytest.raises(NotFoundError):
        explain_word("judge.judge.nothing")
