"""Measure `raggs questions` with a model that invents excerpts and calls that fail, and use the queries.

    python benchmarks/questions.py FOLDER [-n 160]

The model is a local server. All else is real: the command line, processes, kill -9. A fifth of its answers contain an
invented excerpt, and a tenth an excerpt with another final punctuation mark. In the second run, every fifth call is
also refused (429), fails (500) or is truncated. This run is killed and started again. Its artifacts must have the
bytes of the first run, no answer may be paid for twice, and each excerpt must be at the place of its span. Then the
queries go through `raggs run` with the judge `reference` and through `raggs chunks eval`. The exit code is 1 if one
of these conditions fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import yaml
from support.asking import misplaced, read_questions
from support.llm_asking import windows_of
from support.llm_server import LLMServer
from support.project import environment

KEY = "sk-test-0123456789abcdef"
MODEL = "openai/asker"
STAGES = ("sample", "ask", "verify", "filter")
ROUND = 10  # concurrent calls
CHUNKERS = "recursive:200,recursive:400,sentence:200"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-n", type=int, default=160)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name, value in measure(options.folder.resolve(), Path(scratch), options.n).items():
            print(f"{name}: {value}")


def measure(documents: Path, folder: Path, n: int) -> dict[str, object]:
    """Return the figures. Exit if a check fails."""
    with LLMServer(fault_for=inventing) as server:
        calm = made(project(folder / "calm", documents, server.url, n))
        asked = server.count
    with LLMServer(fault_for=Ill()) as server:
        config = project(folder / "ill", documents, server.url, n)
        killed(config, server, asked // 2)
        before = {json.dumps(body, sort_keys=True) for body in server.requests[: server.count - ROUND]}
        ill = made(config)
        # Calls in flight at the kill must be repeated.
        twice, sent = len(before.intersection(server.paid_twice)), server.count
    found = read_questions(config.parent / "questions.jsonl")
    same = artifacts(folder / "calm") == artifacts(folder / "ill")
    false = len(misplaced(found, documents))
    counts = {name: calm[name] for name in ("asked", "kept", "rejected", "types", "difficulty", "usd_each")}
    checks = {
        "misplaced excerpts": false,
        "paid twice": twice,
        "other bytes": int(not same or calm["kept"] != ill["kept"]),
    }
    for name, count in checks.items():
        if count:
            raise SystemExit(f"FAILED: {name}: {count}")
    return {**counts, "calls": asked, "calls with faults and a kill": sent, **checks, **used(config, documents)}


def used(config: Path, documents: Path) -> dict[str, object]:
    """Make a golden set from the queries and evaluate chunkers with them."""
    began = time.perf_counter()
    raggs("run", "--config", config, "--quiet")
    seconds = time.perf_counter() - began
    lines = (config.parent / "runs" / "demo" / "rank.jsonl").read_text(encoding="utf-8").splitlines()
    first = [row["grade"] for row in map(json.loads, lines) if row["rank"] == 1]
    graded = [sum(grade >= least for grade in first) for least in (5, 4)]
    asked = ("--corpus", documents, "--questions", config.parent / "questions.jsonl", "--chunkers", CHUNKERS)
    report = json.loads(raggs("chunks", "eval", *asked, "--out", config.parent / "chunks", "--json"))
    return {
        "golden set": f"{len(first)} questions in {seconds:.0f} s, best passage 5: {graded[0]}, 4 or 5: {graded[1]}",
        "chunkers": [system["chunker"] for system in report["systems"]],
    }


def inventing(_: int, body: dict[str, Any]) -> str | None:
    """Return the fault of an answer, which depends on its window."""
    drawn = chance("".join(windows_of(body["messages"][1]["content"])))
    return "invented" if drawn < 0.2 else "mended" if drawn < 0.3 else None


class Ill:
    """The same faults, and every fifth call fails."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, number: int, body: dict[str, Any]) -> str | None:
        self.calls += 1
        if self.calls % 5 == 0:
            return ("429:0", "500", "truncated")[self.calls // 5 % 3]
        return inventing(number, body)


def chance(text: str) -> float:
    """Return a number in [0, 1) that depends only on a text."""
    return int(sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def project(folder: Path, documents: Path, url: str, n: int) -> Path:
    """Write a configuration into a new folder."""
    folder.mkdir()
    llm = {"api_base": url, "backoff_s": 0.01, "prices": {MODEL: {"input": 0.25, "output": 2.0}}}
    sample = {"n": n, "types": {"fact": 7, "comparison": 2, "unanswerable": 1}}
    settings = {
        "name": "demo",
        "corpus": {"type": "folder", "path": str(documents)},
        "queries": {"type": "jsonl", "path": "questions.jsonl"},
        "judge": {"judge": {"type": "reference"}},
        "llm": llm,
        "questions": {"sample": sample, "ask": {"asker": {"type": "litellm", "model": MODEL}}},
    }
    config = folder / "raggs.yaml"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return config


def killed(config: Path, server: LLMServer, calls: int) -> None:
    """Run, and kill -9 after this many calls."""
    command = [sys.executable, "-m", "raggs", "questions", "--config", str(config), "--quiet"]
    child = subprocess.Popen(command, env=environment(OPENAI_API_KEY=KEY))
    while server.count < calls and child.poll() is None:
        time.sleep(0.002)
    child.kill()
    child.wait()
    time.sleep(0.5)  # until calls in flight arrive


def made(config: Path) -> dict[str, Any]:
    """Return the JSON output of a complete run."""
    found: dict[str, Any] = json.loads(raggs("questions", "--config", config, "--json"))
    return found


def raggs(*words: object) -> str:
    command = [sys.executable, "-m", "raggs", *map(str, words)]
    done = subprocess.run(command, env=environment(OPENAI_API_KEY=KEY), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"FAILED: raggs {words[0]}: {done.stderr}")
    return done.stdout


def artifacts(folder: Path) -> list[bytes]:
    return [(folder / "runs" / "demo.questions" / f"{name}.jsonl").read_bytes() for name in STAGES]


if __name__ == "__main__":
    main()
