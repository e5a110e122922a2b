"""A language model as judge.

The prompt contains the query with the earlier turns of its conversation, and the passages (title and text). Each is
between markers that guard against prompt injection. The prompt contains no identifier, score, rank, or grade of another
judge. raggs accepts or rejects an answer, but does not correct it: a grade is a whole number from 1 to 5, and an order
names each label exactly once. Grades of passages that are shown together are checked in the same way. If the answer for
such a group is unusable or the provider rejects the request, its passages are graded one by one.

If the form of answers is `logprobs` or `decision`, the model states a probability per grade: as log-probabilities of
the digits 1 to 5, or as a decision. `raggs.stats.grade_distribution` reads and checks them. The grade is their lower
median. Passages are then graded one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, ValidationError, model_validator

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Frozen, Passage, Query
from raggs.base.errors import ConfigError, DataError
from raggs.base.files import hash_file, regular_file
from raggs.base.jsonl import first_fault
from raggs.base.languages import detect_language
from raggs.base.settings import AddedLater, Causes, Effort, InputPath, PromptName
from raggs.base.text import one_line, plural
from raggs.base.types import JsonObject, as_list
from raggs.llm import ChatRequest, DecisionRequest, Parameters, Reply
from raggs.parts.judges import (
    DistributionSource,
    Judge,
    JudgeContext,
    Judgment,
    Ordering,
    OrderPrice,
    Task,
    order_price,
)
from raggs.parts.judges.decisions import best_question, best_text, grade_question, grade_text, question_hash
from raggs.prompts import (
    FALLBACK_LANGUAGE,
    Prompt,
    label_texts,
    labels_for,
    load_prompt,
    order_schema,
    schema_by_label,
)
from raggs.stats.grade_distribution import (
    Distribution,
    canonical,
    distribution_of_choices,
    distribution_of_levels,
    distribution_of_tokens,
    median_grade,
)

if TYPE_CHECKING:
    from raggs.llm.providers import AnswerForm
    from raggs.stats.calibration import DistributionCalibration

T = TypeVar("T")

GRADES = range(MIN_GRADE, MAX_GRADE + 1)
GRADE_TOKENS = 120  # an answer with a grade: one sentence and a number
DIGIT_TOKENS = 2  # an answer with one digit, which may follow a token with a space
DIGIT_ALTERNATIVES = 20  # maximum number of log-probabilities per token that OpenAI returns
LABEL_TOKENS = 8  # upper bound per label: a quoted label has three tokens, or four to five on a separate line
TYPICAL_LENGTH = 5  # number of passages in a typical batch
# Texts of the call that tests the form of answers.
CHECK_QUERY = Query(qid="check", text="What is the capital of France?", language="en")
CHECK_PASSAGE = Passage(doc_id="check", text="Paris is the capital of France.")
GRADE_SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "grade": {"type": "integer", "enum": list(GRADES)}},
    "required": ["reason", "grade"],
    "additionalProperties": False,
}


class LiteLLMJudge(Judge):
    """A language model of any provider that litellm supports."""

    class Config(AdapterConfig):
        type: Literal["litellm"] = "litellm"
        model: str = Field(min_length=1, description='provider and model, for example "openai/gpt-5-mini"')
        parameters: Parameters = Field(
            default_factory=dict, description="call parameters; they override llm.parameters"
        )
        answers: AddedLater[Literal["text", "logprobs", "decision", "auto"]] = Field(
            "text",
            description="form of a grade. text: a JSON object with a reason. logprobs: one digit with the "
            "log-probabilities of its alternatives. decision: probabilities of the grades from a decision model, which "
            "generates no text. auto: decision or logprobs if litellm's tables list them for the model, otherwise "
            "text. With logprobs or decision, judge.jsonl contains the probabilities of all grades",
        )
        digit_prompt: PromptName = Field(
            "digit@1",
            description="prompt for grading one passage with answers: logprobs: name of a prompt or path of a Markdown "
            "file",
        )
        calibration: Effort[InputPath | None] = Field(  # the causes of the judge contain the hash of the file
            None,
            description="JSON file with the calibration of the probabilities: temperature, mix and a confusion matrix "
            "of 5 x 5. null: the probabilities stay as the model states them",
        )

        @model_validator(mode="after")
        def _has_probabilities(self) -> Self:
            if self.calibration is not None and self.answers == "text":
                raise ValueError("calibration needs probabilities: set answers to logprobs, decision or auto")
            return self

    config: Config

    def __init__(self, config: Config, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._llm = context.llm
        self._languages: dict[str, str] = {}
        self._groups = self._parted = 0
        self._prompts = {"grade": context.grade_prompt, "order": context.order_prompt}

    @property
    def name(self) -> str:
        return f"litellm {self.config.model}"

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    @classmethod
    def groups(cls, spec: AdapterConfig) -> bool:
        """Return whether grades are read from text (see `Judge.groups`)."""
        return isinstance(spec, cls.Config) and _resolved_form(spec) == "text"

    @property
    def grades_together(self) -> bool:
        return self.context.grades_prompt is not None and self._answer_form == "text"

    @cached_property
    def _answer_form(self) -> AnswerForm:
        """The form of a grade, with "auto" resolved."""
        return _resolved_form(self.config)

    @cached_property
    def _calibration(self) -> DistributionCalibration | None:
        """The calibration of probabilities, read at first use."""
        return None if self.config.calibration is None else read_calibration(self.config.calibration)

    @cached_property
    def _digit_prompt(self) -> Prompt:
        return load_prompt(self.config.digit_prompt, "digit")

    def check(self, queries: Iterable[Query]) -> None:
        """Check before the first call that the budget can be enforced and batches are supported.

        Raises:
            ConfigError: the model's price is unknown although `budget.max_usd` is set, or the provider has no supported
                batch API although batches are configured, or a calibration is set but grades are read from text.
            DataError: the calibration file cannot be read, or is invalid.
        """
        if self._calibration is not None and self._answer_form == "text":
            raise ConfigError(
                f"{self.config.model} states no probabilities according to litellm's tables, so calibration has no use",
                remedy="set answers to logprobs or decision, or remove calibration",
            )
        if self._answer_form != "decision":
            self._llm.require_batches(self.config.model)
        self._llm.require_price(self.config.model)

    def causes(self, task: Task) -> Causes:
        """Return the causes (see `Judge.causes`). "auto" counts as the form that it stands for."""
        own = {name: value for name, value in self.own_causes().items() if name != "answers"}
        form = "text" if task == "order" and self._answer_form == "logprobs" else self._answer_form
        if form == "text":
            prompt = self._prompts.get(task) or self.context.grades_prompt or self.context.grade_prompt
            return {**own, "prompt": prompt.sha256}
        own["answers"] = form
        if task != "order" and (path := self.config.calibration) is not None:
            own["calibration"] = hash_file(path) if path.is_file() else None  # `check` names a missing file
        if form == "logprobs":
            return {**own, "digit_prompt": self._digit_prompt.sha256}
        return {**own, "question": question_hash(task)}

    async def confirm(self) -> Sequence[tuple[str, bool]]:
        """Grade one passage, unless the setting `answers` is text (see `Judge.confirm`)."""
        if self.config.answers == "text":
            return ()
        found = await self.grade(CHECK_QUERY, CHECK_PASSAGE)
        form = f"{self.config.model}: answers: {self._answer_form}"
        if found.grade is None:
            return [(f"{form} is not usable: {found.error}", False)]
        return [(f"{form}, confirmed by one call", True)]

    @property
    def order_price(self) -> OrderPrice:
        """Cost of an order at the model's price (see `Judge.order_price`)."""
        template, form = (
            self._prompts["order"].template(FALLBACK_LANGUAGE),
            str(order_schema(labels_for(TYPICAL_LENGTH))),
        )
        price = self._llm.price(self.config.model)
        return order_price(self.config.model, price, template.system, f"{template.user}\n{form}")

    def _language(self, query: Query) -> str:
        """Return the language that the query's file states, otherwise the detected language of its text."""
        if query.qid not in self._languages:
            self._languages[query.qid] = query.language or detect_language(query.text, FALLBACK_LANGUAGE)
        return self._languages[query.qid]

    def _shown(self, query: Query) -> str:
        """Return the query with the earlier turns of its conversation, between markers against prompt injection."""
        return self._llm.guard(query.in_context(self._language(query)))

    def remarks(self) -> Iterator[str]:
        """Yield how many groups of passages had no usable answer."""
        if self._parted:
            told = f"{self._parted:,} of {plural(self._groups, 'group')} of passages"
            yield f"{told} had no usable answer; their passages were graded one by one"

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        if self._answer_form == "decision":
            return self._judgment_of(await self._llm.ask(self._decision(query, passage, sample)), "decision")
        if self._answer_form == "logprobs":
            return self._judgment_of(await self._llm.ask(self._digit(query, passage, sample)), "logprobs")
        messages = self._prompts["grade"].render(
            self._language(query),
            query=self._shown(query),
            passage=self._llm.guard(passage.content),
        )
        reply = await self._llm.ask(
            ChatRequest(
                qid=query.qid,
                model=self.config.model,
                messages=messages,
                schema=GRADE_SCHEMA,
                schema_name="grade",
                check=check_grade,
                sample=sample,
                max_output_tokens=GRADE_TOKENS,
                patient=True,
                parameters=self.config.parameters,
            )
        )
        by = answerers_of(reply)
        if reply.value is None:
            return Judgment(None, error=reply.error, raw=reply.raw, answerers=by)
        grade, reason = reply.value
        return Judgment(grade, reason, answerers=by)

    def _judgment_of(self, reply: Reply[Distribution], source: DistributionSource) -> Judgment:
        """Return the judgment of an answer with probabilities, which are calibrated if a calibration is set."""
        by, found = answerers_of(reply), reply.value
        if found is None:
            return Judgment(None, error=reply.error, raw=reply.raw, answerers=by)
        if self._calibration is not None:
            from raggs.stats.calibration import apply_calibration  # imported lazily: it imports numpy

            found = canonical(apply_calibration(found, self._calibration))
        return Judgment(median_grade(found), answerers=by, distribution=found, distribution_source=source)

    def _decision(self, query: Query, passage: Passage, sample: int) -> DecisionRequest[Distribution]:
        language = self._language(query)
        return DecisionRequest(
            qid=query.qid,
            model=self.config.model,
            text=grade_text(language, self._shown(query), self._llm.guard(passage.content)),
            question=grade_question(language),
            schema_name="grade",
            check=distribution_of_levels,
            sample=sample,
            parameters=self.config.parameters,
        )

    def _digit(self, query: Query, passage: Passage, sample: int) -> ChatRequest[Distribution]:
        guard = self._llm.guard
        return ChatRequest(
            qid=query.qid,
            model=self.config.model,
            messages=self._digit_prompt.render(
                self._language(query), query=self._shown(query), passage=guard(passage.content)
            ),
            schema={},
            schema_name="grade",
            check=check_digit,
            sample=sample,
            max_output_tokens=DIGIT_TOKENS,
            patient=True,
            parameters=self.config.parameters,
            logprobs=DIGIT_ALTERNATIVES,
        )

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        """Return the grades of one call for all passages (see `Judge.grades`).

        Each passage has its own call if it is the only one, there is no prompt for groups, answers state probabilities,
        the answer for all is unusable, or the provider rejects that request. If the call for all passages fails for
        another reason, every judgment has its error.
        """
        prompt = self.context.grades_prompt
        if len(passages) == 1 or prompt is None or self._answer_form != "text":
            return await super().grades(query, passages, sample=sample)
        labels = labels_for(len(passages))
        shown = label_texts([passage.content for passage in passages], self._llm.guard)
        reply = await self._llm.ask(
            ChatRequest(
                qid=query.qid,
                model=self.config.model,
                messages=prompt.render(self._language(query), query=self._shown(query), passages=shown),
                schema=schema_by_label(labels, GRADE_SCHEMA),
                schema_name="grades",
                check=partial(check_grades, labels=labels),
                sample=sample,
                max_output_tokens=GRADE_TOKENS * len(labels),
                patient=True,
                parameters=self.config.parameters,
            )
        )
        self._groups += 1
        if reply.value is not None:
            return [Judgment(grade, reason, answerers=answerers_of(reply)) for grade, reason in reply.value]
        if reply.unusable or reply.rejected:
            self._parted += 1
            return await super().grades(query, passages, sample=sample)
        return [Judgment(None, error=reply.error, raw=reply.raw, answerers=answerers_of(reply))] * len(passages)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        return await self.reorder(query, passages, sample=0)

    async def reorder(self, query: Query, passages: Sequence[Passage], *, sample: int) -> Ordering:
        """Return an order (see `Judge.reorder`); each sample is a separate call with a separate cache entry."""
        labels = labels_for(len(passages))
        shown = label_texts([passage.content for passage in passages], self._llm.guard)
        if self._answer_form == "decision":
            return await self._decided_order(query, labels, shown, sample)
        messages = self._prompts["order"].render(self._language(query), query=self._shown(query), passages=shown)
        reply = await self._llm.ask(
            ChatRequest(
                qid=query.qid,
                model=self.config.model,
                messages=messages,
                schema=order_schema(labels),
                schema_name="order",
                check=partial(check_order, labels=labels),
                sample=sample,
                max_output_tokens=LABEL_TOKENS * (len(labels) + 2),
                parameters=self.config.parameters,
            )
        )
        raw = None if reply.error is None else reply.raw
        return Ordering(reply.value, error=reply.error, raw=raw, answerers=answerers_of(reply))

    async def _decided_order(self, query: Query, labels: Sequence[str], shown: str, sample: int) -> Ordering:
        """Return an order by the probability that each passage is the best."""
        language = self._language(query)
        reply = await self._llm.ask(
            DecisionRequest(
                qid=query.qid,
                model=self.config.model,
                text=best_text(language, self._shown(query), shown),
                question=best_question(language, labels),
                schema_name="order",
                check=partial(order_by_shares, labels=labels),
                sample=sample,
                parameters=self.config.parameters,
            )
        )
        if reply.value is None:
            return Ordering(None, error=reply.error, raw=reply.raw, answerers=answerers_of(reply))
        order, best = reply.value
        return Ordering(order, answerers=answerers_of(reply), best=best)


