"""Inject failures: a provider that fails, kill -9, budgets, hostile passages, and errors that contain the API key.

    python benchmarks/faults.py run          3,000 calls, a fifth of them with a fault
    python benchmarks/faults.py kills        50 kills at random moments
    python benchmarks/faults.py money        40 random configurations, each killed several times: caps and ledgers
    python benchmarks/faults.py injection    30 hostile passages
    python benchmarks/faults.py keys         search of all files of these runs for the key

Only the provider is simulated, by a local server. The command line, processes, sockets and signals are real. Each
command prints its counts. The exit code is 1 if one of them is wrong.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.fault_plan import FaultPlan
from support.forks import Ended, Forks
from support.hostile import ORDERS, hostile, obeys
from support.llm_server import FENCED, LLMServer, no_truth
from support.project import Project, make_project, questions, write_lines

KEY = "sk-live-0123456789abcdefghijKLMNOP"
MODEL = "openai/judge"
CONCURRENCY = 8
POOL, ORDERS_A_QUERY = 24, 20  # approximate passages and ranking calls per query
# Vectors and two retrievers, for kills in these stages.
WHOLE: dict[str, Any] = {
    "embed": {"embedder": {"type": "wordllama"}},
    "retrieve": {"retrievers": [{"type": "bm25", "k": POOL // 2}, {"type": "dense", "k": POOL // 2}]},
}

Counts = dict[str, int | str]


@dataclass(frozen=True)
class Bench:
    """A temporary folder and a way to run commands in it."""

    folder: Path
    forks: Forks

    def project(self, name: str, url: str, queries: int, **sections: Any) -> Project:
        """Write a project whose judge is the server at `url`."""
        project = make_project(self.folder / name, queries=queries, corpus=120)
        project.change(
            embed={"embedder": None},
            retrieve={"retrievers": [{"type": "bm25", "k": POOL}]},
            judge={"judge": {"type": "litellm", "model": MODEL}},
            prune={"min_keep": 12, "max_keep": 20},
            rank={"top": 10, "max_calls": ORDERS_A_QUERY},
            llm={
                "api_base": url,
                "prices": {MODEL: {"input": 1.0, "output": 2.0}},
                "requests_per_minute": None,
                "concurrency": CONCURRENCY,
                "timeout_s": 3,
                "backoff_s": 0.02,
            },
        )
        project.change(**sections)
        return project

    def run(self, project: Project, code: int | None, *more: object) -> Ended:
        ended = self.forks.raggs("run", "--config", project.config, "--quiet", *more)
        must(code is None or ended.code == code, f"exit code {ended.code} instead of {code}: {ended.err}")
        return ended


def must(holds: bool, otherwise: str) -> None:
    """Raise SystemExit with `otherwise` unless `holds` is true."""
    if not holds:
        raise SystemExit(f"FAILED: {otherwise}")


@contextmanager
def bench(folder: Path) -> Iterator[Bench]:
    """Yield a bench with the debug output of all libraries, because one of them could print the key."""
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    loud = {"LITELLM_LOG": "DEBUG", "OPENAI_LOG": "debug"}
    with Forks(logs, OPENAI_API_KEY=KEY, OPENAI_BASE_URL="", OPENAI_API_BASE="", **loud) as forks:
        yield Bench(folder, forks)


def rows(project: Project, artifact: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / f"{artifact}.jsonl").read_text().splitlines()]


def wrong_answers(project: Project) -> int:
    """Count wrong grades and orders. Those that are recorded as failed, with a reason, are not wrong."""
    texts = {question["_id"]: question["text"] for question in questions(500)}
    truth = {
        (row["qid"], row["doc_id"]): no_truth(texts[row["qid"]], f"{row['title']}\n{row['text']}")
        for row in rows(project, "merge")
    }
    wrong = 0
    for row in rows(project, "judge"):
        right = truth[row["qid"], row["doc_id"]] == row["grade"]
        wrong += not (right or (row["grade"] is None and row["error"]))
    for entry in rows(project, "rank.journal"):
        grades = [truth[entry["qid"], doc_id] for doc_id in entry["order"] or ()]
        wrong += grades != sorted(grades, reverse=True) or (not grades and not entry["error"])
    return wrong


# --- run ---


def run(b: Bench, calls: int = 3000, seed: int = 1, patience_s: float = 3) -> Counts:
    """Run with a key that is refused later, then with a failing provider, then with a healthy one."""
    queries = max(2, round(calls / 28))
    plan = FaultPlan(seed, share=0.2, stubborn=max(0.01, 5 / calls))
    refused_after = calls // 10

    def refused(number: int, body: dict[str, Any]) -> str | None:
        return "401" if plan.sick and number > refused_after else plan(number, body)

    with LLMServer(fault_for=refused) as server:
        project = b.project("sick", server.url, queries)
        project.change(llm={"timeout_s": patience_s})
        ended = b.run(project, 3)
        must("OPENAI_API_KEY" in ended.err and KEY not in ended.err, f"message about a refused key: {ended.err}")
        server.fault_for = plan
        ended = b.run(project, 7)
        manifest = project.manifest()["stages"]
        lost = [row["qid"] for row in rows(project, "judge") if row["grade"] is None]
        lost += [entry["qid"] for entry in rows(project, "rank.journal") if entry["order"] is None]
        must(any(qid in ended.err for qid in lost), f"the message names no failed query: {ended.err}")
        sick_calls, wrong = server.count, wrong_answers(project)
        plan.sick = False
        b.run(project, 0)
        healing = server.count - sick_calls
        wrong += wrong_answers(project)
        twice = len(server.paid_twice)
        calm = b.project("calm", server.url, queries)
        b.run(calm, 0)
        same = calm.artifacts() == project.artifacts()
        must(b.forks.raggs("audit", project.run).code == 0, "the audit reports a mismatch")
    counts: Counts = {
        "calls of the failing runs": sick_calls,
        "injected faults": sum(plan.given.values()),
        "kinds of faults": len(plan.given),
        "recorded as failed": sum(lock["failed"] for lock in manifest.values()),
        "wrong grades or orders": wrong,
        "paid twice after success": twice,
        "calls of the run with a healthy provider": healing,
        "failed with a healthy provider": sum(lock["failed"] for lock in project.manifest()["stages"].values()),
        "byte-identical to an undisturbed run": "yes" if same else "NO",
    }
    must(wrong == 0 and twice == 0 and same and len(lost) > 0, str(counts))
    return counts


# --- kills ---


def moment_of(draw: random.Random, fresh: bool) -> tuple[str, dict[str, Any] | int]:
    """Return the moment of a kill: a number of calls, or a moment of `Forks`. Only a `fresh` project runs the merge."""
    choices: list[tuple[str, dict[str, Any] | int]] = [
        ("judge and rank", draw.randint(1, 200)),
        ("judge", {"at": "stage", "name": "judge", "after": draw.uniform(0, 0.5)}),
        ("rank", {"at": "stage", "name": "rank", "after": draw.uniform(0, 0.5)}),
        ("between file and rename", {"at": "rename", "number": draw.randint(1, 6)}),
        ("export", {"at": "rename", "number": draw.randint(1, 4)}),
        ("export", {"at": "start", "after": draw.uniform(0, 0.15)}),
    ]
    merge = {"at": "stage", "name": "merge", "after": draw.uniform(0, 0.01)}
    return ("merge", merge) if fresh and draw.random() < 0.7 else draw.choice(choices)


def kills(b: Bench, count: int = 50, queries: int = 12, seed: int = 1) -> Counts:
    """Kill runs with kill -9 many times. A finished run is replaced, so that each kill hits work in progress."""
    draw = random.Random(seed)
    counts: Counts = {"kills": 0, "finished runs": 0, "repeated calls": 0, "maximum of repeated calls after a kill": 0}
    with LLMServer(delay_s=0.02) as server:
        calm = b.project("unkilled", server.url, queries, **WHOLE)
        b.run(calm, 0)
        whole = exported(b, calm)
        storm = Storm(b, server, queries)
        while int(counts["kills"]) < count:
            name, moment = moment_of(draw, fresh=not storm.repeats)
            killed = storm.export(moment) if name == "export" else storm.run(moment)
            counts["kills"] = int(counts["kills"]) + killed
            counts[f"  {name}"] = int(counts.get(f"  {name}", 0)) + killed
            if storm.finished or int(counts["kills"]) == count:
                storm.finish()
                must(storm.project.artifacts() == calm.artifacts(), f"different bytes in {storm.project.folder}")
                must(exported(b, storm.project) == whole, f"different exported bytes in {storm.project.folder}")
                must(b.forks.raggs("audit", storm.project.run).code == 0, "the audit reports a mismatch")
                counts["finished runs"] = int(counts["finished runs"]) + 1
                counts["repeated calls"] = int(counts["repeated calls"]) + sum(storm.repeats)
                most = max(int(counts["maximum of repeated calls after a kill"]), *storm.repeats, 0)
                counts["maximum of repeated calls after a kill"] = most
                storm = Storm(b, server, queries)
    most = int(counts["maximum of repeated calls after a kill"])
    counts["maximum of calls in flight"] = server.peak
    must(
        most <= CONCURRENCY, f"{most} calls were paid for again after one kill, but only {CONCURRENCY} can be in flight"
    )
    return counts


class Storm:
    """A project that is killed. `repeats` has the repeated calls after each kill."""

    made = 0

    def __init__(self, b: Bench, server: LLMServer, queries: int) -> None:
        Storm.made += 1
        self.bench, self.server = b, server
        self.project = b.project(f"storm{Storm.made}", server.url, queries, **WHOLE)
        self.repeats: list[int] = []
        self.finished = False
        self._sent: dict[str, int] = {}  # number of the last run that sent each request
        self._number = 0
        self._seen = server.count

    def run(self, moment: dict[str, Any] | int) -> bool:
        """Return whether the kill hit a run in progress."""
        die = moment if isinstance(moment, dict) else None
        child = self.bench.forks.start("run", "--config", self.project.config, "--quiet", die=die)
        start = self.server.count
        ended = child.wait() if die else child.wait(lambda: self.server.count >= start + moment)
        ended = ended or child.kill()
        must(ended.code in (0, -9), f"exit code {ended.code}: {ended.err}")
        self._count()
        self.finished = ended.code == 0
        return not self.finished

    def export(self, moment: dict[str, Any]) -> bool:
        """Kill an export of the undisturbed run, because this one is not finished."""
        ended = self.bench.forks.raggs(*export_of(self.bench.folder / "unkilled", self.project), die=moment)
        must(ended.code in (0, -9), f"exit code {ended.code}: {ended.err}")
        return ended.code == -9

    def finish(self) -> None:
        self.bench.run(self.project, 0)
        self._count()

    def _count(self) -> None:
        """Count the calls of the latest run that an earlier run had already sent."""
        bodies = [json.dumps(body, sort_keys=True) for body in self.server.requests[self._seen :]]
        self._seen += len(bodies)
        self.repeats.append(sum(body in self._sent for body in bodies))
        self._number += 1
        self._sent.update(dict.fromkeys(bodies, self._number))


def export_of(folder: Path, into: Project) -> list[str]:
    run = folder / "runs" / "demo"
    return ["export", str(run), "--format", "beir", "--out", str(into.folder / "export")]


def exported(b: Bench, project: Project) -> dict[str, bytes]:
    """Return the files of an export of the project's run, written over the files of a killed export."""
    ended = b.forks.raggs(*export_of(project.folder, project))
    must(ended.code == 0, ended.err)
    folder = project.folder / "export"
    # The sidecar has times and costs, which differ between runs.
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("meta.json")]
    must(not any(path.name.startswith(".tmp-") for path in files), "an export leaves temporary files")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# --- money ---

