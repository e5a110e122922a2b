"""raggs builds golden sets for retrieval-augmented generation, and scores retrieval against them.

from raggs import evaluate, open_golden, run

result = run("raggs.yaml")
for golden in open_golden("runs/demo").by_query():
    print(golden.query.text, [record.doc_id for record in golden.order[:3]])
print(evaluate("runs/demo", lambda question, k: my_search(question, k)).worst(3))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from raggs.base import __version__

if TYPE_CHECKING:
    from raggs.app.diagnose import DiagnosisResult as DiagnosisResult
    from raggs.app.diagnose import diagnose as diagnose
    from raggs.app.evaluate import EvalResult as EvalResult
    from raggs.app.evaluate import WorstQuery as WorstQuery
    from raggs.app.evaluate_functions import evaluate as evaluate
    from raggs.app.run import run as run
    from raggs.app.run_result import RunResult as RunResult
    from raggs.app.sweep import SweepResult as SweepResult
    from raggs.app.sweep import load_sweep as load_sweep
    from raggs.app.sweep import plan_sweep as plan_sweep
    from raggs.app.sweep import sweep as sweep
    from raggs.base.errors import RaggsError as RaggsError
    from raggs.config.load import LoadedConfig as LoadedConfig
    from raggs.config.load import load_config as load_config
    from raggs.golden.base import GoldenSet as GoldenSet
    from raggs.golden.sources import open_golden as open_golden
    from raggs.runs.manifests.open_run import open_run as open_run

__all__ = [
    "DiagnosisResult",
    "EvalResult",
    "GoldenSet",
    "LoadedConfig",
    "RaggsError",
    "RunResult",
    "SweepResult",
    "WorstQuery",
    "__version__",
    "diagnose",
    "evaluate",
    "load_config",
    "load_sweep",
    "open_golden",
    "open_run",
    "plan_sweep",
    "run",
    "sweep",
]

# Names that cost an import are fetched when they are first used: `import raggs` itself loads nothing.
_LAZY = {
    "DiagnosisResult": "raggs.app.diagnose",
    "EvalResult": "raggs.app.evaluate",
    "GoldenSet": "raggs.golden.base",
    "LoadedConfig": "raggs.config.load",
    "RaggsError": "raggs.base.errors",
    "RunResult": "raggs.app.run_result",
    "SweepResult": "raggs.app.sweep",
    "WorstQuery": "raggs.app.evaluate",
    "diagnose": "raggs.app.diagnose",
    "evaluate": "raggs.app.evaluate_functions",
    "load_config": "raggs.config.load",
    "load_sweep": "raggs.app.sweep",
    "open_golden": "raggs.golden.sources",
    "open_run": "raggs.runs.manifests.open_run",
    "plan_sweep": "raggs.app.sweep",
    "run": "raggs.app.run",
    "sweep": "raggs.app.sweep",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'raggs' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
