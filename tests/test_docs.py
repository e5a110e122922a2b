"""Pages that must not drift from the code."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from typer.main import get_command

import raggs
from raggs.app.catalog import measure_entries
from raggs.app.judge_bench import JudgesConfig
from raggs.app.search_systems import SearchSystemFile
from raggs.app.sweep import load_sweep
from raggs.base.errors import RaggsError
from raggs.cli.app import COMMANDS, CommandGroup, app
from raggs.config.load import load_config, load_settings
from raggs.config.models import RunConfig
from raggs.diagnosis import REGISTRY as DIAGNOSES
from raggs.sweeps.config import SweepConfig

ROOT = Path(__file__).resolve().parents[1]


@cache
def script(name: str) -> ModuleType:
    """A program of docs/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def generated() -> dict[str, str]:
    """The pages that the site makes from the code."""
    pages: dict[str, str] = script("generate").generated_pages()
    return pages


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("artifacts", ("## judge.jsonl\n", "## manifest.json\n", "| `grade` |")),
        ("commands", ("# Command line\n", "raggs eval", "--fail-under")),
        ("glossary", ("# Glossary\n", "- **pool**")),
    ],
)
def test_a_page_that_the_site_makes_holds_what_the_code_says(name: str, parts: tuple[str, ...]) -> None:
    page = generated()[f"docs/reference/{name}.md"]
    assert not [part for part in parts if part not in page]


def test_the_page_of_commands_has_every_line_of_every_help() -> None:
    page = " ".join(generated()["docs/reference/commands.md"].replace("&lt;", "<").split())
    lines = [(name, line) for name, command in commands().items() for line in (command.help or "").splitlines()]
    assert len(lines) > 300
    assert [(name, line) for name, line in lines if " ".join(line.replace("\b", "").split()) not in page] == []


def test_pages_that_the_site_makes_are_not_kept() -> None:
    assert not [page for page in generated() if (ROOT / page).exists()], "edit the code that they are made from"


def test_the_page_of_settings_has_every_setting_with_its_meaning() -> None:
    page = generated()["docs/reference/configuration.md"]
    rows = [_cells(line) for line in page.splitlines() if line.startswith("| `")]
    assert not [row[0] for row in rows if not row[3].strip("◦ ")], "a description in the Field of each"
    shown = {row[0].strip("`") for row in rows}
    for name in RunConfig.model_fields:
        assert any(key == name or key.startswith(f"{name}.") for key in shown), name
    for name in SweepConfig.model_fields.keys() - {"llm", "budget", "excluded"} | {"except"}:
        assert any(key == name or key.startswith(f"{name}.") for key in shown), name
    for kind in ("retriever `bm25`", "judge `panel`", "corpus `jsonl`", "execution `dask`"):
        assert f"### {kind}\n" in page


def test_the_list_of_measures_is_what_the_classes_say() -> None:
    page = script("generate").with_measures((ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8"))
    assert "| `ndcg[@k]` (also" in page
    for entry in measure_entries().values():
        assert f"`{entry.written}`" in page


def test_the_readme_opens_with_exactly_two_commands_and_is_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first_block = re.search(r"```bash\n(.*?)```", readme, re.DOTALL)
    assert first_block is not None
    assert len(first_block[1].strip().splitlines()) == 2
    assert len(readme.splitlines()) <= 120
    assert len(readme.split()) <= 650


def test_the_citation_names_this_version_and_issue_forms_are_valid() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (str(citation["version"]), citation["license"]) == (raggs.__version__, "MIT")
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert [path.stem for path in forms] == ["bug_report", "config", "feature_request"]
    for form in (yaml.safe_load(path.read_text(encoding="utf-8")) for path in forms if path.stem != "config"):
        assert {"name", "description", "body"} <= set(form)
        ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
        assert ids and len(ids) == len(set(ids))


PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "examples/*.md",
        "examples/*/README.md",
        "benchmarks/*.md",
        "benchmarks/results/*.md",
    )
    for path in ROOT.glob(pattern)
)
PAGES_OF_DECISIONS = {page for page in PAGES if page.startswith("docs/project/decisions/")}


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    source = ROOT / page
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", source.read_text(encoding="utf-8")):
        path = os.path.normpath(Path(page).parent / target)
        assert (ROOT / path).exists() or path in generated(), f"{page} links to {target}"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/project/architecture.md", *sorted(PAGES_OF_DECISIONS)])
