"""Pages that must not drift from the code."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_artifacts_is_what_the_models_say() -> None:
    written = (ROOT / "docs" / "artifacts.md").read_text(encoding="utf-8")
    assert written == generator().page(), "run: python docs/generate.py"


def test_the_list_of_measures_is_what_the_classes_say() -> None:
    written = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert written == generator().with_measures(written), "run: python docs/generate.py"
    assert "| `ndcg[@k]` |" in written


def test_the_readme_opens_with_exactly_two_commands_and_is_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first_block = re.search(r"```bash\n(.*?)```", readme, re.DOTALL)
    assert first_block is not None
    assert len(first_block[1].strip().splitlines()) == 2
    assert len(readme.splitlines()) < 200


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/architecture.md",
        "docs/metrics.md",
        "docs/ranking.md",
        "docs/judging.md",
        "docs/elasticsearch.md",
        "docs/scale.md",
        "examples/README.md",
    ],
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    source = ROOT / page
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", source.read_text(encoding="utf-8")):
        assert (source.parent / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("link", ["stages", "prompts", "manifests"])
def test_the_links_at_the_root_show_the_pipeline(link: str) -> None:
    assert (ROOT / link).is_symlink()
    assert (ROOT / link).resolve() == ROOT / "raggs" / link


def test_every_command_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(
        re.findall(
            r"raggs (init|index|run|status|why|audit|export|validate|doctor|list|schema|config|cache|eval)\b", readme
        )
    )
    for command in sorted(named):
        done = subprocess.run(
            [sys.executable, "-m", "raggs", command, "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, command
