"""Grades and orders question by question: what moved in which, the most moved first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raggs.base.jsontypes import number
from raggs.evaluation.diffs import grades as grading
from raggs.evaluation.diffs.models import GradesPart, OrdersPart, QuestionPart
from raggs.evaluation.diffs.orders import OrderMove, depth, order_move, orders_part
from raggs.evaluation.diffs.pairing import Pairing
from raggs.evaluation.diffs.sides import Side


@dataclass(frozen=True)
class Moves:
    """What moved: in all, and by question."""

    grades: GradesPart | None
    orders: OrdersPart | None
    by_question: tuple[QuestionPart, ...]


def moves(old: Side, new: Side, pairing: Pairing, *, confidence: float, seed: int) -> Moves:
    """Compare the questions that both judge.

    Args:
        pairing: which ids of the new set mean which of the old one.
        confidence: of the intervals, and of what is beyond doubt; in 0..1.
        seed: of every draw.
    """
    shared, k = pairing.shared(old, new), depth(old.top, new.top)
    orders: dict[str, OrderMove] = {}
    for qid, there in shared.items() if k else ():
        before, after = old.orders.get(qid), pairing.order(new, there)
        if before is not None and after is not None:
            orders[qid] = order_move(before, after, k, name=qid, confidence=confidence, seed=seed)
    graded = grading.moved(old, new, pairing) if grading.comparable(old, new) else None
    return Moves(
        None if graded is None else grading.grades_part(graded, new, confidence=confidence, seed=seed),
        orders_part(list(orders.values()), k, confidence=confidence),
        _by_question(list(shared), graded, orders),
    )


def _by_question(
    qids: list[str], graded: grading.Moved | None, orders: Mapping[str, OrderMove]
) -> tuple[QuestionPart, ...]:
    places = {} if graded is None else graded.places()
    parts = [_part(qid, graded, places.get(qid, range(0)), orders.get(qid)) for qid in qids]
    return tuple(sorted(parts, key=lambda part: (-part.moved, part.overlap if part.overlap is not None else 1.0)))


def _part(qid: str, graded: grading.Moved | None, places: range, order: OrderMove | None) -> QuestionPart:
    compared, moved, shift = (0, 0, float("nan")) if graded is None else graded.of(places)
    part = QuestionPart(qid=qid, compared=compared, moved=moved, shift=number(shift))
    if order is None:
        return part
    told = None if order.beyond is None else "beyond" if order.beyond else "within"
    seen = {name: number(getattr(order, name)) for name in ("tau_ap", "rbo", "overlap", "expected")}
    return part.model_copy(update={**seen, "change": told})
