"""Probabilities of grades from a server: as decisions, and as log-probabilities of one digit; spoiled on demand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

Truth = Callable[[str, str], int]
FENCED = re.compile(r"<data-([0-9a-f]+)>\n(.*?)\n</data-\1>", re.DOTALL)
# What makes a decision or a digit unusable, each in its own way.
UNUSABLE_DECISIONS = (
    "no answers",
    "no options",
    "nan probability",
    "infinite probability",
    "negative probability",
    "text probability",
    "other options",
    "refused",
)
UNUSABLE_DIGITS = ("no logprobs", "nan logprob", "infinite logprob", "positive logprob", "words")
# Other forms of a usable answer.
DECISION_FORMS = ("unnormalised", "percentages", "index only", "texts only", "object", "labels win")
DIGIT_FORMS = ("two spellings", "space first", "words too")
SPOILT = {"nan": math.nan, "infinite": math.inf, "negative": -0.1, "text": "0.5", "positive": 0.7}
TOP = 3  # alternatives of a truncated list


def peaked(grade: int) -> list[float]:
    """Probabilities of the five grades with 0.6 on one of them, and most of the rest next to it."""
    weights = [0.25 ** abs(each - grade) for each in range(1, 6)]
    rest = sum(weights) - 1
    return [0.6 if weight == 1 else round(0.4 * weight / rest, 6) for weight in weights]


def decided(body: dict[str, Any], grade_of: Truth, fault: str, *, counted: bool) -> dict[str, Any]:
    """The answer to a decision request, in OpenAI's form or in that of System One."""
    if isinstance(body["questions"], dict):
        return _systemone(body, grade_of, fault, counted=counted)
    question = body["questions"][0]
    query, *passages = [match[2] for match in FENCED.finditer(body["input"])]
    grades = [grade_of(query, passage) for passage in passages]
    if question["type"] == "score":
        answer = _scored(question, peaked(grades[0]), fault)
    else:
        answer = _chosen(question, grades, fault)
    answers = [{"type": "refusal", "name": question["name"]}] if fault == "refused" else [answer]
    found: dict[str, Any] = {"model": body["model"], "answers": [] if fault == "no answers" else answers}
    sent = (len(body["input"]) + len(str(question))) // 4
    details = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
    details |= {"output_tokens_details": {"reasoning_tokens": 0}}
    if counted:
        found["usage"] = {"input_tokens": sent, "output_tokens": 0, "total_tokens": sent, **details}
    return found


def _systemone(body: dict[str, Any], grade_of: Truth, fault: str, *, counted: bool) -> dict[str, Any]:
    ((name, asked),) = body["questions"].items()
    levels = [{"label": str(place)} for place, _ in enumerate(asked["criteria"], start=1)]
    choices = [{"value": each} for each in asked["criteria"]]
    question = {"type": asked["type"], "name": name, "levels": levels, "choices": choices}
    found = decided({**body, "input": body["state"], "questions": [question]}, grade_of, fault, counted=counted)
    answers = {}
    for answer in found["answers"]:
        if answer["type"] != "refusal":
            items = answer["probabilities"]
            legend = {str(place): text for place, text in enumerate(asked["criteria"])}
            shares = {str(item["value"]): item["probability"] for item in items}
            answers[name] = {**answer, "probabilities": shares, "legend": legend}
    return {**found, "answers": answers}


def _scored(question: dict[str, Any], shares: Sequence[float], fault: str) -> dict[str, Any]:
    items: list[dict[str, Any]] = [
        {"value": place, "label": level["label"], "probability": share}
        for place, (level, share) in enumerate(zip(question["levels"], shares, strict=True))
    ]
    for item in items:
        if fault in ("unnormalised", "percentages"):
            item["probability"] *= 3 if fault == "unnormalised" else 100
        if fault == "index only":
            del item["label"]
        if fault == "texts only":
            item["value"] = f"grade {item.pop('label')}"
        if fault == "labels win":
            item["value"] = 4 - item["value"]
    if fault == "other options":
        items = [{"value": "yes", "probability": 0.6}, *({**item, "probability": 0.08} for item in items)]
    if fault == "truncated list":
        items = sorted(items, key=lambda item: -item["probability"])[:TOP]
    name = fault.partition(" ")[0]
    if fault.endswith("probability"):
        items[0]["probability"] = SPOILT[name]
    listed: Any = [] if fault == "no options" else items
    if fault == "object":
        listed = {item["label"]: item["probability"] for item in items}
    score = sum(place * share for place, share in enumerate(shares))
    return {
        "type": "score",
        "name": question["name"],
        "score": score,
        "confidence": max(shares),
        "probabilities": listed,
    }


def _chosen(question: dict[str, Any], grades: Sequence[int], fault: str) -> dict[str, Any]:
    weights = [4.0**grade for grade in grades]
    items: list[dict[str, Any]] = [
        {"value": choice["value"], "probability": weight / sum(weights)}
        for choice, weight in zip(question["choices"], weights, strict=True)
    ]
    if fault == "nan probability":
        items[0]["probability"] = math.nan
    best = max(items, key=lambda item: item["probability"])
    found = {"type": "choice", "name": question["name"], "choice": best["value"], "confidence": best["probability"]}
    return {**found, "probabilities": items}


def digit_choice(body: dict[str, Any], grade_of: Truth, fault: str) -> dict[str, Any]:
    """The choice of a chat completion that answers with one digit and its alternatives."""
    text = next(message["content"] for message in body["messages"] if message["role"] == "user")
    query, passage = [match[2] for match in FENCED.finditer(text)]
    grade = grade_of(query, passage)
    pairs: list[tuple[str, Any]] = [(str(each), share) for each, share in enumerate(peaked(grade), start=1)]
    if fault == "words":
        pairs = [("The", 0.7), *((text, 0.3 * share) for text, share in pairs)]
    elif fault == "words too":
        pairs = [("The", 0.2), *((text, 0.8 * share) for text, share in pairs)]
    elif fault == "two spellings":
        pairs = [(each, share / 2) for text, share in pairs for each in (text, f" {text}")]
    elif fault == "truncated list":
        pairs = sorted(pairs, key=lambda pair: -pair[1])[:TOP]
    top = [{"token": text, "logprob": math.log(share), "bytes": None} for text, share in pairs]
    if fault.endswith("logprob"):
        top[0]["logprob"] = SPOILT[fault.partition(" ")[0]]
    top.sort(key=lambda item: -item["logprob"])
    token = {"token": str(grade), "logprob": math.log(0.6), "bytes": None, "top_logprobs": top}
    space = {"token": " ", "logprob": -0.1, "bytes": None, "top_logprobs": [{"token": " ", "logprob": -0.1}]}
    content = [space, token] if fault == "space first" else [token]
    finish = "length" if fault == "space first" else "stop"
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
    choice["message"] = {"role": "assistant", "content": str(grade)}
    choice["logprobs"] = None if fault == "no logprobs" else {"content": content, "refusal": None}
    return choice
