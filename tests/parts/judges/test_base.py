"""What a judge says can always be written."""

from __future__ import annotations

from raggs.base.artifacts import JudgeRecord
from raggs.base.judge_health import JudgeHealth
from raggs.llm.conversation import read_text
from raggs.parts.judges import Judgment, Ordering
from raggs.runs.manifests.messages import health_lines
from raggs.stages.judge_health import JudgeStatistics


def test_half_of_a_surrogate_pair_poisons_no_answer() -> None:
    judgment = Judgment(None, "r\ud800", error="e\udfff", raw="\ud800")
    assert (judgment.reason, judgment.error, judgment.raw) == ("r\ufffd", "e\ufffd", "\ufffd")
    assert Ordering(None, "\ud800", "\udc00").raw == "\ufffd"
    found = read_text('{"reason": "\\ud800", "more": [{"\\udfff": "x"}]}', dict)
    assert found == {"reason": "\ufffd", "more": [{"\ufffd": "x"}]}


def test_what_was_replaced_is_counted_and_told() -> None:
    counted = JudgeStatistics(1, None)
    for number, reason in enumerate(["fine", "so\ufffd", "\ufffd"], start=1):
        counted.see(JudgeRecord(qid="q", rank=number, doc_id=f"d{number}", grade=3, reason=reason, judge="j"))
    health = counted.health()
    assert health == JudgeHealth(replaced=2)
    assert [line.text for line in health_lines(health)] == [
        "judge: 2 answers with invalid characters, replaced by U+FFFD"
    ]
    assert JudgeStatistics(1, None).health() is None


def test_a_reason_of_any_length_is_stored_in_part() -> None:
    reason = Judgment(3, reason="x" * 10**7).reason or ""
    assert len(reason) < 11_000
    assert reason.endswith("x… (10,000,000 characters in all)")
