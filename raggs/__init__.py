"""raggs builds golden sets for retrieval-augmented generation, and scores retrieval against them.

from raggs import load_config, open_golden, run

result = run(load_config("raggs.yaml"))
for golden in open_golden("runs/demo").by_query():
    print(golden.query.text, [record.doc_id for record in golden.order[:3]])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from raggs.version import __version__

if TYPE_CHECKING:
    from raggs.app.run import run as run
    from raggs.app.scored import evaluate as evaluate
    from raggs.app.sweep import load_sweep as load_sweep
    from raggs.app.sweep import sweep as sweep
    from raggs.config.load import load_config as load_config
    from raggs.golden.opened import open_golden as open_golden
    from raggs.manifests.opened import open_run as open_run

__all__ = ["__version__", "evaluate", "load_config", "load_sweep", "open_golden", "open_run", "run", "sweep"]

# Names that cost an import are fetched when they are first used: `import raggs` itself loads nothing.
_LAZY = {
    "evaluate": "raggs.app.scored",
    "load_config": "raggs.config.load",
    "load_sweep": "raggs.app.sweep",
    "open_golden": "raggs.golden.opened",
    "open_run": "raggs.manifests.opened",
    "run": "raggs.app.run",
    "sweep": "raggs.app.sweep",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'raggs' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
