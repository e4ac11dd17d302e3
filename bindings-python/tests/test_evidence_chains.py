"""Evidence from chains and groups of exceptions, and from objects that were made to hurt."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock, Mock

import httpx
import pytest
from failing import failure_of
from failing_server import MIB

from reprieve._evidence import evidence_of

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup, ExceptionGroup

Evidence = dict[str, Any]

# --- chains and groups -----------------------------------------------------------------------------------------------


class Mine(Exception):
    pass


class Answered(Exception):
    def __init__(self, status: int) -> None:
        self.status_code = status


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    error.__cause__ = cause
    return error


def name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def test_types_outermost_first() -> None:
    types = evidence_of(raised(Mine(), raised(TimeoutError(), ConnectionResetError())))["error_types"]
    timeout = ["builtins.TimeoutError", "builtins.OSError"]
    assert types == [name_of(Mine), *timeout, "builtins.ConnectionResetError", "builtins.ConnectionError"]


def test_context_unless_suppressed() -> None:
    def call(suppress: bool) -> None:
        try:
            raise KeyError("inner")
        except KeyError:
            if suppress:
                raise Mine from None
            raise Mine  # noqa: B904

    assert "builtins.KeyError" in cast(list[str], evidence_of(failure_of(lambda: call(False)))["error_types"])
    assert "builtins.KeyError" not in cast(list[str], evidence_of(failure_of(lambda: call(True)))["error_types"])


def test_an_answer_wrapped_by_the_users_own_error() -> None:
    assert evidence_of(raised(Mine("no summary"), Answered(429)))["status"] == 429
    assert evidence_of(raised(Mine("no summary"), Answered(429)))["message"] == "no summary"


def test_what_was_being_handled_does_not_explain_an_answer() -> None:
    def backup() -> None:
        try:
            raise httpx.ReadTimeout("primary")
        except httpx.ReadTimeout:
            raise Answered(400)  # noqa: B904

    evidence = evidence_of(failure_of(backup))
    assert (evidence["status"], evidence["error_types"]) == (400, [name_of(Answered)])


def test_the_outermost_answer_counts_alone() -> None:
    inner = Answered(503)
    cast(Any, inner).headers = {"Retry-After": "9"}
    evidence = evidence_of(raised(Answered(429), inner))
    assert evidence["status"] == 429
    assert "headers" not in evidence


def test_group_members_in_order() -> None:
    group = ExceptionGroup("g", [ValueError(), ExceptionGroup("h", [KeyError()]), OSError()])
    types = cast(list[str], evidence_of(group)["error_types"])
    places = [types.index(f"builtins.{name}") for name in ("ValueError", "KeyError", "OSError")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        SystemExit(429),
        GeneratorExit(),
        BaseExceptionGroup("g", [ValueError(), BaseExceptionGroup("h", [KeyboardInterrupt()])]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_control(error: BaseException) -> None:
    assert evidence_of(error)["cancelled"] is True


def test_a_cancellation_that_became_a_timeout_is_a_timeout() -> None:
    async def main() -> None:
        await asyncio.wait_for(asyncio.sleep(300), 0.01)

    evidence: Evidence = evidence_of(failure_of(lambda: asyncio.run(main())))
    assert evidence["error_types"][0].endswith("TimeoutError")
    assert "cancelled" not in evidence
    assert "cancelled" not in evidence_of(raised(Mine(), KeyboardInterrupt()))


def test_an_inner_trace_anywhere_along_the_chain() -> None:
    inner = KeyError()
    outer = raised(Mine(), inner)
    assert evidence_of(outer, lambda error: "ab" * 16 if error is inner else None)["inner_trace"] == "ab" * 16
    assert "inner_trace" not in evidence_of(outer, lambda error: None)
    assert "inner_trace" not in evidence_of(outer, cast(Any, lambda error: 1 / 0))


# --- hostile objects -------------------------------------------------------------------------------------------------


def test_cycles_end() -> None:
    one, two = Mine(), Mine()
    one.__cause__, two.__cause__ = two, one
    one.args = (two, one)
    assert evidence_of(one)["error_types"] == [name_of(Mine)]


def test_long_chains_are_cut() -> None:
    head: BaseException = Mine()
    for number in range(5000):
        head = raised(type(f"Error{number}", (Exception,), {})(), head)
    wide = ExceptionGroup("g", [type(f"Member{number}", (Exception,), {})() for number in range(5000)])
    for error in (head, wide):
        assert len(cast(list[str], evidence_of(error)["error_types"])) <= 64


class Hostile(Exception):
    """Every attribute that nobody set raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class RaisingProperties(Exception):
    @property
    def response(self) -> object:
        raise ValueError

    @property
    def status_code(self) -> int:
        raise ValueError

    body = headers = message = exceptions = response


