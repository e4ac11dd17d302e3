"""The OpenAI Agents SDK under a policy: a model over other models, and a provider of such models.

```python
from agents import Agent, RunConfig, Runner
from reprieve.integrations.openai_agents import ResilientProvider

config = RunConfig(model_provider=ResilientProvider("llm", fallbacks=["gpt-5-mini"]))
await Runner.run(Agent(name="Helper", model="gpt-5"), "Hello", run_config=config)
```

The seam is the SDK's own `Model`, so every provider is covered: chat completions, responses, LiteLLM and one's own. The
retries of the models' clients are off for these calls, and `ModelSettings.retry` is refused: they would multiply.

A stream of chat completions that ends early without an error is taken for a whole answer by the SDK itself, and so it
is here; one from OpenAI's own address is not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from agents import Model, ModelProvider, ModelResponse, ModelSettings, MultiProvider
from agents.items import TResponseStreamEvent
from agents.models import _retry_runtime
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest

from .. import _aio
from .._errors import ConfigError
from ._chain import Rules, chain, listed, of_target, off, refuse_redelivery, refuse_retries

__all__ = ["ResilientModel", "ResilientProvider"]

OFF = off("openai-agents", "the retries of its clients")
#: What the SDK hands to a model by position.
ARGUMENTS = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")


class ResilientModel(Model):
    """A model that asks its models, in order, under a policy: a `Policy`, one with options bound, the name of a preset,
    or the fields of one.

    Streams are retried until their first content; see `Policy`, field `stream`. Each attempt is a span of its own in
    the SDK's traces.

    Raises `ConfigError` where the policy names more or fewer targets than there are models.

    ```python
    agent = Agent(name="Helper", model=ResilientModel([first, second], "llm"))
    ```
    """

    def __init__(self, models: Model | Sequence[Model], policy: Rules) -> None:
        self.models = listed("models", [models] if isinstance(models, Model) else models, Model)
        for model in self.models:
            if isinstance(model, ResilientModel):
                raise ConfigError("models", "a ResilientModel", "one that is not wrapped yet: one policy is enough")
        self.policy = chain(policy, len(self.models), OFF)
        refuse_redelivery(self.policy)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        async def attempt(**request: Any) -> ModelResponse:
            with _once():
                return await of_target(self.policy, self.models).get_response(**request)

        answer: ModelResponse = await _aio.run(self.policy, attempt, (), _request(args, kwargs))
        return answer

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        def attempt(**request: Any) -> AsyncIterator[TResponseStreamEvent]:
            return _each_once(of_target(self.policy, self.models).stream_response(**request))

        async with self.policy.stream(attempt, **_request(args, kwargs)) as events:
            async for event in events:
                yield event

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        return self.models[0].get_retry_advice(request)

    async def close(self) -> None:
        for model in self.models:
            await model.close()

    def __repr__(self) -> str:
        return f"ResilientModel({self.models!r}, {self.policy.policy!r})"


class ResilientProvider(ModelProvider):
    """A provider whose models are resilient: the model that is asked for, then the fallbacks, in order.

    `fallbacks` are names for the same provider, or models. `provider` is the SDK's default one where none is given.
    All models share the policy, and with it its guards.
    """

    def __init__(
        self,
        policy: Rules,
        *,
        provider: ModelProvider | None = None,
        fallbacks: Sequence[str | Model] = (),
    ) -> None:
        self.fallbacks = listed("fallbacks", fallbacks, str, Model)
        self.policy = chain(policy, 1 + len(self.fallbacks), OFF)
        self.provider = MultiProvider() if provider is None else provider

    def get_model(self, model_name: str | None) -> Model:
        found = (each if isinstance(each, Model) else self.provider.get_model(each) for each in self.fallbacks)
        return ResilientModel([self.provider.get_model(model_name), *found], self.policy)

    async def aclose(self) -> None:
        await self.provider.aclose()


def _request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name. The runner would ask a model again where `ModelSettings.retry` says so."""
    request = {**dict(zip(ARGUMENTS, args, strict=False)), **kwargs}
    settings: ModelSettings = request["model_settings"]
    if settings.retry is not None:
        refuse_retries("model_settings.retry.max_retries", settings.retry.max_retries, "of the agent's settings")
    return request


@contextmanager
def _once() -> Generator[None]:
    """No retries of the models' own, as the SDK's runner switches them off for its own retries."""
    with (
        _retry_runtime.provider_managed_retries_disabled(True),
        _retry_runtime.websocket_pre_event_retries_disabled(True),
    ):
        yield


async def _each_once(events: AsyncIterator[TResponseStreamEvent]) -> AsyncIterator[TResponseStreamEvent]:
    """The events, of which none is waited for with retries on; what the consumer does between them is its own."""
    try:
        while True:
            with _once():
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
            yield event
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
