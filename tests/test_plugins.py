"""What other packages add: installed, listed, run, broken on purpose, removed; a run pays for nothing but its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.project import Project, environment, make_project, raggs

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed by pip into a folder of its own; no network is needed."""
    target = tmp_path_factory.mktemp("plugin") / "site"
    source = shutil.copytree(ROOT / "examples" / "plugin", target.parent / "source")
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", target, source], check=True)
    return target


@pytest.fixture
def site(package: Path, tmp_path: Path) -> Path:
    """A copy of it, which may be spoilt."""
    return shutil.copytree(package, tmp_path / "site")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "demo", embed={"embedder": None}, retrieve={"retrievers": [{"type": "titles"}]})


def call(*arguments: object, site: Path | None, code: int = 0) -> str:
    path = os.pathsep.join(map(str, filter(None, (site, os.environ.get("PYTHONPATH")))))
    done = raggs(*arguments, env=environment(PYTHONPATH=path))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def offer(site: Path, package: str, points: dict[str, str], module: str = "") -> None:
    """A package as pip would leave it; `points`: "group name" -> target."""
    folder = site / f"{package.replace('-', '_')}-2.5.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.5\n")
    lines = [f"[raggs.{key.split()[0]}]\n{key.split()[1]} = {target}\n" for key, target in points.items()]
    (folder / "entry_points.txt").write_text("".join(lines))
    if module:
        (site / f"{package.replace('-', '_')}.py").write_text(module)


def test_installed_it_is_listed_with_its_package_and_runs(site: Path, project: Project) -> None:
    (line,) = [line for line in call("list", "retrievers", site=site).splitlines() if "titles" in line]
    assert line.split()[:3] == ["titles", "raggs-titles", "1.0"]
    assert "from raggs-titles 1.0" in call("list", "measures", site=site)
    listed = json.loads(call("list", "--json", site=site))
    assert listed["measures"]["miss"]["version"] == "1.0"
    assert listed["retrievers"]["bm25"]["package"] == "raggs"

    call("run", "--config", project.config, site=site)
    assert (project.run / "rank.jsonl").stat().st_size > 0
    assert '"titles"' in call("schema", "config", site=site)
    report = call("eval", "-g", project.run, "-r", project.run, "-m", "miss@5", site=site)
    assert "miss@5" in report
    assert "Nothing to do" in call("run", "--config", project.config, site=site)


def test_another_version_of_the_package_runs_its_stage_again(site: Path, project: Project) -> None:
    call("run", "--config", project.config, site=site)
    (metadata,) = site.glob("*.dist-info/METADATA")
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.1"))
    told = call("status", project.run, "--json", site=site)
    assert "raggs-titles" in told
    assert "1.1" in told


def test_broken_it_hurts_only_those_who_use_it(site: Path, project: Project) -> None:
    (site / "raggs_titles.py").write_text("import no_such_package")
    (line,) = [line for line in call("list", "retrievers", site=site).splitlines() if line.split()[0] == "titles"]
    assert "no_such_package" in line
    told = call("run", "--config", project.config, site=site, code=3)
    for part in (
        "raggs-titles 1.0",
        "raggs.retrievers: titles = raggs_titles:TitleRetriever",
        "ModuleNotFoundError",
    ):
        assert part in told
    schema = json.loads(call("schema", "config", site=site))
    assert "no_such_package" in json.dumps(schema)
    project.change(retrieve={"retrievers": [{"type": "bm25"}]})
    call("run", "--config", project.config, site=site)


def test_removed_its_name_is_unknown(project: Project) -> None:
    told = call("run", "--config", project.config, site=None, code=5)
    assert "unknown type 'titles'" in told
    assert "raggs.yaml:" in told


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("class Mine: pass", "is not a subclass of raggs.parts.retrievers.Retriever"),
        ("Mine = 3", "is not a subclass of raggs.parts.retrievers.Retriever"),
        ("", "AttributeError"),
        ("from raggs.parts.retrievers import Retriever\nclass Mine(Retriever): pass", "Mine lacks search"),
        (
            "from raggs.parts.retrievers import Retriever\nclass Mine(Retriever):\n    def search(self, queries): ...",
            "Mine has no Config that derives from raggs.parts.retrievers.RetrieverConfig",
        ),
        (
            "from raggs.parts.retrievers.dense import DenseRetriever as Mine",
            'has no field `type: Literal["mine"] = "mine"`',
        ),
        ("raise SystemError('odd')", "SystemError: odd"),
    ],
)
def test_what_a_package_must_give_is_said(module: str, problem: str, tmp_path: Path) -> None:
    offer(tmp_path, "raggs-mine", {"retrievers mine": "raggs_mine:Mine"}, module or "# nothing")
    script = "from raggs.parts.retrievers import REGISTRY; REGISTRY.load('mine')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PrerequisiteError: the plugin 'mine' of package raggs-mine 2.5 cannot be used" in done.stderr
    assert problem in done.stderr


def test_names_that_two_want(tmp_path: Path) -> None:
    offer(tmp_path, "raggs-one", {"retrievers twice": "raggs_one:A", "retrievers bm25": "raggs_one:A"})
    offer(tmp_path, "raggs-two", {"retrievers twice": "raggs_two:A"})
    listed = json.loads(call("list", "retrievers", "--json", site=tmp_path))["retrievers"]
    assert listed["bm25"]["package"] == "raggs"
    assert listed["bm25 of raggs-one"]["summary"] == "not used: raggs already has a retriever with this name"
    assert "offered by raggs-one 2.5 and raggs-two 2.5" in listed["twice"]["summary"]
    assert not listed["twice"]["usable"]


HALVES = """
from typing import Literal
from raggs.parts.chunkers import Chunker, ChunkerConfig

class Halves(Chunker):
    "Two halves of whatever comes."
    class Config(ChunkerConfig):
        type: Literal["halves"] = "halves"
    def places(self, document):
        middle = len(document.text) // 2
        yield from ((0, middle), (middle, len(document.text)))
"""


def test_a_package_brings_a_chunker(tmp_path: Path) -> None:
    offer(tmp_path, "raggs-halves", {"chunkers halves": "raggs_halves:Halves"}, HALVES)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.md").write_text("# One\n\nfirst words, then others")
    script = (
        "from raggs.parts.corpora.folder import FolderCorpus as F\n"
        f"c = F(F.Config(path={str(tmp_path / 'texts')!r}, chunker={{'type': 'halves'}}))\n"
        "print([p.text for p in c.passages()], c.causes()['chunker']['packages'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['# One\\n\\nfirst wo', 'rds, then others'] {'raggs-halves': '2.5'}"


def test_nobody_looks_for_plugins_who_uses_what_raggs_has(project: Project) -> None:
    project.change(retrieve={"retrievers": [{"type": "bm25"}]})
    script = (
        "import sys; from raggs.config.load import load_config; from raggs.base import registry as plugins\n"
        "from raggs.metrics import parse_measure; parse_measure('P@5'); load_config(sys.argv[1])\n"
        "judges = sorted(m for m in sys.modules if m.startswith('raggs.parts.judges.'))\n"
        "print(plugins._all.cache_info().currsize, judges)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, project.config], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0 ['raggs.parts.judges.composite', 'raggs.parts.judges.qrels']"