PRICES = {"judge": (1.0, 4.0), "small": (0.5, 2.0), "embedder": (0.1, 0.0), "ranker": (0.2, 0.0)}
PRICED = {f"openai/{name}": {"input": sent, "output": said} for name, (sent, said) in PRICES.items()}
CASCADE = {"type": "cascade", "judges": [{"type": "litellm", "model": f"openai/{name}"} for name in ("small", "judge")]}
FAILING = ("429:0", "500", "503", "slow:1", "reset", "cut body", "grade 7", "prose", "truncated", "empty")
ANSWERED = ("grade 7", "prose", "truncated", "empty")
ROUNDING = 1e-9  # USD


class Till(LLMServer):
    """A provider that counts its requests, and bills those that it does not refuse with a status.

    Attributes:
        usd: the billed amount.
    """

    def __init__(
        self, plan: Callable[[dict[str, Any]], str | None], hidden: Callable[[dict[str, Any]], int], **more: Any
    ):
        super().__init__(fault_for=lambda _, body: self._billed(body, plan(body)), **more)
        self._drawn: dict[int, int] = {}  # drawn faults by request
        self.hidden_for = lambda body: self._drawn.setdefault(id(body), hidden(body))
        self.usd = 0.0

    @property
    def served(self) -> int:
        """Number of requests, including the lines of all submitted batches."""
        return len(self.times) + sum(map(len, self.batches.submitted))

    def _billed(self, body: dict[str, Any], fault: str | None) -> str | None:
        if not (fault or "").partition(":")[0].isdecimal():
            sent, said = PRICES[body["model"]]
            found = self._completion(body, fault if fault in ANSWERED else "").get("usage", {})
            half = 0.5 if len(self.requests) > len(self.times) + self._lines else 1.0
            self._lines += half < 1
            self.usd += half * (found.get("prompt_tokens", 0) * sent + found.get("completion_tokens", 0) * said) / 1e6
        return fault

    _lines = 0  # lines of answered batches


