"""What goes wrong with which request: decided by a seed and the question, never by the order of arrival.

    plan = FaultPlan(seed=7, share=0.2, stubborn=0.01)
    LLMServer(fault_for=plan)

`stubborn` questions get no good answer as long as the plan is `sick`: they are those that must be told as failed.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

TRANSPORT = ("429", "429:0.2", "429:date", "500", "502", "503", "reset", "noise", "slow:30", "trickle")
UNREADABLE = ("garbage", "html", "cut body", "list body", "no choices", "wrong type")
EITHER = ("truncated", "empty", "refusal", "filtered", "prose", "fenced")
GRADE = ("grade 7", "grade text", "grade float", "grade true", "no grade")
ORDER = ("repeated label", "missing label", "unknown label")
GRADES = ("missing label", "unknown label", "label too many", "one grade 7")
UNUSABLE = {
    "grade": ("grade 7", "grade text", "empty", "refusal"),
    "grades": GRADES,
    "order": ("repeated label", "missing label"),
}
SPOILED = {"order": ORDER, "grades": GRADES}
MARK = re.compile(r"data-[0-9a-f]+")


class FaultPlan:
    """As `LLMServer.fault_for`. `given` counts the faults by kind."""

    def __init__(self, seed: int, share: float, stubborn: float = 0.0) -> None:
        self.seed = seed
        self.share = share
        self.stubborn = stubborn
        self.sick = True
        self.given: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()

    def __call__(self, number: int, body: dict[str, Any]) -> str | None:
        if not self.sick:
            return None
        # The marks of the fence differ from workspace to workspace.
        question = MARK.sub("", json.dumps(body["messages"][:2]))
        self._turns[question] += 1
        form = body.get("response_format", {}).get("json_schema", {}).get("name", "grade")
        draw = random.Random(f"{self.seed} {question} {self._turns[question]}")
        if random.Random(f"{self.seed} {question}").random() < self.stubborn:
            fault = draw.choice(UNUSABLE[form])
        elif draw.random() < self.share:
            fault = draw.choice((*TRANSPORT, *UNREADABLE, *EITHER, *SPOILED.get(form, GRADE)))
        else:
            return None
        self.given[fault] += 1
        return fault
