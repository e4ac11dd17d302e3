"""What kind of function a policy is given, and which kinds it cannot retry."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

from ._errors import ConfigError


def is_coroutine_function(function: object) -> bool:
    """Also for partials, and for objects whose `__call__` is one."""
    return any(map(inspect.iscoroutinefunction, _bodies(function)))


def is_generator_function(function: object) -> bool:
    """Likewise, of generators for `for`."""
    return any(map(inspect.isgeneratorfunction, _bodies(function)))


def is_async_generator_function(function: object) -> bool:
    """Likewise, of generators for `async for`."""
    return any(map(inspect.isasyncgenfunction, _bodies(function)))


def check_callable(function: object) -> None:
    """Refuses what cannot be called."""
    if not callable(function):
        raise ConfigError("function", repr(function), "a function or a coroutine function")


def refuse_generators(*functions: object) -> None:
    """A generator's body runs when somebody iterates: a policy around its call would retry nothing."""
    for function in functions:
        check_callable(function)
        if is_generator_function(function) or is_async_generator_function(function):
            raise TypeError(
                f"{function!r} is a generator function, whose body runs when its items are asked for: "
                "use `policy.stream(function, ...)`, or decorate it, and iterate over what that answers"
            )


def called_by_name(retrying: Callable[..., Any]) -> Callable[..., Any]:
    """What a decorated function has as its `__call__`: for those that look at it, and then call the function itself."""

    @functools.wraps(retrying)
    def __call__(*args: Any, **kwargs: Any) -> Any:
        return retrying(*args, **kwargs)

    with contextlib.suppress(TypeError, ValueError, NameError):  # a builtin's, or annotations that cannot be looked up
        vars(__call__)["__signature__"] = inspect.signature(retrying)
    return __call__


def _bodies(function: object) -> tuple[object, object]:
    """What runs when this is called: the function inside of partials, and the `__call__` of an object."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    return inner, type(inner).__call__ if callable(inner) else None