def order_by_shares(answer: JsonObject, labels: Sequence[str]) -> tuple[tuple[int, ...], Distribution]:
    """Return the positions in the order of presentation, best first, and the probability that each of them is the best.
    Equal probabilities keep the order of presentation.

    Raises:
        ValueError: the probabilities cannot be used.
    """
    shares = distribution_of_choices(answer, labels)
    order = sorted(range(len(labels)), key=lambda place: -shares[place])
    return tuple(order), tuple(shares[place] for place in order)


def _resolved_form(config: LiteLLMJudge.Config) -> AnswerForm:
    """Return the form of a grade under these settings; "auto" is resolved by litellm's tables, without a call."""
    if config.answers != "auto":
        return config.answers
    from raggs.llm.providers import answer_form  # imported lazily: it may import litellm, which takes seconds

    return answer_form(config.model)


class CalibrationFile(Frozen):
    """Content of a calibration file. Other keys are ignored.

    Attributes:
        fitted_on: query id and passage id of the labels that it was fitted on; None if unknown. `raggs judge bench`,
            `raggs judge check` and the gate `kappa` exclude them.
    """

    model_config = ConfigDict(extra="ignore")

    temperature: float
    mix: float
    confusion: tuple[tuple[float, ...], ...]
    fitted_on: tuple[tuple[str, str], ...] | None = None