class Mocked(Exception):
    def __getattr__(self, name: str) -> object:
        return MagicMock()


class BadText(Exception):
    def __str__(self) -> str:
        raise ValueError


class NoText(Exception):
    def __str__(self) -> str:
        return cast(str, 7)


@pytest.mark.parametrize("kind", [Hostile, RaisingProperties, Mocked, BadText, NoText])
def test_hostile_exceptions(kind: type[Exception]) -> None:
    evidence = evidence_of(kind())
    assert set(evidence) == {"error_types", "message"}
    assert cast(list[str], evidence["error_types"]) == [name_of(kind)]
    assert evidence["message"] == kind.__name__


def with_fields(**fields: object) -> Evidence:
    error = Mine("m")
    error.__dict__.update(fields)
    return evidence_of(error)


@pytest.mark.parametrize("status", [True, 99, 600, 10**30, "429", 429.0, None, Mock(), Mock(spec=int)])
def test_what_is_no_status(status: object) -> None:
    assert "status" not in with_fields(status_code=status)
    assert "status" not in with_fields(response=SimpleNamespace(status_code=status))


@pytest.mark.parametrize(
    "headers",
    [Mock(), MagicMock(), 7, "retry-after", [1, None, ("a",), ("a", "b", "c")], {"a": None}.keys(), {1: 2}],
)
def test_what_are_no_headers(headers: object) -> None:
    assert "headers" not in with_fields(status_code=500, headers=headers)


def test_headers_are_bounded() -> None:
    endless = ((f"H{number}", "v" * MIB) for number in iter(int, 1))
    headers = with_fields(status_code=500, headers=endless)["headers"]
    assert len(headers) == 200
    assert {len(value) for _, value in headers} == {8192}
    assert with_fields(status_code=500, headers=[(b"A\xff", b"\xe9"), ("b\ud800", "")])["headers"] == [
        ["a\xff", "\xe9"],
        ["b\ufffd", ""],
    ]


def test_lone_surrogates_and_long_text() -> None:
    assert evidence_of(Mine("a\ud800b\udc00"))["message"] == "a\ufffdb\ufffd"
    assert evidence_of(Mine("\ud83d\ude00"))["message"] == "\U0001f600"
    message = cast(str, evidence_of(Mine("€" * MIB))["message"])
    assert message == "€" * (8192 // 3)


def test_bodies_become_plain() -> None:
    cyclic: dict[str, object] = {}
    cyclic["again"] = cyclic
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    for hostile in (cyclic, deep, {"a": "x" * (MIB + 1)}, list(range(100_000))):
        assert "body" not in with_fields(status_code=500, body=hostile)
    odd = {"n": float("nan"), "big": 10**40, "o": object(), "m": MagicMock(), "s": "\ud800", 7: 1, "t": (1, True, None)}
    plain = {"n": None, "big": None, "o": None, "m": None, "s": "\ufffd", "t": [1, True, None]}
    assert with_fields(status_code=500, body=odd)["body"] == plain
    assert with_fields(status_code=500, body=bytearray(b"x")).get("body") is None
    assert with_fields(response=SimpleNamespace(status_code=500, text="plain"))["body"] == "plain"


def test_subclasses_with_minds_of_their_own() -> None:
    class Text(str):
        __slots__ = ()

        def __getitem__(self, key: object) -> str:
            raise ValueError

        isascii = encode = __str__ = __getitem__  # type: ignore[assignment]

    class Number(int):
        def __int__(self) -> int:
            raise ValueError

        __index__ = __eq__ = __hash__ = __int__

    evidence = with_fields(status_code=Number(429), body=Text("b"), message=Text("m"), code=Text("c"))
    assert [evidence[field] for field in ("status", "body", "message", "provider_code")] == [429, "b", "m", "c"]
    assert {type(evidence[field]) for field in ("body", "message", "provider_code")} == {str}


def test_a_class_that_lies_about_its_names() -> None:
    class Meta(type):
        __module__ = property(lambda cls: 1 / 0)  # type: ignore[assignment]

        def __hash__(cls) -> int:
            raise ValueError

    kind = Meta("Odd", (Exception,), {})
    assert isinstance(evidence_of(kind())["error_types"], list)
