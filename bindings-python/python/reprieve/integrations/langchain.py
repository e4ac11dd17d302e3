"""LangChain under a policy: a runnable that wraps models and chains, and a middleware for agents.

```python
from langchain_openai import ChatOpenAI
from reprieve.integrations.langchain import resilient

model = resilient(ChatOpenAI(model="gpt-5"), "interactive", fallbacks=[ChatOpenAI(model="gpt-5-mini")])
chain = prompt | model | parser
```

What `resilient` makes of a chat model is a chat model. Each attempt is a run of its own in traces and callbacks, tagged
`reprieve:attempt:N` and a child of the call's run. The retries of the models' clients are off: see `resilient`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast, overload

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForChainRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import patch_config
from pydantic import ConfigDict

from .. import _aio, _driver
from .._current import current_attempt
from .._errors import ConfigError
from .._policy import Bound
from .._stream_items import READERS, Reader
from ._chain import Rules, chain, listed, of_target, off
from ._langchain_agents import ResilientMiddleware
from ._langchain_quiet import quiet
from ._langchain_tokens import counted

__all__ = ["Resilient", "ResilientChatModel", "ResilientMiddleware", "resilient"]


@overload
def resilient(
    runnable: BaseChatModel, policy: Rules, *, fallbacks: Sequence[BaseChatModel] = ()
) -> ResilientChatModel: ...
@overload
def resilient(
    runnable: Runnable[Any, Any], policy: Rules, *, fallbacks: Sequence[Runnable[Any, Any]] = ()
) -> Resilient: ...
def resilient(
    runnable: Runnable[Any, Any], policy: Rules, *, fallbacks: Sequence[Runnable[Any, Any]] = ()
) -> Runnable[Any, Any]:
    """The runnable under this policy: a `Policy`, one with options bound, the name of a preset, or the fields of one.

    It is the first target; the fallbacks are the others, in order. Invoking, batches and streams are retried alike, a
    stream until its first content. Chat models stay chat models: `bind_tools` and `with_structured_output` of the
    result are retried, too. `with_retry` is refused: it would multiply with the policy.

    Works on copies: the retries of `openai`, `anthropic` and similar clients inside of the models are off there, and
    their timeouts are the attempt's. Raises `ConfigError` for what retries all the same (`.with_retry()`, models with
    `max_retries` whose client is none of these), for what is resilient already, and where the policy names more or
    fewer targets than there are runnables.
    """
    runnables = [*listed("runnable", [runnable], Runnable), *listed("fallbacks", fallbacks, Runnable)]
    bound = chain(policy, len(runnables), off("langchain-core", "the retries of its models"))
    if any(isinstance(each, (Resilient, ResilientChatModel)) for each in runnables):
        raise ConfigError("runnable", "a resilient one", "one that is not wrapped yet: one policy is enough")
    quieted = [*map(quiet, runnables)]
    models = [each for each in quieted if isinstance(each, BaseChatModel)]
    if len(models) == len(quieted):
        return ResilientChatModel(models=models, policy=bound, profile=models[0].profile)
    return Resilient(runnables=quieted, policy=bound)


class _Attempts:
    """Invoking and streaming: one run, with each attempt as a child."""

    def _targets(self) -> tuple[Bound, Sequence[Runnable[Any, Any]]]:
        raise NotImplementedError

    def with_retry(self, **_: Any) -> Any:
        """Refused: one retry engine is enough."""
        raise ConfigError("with_retry", "a runnable under a policy", "one without: the policy retries; leave it out")

    def _once(self, input: Any, run_manager: CallbackManagerForChainRun, config: RunnableConfig, **kwargs: Any) -> Any:
        bound, runnables = self._targets()

        def attempt(input: Any, **kwargs: Any) -> Any:
            with counted(run_manager.handlers):
                return of_target(bound, runnables).invoke(input, _child(config, run_manager), **kwargs)

        return _driver.run(bound, attempt, (), {"input": input, **kwargs})

    async def _aonce(
        self, input: Any, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig, **kwargs: Any
    ) -> Any:
        bound, runnables = self._targets()

        async def attempt(input: Any, **kwargs: Any) -> Any:
            with counted(run_manager.handlers):
                return await of_target(bound, runnables).ainvoke(input, _child(config, run_manager), **kwargs)

        return await _aio.run(bound, attempt, (), {"input": input, **kwargs})

    def _streamed(
        self, input: Iterator[Any], run_manager: CallbackManagerForChainRun, config: RunnableConfig, **kwargs: Any
    ) -> Iterator[Any]:
        bound, runnables = self._targets()

        def attempt(input: Any, **kwargs: Any) -> Iterator[Any]:
            return of_target(bound, runnables).stream(input, _child(config, run_manager), **kwargs)

        return bound.stream(attempt, input=next(input), **kwargs)

    async def _astreamed(
        self,
        input: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        bound, runnables = self._targets()

        def attempt(input: Any, **kwargs: Any) -> AsyncIterator[Any]:
            return of_target(bound, runnables).astream(input, _child(config, run_manager), **kwargs)

        async for item in bound.stream(attempt, input=await anext(input), **kwargs):
            yield item


def _child(config: RunnableConfig, run_manager: Any) -> RunnableConfig:
    """The configuration of one attempt: its run is a child of the call's."""
    attempt = current_attempt()
    assert attempt is not None
    return patch_config(config, callbacks=run_manager.get_child(f"reprieve:attempt:{attempt.number}"))