def scenario(draw: random.Random) -> dict[str, Any]:
    """Return the sections of a random configuration."""
    judge: dict[str, Any] = {"samples": draw.choice((1, 1, 2)), "group": draw.choice((1, 1, 3))}
    if draw.random() < 0.3:
        judge = {"judge": CASCADE, "samples": 1}
    if draw.random() < 0.3:
        judge |= {"mode": "batch", "batch": {"poll_s": 0.05, "quiet_s": 0.05}}
    sections: dict[str, Any] = {"judge": judge}
    bm25 = {"type": "bm25", "k": draw.choice((8, 16, 24))}
    sections["retrieve"] = {"retrievers": [bm25]}
    if draw.random() < 0.4:
        sections["embed"] = {"embedder": {"type": "litellm", "model": "openai/embedder", "dims": 8, "batch": 7}}
        sections["retrieve"] = {"retrievers": [bm25, {"type": "dense", "k": 8}]}
    if draw.random() < 0.3:
        ranker = {"type": "reranked", "of": bm25, "by": {"type": "litellm", "model": "openai/ranker"}}
        sections["retrieve"] = {"retrievers": [*sections["retrieve"]["retrievers"], ranker]}
    kind = draw.choice(("calls", "usd", "both", "neither"))
    sections["budget"] = {
        "max_calls": draw.randint(15, 150) if kind in ("calls", "both") else None,
        "max_usd": round(10 ** draw.uniform(-2.7, -1), 6) if kind in ("usd", "both") else None,
    }
    sections["llm"] = {
        "concurrency": draw.choice((1, 2, 4, 8, 16, 32)),
        "timeout_s": 0.5,
        "prices": PRICED,
        "outage_after": None,
        "max_attempts": draw.choice((2, 4)),
    }
    sections["rank"] = {"top": 10, "max_calls": draw.choice((0, 6, 12))}
    return sections


