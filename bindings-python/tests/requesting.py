"""A call under every driver, and what came of it: what the tests of `check`, `prepare` and `repair` share."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pydantic
import pytest
import trio
from failing import Script

from reprieve import Bound, Failure, Result

Play = Callable[..., Result[Any]]


def plainly(bound: Bound, function: Script, **request: Any) -> Result[Any]:
    return bound.execute(function, **request)


def on_asyncio(bound: Bound, function: Script, **request: Any) -> Result[Any]:
    return asyncio.run(bound.execute(function.coroutine(), **request))


def on_trio(bound: Bound, function: Script, **request: Any) -> Result[Any]:
    async def main() -> Result[Any]:
        return await bound.execute(function.coroutine(), **request)

    return trio.run(main)


def answered(bound: Bound, function: Script, **request: Any) -> Result[Any]:
    """A plain function that answers a coroutine, as methods of async clients do."""
    play = function.coroutine()

    async def main() -> Result[Any]:
        made: Any = bound.execute(lambda **request: play(**request), **request)
        return await made if inspect.isawaitable(made) else made  # it ended before the function was called

    return asyncio.run(main())


@pytest.fixture(params=[plainly, on_asyncio, on_trio, answered], ids=lambda play: play.__name__)
def play(request: pytest.FixtureRequest) -> Play:
    """A call under every driver."""
    return request.param  # type: ignore[no-any-return]


def reasons(result: Result[Any]) -> list[Any]:
    """Why each attempt was followed by what came."""
    return [receipt["reason"] for receipt in result.trace.receipts]


def kinds(result: Result[Any]) -> list[Any]:
    """What each attempt failed with."""
    return [receipt["kind"] for receipt in result.trace.receipts]


class Reply(pydantic.BaseModel):
    """What an answer has to be."""

    city: str
    degrees: int


GOOD, BAD = '{"city": "Paris", "degrees": 21}', '{"city": "Paris", "degrees": "warm"}'


def mend(to: str = "mended") -> Callable[[dict[str, Any], Failure], dict[str, Any]]:
    """A repair that asks for another model."""
    return lambda request, failure: {**request, "model": to}
