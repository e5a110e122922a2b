"""Who answered, by the names that a provider states: kept with each answer, and compared with those of before."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.base.errors import SnapshotError
from raggs.llm.cache import AnswerCache, CachedAnswer
from raggs.llm.ledger import CallLedger
from raggs.llm.messages import LONGEST_NAME, MAX_ANSWERERS, OTHER_ANSWERERS, Answerer, Answerers

ALIAS = "openai/judge"


def answerer(model: str | None = "judge-1", fingerprint: str | None = None) -> Answerer:
    return Answerer(asked=ALIAS, provider="openai", model=model, fingerprint=fingerprint)


def expecting(*before: Answerer, allow_mixed: bool = False) -> Answerers:
    found = Answerers(allow_mixed=allow_mixed)
    found.expect(before)
    return found


def test_names_are_those_that_the_answer_states() -> None:
    stated = {"model": "judge-1", "system_fingerprint": "fp_1", "provider": "Together"}
    expected = Answerer(asked=ALIAS, provider="Together", model="judge-1", fingerprint="fp_1")
    assert Answerer.of(ALIAS, stated) == expected
    silent = Answerer.of(ALIAS, {})
    assert (silent.provider, silent.model, silent.fingerprint) == ("openai", None, None)
    assert silent.recorded and not Answerer(asked=ALIAS).recorded
    assert silent.key != Answerer(asked=ALIAS).key


@pytest.mark.parametrize("stated", [7, None, "", ["judge"], {"name": "judge"}, "\n \n"])
def test_a_name_that_is_no_text_is_none(stated: object) -> None:
    assert Answerer.of(ALIAS, {"model": stated, "system_fingerprint": stated}).stated == {"provider": "openai"}


def test_a_name_is_bounded_on_one_line_and_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-abcdefghijklmnopqrstuvwxyz123456")
    found = Answerer.of(
        ALIAS, {"model": "x\n" * 50_000_000, "system_fingerprint": "sk-proj-abcdefghijklmnopqrstuvwxyz123456"}
    )
    assert len(found.model or "") <= LONGEST_NAME and "\n" not in (found.model or "")
    assert "abcdefghij" not in (found.fingerprint or "")


def test_another_name_is_another_snapshot() -> None:
    with pytest.raises(
        SnapshotError, match="now answers as judge-2, but earlier answers of this run are from judge-1"
    ) as error:
        expecting(answerer()).require(answerer("judge-2"))
    assert "--allow-mixed" in str(error.value.remedy) and error.value.exit_code == 7


@pytest.mark.parametrize("same", [answerer(), answerer(fingerprint="fp_9"), answerer(None), Answerer(asked=ALIAS)])
def test_fingerprints_and_what_is_not_stated_are_no_other_snapshot(same: Answerer) -> None:
    expecting(answerer(fingerprint="fp_1")).require(same)


def test_what_was_not_known_before_is_no_other_snapshot() -> None:
    for before in ((), (answerer(None),), (Answerer(asked=ALIAS),), (Answerer(asked="openai/other", model="other-1"),)):
        expecting(*before).require(answerer("judge-2"))
    expecting(answerer(), allow_mixed=True).require(answerer("judge-2"))
    expecting(answerer(), answerer("judge-2")).require(answerer("judge-2"))


def test_the_table_is_bounded_whatever_servers_state() -> None:
    table = Answerers()
    keys = {table.note(answerer(fingerprint=f"fp_{number}")) for number in range(5 * MAX_ANSWERERS)}
    assert len(keys) == MAX_ANSWERERS + 1
    last = table.named(table.note(answerer(fingerprint="fp_last")))
    assert (last.model, last.fingerprint) == ("judge-1", OTHER_ANSWERERS)
    keys |= {table.note(answerer(f"judge-{number}")) for number in range(2, 500)}
    assert len(keys) == MAX_ANSWERERS + 2
    assert table.named(table.note(answerer("judge-9999"))).model == OTHER_ANSWERERS


def test_the_cache_keeps_who_answered_and_reads_rows_of_before(tmp_path: Path) -> None:
    cache, whole = AnswerCache(tmp_path), CachedAnswer("{}", ALIAS, 1, 1, 0.5, by=answerer(fingerprint="fp_1"))
    cache.put_all({"new": whole, "old": CachedAnswer("{}", ALIAS, 1, 1, 0.5)})
    assert cache.get("new") == whole
    assert '"by"' not in CachedAnswer("{}", ALIAS, 1, 1, 0.5).row, "rows without it are those of before"
    found = cache.get("old")
    assert found is not None and found.answerer == Answerer(asked=ALIAS)
    cache.close()


def test_a_ledger_names_each_answerer_once_and_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "llm.ledger.jsonl"
    for _ in range(2):
        ledger = CallLedger(path, "judge")
        for who in (answerer(), answerer("judge-2"), answerer()):
            ledger.hit(ledger.account("q"), ALIAS, "grade", 0.0, who)
        ledger.close()
        assert ledger.answered("judge") == {answerer().key: 2, answerer("judge-2").key: 1}
    text = path.read_text()
    assert text.count('"named"') == 2 and text.count('"answerer"') == 6
    again = CallLedger(path, "judge")
    again.turn_to(path, "judge")
    assert again.answerers.named(answerer().key) == answerer()
    with pytest.raises(SnapshotError, match="judge-1 and judge-2"):
        again.hit(again.account("q"), ALIAS, "grade", 0.0, answerer("judge-3"))
