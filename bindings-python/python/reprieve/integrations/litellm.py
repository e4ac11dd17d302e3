"""LiteLLM under a policy: `completion` and `acompletion`, streams included.

>>> from reprieve import Policy
>>> from reprieve.integrations.litellm import resilient
>>> llm = resilient(Policy(max_attempts=2), fallbacks=["anthropic/claude-haiku-4-5"])
>>> llm.targets
['primary', 'backup']

`llm.completion(model="openai/gpt-5", messages=[...])` then takes what `litellm.completion` takes. LiteLLM's own retries
are off for these calls (`num_retries` and `max_retries` are 0), and asking for them is an error: they would multiply
with the policy's. The model of the call is the first target, the fallbacks are the others in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx
import litellm

from .._current import Attempt, current_attempt
from .._errors import ConfigError
from ._chain import Rules, chain, listed, of_target, off, refuse_retries
from ._clients import within

#: LiteLLM's own ways to try again, as arguments of a call and as settings of the module.
RETRIES = ("num_retries", "max_retries", "retry_policy", "fallbacks", "context_window_fallback_dict")
SETTINGS = ("num_retries", "model_fallbacks")
#: What belongs to the model that was asked for, and is none of another one's business: above all its key.
OF_MODEL = frozenset(
    {
        "model",
        "api_key",
        "api_base",
        "base_url",
        "api_version",
        "organization",
        "custom_llm_provider",
        "client",
        "headers",
        "extra_headers",
        "azure_ad_token",
        "azure_ad_token_provider",
        "deployment_id",
        "vertex_project",
        "vertex_location",
        "vertex_credentials",
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
        "aws_region_name",
        "aws_profile_name",
    }
)


def resilient(policy: Rules, *, fallbacks: Sequence[str | Mapping[str, Any]] = ()) -> LiteLLM:
    """LiteLLM's completions under this policy: a `Policy`, one with options bound, the name of a preset, or the fields
    of one.

    A fallback is the name of a model, or the arguments that it needs, `model` among them. It gets the arguments of
    the call but for those that say where the first model is and who asks: a key never goes to another provider.

    Raises `ConfigError` where the policy names more or fewer targets than there are models.
    """
    return LiteLLM(policy, fallbacks)


class LiteLLM:
    """`completion` and `acompletion` under a policy; made by `resilient`."""

    def __init__(self, policy: Rules, fallbacks: Sequence[str | Mapping[str, Any]] = ()) -> None:
        self._fallbacks = [_arguments(fallback) for fallback in listed("fallbacks", fallbacks, str, Mapping)]
        self._bound = chain(policy, 1 + len(self._fallbacks), off("litellm", "num_retries", "max_retries"))

    @property
    def targets(self) -> list[str]:
        """The ids of the targets: the model of the call, then the fallbacks."""
        return self._bound.policy.targets

    def completion(self, model: str, messages: Sequence[Any], **kwargs: Any) -> Any:
        """As `litellm.completion`: a `ModelResponse`, or with `stream=True` an iterator of chunks.

        Giving up raises LiteLLM's own exception, with a trace attached (`reprieve.trace_of`). Raises `ConfigError`
        where LiteLLM's retries are asked for, too.
        """
        request = _checked({**kwargs, "model": model, "messages": messages})

        def attempt(**request: Any) -> Any:
            return litellm.completion(**self._of_attempt(request))

        def chunks(**request: Any) -> Iterator[Any]:
            yield from attempt(**request)  # which could be iterated either way

        return self._bound.stream(chunks, **request) if kwargs.get("stream") else self._bound.call(attempt, **request)

    async def acompletion(self, model: str, messages: Sequence[Any], **kwargs: Any) -> Any:
        """As `litellm.acompletion`: a `ModelResponse`, or with `stream=True` an asynchronous iterator of chunks."""
        request = _checked({**kwargs, "model": model, "messages": messages})

        async def attempt(**request: Any) -> Any:
            return await litellm.acompletion(**self._of_attempt(request))

        if kwargs.get("stream"):
            return self._bound.stream(attempt, **request)
        return await self._bound.call(attempt, **request)

    def _of_attempt(self, request: dict[str, Any]) -> dict[str, Any]:
        """The arguments for the attempt's target, with the time that it has, and without a retry of LiteLLM's."""
        attempt = current_attempt()
        assert attempt is not None
        fallback = of_target(self._bound, [None, *self._fallbacks])
        if fallback is not None:
            request = {**{name: value for name, value in request.items() if name not in OF_MODEL}, **fallback}
        return {**request, **_timeouts(request, attempt), "num_retries": 0, "max_retries": 0}

    def __repr__(self) -> str:
        return f"<LiteLLM under {self._bound.policy!r}>"


def _timeouts(request: Mapping[str, Any], attempt: Attempt) -> dict[str, Any]:
    """Those of the call, or LiteLLM's setting, as far as the attempt has the time. Providers whose clients know one
    number only get the one for bytes."""
    setting: Any = getattr(litellm, "request_timeout", None)
    asked = {"timeout": request.get("timeout") or request.get("request_timeout") or setting or attempt.timeout}
    if request.get("stream_timeout"):
        asked["stream_timeout"] = request["stream_timeout"]
    limits = {name: own if hasattr(own, "read") else httpx.Timeout(float(own)) for name, own in asked.items()}
    return {name: within(own, attempt) for name, own in limits.items()}


def _arguments(fallback: str | Mapping[str, Any]) -> dict[str, Any]:
    arguments = {"model": fallback} if isinstance(fallback, str) else dict(fallback)
    if not isinstance(arguments.get("model"), str):
        raise ConfigError("fallbacks", repr(fallback), 'a model\'s name, or arguments with a "model" among them')
    for name in RETRIES:
        refuse_retries(name, arguments.pop(name, None), "of the fallback")
    return arguments


def _checked(request: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, which must not ask for retries of LiteLLM's."""
    for name in RETRIES:
        refuse_retries(name, request.get(name), "of the call; other models are `fallbacks` of `resilient`")
    for name in SETTINGS:
        refuse_retries(f"litellm.{name}", getattr(litellm, name, None), "of litellm's settings")
    return request
