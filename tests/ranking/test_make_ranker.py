import subprocess
import sys

import pytest

from raggs.base.errors import UsageError
from raggs.ranking import REGISTRY, make_ranker


def test_an_unknown_engine_names_the_known_ones():
    with pytest.raises(UsageError, match="unknown engine 'elo'") as caught:
        make_ranker("elo", ["a"], [1])
    assert caught.value.remedy == f"known: {', '.join(REGISTRY)}"


def test_naming_engines_loads_nothing_heavy():
    code = (
        "import sys, raggs.ranking; print([m for m in ('numpy', 'scipy', 'networkx', 'pydantic') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
