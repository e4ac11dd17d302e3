"""Clients of `openai` and `anthropic`, which are generated from one base: every request goes through its `request`.

A wrapped client is a copy, made by the SDK's own `copy`, whose class is derived from the client's: `request` runs under
the policy, and `copy` and `with_options` hand the plan on. Streams, raw responses, pages and helpers call `request`.
"""

# The SDK is not imported here: its objects are of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from .._current import Attempt
from .._errors import ConfigError
from .._policy import Bound
from .._usage import holder_of
from ._bodies import Body
from ._recorded import recorded
from ._streams import opened, opened_async
from ._wrapping import (
    CALL,
    ClientCall,
    Plan,
    heard,
    heard_async,
    in_range,
    lowered,
    module_of,
    named_like,
    refuse_retries,
)


class Sdk(NamedTuple):
    """What differs between the two."""

    package: str
    #: The first version that is served, and the first major one that is not.
    low: tuple[int, ...]
    high: int


SDKS = {"openai": Sdk("openai", (1, 60), 4), "anthropic": Sdk("anthropic", (0, 50), 3)}
RETRY_COUNT = "x-stainless-retry-count"
RAW_RESPONSE = "x-stainless-raw-response"
#: Where answers are streamed that end with a finish frame.
FINISHING = ("/chat/completions", "/responses", "/messages")

_classes: dict[type, type] = {}


def wrapped(client: Any, plan: Plan) -> Any:
    """A copy of the client under the plan."""
    sdk = _sdk_of(client)
    found = in_range(sdk.package, sdk.low, sdk.high)
    plan.changed = f"{sdk.package} {found}: max_retries {client.max_retries} -> 0, timeouts -> at most the attempt's"
    if plan.header:
        plan.changed += f", {plan.header} -> the call's"
    copied = quiet(client)
    copied.__class__ = _wrapped_class(type(client))
    copied._reprieve = plan
    return copied


def quiet(client: Any) -> Any:
    """A copy of the client that does not retry by itself."""
    try:
        return client.copy(max_retries=0)
    except TypeError as error:
        name = type(client).__qualname__
        raise ConfigError("client", f"a {name}", f"a class whose own copy(max_retries=0) works: {error}") from error


def _sdk_of(client: Any) -> Sdk:
    roots = (base.__module__.partition(".")[0] for base in type(client).__mro__ if base.__name__ == "BaseClient")
    return next(SDKS[root] for root in roots if root in SDKS)


def _wrapped_class(base: type) -> type:
    """The client's class with `request` under a policy; the same name, so that it reads like the one it stands for."""
    if base not in _classes:
        awaited = inspect.iscoroutinefunction(cast("Any", base).request)
        _classes[base] = named_like(base, _async(base) if awaited else _sync(base))
    return _classes[base]


def _get_retries(client: Any) -> int:
    """0: the retries of a wrapped client are its policy's."""
    return cast("int", client.__dict__["max_retries"])


def _set_retries(client: Any, value: int) -> None:
    if client._reprieve is not None and value != 0:
        refuse_retries("max_retries", value)
    client.__dict__["max_retries"] = value


# The classes have one base, so that an object of the SDK's class can become one of these. `_reprieve` is `None` while
# the SDK still makes a copy, or where somebody makes a client of their own from the class of a wrapped one.


def _sync(base: Any) -> type:
    class Wrapped(base):  # type: ignore[misc]
        __reprieve__ = True
        _reprieve: Plan | None = None
        max_retries = property(_get_retries, _set_retries)

        def request(self, cast_to: Any, options: Any, **kinds: Any) -> Any:
            if self._reprieve is None:
                return super().request(cast_to, options, **kinds)
            call, options, body = _call(self._reprieve, options)
            own = super().request

            def send(client: Any, request: dict[str, Any], attempt: Attempt) -> Any:
                prepared = _prepared(client, call, options, body, request, attempt)
                return (own if client is self else client.request)(cast_to, prepared, **kinds)

            if _is_stream(options, kinds):
                source = recorded if _is_known(options) else _plainly
                return opened(call, send, body or {}, client=self, source=source)
            return call.run(send, body or {}, client=self)

        def _prepare_request(self, request: Any) -> None:
            super()._prepare_request(request)
            _watch(self, request, heard)

        def copy(self, **options: Any) -> Any:
            return _derived(self, super().copy, options)

        with_options = copy

    return Wrapped


