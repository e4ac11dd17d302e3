"""The middleware for LangChain's agents: model calls and tool calls, each under a policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.runnables.config import ensure_config
from langgraph.types import Command

from .. import _aio, _driver
from .._policy import Bound, Policy
from ._chain import chain, of_target
from ._langchain_quiet import quiet
from ._langchain_tokens import counted

Answer = TypeVar("Answer")
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
        policy: Policy | Bound | str,
        *,
        fallbacks: Sequence[BaseChatModel] = (),
        tools: Policy | Bound | str | None = None,
    ) -> None:
        super().__init__()
        self._policy = chain(policy, 1 + len(fallbacks))
        self._fallbacks = [_quiet_model(model) for model in fallbacks]
        self._tool_policy = None if tools is None else chain(tools, 1)
        #: The agent's model and its copy without retries: the same for each call, unless other middleware changes it.
        self._known: tuple[BaseChatModel, BaseChatModel] | None = None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        requests = self._requests(request)

        def attempt() -> _Answered:
            with counted(_handlers()):
                return _Answered.of(handler(of_target(self._policy, requests)))

        answered: _Answered = _driver.run(self._policy, attempt, (), {})
        return answered.response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        requests = self._requests(request)

        async def attempt() -> _Answered:
            with counted(_handlers()):
                return _Answered.of(await handler(of_target(self._policy, requests)))

        answered: _Answered = await _aio.run(self._policy, attempt, (), {})
        return answered.response

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        if self._tool_policy is None:
            return handler(request)
        answer: ToolAnswer = _driver.run(self._tool_policy, handler, (request,), {})
        return answer

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]]
    ) -> ToolAnswer:
        if self._tool_policy is None:
            return await handler(request)
        answer: ToolAnswer = await _aio.run(self._tool_policy, handler, (request,), {})
        return answer

    def _requests(self, request: ModelRequest[Any]) -> list[ModelRequest[Any]]:
        """The request for each target."""
        known = self._known
        if known is None or known[0] is not request.model:
            known = self._known = request.model, _quiet_model(request.model)
        return [request.override(model=model) for model in (known[1], *self._fallbacks)]


class _Answered(NamedTuple):
    """A model's response, and its usage where the records look for it."""

    response: ModelResponse[Any]
    usage_metadata: object

    @staticmethod
    def of(response: ModelResponse[Any]) -> _Answered:
        said = (getattr(message, "usage_metadata", None) for message in response.result)
        return _Answered(response, next(filter(None, said), None))


def _handlers() -> list[BaseCallbackHandler]:
    """Those of the run around here, which the model's run inherits."""
    callbacks = ensure_config().get("callbacks")
    return callbacks if isinstance(callbacks, list) else callbacks.handlers if callbacks else []


def _quiet_model(model: BaseChatModel) -> BaseChatModel:
    quieted = quiet(model)
    assert isinstance(quieted, BaseChatModel)
    return quieted