def money(b: Bench, configurations: int = 40, seed: int = 1, numbers: Sequence[int] = ()) -> Counts:
    """Kill runs at random moments and resume them. Compare the served calls with caps and ledger."""
    counts: Counts = dict.fromkeys(
        ("configurations", "kills", "calls served", "possibly billed", "above a cap in calls", "above a cap in USD"), 0
    )
    counts |= dict.fromkeys(("calls above ledger and possibly billed", "USD above ledger and possibly billed"), 0)
    counts |= {"ended by the budget": 0, "audits with findings": 0}
    for number in numbers or range(configurations):
        found = killed_runs(b, number, random.Random(f"{seed} {number}"))
        for name, count in found.items():
            counts[name] = int(counts[name]) + count
    wrong = [name for name, count in counts.items() if count and (" above " in f" {name}" or "audits" in name)]
    must(not wrong, f"{wrong}: {counts}")
    return counts


def killed_runs(b: Bench, number: int, draw: random.Random) -> Counts:
    """Run one configuration to its end with several kills, and count violations."""
    sections, share, long = scenario(draw), draw.choice((0.0, 0.1, 0.3)), draw.choice((0, 0, 300, 8000))
    chance, lengths = random.Random(draw.random()), random.Random(draw.random())
    found = dict.fromkeys(("kills", "above a cap in calls", "above a cap in USD"), 0)

    def fault(_: dict[str, Any]) -> str | None:
        return chance.choice(FAILING) if chance.random() < share else None

    def hidden(_: dict[str, Any]) -> int:
        return lengths.choice((0, 0, long))

    with Till(fault, hidden, delay_s=draw.choice((0.0, 0.01, 0.05))) as server:
        server.batches.polls = 3
        project = b.project(f"money{number}", server.url, draw.randint(2, 5), **sections)
        for _ in range(draw.randint(2, 5)):
            after, when = server.served + draw.randint(1, 60), draw.uniform(0.1, 2.0)
            child, began = b.forks.start("run", "--config", project.config, "--quiet"), time.monotonic()
            by_count = draw.random() < 0.6
            until = (lambda n=after: server.served >= n) if by_count else (lambda: time.monotonic() > began + when)  # noqa: B023
            if child.wait(until) is None:
                found["kills"] += child.kill().code == -9
            time.sleep(0.06)  # until calls in flight arrive
            look(project, server, sections["budget"], found)
        for _ in range(6):
            ended = b.run(project, None)
            vectors = ended.code == 6 and "the provider" in ended.err  # no set is possible without vectors
            must(ended.code in (0, 7) or vectors, f"exit code {ended.code}: {ended.err}")
            look(project, server, sections["budget"], found)
            if ended.code == 0 or "budget is used up" in ended.err:
                break
        audit = b.forks.raggs("audit", project.run)
        total = json.loads(b.forks.raggs("cost", project.run, "--json").out)["total"]
    return {
        **found,
        "configurations": 1,
        "calls served": server.served,
        "possibly billed": total["unknown"],
        "ended by the budget": int("budget is used up" in ended.err),
        "audits with findings": int(audit.code not in (0, 7)),
    }


