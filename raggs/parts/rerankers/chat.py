"""What rerankers have in common that ask a language model by chat: the model, a prompt, what it may cost.

The model sees the question and the text of passages, each between marks that guard against orders in it, and nothing
else: no identifier, no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pydantic import Field

from raggs.base.settings import Causes, PromptName
from raggs.llm import ChatRequest, Parameters
from raggs.llm.prices import estimate_tokens, reasons
from raggs.parts.rerankers.base import Outlay, Reranker, RerankerConfig, RerankerContext
from raggs.prompts import Prompt, PromptUse, load_prompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from raggs.base.types import JsonObject
    from raggs.llm import Reply

T = TypeVar("T")
HIDDEN = 1000  # tokens of hidden reasoning that are assumed for an answer


class ChatConfig(RerankerConfig):
    """What the settings of each of them hold; `prompt` has the default of its task."""

    model: str = Field(min_length=1, description='provider and model, such as "openai/gpt-5-mini"')
    prompt: PromptName = Field(description="a prompt's name, or the path of a Markdown file")
    parameters: Parameters = Field(default_factory=dict, description="sent with each call, over llm.parameters")


class ChatReranker(Reranker):
    """Asks by chat. `TASK` names its prompts, the form of its answers and its lines in the ledger."""

    PAID: ClassVar[bool] = True
    TASK: ClassVar[PromptUse]
    Config: ClassVar[type[ChatConfig]]

    config: ChatConfig

    def __init__(self, config: ChatConfig, context: RerankerContext) -> None:
        super().__init__(config, context)
        self._prompt: Prompt = load_prompt(config.prompt, self.TASK)

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """All that can change an order: model, parameters, the prompt's text, what the settings say of the model."""
        llm = self.context.llm.settings.causes_for(self.models)
        return {**self.own_causes(), "prompt": self._prompt.sha256, "llm": llm}

    def check(self) -> None:
        """Find out before the first call whether the budget can be kept.

        Raises:
            ConfigError: the model's price is unknown while money is limited.
        """
        self.context.llm.require_price(self.config.model)

    def _outlay(self, calls: int, shown: int, answer: int) -> Outlay:
        """What `calls` take that show `shown` tokens of question and passages in all. `answer`: tokens of each."""
        llm, model = self.context.llm, self.config.model
        hidden = HIDDEN if reasons(model, {**llm.settings.parameters_of(model), **self.config.parameters}) else 0
        sent, received = calls * estimate_tokens(self._prompt.text()) + shown, calls * (answer + hidden)
        price = llm.price(model)
        return Outlay(calls, sent, received, None if price is None else price.usd(sent, received))

    async def _ask(
        self,
        language: str,
        fields: Mapping[str, str],
        schema: Mapping[str, object],
        check: Callable[[JsonObject], T],
        tokens: int,
    ) -> Reply[T]:
        """The checked answer. `fields`: in place of the placeholders, guarded; `tokens`: the likely length."""
        return await self.context.llm.ask(
            ChatRequest(
                model=self.config.model,
                messages=self._prompt.render(language, **fields),
                schema=schema,
                schema_name=self.TASK,
                check=check,
                max_output_tokens=tokens,
                parameters=self.config.parameters,
            )
        )
