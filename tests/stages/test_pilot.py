"""Lists of open length: what a dozen questions teach of the judge holds for all, whoever asks, and however often."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from pydantic import ValidationError
from support.cli import call, invoke
from support.forging import edit_file
from support.llm_server import KEY, LLMServer
from support.paying import MODEL, paying
from support.project import Project, files_copied, make_project, raggs
from support.stopping import stop_at

from raggs.app.audit import audit
from raggs.base.artifacts import JournalRecord, JudgeProfile, Passage, Query
from raggs.base.jsonl import dump_line
from raggs.base.judge_health import STOP_NO_ORDER
from raggs.llm import Price
from raggs.parts.judges import TYPICAL, OrderPrice, order_price
from raggs.ranking import make_ranker
from raggs.runs.manifests.rank_messages import care_words
from raggs.runs.manifests.store import RunJournal
from raggs.stages.replay import (
    QUESTIONS,
    Batch,
    JournalAnswers,
    RankingProcess,
    Replay,
    learn_profile,
    overhead,
    part_pool,
    pilot_questions,
    profile_entry,
    replay,
)

BLANK = JournalRecord(qid="q", state="s", engine="bayes", round=0, slot=0, shown=(), order=None)
AUTO = {"top": 5, "max_calls": 12, "batch_size": "auto"}
FEW, SMALL = {**AUTO, "max_calls": 7}, {"min_keep": 6, "max_keep": 9}


def journal(project: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / "rank.journal.jsonl").read_text().splitlines()]


def ordered(batch: Batch) -> JournalRecord:
    return BLANK.model_copy(update={**batch._asdict(), "order": tuple(sorted(batch.shown))})


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("auto"), queries=13, corpus=30, rank=FEW, prune=SMALL)
    done = raggs("run", "--config", project.config, "-q")
    assert done.returncode == 0, done.stderr
    return project


def test_the_pilots_lists_come_first_and_what_they_taught_is_in_every_journal(ranked: Project) -> None:
    entries = journal(ranked)
    qids = sorted({entry["qid"] for entry in entries})
    pilots = pilot_questions(qids, 7)
    told = [entry for entry in entries if "profile" in entry]
    assert len(pilots) == QUESTIONS and len(qids) == 13
    assert [entry["qid"] for entry in told] == qids
    assert {json.dumps(entry["profile"]) for entry in told} == {json.dumps(told[0]["profile"])}
    assert told[0]["profile"]["questions"] == QUESTIONS
    assert {entry["qid"]: entry["round"] for entry in told} == {qid: int(qid in pilots) for qid in qids}
    first = [len(entry["shown"]) for entry in entries if entry["qid"] == min(pilots) and entry["round"] == 0]
    assert len(set(first)) > 1, "lists of several lengths"


def test_no_question_costs_more_than_its_calls_of_five(ranked: Project) -> None:
    spent: Counter[str] = Counter()
    overhead = next(entry["profile"]["overhead"] for entry in journal(ranked) if "profile" in entry)
    for entry in journal(ranked):
        if "profile" not in entry:
            spent[entry["qid"]] += (len(entry["shown"]) + overhead) / (5 + overhead)
    assert max(spent.values()) <= FEW["max_calls"] * 1.01


@pytest.mark.parametrize(("sizes", "max_calls"), [((1, 1, 9), 12), ((9,), 1), ((3, 4), 4)])
def test_pools_without_a_pilots_list_are_ranked_and_derived_again(sizes: tuple[int, ...], max_calls: int) -> None:
    """A pool of one passage has nothing to order, and one call pays for no list of the pilot; no pool is mute.

    A list of fewer than five is a call, not less: else small pools get more calls than the dry run says at most.
    """
    for size in sizes:
        ids = tuple(f"d{number}" for number in range(size))
        ranker = make_ranker("bayes", ids, [3] * size, top=3, batch_size=None, max_calls=max_calls)
        pool = part_pool([(doc_id, 3) for doc_id in ids], 1)
        course = RankingProcess(ranker, 4, pool, 3)
        course.learn(tuple(map(ordered, pilot := course.pilot_round())))
        assert bool(pilot) == (size > 1 and max_calls > 1)
        profile = learn_profile([course.pilot()], 1.0)
        told = profile_entry(BLANK, course.upcoming, profile)
        course.believe(told)
        entries = [told, *map(ordered, pilot)]
        while batches := course.next_round():
            entries += (answers := list(map(ordered, batches)))
            course.learn(answers)
        found = course.ranking()
        assert (found.calls > 0) == (size > 1) and found.stop_reason != STOP_NO_ORDER
        assert found.calls <= max_calls
        fresh = make_ranker("bayes", ids, [3] * size, top=3, batch_size=None, max_calls=max_calls)
        assert replay(RankingProcess(fresh, 4, pool, 3), JournalAnswers(entries)) == Replay(found)


def test_audit_why_and_a_second_run_read_what_was_learned(ranked: Project) -> None:
    before = ranked.artifacts()
    assert raggs("audit", ranked.run).returncode == 0
    why = raggs("why", ranked.run, "--query", "q03", "--details")
    assert why.returncode == 0, why.stderr
    assert "judge profile from 12 queries" in why.stdout
    assert "information per cost by list length, relative to 5: 5: 1.00, " in " ".join(why.stdout.split())
    told = json.loads(raggs("why", ranked.run, "--query", "q03", "--json").stdout)
    assert told["profile"]["questions"] >= QUESTIONS and set(told["lengths"]) & set(told["told_by_length"])
    again = raggs("run", "--config", ranked.config)
    assert again.returncode == 0 and ranked.artifacts() == before
    other = make_project(ranked.folder / "other", queries=13, corpus=30, rank=FEW, prune=SMALL)
    done = raggs("run", "--config", other.config, "-q")
    assert done.returncode == 0 and other.artifacts() == before, "the same, run afresh"


def test_an_audit_tells_a_profile_that_was_changed(ranked: Project, tmp_path: Path) -> None:
    copy = files_copied(ranked.run, tmp_path / "copy")
    edit_file(copy, "rank.journal.jsonl", lambda data: data.replace(b'"doubt":', b'"doubt":1', 1), reseal=True)
    done = raggs("audit", copy, "--details")
    assert done.returncode != 0
    assert "not all queries were ranked with the same judge profile" in done.stdout + done.stderr


def test_a_profile_of_a_version_with_fewer_fields_is_no_lie_and_stays_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, later = JudgeProfile(questions=12, sharpness=3.0, doubt=0.2), b',"sigma":0.5,"slip":0.25'
    project = make_project(tmp_path, rank=AUTO)
    with monkeypatch.context() as before:
        before.setattr("raggs.stages.rank.learn_profile", lambda *_: plain)
        for writer in ("raggs.base.jsonl.dump_line", "raggs.runs.manifests.store.dump_line"):
            before.setattr(writer, lambda record, **_: dump_line(record).replace(later, b""))
        call("run", "--config", project.config, "-q")
    path = project.run / "rank.journal.jsonl"
    written = path.read_bytes()
    assert b'"strain":0.0,"overhead":0.0}' in written
    monkeypatch.setattr("raggs.runs.manifests.shared_budget_replay.learn_profile", lambda *_: plain)
    assert not audit(project.run).findings
    sums = b"".join(crc32(line).to_bytes(4, "little") for line in written.splitlines(keepends=True))
    RunJournal(path, sums)
    assert path.read_bytes() == written, "believed by its checksums"


def test_a_word_on_the_judge_of_before_reads_and_writes_as_it_was() -> None:
    """What it does not tell of, the favour of places, stays as the question's own answers have it."""
    line = '{"questions":2,"sharpness":3.0,"doubt":0.2,"left":[],"strain":0.0,"overhead":0.5,"sigma":0.5,"slip":0.25}'
    profile = JudgeProfile.model_validate_json(line)
    assert profile.model_dump_json() == line and "favours" not in care_words(profile)
    with pytest.raises(ValidationError, match="doubt"):  # whatever the answers say could not shake it
        JudgeProfile.model_validate_json(line.replace("0.2", "0.0"))
    for beyond in ({"strain": 1e308}, {"favour_doubt": 1e-300}, {"sharpness": 1e308}):
        with pytest.raises(ValidationError, match=next(iter(beyond))):
            JudgeProfile.model_validate({**profile.model_dump(), **beyond})
    ids = tuple(f"d{number}" for number in range(12))
    ranker = make_ranker("bayes", ids, [3] * 12, top=3, batch_size=None, max_calls=60)
    course = RankingProcess(ranker, 4, part_pool([(doc_id, 3) for doc_id in ids], 1), 3)
    course.learn([entry.model_copy(update={"order": entry.shown}) for entry in map(ordered, course.pilot_round())])
    before = ranker.ranking().favour
    course.believe(profile_entry(BLANK, course.upcoming, profile))
    assert ranker.ranking().favour == before and before[0] > before[-1], "a judge that leaves all as it was shown"
    told = profile.model_copy(update={"favour": (1.2, 0.6, 0.0, -0.6, -1.2), "favour_doubt": 0.1, "echo": 0.4})
    gains = "; position bias: the first of a list gains 0.8 grades over the last; test-retest error correlation 0.4"
    assert care_words(told).endswith(gains)
    course.believe(profile_entry(BLANK, course.upcoming, told))
    assert ranker.ranking().favour == pytest.approx(told.favour) and ranker.ranking().echo == 0.4


