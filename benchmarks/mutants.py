"""Change one line of the package at a time and print which changes the tests detect.

Usage: ``python benchmarks/mutants.py [WORD ...]``. With words, only mutants whose file or tests contain one of them.

Each mutant replaces one line in a copy of the repository and runs the tests that should fail for it. A mutant is
killed if a test fails; it survives if all pass. The exit code is 1 if one survives. Before the mutants, the same tests
run without any change, since a test that fails anyway kills nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__")
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=no"]


class Mutant(NamedTuple):
    """A line of `file` below raggs/, its replacement, and the tests below tests/ that should fail.

    `line` is a part of the line that occurs once in the file.
    """

    file: str
    line: str
    changed: str
    tests: str


LOCKS = "ranking/test_locks.py ranking/test_settled.py"
MEASURES = "metrics/test_measures.py metrics/test_definitions.py metrics/test_oracles.py"
GATES = "evaluation/test_gates.py cli/test_eval_gates.py"
RUNS = "runs/pipeline cli/test_lifecycle.py"
AUDITS = "runs/manifests/test_garbage.py runs/manifests/test_lies.py"
BUDGET = "llm/test_budget.py"
DAMAGED = "llm/test_client.py::test_damaged_entries_of_the_cache_are_a_miss_told_and_counted"
MUTANTS = (
    # Ranking
    Mutant("ranking/locks.py", "if winner == loser or self.reach[loser, winner]:", "if winner == loser:", LOCKS),
    Mutant("ranking/locks.py", "if gaps[pair] < -self._rule.regret]", "if gaps[pair] > 1e9]", LOCKS),
    Mutant("ranking/locks.py", "(self._streaks >= self._rule.updates)", "(self._streaks >= 1)", LOCKS),
    Mutant("ranking/locks.py", "np.asarray((won + won @ won) > 0)", "np.asarray((won + 1) > 0)", LOCKS),
    Mutant("ranking/online.py", "np.clip(step, -self.clip, self.clip)", "step", "ranking/test_online.py"),
    Mutant("ranking/pruning.py", "0 if kept >= min_keep", "0 if kept > min_keep", "ranking/pruning"),
    Mutant("ranking/pruning.py", "if grade is not None}, reverse=True)", "if grade is not None})", "ranking/pruning"),
    Mutant("stages/replay.py", "if item[1] >= least)", "if item[1] > least)", "stages/test_floor.py"),
    # Metrics and statistics
    Mutant("metrics/measures/users.py", "- np.cumsum(gains, axis=1)\n", "- 0.0 * np.cumsum(gains, axis=1)\n", MEASURES),
    Mutant("metrics/measures/users.py", "+ within + 1)", "+ within)", MEASURES),
    Mutant("metrics/measures/users.py", "* stop[rows] / hits.rank[rows]", "* stop[rows]", MEASURES),
    Mutant("metrics/measures/hits.py", "hits.query[good], 1.0 / hits.rank[good])", "hits.query[good], 1.0)", MEASURES),
    Mutant(
        "metrics/measures/gains.py", "np.exp2(super().table(qrels)) - 1.0", "np.exp2(super().table(qrels))", MEASURES
    ),
    Mutant("metrics/measures/gains.py", "np.minimum(self.cutoff, w.number_of(", "np.maximum(0, w.number_of(", MEASURES),
    Mutant(
        "sweeps/deciding.py",
        "return not both_sides or found.high <= self._margin",
        "return True",
        "sweeps/test_deciding.py sweeps/test_oracles.py stats/decision",
    ),
    # Gates
    Mutant(
        "evaluation/gates.py", "failed = (mean < limit) if higher else (mean > limit)", "failed = mean < limit", GATES
    ),
    Mutant(
        "evaluation/gates.py",
        "for each in outcomes if each.failed]:",
        "for each in outcomes if not each]:",
        GATES,
    ),
    Mutant("evaluation/gates.py", "if apart and not across:", "if apart and across:", GATES),
    Mutant("evaluation/gates.py", "if ours.relevant != theirs.relevant:", "if False:", GATES),
    Mutant("evaluation/gates.py", 'if self.inconclusive == "pass":', "if True:", GATES),
    Mutant("stages/canaries.py", "return grade >= GOOD", "return True", "stages/test_canaries.py cli/test_canaries.py"),
    # Money
    Mutant("llm/budget.py", "cost.token <= 0 or cost.usd(cost.wanted) <= left + ROUNDING", "cost.token >= 0", BUDGET),
    Mutant("llm/budget.py", "self._calls -= not sent", "self._calls -= 0", BUDGET),
    Mutant(
        "llm/budget.py", "self._earlier().usd + self._spent)", "self._spent)", "llm/test_budget.py cli/test_budget.py"
    ),
    Mutant("llm/budget.py", "for cap in self._money()) - self._reserved", "for cap in self._money())", BUDGET),
    Mutant(
        "llm/prices.py",
        "per_1k_searches=searched * 1000",
        "per_1k_searches=searched",
        "llm/test_prices.py llm/test_reranking.py",
    ),
    Mutant(
        "llm/ledger.py",
        "if intent.unsent or intent.number in settled:",
        "if intent.number in settled:",
        "llm/test_ledger.py llm/test_budget.py",
    ),
    # Caches
    Mutant("llm/cache.py", "self._bad.add(key)", "pass", DAMAGED),
    Mutant("llm/cache.py", "if not 0 <= value <= MAX_AMOUNT:", "if not value <= MAX_AMOUNT:", DAMAGED),
    Mutant(
        "llm/cache.py",
        "        if not batched:\n            self._check",
        "        if False:\n            self._check",
        "llm/test_claims.py llm/batch",
    ),
    Mutant("llm/cache.py", "return changed.rowcount == 1", "return True", "llm/test_claims.py"),
    # Resumed runs and audits
    Mutant("runs/runner.py", "if self._edited(name, file, locks[name]):", "if False:", RUNS),
    Mutant("runs/runner.py", "if not blocking and lock is not None:", "if lock is not None:", RUNS),
    Mutant("runs/runner.py", "failed=watch.failed,", "failed=0,", "runs/pipeline cli/test_provider.py"),
    Mutant("runs/plan.py", "if lock.fingerprint != fingerprint(parts):", "if False:", RUNS),
    Mutant("runs/plan.py", "elif found != output.sha256:", "elif False:", RUNS),
    Mutant(
        "runs/partial.py",
        "if runner.store.begun(stopped.stage) != fingerprint(",
        "if not fingerprint(",
        "cli/test_stopped.py runs/pipeline",
    ),
    Mutant(
        "runs/manifests/audit.py", "if self._size != output.bytes and sha256 == output.sha256:", "if False:", AUDITS
    ),
    Mutant("runs/manifests/audit.py", "if self._rows != output.rows:", "if False:", AUDITS),
    Mutant("runs/manifests/audit.py", "if lock.fingerprint != hash_value(lock.components):", "if False:", AUDITS),
)


@contextmanager
def repository() -> Iterator[Path]:
    """Yield a copy of the repository whose files can be changed."""
    with tempfile.TemporaryDirectory() as folder:
        yield shutil.copytree(ROOT, Path(folder) / "raggs", symlinks=True, ignore=LEFT_OUT)


def passed(root: Path, tests: str) -> bool:
    """Run tests of a repository, and every process that they start, with its package."""
    paths = [f"tests/{name}" for name in tests.split()]
    env = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run([*PYTEST, *paths], cwd=root, env=env, capture_output=True, check=False).returncode == 0


@contextmanager
def applied(root: Path, mutant: Mutant) -> Iterator[None]:
    """Change one line of the repository for the duration of the context."""
    path = root / "raggs" / mutant.file
    source = path.read_text(encoding="utf-8")
    if source.count(mutant.line) != 1:
        raise SystemExit(f"{mutant.file} contains {mutant.line!r} {source.count(mutant.line)} times")
    path.write_text(source.replace(mutant.line, mutant.changed), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(source, encoding="utf-8")


def main() -> None:
    """Print a line for each mutant, and how many were killed."""
    words = sys.argv[1:]
    chosen = [each for each in MUTANTS if not words or any(word in f"{each.file} {each.tests}" for word in words)]
    survived = 0
    with repository() as root:
        for mutant in chosen:
            with applied(root, mutant):  # all of them can be applied
                pass
        if not passed(root, " ".join(dict.fromkeys(" ".join(mutant.tests for mutant in chosen).split()))):
            raise SystemExit("the tests fail without any change")
        for mutant in chosen:
            began = time.perf_counter()
            with applied(root, mutant):
                lives = passed(root, mutant.tests)
            survived += lives
            verdict = "survived" if lives else "killed"
            print(f"{verdict:8} {time.perf_counter() - began:5.0f} s  {mutant.file}: {mutant.line.strip()}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} killed")
    raise SystemExit(survived > 0)


if __name__ == "__main__":
    main()
