"""Clients of `google-genai`: every request that the SDK would retry goes through `_request` or `_async_request` of its
API client. A wrapped client has an API client of its own whose two run under the policy; `client.aio` is one, too.

Outside of the policy, as the SDK makes them: uploads and downloads of files, live sessions, and the namespaces that
come with a client of their own (`interactions`, `agents` and the like).
"""

# The SDK is not imported here: its objects are of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import aclosing, closing, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, cast

from .._current import Attempt
from .._errors import ConfigError
from ._streams import Event, items_of, items_of_async
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

LOW, HIGH = (2, 34), 4
#: Its streams are read by the SDK, which would not know a `Discard`.
MODES = ("before_first_item", "buffered")
#: Where the name of a model is in a path; it is part of the request that `prepare` sees.
MODEL = re.compile(r"(?<=/models/)[^/:?]+")

_classes: dict[type, type] = {}


def wrapped(client: Any, plan: Plan) -> Any:
    """A client under the plan, which shares the connections of this one."""
    found = in_range("google-genai", LOW, HIGH)
    if plan.owner._options.check is not None:
        raise ConfigError(
            "check",
            "a function",
            "no function for google-genai, which reads its answers after the call: bind it to a policy "
            "around a function of yours that asks the client",
        )
    options = client._api_client._http_options.retry_options
    attempts = "no retries" if options is None else f"retry_options of {options.attempts or 'up to 5'} attempts"
    plan.changed = f"google-genai {found}: {attempts} -> 1 attempt, timeouts -> at most the attempt's"
    if plan.header:
        plan.changed += f", {plan.header} -> the call's"
    api = _derived(client._api_client, _api_class)
    api._reprieve, api._shared = plan, client  # which closes the connections once nothing needs it
    api._httpx_client = _Watched(api._httpx_client, heard)
    if api._async_httpx_client is not None:
        api._async_httpx_client = _Watched(api._async_httpx_client, heard_async)
    made = _derived(client, _client_class)
    made._get_api_client = lambda **_options: api
    genai = module_of("google.genai.client")
    genai.Client.__init__(made, debug_config=client._debug_config)
    made._aio.__class__ = _quiet_class(type(made._aio))
    return made


def quiet(client: Any) -> Any:
    """A request is made for one client's address and key, and is of no use to another's."""
    raise ConfigError(
        "clients",
        f"a {type(client).__qualname__}",
        "no client for google-genai: give `targets` functions of your own, or change the model in `prepare`",
    )


def _derived(thing: Any, class_of: Any) -> Any:
    made = object.__new__(class_of(type(thing)))
    made.__dict__.update(thing.__dict__)
    return made


def _client_class(base: Any) -> type:
    if base not in _classes:

        class Wrapped(base):  # type: ignore[misc]
            __reprieve__ = True

            def __del__(self) -> None:
                """The connections are shared: they close with the client that was wrapped, or by `close`."""

        _classes[base] = named_like(base, Wrapped)
    return _classes[base]


def _quiet_class(base: Any) -> type:
    if base not in _classes:

        class Wrapped(base):  # type: ignore[misc]
            def __del__(self) -> None:
                """The connections are shared, as those of the client that this is a part of."""

        _classes[base] = named_like(base, Wrapped)
    return _classes[base]


