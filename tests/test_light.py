"""Parts of packages by themselves: the same functions as from the whole, which comes where a part is not to be had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from raggs.base.light import extension, without

ROOT = Path(__file__).parents[1]


def run(code: str) -> str:
    """What a fresh process prints."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_part_is_there_without_its_package() -> None:
    code = (
        "import sys; from raggs.ranking.rounds import _normal; from raggs.ranking.posterior import lapack\n"
        "assert _normal().ndtr(0.0) == 0.5 and lapack().dpotrf; print('scipy.special' in sys.modules, "
        "'scipy.linalg' in sys.modules)\n"
        "import scipy.linalg, scipy.special\n"  # the whole still comes, beside the part
        "print(scipy.linalg.inv([[2.0]])[0][0], scipy.special.ndtr(0.0))"
    )
    assert run(code).split() == ["False", "False", "0.5", "0.5"]


def test_a_part_gives_the_bits_of_the_whole() -> None:
    code = (
        "import numpy as np; from raggs.ranking.rounds import _normal; from raggs.ranking.posterior import lapack\n"
        "part, blas = _normal(), lapack(); import scipy.special, scipy.linalg.lapack as whole\n"
        "x = np.random.default_rng(1).normal(size=(40, 40)); a = x @ x.T + np.eye(40)\n"
        "assert part.ndtr(x).tobytes() == scipy.special.ndtr(x).tobytes()\n"
        "for f in ('dpotrf', 'dpotri'):\n"
        "    assert getattr(blas, f)(a, lower=1)[0].tobytes() == getattr(whole, f)(a, lower=1)[0].tobytes()\n"
        "assert blas.dpotrs(a, x[0], lower=1)[0].tobytes() == whole.dpotrs(a, x[0], lower=1)[0].tobytes()"
    )
    assert run(code) == ""


@pytest.mark.parametrize(("name", "function"), [("_of_another_version", "ndtr"), ("_special_ufuncs", "of_another")])
def test_what_cannot_be_had_by_itself_comes_with_its_package(name: str, function: str) -> None:
    place = f"scipy/special/{name}"
    code = (
        f"from raggs.base.light import extension; print(extension({place!r}, {function!r}, 'scipy.special').__name__)"
    )
    assert run(code) == "scipy.special"


def test_where_the_whole_is_there_already_it_is_taken() -> None:
    code = (
        "import scipy.linalg.lapack, scipy.special\n"
        "from raggs.ranking.rounds import _normal; from raggs.ranking.posterior import lapack\n"
        "print(lapack() is scipy.linalg.lapack, all(hasattr(lapack(), f) for f in ('dpotrf', 'dpotrs', 'dpotri')), "
        "_normal() is scipy.special)"
    )
    assert run(code).split() == ["True"] * 3


def test_an_extension_that_cannot_be_loaded_comes_with_its_package(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "whole" / "inner"
    folder.mkdir(parents=True)
    (tmp_path / "whole" / "__init__.py").touch()
    (folder / "__init__.py").write_text("answer = 42")
    (folder / "part.py").write_text("import something_that_nobody_has")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert extension("whole/inner/part", "answer", "whole.inner").answer == 42


PACKAGE = """
try:
    import whole_extra
    with_extra = True
except ImportError:
    {otherwise}
"""


def make(tmp_path: Path, name: str, otherwise: str) -> None:
    (tmp_path / f"{name}.py").write_text(PACKAGE.format(otherwise=otherwise))
    (tmp_path / "whole_extra.py").touch()


def test_a_package_is_imported_as_if_its_extra_were_not_installed(tmp_path: Path, monkeypatch) -> None:
    make(tmp_path, "can_do_without", "with_extra = False")
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)
    assert not without("whole_extra", "can_do_without").with_extra
    assert sys.meta_path == finders
    assert __import__("whole_extra")  # for everybody else it is there


def test_a_package_that_needs_its_extra_gets_it(tmp_path: Path, monkeypatch) -> None:
    make(tmp_path, "cannot_do_without", "raise")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "whole_extra", raising=False)
    finders = list(sys.meta_path)
    assert without("whole_extra", "cannot_do_without").with_extra
    assert sys.meta_path == finders


def test_another_thread_misses_nothing(tmp_path: Path, monkeypatch) -> None:
    make(tmp_path, "looks_elsewhere", "pass")
    (tmp_path / "whole_extra.py").write_text("")
    (tmp_path / "looks_elsewhere.py").write_text(
        "from threading import Thread\nfound = []\n"
        "def look():\n    import whole_extra\n    found.append(whole_extra)\n"
        "thread = Thread(target=look); thread.start(); thread.join()"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "whole_extra", raising=False)
    assert len(without("whole_extra", "looks_elsewhere").found) == 1


def test_both_ways_of_bm25s_give_the_same_scores() -> None:
    code = (
        "import sys, hashlib, numpy as np\n"
        "if sys.argv[1] == 'with': import scipy.sparse\n"
        "from raggs.base.languages import quiet_bm25s\n"
        "rng = np.random.default_rng(1)\n"
        "docs = [rng.integers(0, 50, rng.integers(1, 30)).tolist() for _ in range(200)]\n"
        "bm25 = quiet_bm25s().BM25(method='lucene', backend='numpy')\n"
        "bm25.index((docs, {str(n): n for n in range(50)}), show_progress=False)\n"
        "found = [bm25.get_scores_from_ids(doc).tobytes() for doc in docs]\n"
        "print('scipy.sparse' in sys.modules, hashlib.sha256(b''.join(found)).hexdigest())"
    )
    told = [
        subprocess.run([sys.executable, "-c", code, way], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for way in ("with", "without")
    ]
    (with_it, first), (without_it, second) = (line.split() for line in told)
    assert (with_it, without_it) == ("True", "False")
    assert first == second


def test_a_module_of_a_package_is_there_without_what_the_package_imports() -> None:
    code = (
        "import sys; from raggs.base.light import distributions\n"
        "found = distributions(); print(found.stdtr(1, 0.0), 'scipy.special' in sys.modules)\n"
        "import scipy.special, scipy.stats\n"  # the whole still comes, with the same functions
        "print(scipy.special.stdtr is found.stdtr, scipy.stats.t.sf(0.0, 1))"
    )
    assert run(code).split() == ["0.5", "False", "True", "0.5"]


@pytest.mark.parametrize(
    ("name", "function"), [("scipy.special._of_another_version", "stdtr"), ("scipy.special._ufuncs", "of_another")]
)
def test_a_module_that_lacks_what_is_asked_for_comes_as_its_package(name: str, function: str) -> None:
    code = f"from raggs.base.light import part; print(part({name!r}, 'scipy.special', [{function!r}]).stdtr(1, 0.0))"
    assert run(code) == "0.5"


def test_with_other_threads_at_work_the_package_comes_whole() -> None:
    code = (
        "import sys; from threading import Event, Thread; from raggs.base.light import distributions\n"
        "end = Event(); thread = Thread(target=end.wait); thread.start()\n"
        "print(distributions().__name__); end.set(); thread.join()"
    )
    assert run(code) == "scipy.special"
