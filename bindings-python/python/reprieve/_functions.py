"""What kind of function a policy is given, and which kinds it cannot retry."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from ._errors import ConfigError


def is_coroutine_function(function: object) -> bool:
    """Also for partials, and for objects whose `__call__` is one."""
    return any(map(inspect.iscoroutinefunction, _bodies(function)))


def refuse_generators(function: object) -> None:
    """A generator's body runs when somebody iterates: a policy around its call would retry nothing."""
    if not callable(function):
        raise ConfigError("function", repr(function), "a function or a coroutine function")
    for body in _bodies(function):
        if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
            raise TypeError(
                f"{function!r} is a generator function; streams are not supported yet. "
                "Decorate the function that opens the stream, or collect it inside of a plain function"
            )


def _bodies(function: object) -> tuple[object, object]:
    """What runs when this is called: the function inside of partials, and the `__call__` of an object."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    return inner, type(inner).__call__ if callable(inner) else None
