"""Turn any exception into evidence: the raw facts of one failure, which the core classifies.

No SDK is imported. Facts are found by where clients keep them (the tables below) and by type names, so a client that
nobody here has heard of is read as well when it keeps its facts in one of the usual places. Nothing here decides.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from . import _reading as read
from ._reading import Path, first, get, is_a, is_dict, is_exception, is_list, safely

__all__ = ["chain_of", "evidence_of"]

T = TypeVar("T")

MAX_EXCEPTIONS = 50
MAX_TYPES = 64
MAX_ARGS = 8

# Where each fact is kept: paths of attributes (of keys, where a dict is met), the most telling first.
STATUS: tuple[Path, ...] = (
    ("status_code",),  # openai, anthropic and most generated SDKs
    ("status",),  # aiohttp, urllib
    ("response", "status_code"),  # httpx, httpx2, requests, google-genai
    ("response", "status"),  # urllib3
    ("response", "ResponseMetadata", "HTTPStatusCode"),  # botocore
    ("code",),  # google-api-core
)
HEADERS: tuple[Path, ...] = (
    ("litellm_response_headers",),  # whose response is made up for most providers
    ("response", "headers"),
    ("headers",),  # aiohttp, urllib
    ("response", "ResponseMetadata", "HTTPHeaders"),  # botocore
    ("response", "trailing_metadata"),  # google-api-core over gRPC
    ("trailing_metadata",),  # gRPC
)
CODE: tuple[Path, ...] = (
    ("response", "Error", "Code"),  # botocore
    ("error_code",),  # anthropic
    ("code",),  # openai, gRPC
    ("grpc_status_code",),  # google-api-core
)
TYPE: tuple[Path, ...] = (("type",),)  # openai, anthropic
MESSAGE: tuple[Path, ...] = (
    ("response", "Error", "Message"),  # botocore
    ("api_message",),  # anthropic
    ("body", "message"),  # openai, which unwraps the body's "error"
    ("body", "error", "message"),
    ("message",),  # google-genai, google-api-core, aiohttp
    ("details",),  # gRPC
)
# Fields in which clients store a body that was read. Only looked up in the instance's own dict: never a property.
STORED_BODY = ("_content", "_body", "content", "body", "text", "data")
# Attributes that hold another exception: urllib3 and urllib, aiohttp, urllib3 again.
NESTED = ("reason", "os_error", "original_error")

# What says `code` without a server having said anything: a parser's advice to a server that would answer.
NO_ANSWER = frozenset({"aiohttp.http_exceptions.HttpProcessingError"})

# The status that LiteLLM gives what no server has answered, such as a refused connection. It has no headers then.
MADE_UP = 500

# Every attribute that is ever read for a fact. Most exceptions have none of them, and cost next to nothing.
TELLING = frozenset(
    {path[0] for table in (STATUS, HEADERS, CODE, TYPE, MESSAGE) for path in table}
    | {"body", "details", "exceptions", *NESTED}
)


def evidence_of(
    exc: BaseException, trace_id_of: Callable[[BaseException], str | None] | None = None
) -> dict[str, object]:
    """What is known about `exc`, each field only when known; never raises an `Exception`.

    Status, headers, body and codes all come from one exception: the outermost that carries an answer.
    """
    chain = list(chain_of(exc))
    evidence: dict[str, object] = {"error_types": _type_names(chain), "message": _message(exc)}
    if answer := _first_of(_answer, chain):
        evidence |= answer
    if os_code := _first_of(_os_code, chain):
        evidence["os_code"] = os_code
    if _is_control(exc):
        evidence["cancelled"] = True
    if trace_id_of is not None and (trace_id := _first_of(lambda link: read.name(safely(trace_id_of, link)), chain)):
        evidence["inner_trace"] = trace_id
    return evidence


def _first_of(read_fact: Callable[[BaseException], T | None], chain: Iterable[BaseException]) -> T | None:
    return next((fact for link in chain if (fact := read_fact(link))), None)


# --- the chain -------------------------------------------------------------------------------------------------------


def chain_of(head: BaseException) -> Iterator[BaseException]:
    """`head` and what explains it, outermost first, each exception once."""
    waiting = [head]
    seen: set[int] = set()
    while waiting and len(seen) < MAX_EXCEPTIONS:
        exc = waiting.pop()
        if id(exc) not in seen:
            seen.add(id(exc))
            yield exc
            waiting.extend(reversed(list(_explanations(exc))))


def _explanations(exc: BaseException) -> Iterator[BaseException]:
    """A group's members, the explicit cause, exceptions kept as data, and what was being handled.

    What was being handled explains nothing where an exception carries an answer of its own: the 400 of a backup, tried
    because the primary timed out, is no timeout.
    """
    yield from _members(exc)
    cause, args = get(exc, "__cause__"), get(exc, "args")
    kept = islice(args, MAX_ARGS) if is_list(args) else ()
    nested = () if _is_plain(exc) else (get(exc, field) for field in NESTED)
    yield from filter(is_exception, (cause, *kept, *nested))
    if cause is None and get(exc, "__suppress_context__") is False:
        context = get(exc, "__context__")
        if is_exception(context) and not _answer(exc):
            yield context


def _members(exc: BaseException) -> Iterator[BaseException]:
    members = get(exc, "exceptions")
    if is_list(members):
        yield from filter(is_exception, islice(members, MAX_EXCEPTIONS))


def _is_control(head: BaseException) -> bool:
    """Whether `head`, or a member of the group that it is, is no `Exception`: a cancellation or an exit."""
    waiting = [head]
    seen: set[int] = set()
    while waiting and len(seen) < MAX_EXCEPTIONS:
        exc = waiting.pop()
        if not is_a(exc, Exception):
            return True
        if id(exc) not in seen:
            seen.add(id(exc))
            waiting.extend(_members(exc))
    return False


def _type_names(chain: Iterable[BaseException]) -> list[str]:
    names = (name for exc in chain for name in safely(_names_of, type(exc)) or ())
    return list(islice(dict.fromkeys(names), MAX_TYPES))


@lru_cache
def _names_of(cls: type[BaseException]) -> tuple[str, ...]:
    """Qualified, most derived first, without what every exception is."""
    kinds = (kind for kind in cls.__mro__ if issubclass(kind, BaseException))
    return tuple(_type_name(kind) for kind in kinds if kind not in (BaseException, Exception))


def _type_name(cls: type) -> str:
    return f"{read.name(get(cls, '__module__')) or 'unknown'}.{read.name(get(cls, '__qualname__')) or 'Unknown'}"


def _root_of(cls: type) -> str:
    return (read.name(get(cls, "__module__")) or "").partition(".")[0]


def _is_plain(exc: BaseException) -> bool:
    """Whether no attribute that is read for a fact can be there, by looking and not by reading."""
    own = get(exc, "__dict__")
    return is_dict(own) and TELLING.isdisjoint(own) and safely(_has_plain_class, type(exc)) is True


@lru_cache
def _has_plain_class(cls: type[BaseException]) -> bool:
    computed = cls.__getattribute__ is not BaseException.__getattribute__ or hasattr(cls, "__getattr__")
    return not computed and all(TELLING.isdisjoint(kind.__dict__) for kind in cls.__mro__)


# --- what one exception says -----------------------------------------------------------------------------------------


def _answer(exc: BaseException) -> dict[str, object]:
    """What the other side answered, as far as this exception carries it; empty when it carries no answer."""
    if _is_plain(exc) or not NO_ANSWER.isdisjoint(safely(_names_of, type(exc)) or ()):
        return {}
    number = first(exc, STATUS, read.status)
    code = first(exc, CODE, read.code) or read.constant(get(exc, "status"))  # google-genai: "RESOURCE_EXHAUSTED"
    if code == str(number):  # botocore says so when it could not parse the body
        code = None
    body, headers = _body(exc), first(exc, HEADERS, read.headers)
    if number is None and code is None and not is_dict(body):
        return {}
    if number == MADE_UP and not headers and _root_of(type(exc)) == "litellm":
        return {}
    facts = {
        "status": number,
        "headers": headers,
        "body": body,
        "provider_code": code,
        "provider_type": first(exc, TYPE, read.name),
    }
    return {field: fact for field, fact in facts.items() if fact is not None}


def _message(exc: BaseException) -> str:
    told = None if _is_plain(exc) else first(exc, MESSAGE, read.text)
    return told or read.text(safely(str, exc)) or _type_name(type(exc)).rpartition(".")[2]


def _os_code(exc: BaseException) -> str | None:
    """`ECONNRESET` and the like; for an unresolved name what Node says; for TLS the reason that OpenSSL gives."""
    if not is_a(exc, OSError) or is_exception(get(exc, "os_error")):  # aiohttp: the one inside knows better
        return None
    if "ssl.SSLError" in (safely(_names_of, type(exc)) or ()):  # its errno counts TLS errors
        return read.constant(get(exc, "reason"))
    number = get(exc, "errno")
    if not is_a(number, int):
        return None
    if is_a(exc, socket.gaierror):
        return "EAI_AGAIN" if number == socket.EAI_AGAIN else "ENOTFOUND"
    return errno.errorcode.get(number)


def _body(exc: BaseException) -> object:
    """The answer's body: as the client parsed it, or as it was read; absent when unread or over 1 MiB."""
    for value in _body_candidates(exc):
        if is_a(value, str) and 0 < len(value) <= read.MAX_BODY:
            return read.well_formed(value)
        if is_a(value, bytes) and 0 < len(value) <= read.MAX_BODY:
            return bytes(value)
        if (is_dict(value) or is_list(value)) and value:
            return safely(read.Plain().copy, value)
    return None


def _body_candidates(exc: BaseException) -> Iterator[object]:
    yield get(exc, "body")  # openai, anthropic
    details = get(exc, "details")
    if is_dict(details):  # google-genai
        yield details
    response = get(exc, "response")
    if is_dict(response):  # botocore: the parsed body, and what it knows about the transfer beside it
        yield {key: value for key, value in response.items() if key != "ResponseMetadata"}
    elif response is not None:
        stored = safely(vars, response)
        yield from (read.step(stored, field) for field in STORED_BODY if is_dict(stored))
    grpc_name = read.code(get(exc, "grpc_status_code"))
    if grpc_name is not None and is_list(details) and details:
        # google-api-core over gRPC has a body's facts without a body: given in the form that its REST calls have.
        yield {"error": {"status": grpc_name, "message": get(exc, "message"), "details": details}}
