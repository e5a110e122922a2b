"""Small editions of benchmarks/faults.py: the same code with fewer calls and kills."""

from __future__ import annotations

import os

import pytest

KILLS = int(os.environ.get("FAULT_KILLS", "3"))
MONEY = (15, 26)  # chat, embeddings and reranking under a cap of calls; a cascade by batches under both caps


def test_a_fifth_of_all_answers_spoiled_changes_no_grade_and_a_rerun_heals(faults, b):
    counts = faults.run(b, calls=56, patience_s=0.5)
    assert counts["wrong grades or orders"] == 0
    assert counts["paid twice after success"] == 0
    assert counts["recorded as failed"] > 0
    assert counts["failed with a healthy provider"] == 0
    assert counts["byte-identical to an undisturbed run"] == "yes"


def test_kills_change_no_byte_and_repeat_only_what_was_in_flight(faults, b):
    counts = faults.kills(b, count=KILLS, queries=2)
    assert counts["kills"] == KILLS
    assert counts["maximum of repeated calls after a kill"] <= faults.CONCURRENCY


def test_caps_and_ledgers_hold_through_kills(faults, b):
    counts = faults.money(b, numbers=MONEY)
    assert counts["configurations"] == len(MONEY)
    assert counts["kills"] > 0
    assert counts["calls served"] > 50


@pytest.mark.nightly
def test_hostile_passages_stay_inside_the_fence(faults, b):
    counts = faults.injection(b)
    assert counts["hostile passages"] == counts["shown to the server"] == 30
    assert counts["instructions outside of the marks"] == counts["grades that obey"] == 0
    assert counts["prompts with corrections"] > 0


def test_no_file_holds_the_key(faults, b):
    assert faults.keys(b, queries=1)["files with the key"] == 0


def test_a_benchmark_that_finds_something_fails(faults):
    with pytest.raises(SystemExit, match="FAILED: a wrong grade"):
        faults.must(False, "a wrong grade")