def look(project: Project, server: Till, caps: dict[str, Any], found: dict[str, int]) -> None:
    """Count current violations of caps and ledger."""
    from raggs.llm.ledger import lines_in

    lines = list(lines_in(project.run / "llm.ledger.jsonl"))
    calls, usd = sum(line.attempts for line in lines), sum(line.usd for line in lines)
    off = {
        "above a cap in calls": caps["max_calls"] is not None and server.served > caps["max_calls"],
        "above a cap in USD": caps["max_usd"] is not None and server.usd > caps["max_usd"] + ROUNDING,
        "calls above ledger and possibly billed": server.served > calls,
        "USD above ledger and possibly billed": caps["max_usd"] is not None and server.usd > usd + ROUNDING,
    }
    for name, holds_not in off.items():
        found[name] = found.get(name, 0) + holds_not
        if holds_not:
            seen = f"served {server.served} for ${server.usd:.6f}, booked {calls} for ${usd:.6f}"
            print(f"{project.folder.name}: {name}: {seen}, {caps}")


# --- injection ---


def injection(b: Bench, count: int = len(ORDERS)) -> Counts:
    """Judge hostile passages with a server that obeys all text outside of the marks around data."""
    draw = random.Random(1)
    with LLMServer(truth=lambda _, passage: 1 if "OBEY" in passage else 3) as server:
        server.obeys = obeys
        # Invalid answers quote the passage, so that prompts with corrections are tested, too.
        server.fault_for = lambda *_: draw.choice(("quote", "grade 7", "prose")) if draw.random() < 0.2 else None
        project = b.project("hostile", server.url, 2)
        project.change(
            retrieve={"retrievers": [{"type": "bm25", "k": 2 * count}]},
            prune={"min_keep": count, "max_keep": 2 * count},
        )
        subjects = [question["text"] for question in questions(2)]
        passages = [{"_id": f"h{n}", "text": hostile(n, subjects[n % 2])} for n in range(count)]
        passages += [{"_id": f"p{n}", "text": f"{subjects[n % 2]} Passage {n} answers calmly."} for n in range(count)]
        write_lines(project.folder / "corpus.jsonl", passages)
        b.run(project, None)
        grades = [row["grade"] for row in rows(project, "judge") if row["doc_id"].startswith("h")]
        bodies = list(server.requests)
    leaks = sum(obeys(FENCED.sub("", message["content"])) for body in bodies for message in body["messages"])
    shown = {match for body in bodies for match in re.findall(r"OBEY \d+", json.dumps(body))}
    bare = [re.sub(r"</?data-[0-9a-f]+>", "---", message["content"]) for body in bodies for message in body["messages"]]
    counts: Counts = {
        "hostile passages": count,
        "shown to the server": len(shown),
        "sent prompts": len(bodies),
        "prompts with corrections": sum(len(body["messages"]) > 2 for body in bodies),
        "instructions outside of the marks": leaks,
        "hostile grades": len(grades),
        "grades that obey": sum(grade not in (1, None) for grade in grades),
        "instructions without the marks": sum(map(obeys, bare)),
    }
    must(leaks == 0 and counts["grades that obey"] == 0 and len(shown) == count, str(counts))
    must(int(counts["instructions without the marks"]) > 0, "the server does not detect instructions")
    return counts


