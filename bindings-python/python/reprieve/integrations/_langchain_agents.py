"""The middleware for LangChain's agents: model calls and tool calls, each under a policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config
from langgraph.types import Command

from .. import _aio, _driver
from ._chain import Rules, chain, listed, of_target, off
from ._langchain_quiet import quiet
from ._langchain_tokens import counted

ToolAnswer = ToolMessage | Command[Any]


class ResilientMiddleware(AgentMiddleware[Any, Any, Any]):
    """Each model call of an agent under a policy, and each tool call under another one.

    `fallbacks` are chat models for the targets after the agent's own model. Without `tools`, tool calls are left
    alone: a tool may do something that must not be done twice. The retries of the models' clients are off, as for
    `resilient`. After giving up the agent raises the model's or the tool's own exception, with a trace attached.

    ```python
    agent = create_agent(model, tools, middleware=[ResilientMiddleware("llm", fallbacks=[other], tools="tool")])
    ```

    Leave out LangChain's own `ModelRetryMiddleware`, `ModelFallbackMiddleware` and `ToolRetryMiddleware`.
    """

    def __init__(
        self,
        policy: Rules,
        *,
        fallbacks: Sequence[BaseChatModel] = (),
        tools: Rules | None = None,
    ) -> None:
        super().__init__()
        self._fallbacks = [_quiet_model(model) for model in listed("fallbacks", fallbacks, Runnable)]
        self._policy = chain(policy, 1 + len(self._fallbacks), off("langchain", "the retries of its models"))
        self._tool_policy = None if tools is None else chain(tools, 1, "")
        #: The agent's model and its copy without retries: the same for each call, unless other middleware changes it.
        self._known: tuple[BaseChatModel, BaseChatModel] | None = None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        models = [self._quieted(request.model), *self._fallbacks]

        def attempt(request: ModelRequest[Any]) -> ModelResponse[Any]:
            with counted(_handlers()):
                return _with_usage(handler(request.override(model=of_target(self._policy, models))))

        answer: ModelResponse[Any] = _driver.run(self._policy, attempt, (), {"request": request})
        return answer

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        models = [self._quieted(request.model), *self._fallbacks]

        async def attempt(request: ModelRequest[Any]) -> ModelResponse[Any]:
            with counted(_handlers()):
                return _with_usage(await handler(request.override(model=of_target(self._policy, models))))

        answer: ModelResponse[Any] = await _aio.run(self._policy, attempt, (), {"request": request})
        return answer

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        if self._tool_policy is None:
            return handler(request)

        def attempt(request: ToolCallRequest) -> ToolAnswer:
            return handler(request)

        answer: ToolAnswer = _driver.run(self._tool_policy, attempt, (), {"request": request})
        return answer

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]]
    ) -> ToolAnswer:
        if self._tool_policy is None:
            return await handler(request)

        async def attempt(request: ToolCallRequest) -> ToolAnswer:
            return await handler(request)

        answer: ToolAnswer = await _aio.run(self._tool_policy, attempt, (), {"request": request})
        return answer

    def _quieted(self, model: BaseChatModel) -> BaseChatModel:
        known = self._known
        if known is None or known[0] is not model:
            known = self._known = model, _quiet_model(model)
        return known[1]


def _with_usage(response: ModelResponse[Any]) -> ModelResponse[Any]:
    """A response that says what it used where the records look for it."""
    said = (getattr(message, "usage_metadata", None) for message in response.result)
    vars(response)["usage_metadata"] = next(filter(None, said), None)
    return response


def _handlers() -> list[BaseCallbackHandler]:
    """Those of the run around here, which the model's run inherits."""
    callbacks = ensure_config().get("callbacks")
    return callbacks if isinstance(callbacks, list) else callbacks.handlers if callbacks else []


def _quiet_model(model: BaseChatModel) -> BaseChatModel:
    return cast("BaseChatModel", quiet(model))  # what is configurable only acts as one
