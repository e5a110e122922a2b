"""The verdict on each scorer, and the one sentence on all."""

from __future__ import annotations

from collections.abc import Sequence

from raggs.diagnosis.names.measuring import MOSTLY
from raggs.diagnosis.names.models import AblationPart, SubjectPart
from raggs.diagnosis.verdicts import listed, said, some_of

ADVICE = {
    "embedder": "First put a lexical retriever beside it, fused (RRF): to that a name is a word like others",
    "reranker": "First try another reranker, or fuse its order with one that reads words (RRF)",
}
MORE = "First ask more: --questions, --runs"


def blind(subject: SubjectPart) -> bool:
    """Whether the scorer does not tell names apart in this language, so that no change of that says anything."""
    return subject.small > MOSTLY


def passed(subjects: Sequence[SubjectPart]) -> bool | None:
    """Whether all hold what is asked of them; None where nobody fails and somebody is in doubt."""
    if any(blind(each) or _failed(each) for each in subjects):
        return False
    return None if any(_doubted(each) for each in subjects) else True


def verdict(subjects: Sequence[SubjectPart], least: float, most: float) -> str:
    """Which scorer fails, where, and by what; then what to do first."""
    scorers = list(dict.fromkeys(each.scorer for each in subjects))
    wrong = [text for name in scorers if (text := _wrong(name, [each for each in subjects if each.scorer == name]))]
    if wrong:
        first = next(each for each in subjects if blind(each) or _failed(each))
        more = [f"so do {len(wrong) - 1} more"] if len(wrong) > 1 else []
        return said("; ".join([wrong[0], *more]), ADVICE[first.what])
    kept = f"an identity that is destroyed costs {least:g}% or more, another form or layout {most:g}% or less"
    if doubted := [
        f"{each.scorer} under {some_of([part.perturber for part in _doubted(each)])} ({each.language})"
        for each in subjects
        if _doubted(each)
    ]:
        return said(f"Nobody fails beyond doubt, and {some_of(doubted)} cannot be told from its limit: {kept}", MORE)
    return said(f"{some_of(scorers)} {'tells' if len(scorers) == 1 else 'tell'} people apart as asked: {kept}")


def _wrong(scorer: str, subjects: Sequence[SubjectPart]) -> str | None:
    """What is wrong with one scorer, over its languages; None where nothing is."""
    told = [f"it hardly tells one name from another in {each.language}" for each in subjects if blind(each)]
    failed: dict[str, list[tuple[str, AblationPart]]] = {}
    for each in subjects:
        for part in [] if blind(each) else _failed(each):
            failed.setdefault(part.perturber, []).append((each.language, part))
    told += [_said(name, parts) for name, parts in failed.items()]
    return f"{scorer} fails: {some_of(told)}" if told else None


def _said(perturber: str, parts: Sequence[tuple[str, AblationPart]]) -> str:
    """``initials_form costs 27% (en) and 33% (fr) of the name margin``."""
    changes = [(language, part.percent.value or 0.0) for language, part in parts]
    identity = parts[0][1].family == "identity"
    figures = listed(f"{100 + change if identity else -change:.0f}% ({language})" for language, change in changes)
    return f"{perturber} {'leaves' if identity else 'costs'} {figures} of the name margin"


def _failed(subject: SubjectPart) -> list[AblationPart]:
    return [part for part in subject.ablations if part.holds is False]


def _doubted(subject: SubjectPart) -> list[AblationPart]:
    return [part for part in subject.ablations if part.holds is None]