def _api_class(base: Any) -> type:
    if base not in _classes:

        class Wrapped(base):  # type: ignore[misc]
            _reprieve: Plan
            #: The attempt that this one is for, where a stream is opened.
            _one: One | None = None

            def _request(self, http_request: Any, http_options: Any = None, stream: bool = False) -> Any:
                if self._one is not None:
                    ready = self._one.prepared(self, http_request)
                    ready.timeout = _timeout(self, ready.timeout, self._one.attempt)
                    with self._one.heard():
                        return base._request_once(self, ready, stream)
                call, seen = _call(self, http_request, http_options)

                def send(api: Any, request: dict[str, Any], attempt: Attempt) -> Any:
                    ready = _prepared(api, call, http_request, request, attempt)
                    ready.timeout = _timeout(api, ready.timeout, attempt)
                    return base._request_once(api, ready, stream)

                return call.run(send, seen, client=self)

            async def _async_request(self, http_request: Any, http_options: Any = None, stream: bool = False) -> Any:
                if self._one is not None:
                    ready = self._one.prepared(self, http_request)
                    ready.timeout = _timeout_async(self, ready.timeout, self._one.attempt, stream)
                    with self._one.heard():
                        return await base._async_request_once(self, ready, stream, implicit_retry=False)
                call, seen = _call(self, http_request, http_options)

                async def send(api: Any, request: dict[str, Any], attempt: Attempt) -> Any:
                    ready = _prepared(api, call, http_request, request, attempt)
                    ready.timeout = _timeout_async(api, ready.timeout, attempt, stream)
                    return await base._async_request_once(api, ready, stream, implicit_retry=False)

                return await call.run_async(send, seen, client=self)

            def request_streamed(self, method: str, path: str, body: Any, http_options: Any = None) -> Any:
                call, seen = _call(self, self._build_request(method, path, dict(body), http_options), http_options)

                def send(api: Any, request: dict[str, Any], attempt: Attempt) -> Any:
                    one = _for_one(api, One(call, request, attempt))
                    return _Events(base.request_streamed(one, method, path, dict(body), http_options))

                with closing(items_of(call, send, seen, client=self, modes=MODES)) as items:
                    for event in items:
                        yield event.own

            async def async_request_streamed(self, method: str, path: str, body: Any, http_options: Any = None) -> Any:
                call, seen = _call(self, self._build_request(method, path, dict(body), http_options), http_options)

                async def send(api: Any, request: dict[str, Any], attempt: Attempt) -> Any:
                    one = _for_one(api, One(call, request, attempt))
                    return _EventsAsync(await base.async_request_streamed(one, method, path, dict(body), http_options))

                items = items_of_async(call, send, seen, client=self, modes=MODES)
                first = await anext(items, None)

                async def events() -> AsyncIterator[Any]:
                    async with aclosing(items):
                        if first is not None:
                            yield first.own
                        async for event in items:
                            yield event.own

                return events()

            def __del__(self) -> None:
                """The connections are shared, as those of the client that this is a part of."""

        _classes[base] = named_like(base, Wrapped)
    return _classes[base]


class One(NamedTuple):
    """One attempt of a stream, which its SDK opens only when the first item is asked for."""

    call: ClientCall
    request: dict[str, Any]
    attempt: Attempt

    def prepared(self, api: Any, http_request: Any) -> Any:
        """The request of this attempt."""
        return _prepared(api, self.call, http_request, self.request, self.attempt)

    @contextmanager
    def heard(self) -> Generator[None, None, None]:
        """The call hears of what is sent meanwhile."""
        token = CALL.set(self.call)
        try:
            yield
        finally:
            CALL.reset(token)


def _for_one(api: Any, one: One) -> Any:
    made = object.__new__(type(api))
    made.__dict__.update(api.__dict__, _one=one)
    return made


class _Answers:
    """The answers of a stream, with what they say until that is kept as text; an error always says what it is."""

    #: Nothing is sent before the first is asked for.
    _reprieve_lazy = True
    mute = True

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._reprieve_recorder = self
        self.text, self.noting = "", False

    def make(self, text: str, /) -> Event:
        """What an answer says."""
        return Event(json.loads(text) if text else {}, None)

    def _said(self, answer: Any) -> Any:
        self.text = answer.body
        if self.noting and '"error"' not in (self.text or ""):
            return Mute(answer)
        return Event(json.loads(self.text) if self.text else {}, answer)


class _Events(_Answers):
    def __next__(self) -> Any:
        return self._said(next(self._stream))

    def close(self) -> None:
        """Closes the stream."""
        self._stream.close()


