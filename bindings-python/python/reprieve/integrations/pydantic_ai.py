"""pydantic-ai under a policy: a model over other models.

```python
from pydantic_ai import Agent
from reprieve.integrations.pydantic_ai import ResilientModel

agent = Agent(ResilientModel(["openai:gpt-5", "anthropic:claude-haiku-4-5"], "llm"))
```

Use it in place of `FallbackModel`, and leave out its HTTP retries (`pydantic_ai.retries`): they would multiply. The
retries of the providers' clients are off for these requests (the setting `max_retries` is 0).

A stream that ends early without an error is taken for a whole answer by pydantic-ai itself, and so it is here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    FinalResultEvent,
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    ThinkingPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from .. import _aio
from .._errors import ConfigError
from .._stream_items import READERS, Reader
from ._chain import Rules, chain, listed, of_target, off, refuse_redelivery, refuse_retries, stream_mode

__all__ = ["ResilientModel"]

#: Whether the retries of a provider's client are a setting of a request.
SWITCHES = "max_retries" in ModelSettings.__annotations__
#: An event, or what an attempt has used.
Event = ModelResponseStreamEvent | dict[str, dict[str, int]]


class ResilientModel(WrapperModel):
    """A model that asks its models, in order, under a policy: a `Policy`, one with options bound, the name of a preset,
    or the fields of one.

    A model is one of pydantic-ai's, or its name. Streams are retried until their first content. Giving up raises
    pydantic-ai's own exception of the last attempt, with a trace attached (`reprieve.trace_of`), and no group. The
    setting `request_timeout` bounds all attempts of a request together; the policy's `attempt_timeout` bounds each.

    Raises `ConfigError` where the policy names more or fewer targets than there are models, and where retries are
    asked for as well.
    """

    def __init__(self, models: Model | str | Sequence[Model | str], policy: Rules) -> None:
        given = listed("models", [models] if isinstance(models, (Model, str)) else models, Model, str)
        self.models = [*map(infer_model, given)]
        for model in self.models:
            if isinstance(model, (ResilientModel, FallbackModel)):
                allowed = "models that are not wrapped yet: the policy falls back, too"
                raise ConfigError("models", f"a {type(model).__name__}", allowed)
            refuse_retries("max_retries", (model.settings or {}).get("max_retries"), "of the model's settings")
            _refuse_retrying_client(model)
        self.policy = chain(policy, len(self.models), off("pydantic-ai-slim", "max_retries"))
        refuse_redelivery(self.policy)
        self._buffered = stream_mode(self.policy) == "buffered"
        super().__init__(self.models[0] if len(self.models) == 1 else FallbackModel(*self.models))

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async def attempt(
            messages: list[ModelMessage],
            model_settings: ModelSettings,
            model_request_parameters: ModelRequestParameters,
        ) -> ModelResponse:
            model = of_target(self.policy, self.models)
            prepared = self._prepared(model, messages, model_request_parameters)
            return await model.request(prepared, model_settings, model_request_parameters)

        request = _request(messages, model_settings, model_request_parameters)
        answer: ModelResponse = await _aio.run(self.policy, attempt, (), request)
        return answer

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        latest: list[StreamedResponse] = []

        async def attempt(
            messages: list[ModelMessage],
            model_settings: ModelSettings,
            model_request_parameters: ModelRequestParameters,
        ) -> AsyncIterator[Event]:
            model = of_target(self.policy, self.models)
            prepared = self._prepared(model, messages, model_request_parameters)
            async with model.request_stream(
                prepared, model_settings, model_request_parameters, run_context
            ) as response:
                latest[:] = [response]
                async for event in response:
                    yield event
                used = response.usage
                yield {"usage": {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}}

        request = _request(messages, model_settings, model_request_parameters)
        async with self.policy.stream(attempt, **request) as events:
            # Once an event is out there are no more attempts: the response that made it is the response.
            first = await anext(events, None)
            response = latest[0]
            parts = self._parts_to_be(response, model_request_parameters) if self._buffered else None
            response._event_iterator = _from(first, events, parts)
            yield response

    @staticmethod
    def _parts_to_be(response: StreamedResponse, parameters: ModelRequestParameters) -> Any:
        """The parts of a response that was read to its end: they come about anew, as its events are shown, because who
        takes its text begins with what is there."""
        parts: Any = type(response._parts_manager)(model_request_parameters=parameters)
        response._parts_manager = parts
        return parts

    def _prepared(
        self, model: Model, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> list[ModelMessage]:
        """The messages as this model takes them; of a lone model they are prepared already."""
        return messages if model is self.wrapped else model.prepare_messages(messages, parameters)

    def _start_request_deadline(self, model_settings: ModelSettings | None, *, stream: bool) -> Any:
        return self.models[0]._start_request_deadline(model_settings, stream=stream)


def _request(
    messages: list[ModelMessage], settings: ModelSettings | None, parameters: ModelRequestParameters
) -> dict[str, Any]:
    """What an attempt is given, by name: the provider's client makes one request."""
    refuse_retries("max_retries", (settings or {}).get("max_retries"), "of the model settings")
    once = {**(settings or {}), "max_retries": 0}
    return {"messages": messages, "model_settings": once, "model_request_parameters": parameters}


def _refuse_retrying_client(model: Model) -> None:
    """pydantic-ai's own HTTP retries live in the transport of a client. Its older versions, which are those for Python
    3.10, cannot switch off a client's retries either."""
    client: Any = getattr(model, "client", None)
    retries = getattr(client, "max_retries", 0)
    if retries and not SWITCHES:
        raise ConfigError("client.max_retries", retries, "0 with this version of pydantic-ai: the policy retries")
    transport = type(getattr(getattr(client, "_client", None), "_transport", None)).__name__
    if transport in ("AsyncTenacityTransport", "TenacityTransport"):
        raise ConfigError("http_client", f"one with {transport}", "a client that does not retry: the policy does")


async def _from(first: Event | None, rest: AsyncIterator[Event], parts: Any) -> AsyncIterator[ModelResponseStreamEvent]:
    """The events, without what is there for the records; each becomes part of these parts, if there are any."""
    event = first
    while event is not None:
        if not isinstance(event, dict):
            if parts is not None:
                parts.apply_event(event)
            yield event
        event = await anext(rest, None)


def _said(event: ModelResponseStreamEvent) -> str:
    """Text, reasoning and calls of tools are content; parts that begin empty, and what the framework adds, are none."""
    if isinstance(event, PartDeltaEvent):
        return "content"
    if not isinstance(event, PartStartEvent):
        return "held"
    part = event.part
    return "content" if not isinstance(part, (TextPart, ThinkingPart)) or part.content else "held"


def _finishes(event: ModelResponseStreamEvent) -> bool:
    return False


for _kind in (PartStartEvent, PartDeltaEvent, PartEndEvent, FinalResultEvent):
    READERS[_kind] = Reader(_said, _finishes)
