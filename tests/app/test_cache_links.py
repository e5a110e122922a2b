"""`raggs cache clear` throws away what raggs put into the workspace, and nothing that a link leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.app.housekeeping import clear, survey
from raggs.base.cache import CACHE_NOTES, Cache
from raggs.base.errors import UsageError
from raggs.llm.cache import AnswerCache, CachedAnswer

ANSWER = CachedAnswer("a", "m", 1, 1, 0.5)


def elsewhere(tmp_path: Path) -> Path:
    """Somebody else's answers and files."""
    folder = tmp_path / "elsewhere"
    with_answers = AnswerCache(folder / "llm")
    with_answers.put("k", ANSWER)
    with_answers.close()
    for name in (*CACHE_NOTES, "strange"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "precious").write_text("x")
    return folder


def whole(folder: Path) -> bool:
    return (
        all((folder / name / "precious").exists() for name in (*CACHE_NOTES, "strange"))
        and AnswerCache(folder / "llm").get("k") == ANSWER
    )


@pytest.mark.parametrize("what", [*CACHE_NOTES, "all"])
def test_a_cache_behind_a_link_stays(what: str, tmp_path: Path) -> None:
    theirs, cache = elsewhere(tmp_path), Cache.of(tmp_path / "runs")
    cache.folder.mkdir(parents=True)
    (cache.folder / "mine").mkdir()
    for name in CACHE_NOTES:
        cache.at(name).folder.symlink_to(theirs / name)
    with pytest.raises(UsageError, match=r"is a link to .*; nothing was cleared"):
        clear(tmp_path / "runs", what)
    assert whole(theirs)
    assert (cache.folder / "mine").exists()


def test_all_caches_behind_one_link_stay(tmp_path: Path) -> None:
    theirs, cache = elsewhere(tmp_path), Cache.of(tmp_path / "runs")
    cache.folder.parent.mkdir(parents=True)
    cache.folder.symlink_to(theirs)
    for what in ("all", "llm", "other"):
        with pytest.raises(UsageError, match="is a link"):
            clear(tmp_path / "runs", what)
    assert whole(theirs)


def test_a_database_behind_a_link_stays(tmp_path: Path) -> None:
    theirs, cache = elsewhere(tmp_path), Cache.of(tmp_path / "runs")
    cache.at("llm").folder.mkdir(parents=True)
    (cache.at("llm").folder / "cache.db").symlink_to(theirs / "llm" / "cache.db")
    with pytest.raises(UsageError, match="is a link"):
        clear(tmp_path / "runs", "llm")
    assert whole(theirs)


def test_links_within_a_cache_go_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    theirs, cache = elsewhere(tmp_path), Cache.of(tmp_path / "runs")
    cache.at("bm25").folder.mkdir(parents=True)
    (cache.at("bm25").folder / "x").symlink_to(theirs)
    assert clear(tmp_path / "runs", "all") == ["bm25"]
    assert whole(theirs)


def test_a_workspace_that_is_a_link_itself_is_the_users_own(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "runs"
    Cache.of(real).at("bm25").folder.mkdir(parents=True)
    link.symlink_to(real)
    assert clear(link, "bm25") == ["bm25"]
    assert survey(link)
