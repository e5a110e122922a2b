"""A language model that writes questions.

The prompt contains windows of documents and earlier questions, between markers that guard against prompt injection. It
contains no file names or offsets. The excerpts are returned unchanged, and the caller verifies them.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.settings import Causes, PromptName
from raggs.base.text import clean_unicode, one_line
from raggs.base.types import JsonObject, as_list
from raggs.llm import ChatRequest, Parameters
from raggs.parts.askers import MAX_EXCERPTS, MAX_QUESTION_CHARS, Asker, AskerContext, Assignment, Question, QuestionKind
from raggs.prompts import Prompt, load_prompt

ANSWER_TOKENS = 200  # as measured in Chroma's report
EMPTY_FIELD = "-"
SCHEMA = {
    "type": "object",
    "properties": {
        "oath": {"type": "string"},
        "question": {"type": "string"},
        "references": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["oath", "question", "references"],
    "additionalProperties": False,
}


class LiteLLMAsker(Asker):
    """A language model of any provider that litellm supports."""

    NOTE = "made by a language model, not by users"

    class Config(AdapterConfig):
        type: Literal["litellm"] = "litellm"
        model: str = Field(min_length=1, description='provider and model, for example "openai/gpt-5-mini"')
        prompt: PromptName = Field("ask@1", description="name of a prompt, or path of a Markdown file")
        parameters: Parameters = Field(
            default_factory=dict, description="call parameters; they override llm.parameters"
        )

    config: Config

    def __init__(self, config: Config, context: AskerContext) -> None:
        super().__init__(config, context)
        self._llm = context.llm
        self._prompt: Prompt = load_prompt(config.prompt, "ask")

    @property
    def name(self) -> str:
        return f"litellm {self.config.model}"

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """Return everything that affects a question: settings, text of the prompt, settings of the model."""
        asked = self._llm.settings.causes_for(self.models)
        return {**self.own_causes(), "prompt": self._prompt.sha256, "llm": asked}

    def check(self) -> None:
        self._llm.require_price(self.config.model)

    async def ask(self, assignment: Assignment) -> Question:
        guard, windows = self._llm.guard, assignment.windows
        named = "\n\n".join(f"{number}:\n{guard(text)}" for number, text in enumerate(windows, start=1))
        reply = await self._llm.ask(
            ChatRequest(
                qid=assignment.qid,
                model=self.config.model,
                messages=self._prompt.render(
                    assignment.language,
                    kind=assignment.kind,
                    persona=one_line(assignment.persona) or EMPTY_FIELD,
                    style=assignment.style,
                    earlier=guard("\n".join(assignment.earlier)) if assignment.earlier else EMPTY_FIELD,
                    texts=named,
                ),
                schema=SCHEMA,
                schema_name="ask",
                check=partial(check_question, kind=assignment.kind),
                max_output_tokens=ANSWER_TOKENS,
                parameters=self.config.parameters,
            )
        )
        if reply.value is None:
            return Question(None, error=reply.error, raw=reply.raw)
        question, excerpts = reply.value
        return Question(question, excerpts)


def check_question(answer: JsonObject, kind: QuestionKind) -> tuple[str, tuple[str, ...]]:
    """Return the question on one line, and its excerpts unchanged.

    Raises:
        ValueError: the field `oath` or `question` is missing, the question is too long, or the excerpts are not
            strings, empty, too many, or do not fit the kind of question.
    """
    oath, found = answer.get("oath"), answer.get("question")
    if not isinstance(oath, str) or not oath.strip():
        raise ValueError('"oath" must be the sentence that was asked for')
    question = one_line(clean_unicode(found)) if isinstance(found, str) else ""
    if not question:
        raise ValueError('"question" must be text, and not empty')
    if len(question) > MAX_QUESTION_CHARS:
        raise ValueError(f'"question" must have at most {MAX_QUESTION_CHARS} characters')
    given = as_list(answer.get("references"))
    excerpts = tuple(each for each in given if isinstance(each, str) and each.strip())
    if not isinstance(answer.get("references"), list) or len(excerpts) < len(given):
        raise ValueError('"references" must be a list of texts, none of them empty')
    if len(excerpts) > MAX_EXCERPTS:
        raise ValueError(f'"references" must hold at most {MAX_EXCERPTS} excerpts')
    if bool(excerpts) == (kind == "unanswerable"):
        wanted = "stay empty, since the question has no answer" if excerpts else "hold at least one excerpt"
        raise ValueError(f'"references" must {wanted}')
    return question, excerpts