def test_code_that_a_page_names_exists(page: str) -> None:
    """Paths of files and folders in backticks, from the root of the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:raggs|tests|benchmarks|docs|examples)/[\w./-]*)`", text))
    assert any(name.startswith("raggs/") for name in named)
    missing = sorted(name for name in named if not (ROOT / name).exists())
    assert not missing, f"{page} names files that do not exist: {missing}"


def test_the_page_on_the_architecture_is_short() -> None:
    assert len((ROOT / "docs" / "project" / "architecture.md").read_text(encoding="utf-8").split()) <= 2500


def test_the_site_has_every_page_once_and_asks_no_other_server() -> None:
    """`mkdocs build --strict` holds the links, in .ci/run; what it would only mention is held here."""
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    waiting, found = [site["nav"]], list[str]()
    while waiting:
        match waiting.pop():
            case str(page):
                found.append(page)
            case dict(below):
                waiting += below.values()
            case list(below):
                waiting += below
    assert len(found) == len(set(found))
    notebooks = [page for page in found if page.endswith(".ipynb.md")]
    assert notebooks and all((ROOT / page.removesuffix(".md")).is_file() for page in notebooks)
    found = [page for page in found if page not in notebooks]
    pages = {*PAGES, *generated()}
    assert {page for page in pages if page.startswith("docs/")} <= set(found) <= pages
    assert site["theme"]["font"] is False
    hook = ast.parse((ROOT / "docs" / "sitehook.py").read_text(encoding="utf-8"))  # it needs mkdocs: read, not run
    (shown,) = [
        each.value for each in hook.body if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "PAGES"
    ]
    told = {path.relative_to(ROOT).as_posix() for each in ast.literal_eval(shown) for path in ROOT.glob(each)}
    assert set(found) <= told | set(generated()), "docs/sitehook.py gives the site its pages"


@pytest.mark.parametrize(
    ("link", "package"), [("stages", "stages"), ("prompts", "prompts"), ("manifests", "runs/manifests")]
)
def test_the_links_at_the_root_show_the_pipeline(link: str, package: str) -> None:
    assert (ROOT / link).is_symlink()
    assert (ROOT / link).resolve() == ROOT / "raggs" / package


def test_every_page_of_the_docs_is_found_from_the_readme() -> None:
    found, waiting = set(), {"README.md"}
    while waiting:
        page = waiting.pop()
        found.add(page)
        text = generated().get(page) or (ROOT / page).read_text(encoding="utf-8")
        targets = re.findall(r"\]\((?!https?:)([^)#]+\.md)", text)
        paths = {os.path.relpath((ROOT / page).parent / target, ROOT) for target in targets}
        waiting |= paths - found
    assert {page for page in [*PAGES, *generated()] if page.startswith("docs/")} <= found


def test_the_figures_of_the_engines_are_those_of_the_results() -> None:
    page = (ROOT / "docs" / "project" / "benchmarks-judging-and-ranking.md").read_text(encoding="utf-8")
    results = (ROOT / "benchmarks" / "results" / "ranking.md").read_text(encoding="utf-8")
    measured: dict[tuple[str, str, str], str] = {}
    for judge, table in re.findall(r"### Orders, (\S+) judge\n\n(.*?)\n\n", results, re.DOTALL):
        for method, calls, _, tau20, *_ in (_cells(line) for line in table.splitlines()[2:]):
            measured[judge, method, calls] = tau20.split()[0]
    concept = (ROOT / "docs" / "concepts" / "ranking.md").read_text(encoding="utf-8")
    assert f"is {measured['medium', 'bayes', '80']}." in concept
    assert f"sliding windows {measured['medium', 'sliding windows', '80']}\n" in concept
    methods = ("bayes", "online", "sliding windows", "random + choix", "random + OpenSkill", "4 lists of 40 + Borda")
    shown = page.split("| judge | `bayes` |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    assert len(shown) == 5
    for judge, *values in map(_cells, shown):
        expected = [measured[judge, method, "4" if "Borda" in method else "80"] for method in methods]
        assert [value.strip("*") for value in values] == expected


def test_the_pages_of_concepts_are_short() -> None:
    words = {path.name: len(path.read_text(encoding="utf-8").split()) for path in ROOT.glob("docs/concepts/*.md")}
    assert {name: count for name, count in words.items() if count > 2000} == {}
    assert sum(words.values()) <= 10_000


def test_the_picture_of_the_ranking_is_drawn_from_the_results() -> None:
    results = (ROOT / "benchmarks" / "results" / "ranking.md").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "concepts" / "ranking.svg").read_text(encoding="utf-8") == script("rankingplot").plot(
        results
    )


def test_what_the_rank_stage_buys_is_told_in_the_figures_of_the_results() -> None:
    page = (ROOT / "docs" / "project" / "benchmarks-search-and-cost.md").read_text(encoding="utf-8")
    results = (ROOT / "benchmarks" / "results" / "ranking.md").read_text(encoding="utf-8")
    shown = page.split("| judge | tau20, grades only |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    assert len(shown) == 5
    for judge, *values in map(_cells, shown):
        table = results.split(f"### Orders, {judge} judge\n\n", 1)[1].split("\n\n", 1)[0]
        rows = {tuple(cells[:2]): cells for cells in map(_cells, table.splitlines())}
        before, after = rows["grades only", "0"], rows["bayes", "80"]
        expected = [row[column].split()[0] for column in (3, 5, 6) for row in (before, after)]
        assert values == expected


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@cache
def commands() -> dict[str, Any]:
    """Every command by its words, without groups: ``config show``; none that only has another name."""
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", get_command(app))]
    while waiting:
        words, command = waiting.pop()
        below = getattr(command, "commands", None)
        if below is None:
            found[words] = command
        else:
            waiting += [(f"{words} {name}".strip(), each) for name, each in below.items() if not each.hidden]
    return found


def test_the_coverage_of_corrected_scores_is_told_in_the_figures_of_the_results() -> None:
    """The rows of the page stand in the results, and intervals hold the truth as often as the page says."""
    measured = coverage_rows("benchmarks/results/people.md", 12)
    told = coverage_rows("docs/project/benchmarks-judging-and-ranking.md", 9)
    assert len(told) == 21
    kept = (0, 1, 2, 3, 4, 6, 7, 8, 9)
    assert {(row[0].removesuffix(" of passages"), *row[1:]) for row in told} <= {
        tuple(row[place] for place in kept) for row in measured
    }
    for read, rows, low, high in (
        ("10%", 80, 93.4, 96.7),
        ("30 queries", 64, 93.1, 97.1),
        ("22 queries", 64, 91, 99),
    ):
        coverage = [float(row[6].split("±")[0]) for row in measured if row[0] == read]
        assert len(coverage) == rows
        assert low <= min(coverage) <= max(coverage) <= high


def coverage_rows(page: str, cells: int) -> list[list[str]]:
    """Of the tables of a page that have so many columns, one of them a coverage."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|") and "±" in line
    ]
    return [row for row in rows if len(row) == cells]


