"""What a call asks for, and what the user's functions make of it: `prepare` and `repair` change the request, `check`
looks at the answer. Whether a request is repaired is the machine's to say.

A request is the keyword arguments of the call. Each function gets a copy: it may change that and answer nothing, or
answer another.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from . import _native
from ._errors import BadOutput

if TYPE_CHECKING:
    from ._native import Failure
    from ._options import Options


class Broken(Exception):
    """A function of the user's that the call cannot go on without has raised. Never leaves the driver."""

    def __init__(self, role: str, error: Exception) -> None:
        super().__init__(role)
        self.role, self.error = role, error


class Request:
    """The request of one call: the repaired one, once it was repaired, and prepared anew for each attempt."""

    def __init__(self, options: Options, kwargs: dict[str, Any]) -> None:
        self._options = options
        self.kwargs = kwargs

    def prepared(self, target: str) -> dict[str, Any]:
        """The arguments of an attempt on this target, in a plain function's call."""
        prepare = self._options.prepare
        return self.kwargs if prepare is None else _changed("prepare", prepare, self.kwargs, target)

    async def prepared_async(self, target: str) -> dict[str, Any]:
        """The same in a coroutine's call."""
        prepare = self._options.prepare
        return self.kwargs if prepare is None else await _changed_async("prepare", prepare, self.kwargs, target)

    def repair(self, failure: Failure) -> None:
        """Mends the request after this failure, for the rest of the call."""
        if (repair := self._repair_of(failure)) is not None:
            self.kwargs = _changed(_role(failure), repair, self.kwargs, failure)

    async def repair_async(self, failure: Failure) -> None:
        """The same in a coroutine's call."""
        if (repair := self._repair_of(failure)) is not None:
            self.kwargs = await _changed_async(_role(failure), repair, self.kwargs, failure)

    def _repair_of(self, failure: Failure) -> Callable[..., object] | None:
        return (self._options.repair or {}).get(failure.kind)


def checked(check: Callable[[Any], object], value: Any) -> None:
    """Raises where `check` refuses the value: its own exception, or `BadOutput`."""
    answer = check(value)
    if inspect.isawaitable(answer):
        raise Broken("check", _not_awaited("check", check, answer))
    _judge(answer, value)


async def checked_async(check: Callable[[Any], object], value: Any) -> None:
    """The same in a coroutine's call, where `check` may be one too."""
    answer = check(value)
    _judge(await answer if inspect.isawaitable(answer) else answer, value)


def _judge(answer: object, value: Any) -> None:
    """`False`, a kind's name and a `Failure` refuse; anything else, such as a model that was read, is fine."""
    if answer is False:
        answer = "invalid_output"
    if isinstance(answer, str):
        if answer not in KINDS:
            fault = TypeError(
                f"check answered {answer!r}, which is no kind of failure; the kinds are {', '.join(KINDS)}"
            )
            raise Broken("check", fault)
        failure = _native.Failure.from_json(f'{{"kind":"{answer}","message":"check refused the answer"}}')
    elif isinstance(answer, _native.Failure):
        failure = answer
    else:
        return
    raise BadOutput(f"check refused the answer: {failure.kind}", value=value, failure=failure)


KINDS = [kind for kind, *_ in _native.kinds()]


def _role(failure: Failure) -> str:
    return f"repair[{failure.kind!r}]"


def _changed(role: str, change: Callable[..., object], kwargs: dict[str, Any], about: object) -> dict[str, Any]:
    request = dict(kwargs)
    try:
        answer = change(request, about)
        if inspect.isawaitable(answer):
            raise _not_awaited(role, change, answer)
        return _request(role, answer, request)
    except Exception as error:
        raise Broken(role, error) from None


async def _changed_async(
    role: str, change: Callable[..., object], kwargs: dict[str, Any], about: object
) -> dict[str, Any]:
    request = dict(kwargs)
    try:
        answer = change(request, about)
        if inspect.isawaitable(answer):
            answer = await cast("Awaitable[object]", answer)
        return _request(role, answer, request)
    except Exception as error:
        raise Broken(role, error) from None


def _request(role: str, answer: object, request: dict[str, Any]) -> dict[str, Any]:
    if answer is None:
        return request
    if not isinstance(answer, Mapping):
        raise TypeError(f"{role} answered {answer!r}; it answers the keyword arguments as a dict, or None")
    return dict(cast("Mapping[str, Any]", answer))


def _not_awaited(role: str, function: object, answer: object) -> TypeError:
    if inspect.iscoroutine(answer):
        answer.close()
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return TypeError(
        f"{role} is the coroutine function {name}, and the call is one of a plain function: "
        "it takes a plain function, or a call of an `async def`"
    )