CALIBRATION_REMEDY = "set calibration to a JSON file with temperature, mix and confusion"


def read_calibration(path: Path) -> DistributionCalibration:
    """Return the calibration in a JSON file (see `CalibrationFile`).

    Raises:
        DataError: the file cannot be read, or its content is invalid.
    """
    from raggs.stats.calibration import DistributionCalibration  # imported lazily: it imports numpy

    found = read_calibration_file(path)
    try:
        return DistributionCalibration(found.temperature, found.mix, found.confusion)
    except ValueError as error:
        raise DataError(f"is not a calibration: {error}", where=path, remedy=CALIBRATION_REMEDY) from None


def read_calibration_file(path: Path) -> CalibrationFile:
    """Return the content of a calibration file.

    Raises:
        DataError: the file cannot be read, or is not a calibration.
    """
    try:
        return CalibrationFile.model_validate_json(regular_file(path).read_bytes())
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=path, remedy=CALIBRATION_REMEDY) from None
    except ValidationError as error:
        said = f"is not a calibration: {first_fault(error)}"
        raise DataError(said, where=path, remedy=CALIBRATION_REMEDY) from None


def answerers_of(reply: Reply[T]) -> tuple[str, ...]:
    """Return the key of the model that answered; empty if no model answered."""
    return (reply.answerer,) if reply.answerer else ()


