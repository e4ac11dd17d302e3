"""`boto3.client("bedrock-runtime")`: every operation goes through `_make_api_call`, and every request through the
client's endpoint, which is where botocore retries. A wrapped client has an endpoint of its own that does not.

Retry modes and handlers of the user's own on `client.meta.events` stay as they are, but for `needs-retry`, which has
nothing to say any more.
"""

# The SDK is not imported here: its objects are of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from .._current import Attempt, current_attempt
from .._errors import ConfigError
from .._usage import holder_of
from ._streams import Event, opened
from ._wrapping import CALL, ClientCall, Plan, in_range, module_of, named_like

# The first that takes timeouts for one request.
LOW, HIGH = (1, 44), 2
SERVICE = "bedrock-runtime"
#: Where the answers of operations have their streams.
STREAMS = {"ConverseStream": "stream", "InvokeModelWithResponseStream": "body"}
# invoke_model answers a body that only the user reads, and tells its tokens in headers.
INPUT_TOKENS, OUTPUT_TOKENS = "x-amzn-bedrock-input-token-count", "x-amzn-bedrock-output-token-count"


def wrapped(client: Any, plan: Plan) -> Any:
    """A client under the plan, which shares the connections of this one."""
    service = client.meta.service_model.service_name
    if service != SERVICE:
        raise ConfigError("client", f"a boto3 client for {service}", f'one for "{SERVICE}"')
    found = in_range("botocore", LOW, HIGH)
    retries = client.meta.config.retries or {}
    most = retries.get("total_max_attempts")
    attempts = f"{most} attempts -> 1" if most else f"retries of mode {retries.get('mode', 'legacy')} -> none"
    plan.changed = f"botocore {found}: {attempts}, timeouts -> at most the attempt's"
    if plan.header:
        plan.changed += f", {plan.header} -> the call's"
    made = _copied(client, _client_class)
    made._reprieve = plan
    return made


def quiet(client: Any) -> Any:
    """A copy of the client that does not retry by itself."""
    return _copied(client, lambda base: base)


def _copied(client: Any, class_of: Any) -> Any:
    # `copy.copy` would ask a client without its meta for attributes, which never ends.
    made = object.__new__(class_of(type(client)))
    made.__dict__.update(client.__dict__, _cache={})
    made._endpoint = endpoint = copy.copy(client._endpoint)
    endpoint.__class__ = _endpoint_class(type(endpoint))
    endpoint.http_session = _Session(endpoint.http_session)
    return made


def _client_class(base: Any) -> type:
    class Wrapped(base):  # type: ignore[misc]
        __reprieve__ = True
        _reprieve: Plan

        def _make_api_call(self, operation_name: str, api_params: dict[str, Any]) -> Any:
            call = BedrockCall(self._reprieve, self._reprieve.owner, api_params.get("modelId"))
            answer: dict[str, Any] = {}

            def send(client: Any, request: dict[str, Any], _attempt: Attempt) -> Any:
                return base._make_api_call(client, operation_name, request)

            def send_stream(client: Any, request: dict[str, Any], attempt: Attempt) -> Any:
                answer.update(send(client, request, attempt))
                return answer[STREAMS[operation_name]]

            if operation_name not in STREAMS:
                return call.run(send, api_params, client=self)
            stream = opened(call, send_stream, api_params, client=self, source=_events)
            return {**answer, STREAMS[operation_name]: stream}

    return named_like(base, Wrapped)


def _endpoint_class(base: Any) -> type:
    class Quiet(base):  # type: ignore[misc]
        def _needs_retry(self, *_args: Any, **_kwargs: Any) -> bool:
            return False

    return named_like(base, Quiet)


def _events(stream: Any) -> Iterator[Any]:
    """The events of a stream; of an invoked model those that its provider has put in them."""
    try:
        for event in stream:
            said = _field(_field(event, "chunk"), "bytes")
            yield event if said is None else Event(_json(said), event)
    finally:
        stream.close()


def _field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else None


def _json(text: bytes) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


class BedrockCall(ClientCall):
    """A call of a Bedrock client."""

    def usage(self, value: object) -> dict[str, Any] | None:
        """From the answer, or from the headers of one whose body is a stream."""
        if isinstance(value, dict) and holder_of(value) is None:
            headers = value.get("ResponseMetadata", {}).get("HTTPHeaders", {})
            tokens = {"inputTokens": headers.get(INPUT_TOKENS), "outputTokens": headers.get(OUTPUT_TOKENS)}
            value = {"usage": {name: int(count) for name, count in tokens.items() if str(count).isdigit()}}
        return super().usage(value)


class _Session:
    """The HTTP session of an endpoint, with the timeouts and the key of the attempt under way."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def send(self, request: Any) -> Any:
        """One request."""
        call, attempt = CALL.get(), current_attempt()
        if call is None or attempt is None:
            return self._own.send(request)
        call.sent((request.method, request.url))
        if call.plan.header is not None and call.plan.header not in request.headers:
            request.headers[call.plan.header] = attempt.idempotency_key
        return self._limited(attempt).send(request)

    def _limited(self, attempt: Attempt) -> Any:
        """The session with timeouts that are none beyond the attempt's: a copy that shares its connections."""
        session = copy.copy(self._own)
        connect, read = _numbers(session._timeout)
        limits = module_of("urllib3").Timeout(
            connect=min(attempt.connect_timeout, connect or attempt.connect_timeout),
            read=min(attempt.read_timeout, read or attempt.timeout),
        )
        session._timeout = limits
        session._get_request_timeout = lambda _request: limits
        return session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def _numbers(timeout: Any) -> tuple[float | None, float | None]:
    if isinstance(timeout, (int, float)):
        return timeout, timeout
    connect, read = timeout.connect_timeout, timeout.read_timeout
    return (connect if isinstance(connect, (int, float)) else None, read if isinstance(read, (int, float)) else None)