def test_every_command_that_the_pages_name_exists() -> None:
    words = {name.split()[0] for name in commands()}
    seen = set()
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for language, fence in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
            if language in ("", "bash", "console", "sh"):
                named = set(re.findall(r"^ *(?:\$ )?(?:\S*/)?raggs ([a-z]+)", fence, re.MULTILINE))
                assert named <= words, f"{page} names {sorted(named - words)}"
                seen |= named
    assert len(seen) > 15


REQUIRED = {
    "name": "mine",
    "corpus": {"type": "jsonl", "path": "corpus.jsonl"},
    "queries": {"type": "jsonl", "path": "queries.jsonl"},
}
JUDGE = {"judge": {"type": "nuggets"}}
SWEEP_KEYS = (SweepConfig.model_fields.keys() - RunConfig.model_fields.keys()) | {"except"}


def test_every_block_of_yaml_on_the_pages_is_a_valid_configuration() -> None:
    """A block holds some sections of a run or a sweep, retrievers, or the reranker ``by``; the rest is minimal."""
    seen = 0
    for page in PAGES:
        for block in re.findall(
            r"^ *```yaml\n(.*?)^ *```$", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE
        ):
            found = yaml.safe_load(textwrap.dedent(block))
            if isinstance(found, list):
                found = {"retrieve": {"retrievers": found}}
            if found.keys() == {"by"}:
                found = {"retrieve": {"retrievers": [{"type": "reranked", "of": {"type": "bm25"}, **found}]}}
            if "jobs" in found:  # of GitHub
                continue
            if "judges" in found:  # of raggs judge bench
                load_settings(JudgesConfig, found)
                continue
            if found.keys() == {"retriever"}:  # of a system of raggs eval
                load_settings(SearchSystemFile, found)
                continue
            try:
                if found.keys() & SWEEP_KEYS:
                    load_sweep({"name": "mine", "golden": "runs/mine", "axes": {}, **found})
                else:
                    load_config({**REQUIRED, **found, "judge": {**JUDGE, **found.get("judge", {})}}, environment={})
            except RaggsError as error:
                pytest.fail(f"{page}: {error}\n{block}")
            seen += 1
    assert seen > 40


