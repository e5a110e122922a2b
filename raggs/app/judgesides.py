"""One of two runs whose judges are compared: what its judge graded, who it is, and what it costs. Only read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from raggs.app.unaided import by_people, unaided
from raggs.base.artifacts import JudgeRecord, MergeRecord, QueryRecord
from raggs.base.health import is_people
from raggs.base.jsontypes import as_object
from raggs.parts.judges.consensus import lower_median
from raggs.parts.reviews.models import Key, key_of
from raggs.runs.manifests.costs import LedgerSum, costs
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.reasons import ABSENT, differences

STAGE = "judge"
KIND = "judge.type"
BEGINNING = 80  # characters
HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Bill:
    """What a judge's grades cost.

    Attributes:
        usd: that were paid in the run's judge stage, over all of its attempts.
        usd_per_1000: for a thousand grades, had no answer been cached; None where that is not known.
        tokens_per_grade: in and out; None where nobody was paid here.
        seconds_per_call: mean; None where nobody was asked here.
        calls, cached: requests, and answers that cost nothing.
    """

    usd: float
    usd_per_1000: float | None
    tokens_per_grade: float | None
    seconds_per_call: float | None
    calls: int
    cached: int


@dataclass(frozen=True)
class Side:
    """One of the two.

    Attributes:
        run: the folder.
        judges: by name, how many of the compared grades it gave.
        graded: passages with a grade of the judge's own, compared or not.
        bill: what they cost.
        lacks: queries that are left out since the run was stopped, in words; empty where none is.
    """

    run: str
    judges: Mapping[str, int]
    graded: int
    bill: Bill
    lacks: str


@dataclass(frozen=True)
class Item:
    """A passage of a run's pool, with what its judge said.

    Attributes:
        title: or where the passage begins, if it has none.
        length: of title and text, in characters.
    """

    query: QueryRecord
    title: str
    length: int
    record: JudgeRecord

    @property
    def judged(self) -> bool:
        """Whether the judge gave it a grade."""
        return self.record.grade is not None and not by_people(self.record)


@dataclass(frozen=True)
class Judged:
    """A run's grades, or those of one member of its panel.

    Attributes:
        items: by what they say; of two that say the same, the one ranked higher.
        member: its name; empty where the judge is meant as a whole.
    """

    run: OpenedRun
    items: Mapping[Key, Item]
    member: str = ""


def members_of(run: OpenedRun) -> tuple[str, ...]:
    """The members of the run's panel that gave grades and are no people, in their order; none without a panel."""
    found = dict.fromkeys(name for record in run.typed(STAGE, JudgeRecord) for name in record.votes)
    return tuple(name for name in found if not is_people(name))


def judged_by(run: OpenedRun, member: str = "") -> Judged:
    """What the judge of a run graded, or one member of its panel."""
    queries = {record.qid: record for record in run.typed("queries", QueryRecord)}
    own = partial(_voted, member=member) if member else unaided
    records = {(record.qid, record.doc_id): own(record) for record in run.typed(STAGE, JudgeRecord)}
    found: dict[Key, Item] = {}
    for pooled in run.typed("merge", MergeRecord):
        record, query = records.get((pooled.qid, pooled.doc_id)), queries.get(pooled.qid)
        if record is not None and query is not None:
            passage = pooled.passage
            item = Item(query, passage.title or passage.text[:BEGINNING], len(passage.content), record)
            found.setdefault(key_of(query, passage), item)
    return Judged(run, found, member)


def _voted(record: JudgeRecord, member: str) -> JudgeRecord:
    """The record with the grade that one member gave; the reason may be another's."""
    votes = [vote for vote in record.votes.get(member, ()) if vote is not None]
    return record.model_copy(update={"grade": lower_median(votes), "judge": member, "reason": "", "votes": {}})


def side_of(judged: Judged, judges: Sequence[str]) -> Side:
    """One beside another.

    Args:
        judges: who gave each of the compared grades.

    Raises:
        DataError: a line of its ledger is damaged.
    """
    run = judged.run
    own = [item for item in judged.items.values() if item.judged and item.record.duplicate_of is None]
    return Side(
        run=str(run.folder),
        judges=dict(sorted(Counter(judges).items())),
        graded=len(own),
        bill=_member_bill(run, judged.member) if judged.member else _bill(run, len(own)),
        lacks=run.lacks if STAGE in {part.stage for part in run.parts} else "",
    )


def _bill(run: OpenedRun, grades: int) -> Bill:
    """Sums of the ledger; what a grade takes is told by the answers of the latest attempt, cached ones too."""
    spent, lock = costs(run.store, STAGE).total, run.manifest.stages.get(STAGE)
    asked = spent.answered + spent.unusable + spent.failed
    whole = None if lock is None else lock.cost.usd + lock.cost.saved_usd
    answers = 0 if lock is None else lock.cost.calls + lock.cost.cached
    tokens = (spent.prompt_tokens + spent.completion_tokens) / spent.calls if spent.calls else None
    return Bill(
        usd=spent.usd,
        usd_per_1000=None if whole is None or not grades else 1000 * whole / grades,
        tokens_per_grade=None if tokens is None or not (grades and answers) else tokens * answers / grades,
        seconds_per_call=spent.mean_s if asked else None,
        calls=spent.calls,
        cached=spent.cached,
    )


def _member_bill(run: OpenedRun, member: str) -> Bill:
    """Of the model that a member is named after, if any; each grade takes as many answers as samples are asked."""
    lock, models = run.manifest.stages.get(STAGE), costs(run.store, STAGE).model
    spent = next((each for model, each in models.items() if member.split(" #")[0].endswith(f" {model}")), LedgerSum())
    samples = as_object({} if lock is None else lock.params).get("samples")
    each_grade = samples if isinstance(samples, int) else 1
    asked, paid = spent.answered + spent.unusable + spent.failed, spent.answered + spent.unusable + spent.cached
    tokens = (spent.prompt_tokens + spent.completion_tokens) / spent.calls if spent.calls else None
    return Bill(
        usd=spent.usd,
        usd_per_1000=1000 * each_grade * (spent.usd + spent.saved_usd) / paid if paid else 0.0,
        tokens_per_grade=None if tokens is None else tokens * each_grade,
        seconds_per_call=spent.mean_s if asked else None,
        calls=spent.calls,
        cached=spent.cached,
    )


def settings_apart(one: OpenedRun, other: OpenedRun) -> dict[str, tuple[str, str]]:
    """Where the judges' causes differ, by dotted name, with both values; a text goes by its name where names differ."""
    first, second = (run.manifest.stages.get(STAGE) for run in (one, other))
    if first is None or second is None:
        return {}
    found = {
        change.component: (_told(change.old), _told(change.new))
        for change in differences(_causes(first), _causes(second))
    }
    if KIND in found:  # another kind of judge has other settings altogether
        found = {name: values for name, values in found.items() if name == KIND or not name.startswith("judge.")}
    if "prompt" in found:
        found.pop("judge.prompt", None)  # the hash of what the name is of
    return found


def _causes(lock: StageLock) -> dict[str, object]:
    config, judge = lock.components.get("config"), lock.components.get("judge")
    settings = {name: value for name, value in (config.items() if isinstance(config, Mapping) else ()) if name != STAGE}
    together = {"group_prompt": Path(str(lock.params.get("group_prompt"))).name} if "group" in settings else {}
    return {**settings, **together, "judge": judge, "prompt": Path(str(lock.params.get("prompt"))).name}


def _told(value: object) -> str:
    text = "–" if value is ABSENT else str(value)
    return text[:8] if HASH.fullmatch(text) else text