def check_grade(answer: JsonObject) -> tuple[int, str]:
    """Return the grade and the reason of an answer.

    Raises:
        ValueError: the grade is not a whole number from 1 to 5, or the reason is not text.
    """
    grade, reason = answer.get("grade"), answer.get("reason", "")
    if type(grade) is not int or grade not in GRADES:  # isinstance would accept a bool
        raise ValueError(f'"grade" must be a whole number from {MIN_GRADE} to {MAX_GRADE}')
    if not isinstance(reason, str):
        raise ValueError('"reason" must be text')
    return grade, one_line(reason)


def check_digit(answer: JsonObject) -> Distribution:
    """Return the probabilities of the grades from the log-probabilities of an answer.

    Raises:
        ValueError: no token has at least half of its probability on grades, or a log-probability cannot be used.
    """
    try:
        return distribution_of_tokens(answer.get("logprobs"))
    except ValueError as error:
        raise ValueError(f"it must be one digit from {MIN_GRADE} to {MAX_GRADE}; {error}") from None


def check_grades(answer: JsonObject, labels: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Return grade and reason for each label, in the order of `labels`.

    Raises:
        ValueError: the keys differ from the labels, or a value is not a valid grade with a reason.
    """
    if set(answer) != set(labels):
        raise ValueError(f"it must hold each of the labels {', '.join(labels)} exactly once, and no other key")
    found = []
    for label in labels:
        said = answer[label]
        try:
            found.append(check_grade(said if isinstance(said, dict) else {}))
        except ValueError as error:
            raise ValueError(f"of passage {label}, {error}") from None
    return tuple(found)


def check_order(answer: JsonObject, labels: Sequence[str]) -> tuple[int, ...]:
    """Return the positions in the order of presentation, best first.

    Raises:
        ValueError: the answer is not a permutation of the labels.
    """
    order = [label for label in as_list(answer.get("order")) if isinstance(label, str)]
    positions = {label: position for position, label in enumerate(labels)}
    if sorted(order) != sorted(labels) or len(order) != len(as_list(answer.get("order"))):
        raise ValueError(f'"order" must hold each of the labels {", ".join(labels)} exactly once')
    return tuple(positions[label] for label in order)