def _async(base: Any) -> type:
    class Wrapped(base):  # type: ignore[misc]
        __reprieve__ = True
        _reprieve: Plan | None = None
        max_retries = property(_get_retries, _set_retries)

        async def request(self, cast_to: Any, options: Any, **kinds: Any) -> Any:
            if self._reprieve is None:
                return await super().request(cast_to, options, **kinds)
            call, options, body = _call(self._reprieve, options)
            own = super().request

            async def send(client: Any, request: dict[str, Any], attempt: Attempt) -> Any:
                prepared = _prepared(client, call, options, body, request, attempt)
                return await (own if client is self else client.request)(cast_to, prepared, **kinds)

            if _is_stream(options, kinds):
                source = recorded if _is_known(options) else _plainly_async
                return await opened_async(call, send, body or {}, client=self, source=source)
            return await call.run_async(send, body or {}, client=self)

        async def _prepare_request(self, request: Any) -> None:
            await super()._prepare_request(request)
            _watch(self, request, heard_async)

        def copy(self, **options: Any) -> Any:
            return _derived(self, super().copy, options)

        with_options = copy

    return Wrapped


def _derived(client: Any, make: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What `copy` and `with_options` answer: wrapped as well."""
    plan, retries = client._reprieve, options.get("max_retries")
    if plan is not None and isinstance(retries, int):
        if retries != 0:
            refuse_retries("max_retries", retries)
        plan = plan.once()
    derived = make(**options)
    derived._reprieve = plan
    return derived


def _call(plan: Plan, options: Any) -> tuple[StainlessCall, Any, dict[str, Any] | None]:
    """The call of a request; its options, which can be sent again; and its body where that is a dict, which is what
    `prepare` and `repair` see."""
    if isinstance(options.max_retries, int):
        if options.max_retries != 0:
            refuse_retries("max_retries", options.max_retries)
        plan = plan.once()
    body = options.json_data
    seen = (
        cast("dict[str, Any]", body) if isinstance(body, dict) and all(isinstance(key, str) for key in body) else None
    )
    safe = options.method.lower() in ("get", "head", "options")
    owner = plan.reading if safe else plan.owner
    call, content, files = (
        StainlessCall(plan, owner, (seen or {}).get("model")),
        _field(options, "content"),
        options.files,
    )
    if content is not None or files is not None:
        options = copy.copy(options)
        options.files = call.parts.files(files)
        if content is not None:
            options.content = call.parts.part("content", content)
    return call, options, seen


def _field(options: Any, name: str) -> Any:
    """A field that older versions do not have."""
    return getattr(options, name, None)


def _is_stream(options: Any, kinds: Mapping[str, Any]) -> bool:
    """Events are asked for, and not the raw response that brings them."""
    names = options.headers if isinstance(options.headers, Mapping) else ()
    return bool(kinds.get("stream")) and RAW_RESPONSE not in map(str.lower, names)


def _is_known(options: Any) -> bool:
    """The answer ends with a finish frame that the core knows."""
    return str(options.url).partition("?")[0].endswith(FINISHING)


def _plainly(stream: Any) -> Iterator[Any]:
    """The items alone: a stream of another kind may end as it likes."""
    with stream:
        yield from stream


async def _plainly_async(stream: Any) -> AsyncIterator[Any]:
    async with stream:
        async for item in stream:
            yield item


class StainlessCall(ClientCall):
    """A call of a client of these SDKs."""

    def __init__(self, plan: Plan, owner: Bound, model: object) -> None:
        super().__init__(plan, owner, model)
        #: What of its body is read as it is sent.
        self.parts = Body()

    def usage(self, value: object) -> dict[str, Any] | None:
        """Also of a raw response whose body was read."""
        if holder_of(value) is None:
            stored = getattr(getattr(value, "http_response", None), "__dict__", {}).get("_content")
            try:
                value = json.loads(stored) if isinstance(stored, bytes) else value
            except ValueError:
                return None
        return super().usage(value)


def _prepared(
    client: Any, call: StainlessCall, options: Any, body: Any, request: dict[str, Any], attempt: Attempt
) -> Any:
    """The options of one attempt: a copy with its timeouts, its key, and the request as it is now."""
    call.parts.rewind()
    prepared = copy.copy(options)
    sdk = module_of(_sdk_of(client).package)
    own = client.timeout if isinstance(options.timeout, sdk.NotGiven) else options.timeout
    prepared.timeout = lowered(own, attempt, type(own) if hasattr(own, "read") else sdk.Timeout)
    if options.method.lower() != "get":
        prepared.idempotency_key = options.idempotency_key or attempt.idempotency_key
        header = call.plan.header
        if header is not None:
            own_headers = dict(options.headers) if isinstance(options.headers, Mapping) else {}
            if header.lower() not in map(str.lower, own_headers):
                prepared.headers = {**own_headers, header: prepared.idempotency_key}
    if body is not None and request != body:
        prepared.json_data = request
    return prepared


def _watch(client: Any, request: Any, listener: Callable[[ClientCall, Any], Any]) -> None:
    """Has the call that sends this hear of what goes over the wire, beside whoever listens already."""
    call = CALL.get()
    if call is None:
        return
    sdk, count = module_of(_sdk_of(client).package), request.headers.get(RETRY_COUNT, "0")
    call.told(int(count) if count.isdigit() else 0)
    call.on_timeout = lambda: sdk.APITimeoutError(request=request)
    request.extensions["trace"] = listener(call, request.extensions.get("trace"))
