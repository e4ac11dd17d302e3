"""Reading objects that others wrote: exceptions, responses, parsed bodies. Nothing here raises or does IO.

- A value counts only if its real type is right, so that a mock or a lazy proxy is no fact.
- Attributes are read, methods are not called, but for the few that answer from memory.
- Everything is bounded: names, headers, text, the size of a body.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeGuard, TypeVar, cast

T = TypeVar("T")
Path = tuple[str, ...]
Pairs = Iterable[tuple[object, object]]

MAX_HEADERS = 200
MAX_TEXT = 8 * 1024
MAX_NAME = 256
MAX_BODY = 1024 * 1024
MAX_BODY_NODES = 50_000
MAX_BODY_DEPTH = 64
STATUSES = range(100, 600)
JSON_INTEGERS = range(-(2**63), 2**64)

# gRPC keeps its facts behind methods, which answer from memory once the error is raised.
GRPC_METHODS = frozenset({"code", "details", "trailing_metadata"})

CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+", re.ASCII)

# --- finding ---------------------------------------------------------------------------------------------------------


def get(value: object, field: str) -> object:
    try:
        return cast(object, getattr(value, field, None))
    except Exception:
        return None


def safely(function: Callable[..., T], *args: object) -> T | None:
    try:
        return function(*args)
    except Exception:
        return None


def step(value: object, field: str) -> object:
    """One key or attribute. `code` is read only where it is plain data: as a property it warns on some clients."""
    if is_dict(value):
        return value.get(field)
    if field in GRPC_METHODS and any(get(cls, "__module__") == "grpc" for cls in type(value).__mro__):
        method = get(value, field)
        return safely(method) if callable(method) else None
    if field == "code" and any(isinstance(cls.__dict__.get(field), property) for cls in type(value).__mro__):
        return None
    return get(value, field)


def dig(value: object, path: Path) -> object:
    for field in path:
        if value is None:
            return None
        value = step(value, field)
    return value


def first(value: object, paths: Iterable[Path], convert: Callable[[object], T | None]) -> T | None:
    """What `convert` makes of the first path that leads to something it accepts."""
    for path in paths:
        found = dig(value, path)
        if found is not None and (fact := safely(convert, found)) is not None:
            return fact
    return None


# --- types, by the real one: a mock may claim any `__class__` ---------------------------------------------------------


def is_a(value: object, kind: type[T]) -> TypeGuard[T]:
    return issubclass(type(value), kind)


def is_exception(value: object) -> TypeGuard[BaseException]:
    return issubclass(type(value), BaseException)


def is_dict(value: object) -> TypeGuard[dict[object, object]]:
    return issubclass(type(value), dict)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    return issubclass(type(value), (list, tuple))


def _module_of(value: object) -> str:
    return name(get(type(value), "__module__")) or ""


# --- converting: each answers None for what it does not accept -------------------------------------------------------


def status(value: object) -> int | None:
    if not is_a(value, int) or is_a(value, bool):
        return None
    number = int.__index__(value)
    return number if number in STATUSES else None


def text(value: object, limit: int = MAX_TEXT) -> str | None:
    """At most `limit` bytes of UTF-8, whole characters; None when empty."""
    if not is_a(value, str):
        return None
    short = well_formed(str.__getitem__(value, slice(limit)))
    return (short if short.isascii() else short.encode()[:limit].decode(errors="ignore")) or None


def name(value: object) -> str | None:
    return text(value, MAX_NAME)


def code(value: object) -> str | None:
    """A code in words: as it is, or the name of an enum's member unless that is a number (an `HTTPStatus`)."""
    return name(value) or (None if is_a(value, int) else constant(get(value, "name")))


def constant(value: object) -> str | None:
    """A name such as `RESOURCE_EXHAUSTED`: no prose."""
    word = name(value)
    return word if word is not None and CONSTANT.fullmatch(word) else None


def headers(value: object) -> list[list[str]] | None:
    """Pairs with lower-cased names; a repeated header stays repeated."""
    listing = get(value, "multi_items") or get(value, "items")  # `items` of httpx joins repeated headers
    if _module_of(value).startswith("grpc."):  # already pairs; its `items` is broken
        listing = None
    pairs: list[list[str]] = []
    for pair in islice(cast("Iterable[object]", listing() if callable(listing) else value), MAX_HEADERS):
        if is_list(pair) and len(pair) == 2:
            field, content = _decoded(pair[0]), _decoded(pair[1])
            if field:
                pairs.append([field.lower(), content])
    return pairs or None


def _decoded(value: object) -> str:
    return (text(value[:MAX_TEXT].decode("latin-1")) if is_a(value, bytes) else text(value)) or ""


def well_formed(value: str) -> str:
    """As plain `str`, with U+FFFD for each lone surrogate."""
    plain = str.__getitem__(value, slice(None))
    return plain if plain.isascii() else plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# --- parsed bodies ---------------------------------------------------------------------------------------------------


class Plain:
    """Copies what a client parsed into plain JSON values, within bounds; `copy` raises `ValueError` beyond them."""

    def __init__(self) -> None:
        self._nodes = MAX_BODY_NODES
        self._room = MAX_BODY

    def copy(self, value: object, depth: int = 0) -> object:
        self._nodes -= 1
        self._room -= len(value) if is_a(value, str) else 0
        if depth > MAX_BODY_DEPTH or self._nodes < 0 or self._room < 0:
            raise ValueError("a body beyond its bounds")
        if is_a(value, str):
            return well_formed(value)
        if is_dict(value):
            pairs = ((name(key), item) for key, item in value.items())
            return {key: self.copy(item, depth + 1) for key, item in pairs if key is not None}
        if is_list(value):
            return [self.copy(item, depth + 1) for item in value]
        if is_a(value, int) or is_a(value, float):
            return _number(value)
        return self._message(value, depth)

    def _message(self, value: object, depth: int) -> object:
        """A protobuf message in its JSON form, as far as error details use it; None for anything else."""
        kind = name(dig(value, ("DESCRIPTOR", "full_name")))
        if kind is None:
            return self._container(value, depth)
        if kind == "google.protobuf.Duration":
            return f"{get(value, 'seconds')}.{get(value, 'nanos'):09}s"
        fields = cast("Callable[[], Pairs]", get(value, "ListFields"))()
        named = {get(field, "json_name"): item for field, item in fields}
        return self.copy({"@type": f"type.googleapis.com/{kind}", **named}, depth)

    def _container(self, value: object, depth: int) -> object:
        """The lists and maps inside a protobuf message, which are neither lists nor dicts."""
        if not _module_of(value).startswith("google."):
            return None
        pairs = get(value, "items")
        return self.copy(
            dict(cast("Pairs", pairs())) if callable(pairs) else list(cast("Iterable[object]", value)), depth
        )


def _number(value: float) -> object:
    if isinstance(value, int):
        return value if value in JSON_INTEGERS else None
    return value if math.isfinite(value) else None