class _EventsAsync(_Answers):
    async def __anext__(self) -> Any:
        return self._said(await anext(self._stream))

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()


class Mute(NamedTuple):
    """An answer whose text is kept: nobody asks what it says."""

    own: Any


class GoogleCall(ClientCall):
    """A call of a Gemini client."""

    def usage(self, value: object) -> dict[str, Any] | None:
        """From the body, which the SDK has not parsed yet."""
        body = getattr(value, "response_stream", None)
        try:
            return super().usage(json.loads(body[0])) if isinstance(body, list) and body else None
        except ValueError:
            return None


def _call(api: Any, http_request: Any, http_options: Any) -> tuple[GoogleCall, dict[str, Any]]:
    """The call of a request, and what `prepare` and `repair` see of it: its body, and the model of its path."""
    plan: Plan = api._reprieve
    options = _field(http_options, "retry_options")
    if options is not None:
        attempts = _field(options, "attempts")
        if attempts not in (0, 1):
            refuse_retries("http_options.retry_options.attempts", attempts)
        plan = plan.once()
    found = MODEL.search(http_request.url)
    data = cast("dict[str, Any]", http_request.data) if isinstance(http_request.data, dict) else {}
    seen = {"model": found[0], **data} if found else data
    owner = plan.reading if http_request.method.lower() == "get" else plan.owner
    return GoogleCall(plan, owner, seen.get("model")), seen


def _field(thing: Any, name: str) -> Any:
    return cast("dict[str, Any]", thing).get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _prepared(api: Any, call: ClientCall, http_request: Any, request: dict[str, Any], attempt: Attempt) -> Any:
    """The request of one attempt: with its key, and as it is now."""
    url, data, headers = http_request.url, http_request.data, dict(http_request.headers)
    model = MODEL.search(url)
    if model is not None:
        url = MODEL.sub(str(request.get("model", model[0])), url, count=1)
    if isinstance(data, dict):
        data = {name: value for name, value in request.items() if name != "model" or model is None}
    if call.plan.header is not None:
        headers.setdefault(call.plan.header, attempt.idempotency_key)
    return replace(http_request, url=url, data=data, headers=headers)


def _timeout(api: Any, own: float | None, attempt: Attempt) -> Any:
    """What a synchronous attempt may take, as its HTTP client reads it: httpx, or requests where mTLS is in use."""
    if api._use_google_auth_sync():
        return attempt.connect_timeout, min(attempt.read_timeout, own or attempt.timeout)
    return lowered(own, attempt, _httpx(api._httpx_client).Timeout)


def _timeout_async(api: Any, own: float | None, attempt: Attempt, stream: bool) -> Any:
    """The same where the client is awaited: httpx, or aiohttp, whose one number for a stream would end what it has
    to say; there the attempt's own end has to do."""
    if api._use_aiohttp():
        return own if stream else min(attempt.timeout, own or attempt.timeout)
    return lowered(own, attempt, _httpx(api._async_httpx_client).Timeout)


def _httpx(client: Any) -> Any:
    """httpx or httpx2, whichever this client is of."""
    roots = (base.__module__.partition(".")[0] for base in type(client.own).__mro__)
    return module_of(next(root for root in roots if root in ("httpx", "httpx2")))


class _Watched:
    """An HTTP client whose requests the call under way hears of, and that is else the one it stands for."""

    def __init__(self, own: Any, heard: Callable[[ClientCall, Any], Any]) -> None:
        self.own, self._heard = own, heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def build_request(self, **fields: Any) -> Any:
        """With an ear on what goes over the wire."""
        return self.own.build_request(**self._listening(fields))

    def request(self, **fields: Any) -> Any:
        """The same."""
        return self.own.request(**self._listening(fields))

    def _listening(self, fields: dict[str, Any]) -> dict[str, Any]:
        call = CALL.get()
        return fields if call is None else {**fields, "extensions": {"trace": self._heard(call, None)}}
