"""How many queries are graded side by side where the money may end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from raggs.parts.judges import REGISTRY
from raggs.stages.base import Walks
from raggs.stages.judge import STAGE, JudgeConfig

PARTS = ("llm", "grade_prompt", "order_prompt", "grades_prompt")
POOL: Any = ("q1", [None] * 20)


def test_a_walk_asks_for_a_little_at_once_and_is_counted_as_a_whole_pool() -> None:
    left = 50.0
    walks = Walks(3, 1, 2, 1, lambda: left)
    assert walks.at_once(POOL) == 6
    assert walks.tight(1), "two pools may need 80 calls"
    left = 80.0
    assert not walks.tight(1)
    assert walks.tight(2)


def test_passages_of_a_call_and_members_of_a_panel_count() -> None:
    walks = Walks(4, 3, 1, 2, lambda: 28)
    assert walks.at_once(POOL) == 2
    assert not walks.tight(1)
    assert walks.tight(2)


def test_a_cascade_counts_each_answer_of_its_cheap_judge() -> None:
    def tight(calls: int, **settings: Any) -> bool:
        """Whether a second query of 20 passages might find so many calls spent."""
        judges = [{"type": "litellm", "model": f"openai/{name}"} for name in ("small", "big")]
        spec = {"judge": {"type": "cascade", "judges": judges, "samples": 3}, "stop_after": 4, **settings}
        config = JudgeConfig.model_validate(spec)
        services: Any = SimpleNamespace(workspace=SimpleNamespace(affords=lambda: calls), judge=cascade(config.judge))
        walks = STAGE.walks(config, services)
        walks.at_once(POOL)
        return walks.tight(1)

    def cascade(spec: Any) -> Any:
        context: Any = SimpleNamespace(judge=lambda each: REGISTRY.of(each)(each, context), **dict.fromkeys(PARTS))
        return context.judge(spec)

    assert tight(159) and not tight(160), "three of the small one and one of the big one for each passage"
    assert tight(319, samples=2) and not tight(320, samples=2)


def test_whole_pools_and_judges_whom_nobody_pays_are_never_held() -> None:
    for walks in (Walks(None, 1, 1, 1, lambda: 0.0), Walks(3, 1, 1, 0, lambda: 0.0)):
        walks.at_once(POOL)
        assert not walks.tight(5)