class Resilient(_Attempts, RunnableSerializable[Any, Any]):
    """A runnable under a policy, with its fallbacks. Made by `resilient`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    #: One for each target of the policy.
    runnables: list[Runnable[Any, Any]]
    policy: Bound

    def _targets(self) -> tuple[Bound, Sequence[Runnable[Any, Any]]]:
        return self.policy, self.runnables

    @property
    def InputType(self) -> Any:
        return self.runnables[0].InputType

    @property
    def OutputType(self) -> Any:
        return self.runnables[0].OutputType

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._call_with_config(self._once, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await self._acall_with_config(self._aonce, input, config, **kwargs)

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        yield from self._transform_stream_with_config(iter([input]), self._streamed, config, **kwargs)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        async for item in self._atransform_stream_with_config(_one(input), self._astreamed, config, **kwargs):
            yield item


class ResilientChatModel(_Attempts, BaseChatModel):
    """A chat model under a policy, with its fallbacks. Made by `resilient`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    #: One for each target of the policy.
    models: list[BaseChatModel]
    policy: Bound

    def _targets(self) -> tuple[Bound, Sequence[Runnable[Any, Any]]]:
        return self.policy, self.models

    def invoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        answer: AIMessage = self._call_with_config(self._once, input, config, **kwargs)
        return answer

    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        answer: AIMessage = await self._acall_with_config(self._aonce, input, config, **kwargs)
        return answer

    def stream(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        yield from self._transform_stream_with_config(iter([input]), self._streamed, config, **kwargs)

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async for item in self._atransform_stream_with_config(_one(input), self._astreamed, config, **kwargs):
            yield item

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Each model with the tools, under the same policy."""
        bound = [model.bind_tools(tools, **kwargs) for model in self.models]
        return Resilient(runnables=bound, policy=self.policy)

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        """Each model with the schema, under the same policy: an answer that does not fit is a failure like another,
        `schema_invalid` or `parse_error`."""
        structured = [model.with_structured_output(schema, **kwargs) for model in self.models]
        return Resilient(runnables=structured, policy=self.policy)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """For the older entry points, `generate` and `generate_prompt`."""

        def attempt() -> ChatResult:
            return of_target(self.policy, self.models)._generate(messages, stop, run_manager, **kwargs)

        return cast("ChatResult", _driver.run(self.policy, attempt, (), {}))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        async def attempt() -> ChatResult:
            return await of_target(self.policy, self.models)._agenerate(messages, stop, run_manager, **kwargs)

        return cast("ChatResult", await _aio.run(self.policy, attempt, (), {}))

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> int:
        return self.models[0].get_num_tokens_from_messages(messages, *args, **kwargs)

    def get_token_ids(self, text: str) -> list[int]:
        return self.models[0].get_token_ids(text)

    @property
    def model_name(self) -> str:
        """The name of the first target's model."""
        first: Any = self.models[0]
        return str(getattr(first, "model_name", None) or getattr(first, "model", ""))

    @property
    def _llm_type(self) -> str:
        return self.models[0]._llm_type


def _said(chunk: AIMessageChunk) -> str:
    """Of a chunk: text, reasoning and calls of tools are content; the first chunk of most models has none."""
    content = bool(chunk.content or chunk.tool_call_chunks or chunk.additional_kwargs)
    if any(chunk.response_metadata.get(name) for name in ("finish_reason", "stop_reason", "status")):
        return "content_end" if content else "end"
    return "content" if content else "held"


def _finishes(chunk: AIMessageChunk) -> bool:
    """Models of these providers say how their answers end."""
    return chunk.response_metadata.get("model_provider") in ("openai", "anthropic")


READERS[AIMessageChunk] = Reader(_said, _finishes)


async def _one(input: Any) -> AsyncIterator[Any]:
    yield input
