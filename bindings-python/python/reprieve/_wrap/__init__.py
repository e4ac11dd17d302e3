"""`wrap`: a client of an SDK, under a policy, in one line. No SDK is imported before a client of it is wrapped."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._errors import ConfigError
from .._policy import Bound, Policy
from ._prices import Prices
from ._wrapping import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..types import CallOptions, PolicyFields, Price

T = TypeVar("T")

#: The module that knows the clients of an SDK, by a class that every client of it is derived from.
ADAPTERS = {
    "openai._base_client.BaseClient": "stainless",
    "anthropic._base_client.BaseClient": "stainless",
    "google.genai.client.Client": "google",
    "botocore.client.BaseClient": "bedrock",
}
KNOWN = (
    "openai.OpenAI, AsyncOpenAI and those for Azure; anthropic.Anthropic, AsyncAnthropic and those for Bedrock and "
    "Vertex; google.genai.Client; boto3.client('bedrock-runtime')"
)


def wrap(
    client: T,
    policy: Bound | str | PolicyFields,
    *,
    prices: Mapping[str, Price] | None = None,
    idempotency: bool | str = False,
    clients: Mapping[str, object] | None = None,
    **options: Unpack[CallOptions],
) -> T:
    """A new client of the same type whose every request runs under the policy. The old one stays as it is.

    - `client`: an `openai` or `anthropic` client, sync or async, also those for Azure, Bedrock and Vertex; a
      `google.genai.Client`; a `boto3.client("bedrock-runtime")`.
    - `policy`: a `Policy`, one with options bound, the name of a preset, or the fields of a policy.
    - `prices`: what a model costs, for a million tokens: `{"gpt-5": {"input": 1.25, "output": 10.0}}`, by the name that
      is asked for, or else the one that the answer has. Also `cached_input` and `cache_write` (default: as `input`)
      and `currency` (default: `"USD"`). Without a price, and without a known usage, the cost is unknown, not zero.
    - `idempotency`: `True` sends the call's idempotency key as `Idempotency-Key`, one for all its attempts; text names
      another header.
    - `clients`: the client for a target of the policy, by the target's id; of the same type as `client`.
    - `options`: those of `Policy.bind`.

    The retries of the new client's SDK are off. What derives from it (`with_options`, `copy`, `with_raw_response`,
    ...) is wrapped as well, and refuses `max_retries`, except for 0, which means one attempt. An attempt hands its
    time to the client as timeouts, which only ever get shorter. The two clients share their connections. `trace_of`
    has the trace of an answer, and of the exception where there is none.

    Raises `ConfigError` for a client that is not known or already wrapped, and for an SDK out of range.

    ```python
    client = reprieve.wrap(openai.OpenAI(), "interactive")
    client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "Hello"}])
    ```
    """
    adapter = _adapter_of(client)
    owner = _owner(policy, options)
    plan = Plan(owner, Prices.of(prices), _header(idempotency))
    wrapped: T = adapter.wrapped(client, plan)
    for target, other in _others(clients).items():
        if target not in owner.policy.targets:
            raise ConfigError(f"clients.{target}", "a client", f"a target of the policy: {owner.policy.targets}")
        plan.clients[target] = adapter.quiet(_same_kind(client, other, target))
    return wrapped


def _adapter_of(client: object) -> Any:
    """The module for the SDK of this client."""
    if getattr(type(client), "__reprieve__", False):
        raise ConfigError("client", "a wrapped client", "a client that is not wrapped yet: one policy is enough")
    for base in type(client).__mro__:
        name = ADAPTERS.get(f"{base.__module__}.{base.__qualname__}")
        if name is not None:
            return import_module(f"{__name__}.{name}")
    found = f"{type(client).__module__}.{type(client).__qualname__}"
    raise ConfigError(
        "client",
        f"a {found}",
        f"one of {KNOWN}. For other clients, decorate the function that calls them with the policy, or use "
        "policy.call(function, ...) and turn their own retries off",
    )


def _others(clients: object) -> Mapping[str, object]:
    if clients is not None and not isinstance(clients, Mapping):
        raise ConfigError("clients", repr(clients), "a mapping from a target's id to its client")
    return cast("Mapping[str, object]", clients or {})


def _same_kind(client: object, other: object, target: str) -> object:
    kind = type(client)
    if getattr(type(other), "__reprieve__", False) or f"{type(other)}" != f"{kind}":  # boto3 makes a class per client
        raise ConfigError(
            f"clients.{target}", f"a {type(other).__qualname__}", f"a {kind.__qualname__} that is not wrapped, as here"
        )
    return other


def _owner(policy: object, options: Any) -> Bound:
    if isinstance(policy, str):
        policy = Policy.preset(policy)
    elif isinstance(policy, Mapping):
        policy = Policy(**cast("PolicyFields", policy))
    if not isinstance(policy, Bound):
        raise ConfigError("policy", repr(policy), "a Policy, the name of a preset, or the fields of a policy")
    owner = policy.bind(**options) if options else policy
    for name in ("trace_id", "idempotency_key"):
        if getattr(owner._options, name) is not None:
            raise ConfigError(name, "a value for all calls of a client", "nothing here: each call has one of its own")
    return owner


def _header(idempotency: object) -> str | None:
    if isinstance(idempotency, bool):
        return "Idempotency-Key" if idempotency else None
    if isinstance(idempotency, str) and idempotency:
        return idempotency
    raise ConfigError("idempotency", repr(idempotency), "True, False, or the name of a header")