# --- keys ---


def keys(b: Bench, queries: int = 4) -> Counts:
    """Return errors that contain the key, and search all files of the bench and of earlier runs for it."""
    exits = {"401": (3,), "404": (5,), "400": (7,), "429": (0, 7), "500": (0, 7)}
    for fault, codes in exits.items():
        # Refusals by rate limits delay later calls, so there are few.
        with LLMServer(fault_for=now_and_then(fault, 0.05 if fault == "429" else 0.2)) as server:
            server.echo_keys = True
            project = b.project(f"echo{fault}", server.url, queries, rank={"max_calls": 4})
            ended = b.run(project, None, "--debug")
            must(ended.code in codes, f"exit code {ended.code} with errors {fault}: {ended.err}")
    with LLMServer() as server:
        server.batches.polls = 0
        project = b.project("batch", server.url, queries, judge={"mode": "batch"})
        child = b.forks.start("run", "--config", project.config, "--debug")
        must(child.wait(lambda: bool(server.batches.created)) is None, "the batch did not wait")
        child.kill()
        must(any(b.folder.glob("batch/**/batches/*/*.json")), "the batch is not recorded")
    forms = [KEY.encode(), KEY[8:].encode(), base64.b64encode(KEY.encode()).rstrip(b"=")]
    files = [path for path in b.folder.rglob("*") if path.is_file()]
    holders = [path for path in files if any(form in path.read_bytes() for form in forms)]
    counts: Counts = {
        "files searched": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "files with the key": len(holders),
    }
    must(not holders and len(files) > 20, f"{counts}: {', '.join(map(str, holders))}")
    return counts


def now_and_then(fault: str, share: float) -> Callable[[int, dict[str, Any]], str | None]:
    draw = random.Random(1)
    return lambda *_: fault if draw.random() < share else None


COMMANDS: dict[str, Callable[[Bench], Counts]] = {
    "run": run,
    "kills": kills,
    "money": money,
    "injection": injection,
    "keys": keys,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--keep", type=Path, help="folder for the projects, instead of a temporary one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, bench(options.keep or Path(scratch)) as b:
        counts = COMMANDS[options.command](b)
    for name, value in counts.items():
        print(f"{name:32} {value:>10,}" if isinstance(value, int) else f"{name:32} {value:>10}")


if __name__ == "__main__":
    main()