@pytest.mark.nightly
def test_an_audit_tells_a_profile_that_the_pilots_answers_do_not_teach(ranked: Project, tmp_path: Path) -> None:
    """The same false word in every journal: all rankings follow from it, but it does not follow from the answers."""
    copy = files_copied(ranked.run, tmp_path / "copy")
    for old, new, wrong in (
        (
            b'"favour_doubt":',
            b'"echo":0.5,"favour_doubt":',
            "echo of the judge is 0.5, but 0.0 according to its pilot's answers",
        ),
        (b'"favour_doubt":', b'"favour":[1.0,-1.0],"favour_doubt":', "favour of the judge is (1.0, -1.0), its pilot's"),
    ):
        edit_file(copy, "rank.journal.jsonl", lambda data, old=old, new=new: data.replace(old, new), reseal=True)
        assert wrong in "\n".join(finding.message for finding in audit(copy).findings)


def test_an_engine_that_cannot_choose_is_told_before_anything_is_done(tmp_path: Path) -> None:
    project = make_project(tmp_path, rank={**AUTO, "engine": "online"})
    done = raggs("validate", "--config", project.config)
    assert done.returncode == 5
    assert "engine online cannot choose the length of lists" in done.stderr


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("at", [3, 9, 15])
def test_a_kill_in_the_pilot_or_after_changes_no_byte_and_pays_nothing_twice(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as server:
        calm, killed = (paying(tmp_path / name, server) for name in ("calm", "killed"))
        for project in (calm, killed):
            project.change(rank={**AUTO, "parallel": 2}, llm={"concurrency": 2})
            assert raggs("run", "--config", project.config, "-q", "--yes", "--to", "prune").returncode in (0, 7)
        start = server.count
        assert raggs("run", "--config", calm.config, "-q", "--yes").returncode == 0
        wanted = server.count - start
        stop_at(server, killed, server.count + at)
        assert raggs("run", "--config", killed.config, "-q", "--yes").returncode == 0
        assert killed.artifacts()["rank.journal"] == calm.artifacts()["rank.journal"]
        assert killed.artifacts()["rank"] == calm.artifacts()["rank"]
        assert server.count - start <= 2 * wanted + 2, "paid again is what was on its way at most"


def test_an_order_costs_what_its_judge_charges() -> None:
    """Instructions that a provider remembers weigh less; dear answers weigh more; without a price it is as it was."""
    query, passage = Query(qid="q", text="x" * 90), Passage(doc_id="d", text="y" * 900)
    asked = [(query, {"d": passage})]
    price, rules = Price(input=1.0, output=2.0, cached_input=0.1), "Order what is shown. " * 300
    plain = order_price("openai/m", Price(input=1.0, output=2.0), rules, "Which?")
    cached = order_price("openai/m", price, rules, "Which?")
    assert plain.dearer == cached.dearer == 2.0
    assert plain.instructions - cached.instructions == pytest.approx(0.9 * 1280 * 1.5), "steps of 128 tokens"
    assert order_price("openai/m", price, rules[:2000], "Which?").instructions > 660, "too short to be remembered"
    assert order_price("openai/m", Price(input=0, output=0), rules, "") == order_price("m", None, rules, "") == TYPICAL
    cheap, dear = OrderPrice(100, 2, 1.0), OrderPrice(400, 5, 2.0)
    assert OrderPrice.together([cheap, TYPICAL, dear]) == OrderPrice(300, 4, 3.0), "a panel pays all of its members"
    assert OrderPrice.together([TYPICAL]) == TYPICAL
    assert overhead(asked) == round((250 + 34) / (304 + 20), 2), "of old"
    assert overhead(asked, plain) == round((plain.instructions + 34) / (304 + 10), 2)


def test_an_overhead_that_was_reckoned_with_stays_though_prices_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prices are no cause: what a run reckoned with at one price it goes on with at another."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def ranked_at(output: float, *flags: str) -> bytes:
        project.change(llm={"prices": {MODEL: {"input": 1.0, "output": output}}})
        done = invoke("run", "--config", project.config, "-q", "--yes", *flags)
        assert done.exit_code == 0, done.output
        return project.artifacts()["rank.journal"]

    with LLMServer() as server:
        project = paying(tmp_path, server)
        project.change(rank={**AUTO, "max_calls": 3})
        first, asked = ranked_at(2.0), server.count
        assert ranked_at(90.0, "--force", "--only", "rank") == first and server.count == asked
        (project.run / "rank.journal.jsonl").unlink()
        assert ranked_at(90.0, "--force", "--only", "rank") != first, "it does hang on the price"