def test_every_option_that_the_pages_name_exists() -> None:
    known = commands()
    options = {
        name: {spelling for parameter in command.params for spelling in parameter.opts} | {"--help", "-h"}
        for name, command in known.items()
    }
    seen = 0
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        fences = [line for fence in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL) for line in fence.splitlines()]
        quoted = re.findall(r"`(raggs [^`\n]+)`", text)
        for line in [*fences, *quoted]:
            for said in re.findall(r"(?:^|[ /])raggs ([a-z][^|&#]*)", line):
                words = re.split(r"\s{3,}", said)[0].split()
                name = next((name for name in (" ".join(words[:2]), words[0]) if name in known), None)
                if name is not None:
                    named = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
                    assert named <= options[name], f"{page}: raggs {said}"
                    seen += len(named)
    assert seen > 30


@pytest.mark.parametrize("name", sorted(commands()))
def test_the_help_of_a_command_fits_it(name: str) -> None:
    command = commands()[name]
    assert f"raggs {name} " in (command.help or "") + " ", "an example of the command itself"
    takes_run = any(parameter.param_type_name == "argument" and parameter.name == "run" for parameter in command.params)
    for option in command.params:
        text = getattr(option, "help", None)
        if option.param_type_name == "argument":
            continue
        assert text and text.endswith((".", "?", "]")), f"--{option.name} says nothing"
        assert takes_run or "last run" not in text, f"--{option.name} speaks of a run that `raggs {name}` has not"


def test_help_is_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "raggs", "doctor", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "Configuration file whose inputs and servers are also checked" in re.sub(r"\s+", " ", done.stdout)


def test_every_kind_of_diagnosis_has_a_page_a_line_in_the_overview_and_a_command() -> None:
    overview = (ROOT / "docs" / "how-to" / "diagnose" / "index.md").read_text(encoding="utf-8")
    pages = dict(re.findall(r"^\| \[(\w+)\]\((\w+\.md)\) \|", overview, re.MULTILINE))
    assert set(pages) == set(DIAGNOSES.builtin)
    assert not [page for page in pages.values() if not (ROOT / "docs" / "how-to" / "diagnose" / page).is_file()]
    group = COMMANDS["diagnose"]
    assert isinstance(group, CommandGroup)
    assert set(group.commands) == {"list", "all", *DIAGNOSES.builtin}


PER_CENT = re.compile(r"[0-9}]\s%(?!\s\d)")  # not the remainder of a division


@pytest.mark.parametrize("folder", ["raggs", "docs"])
def test_per_cent_is_written_in_one_manner(folder: str) -> None:
    """27%, in what the product says and in its pages; French has its blank, in the words of the review page."""
    pages = [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".svg")]
    assert PER_CENT.search("27 % of them")
    assert not [str(path) for path in pages if PER_CENT.search(path.read_text(encoding="utf-8"))]


def test_the_page_on_troubleshooting_quotes_messages_of_the_code() -> None:
    """Check the messages quoted in bold at the start of a paragraph."""
    page = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "raggs").rglob("*.py")))
    bold = re.findall(r"^\*\*(.+?)\*\*", page, re.MULTILINE)
    quoted = [each for text in bold for each in re.findall(r"`(.+?)`", text) if not each.startswith("raggs ")]
    assert len(quoted) > 20
    gone = [each for each in quoted if each not in code]
    assert not gone, f"docs/how-to/troubleshooting.md: quote the new words of the messages {gone}"
